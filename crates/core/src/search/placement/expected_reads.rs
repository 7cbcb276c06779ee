//! The reads that a query is expected to make of its lists.

use super::learned_reads::LearnedReads;
use super::read_rates::ReadRates;
use crate::index::BLOCK_LEN;
use crate::query::Query;

/// The expected reads of one list by one query, relative to other queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::search) struct ListRead {
    /// The list's number, which is its term's.
    pub(in crate::search) list: u32,
    /// The reads of all of its blocks together.
    pub(in crate::search) reads: f64,
}

/// The expected reads of each of a query's `lists`, which are pairs of number and length in postings.
///
/// Documents of the shortest list are looked up in the others; `rates` say how many of them are. A single list is read block by block.
pub(in crate::search) fn expected_reads<'a, I: Iterator<Item = (u32, u32)> + Clone>(
    lists: I,
    rates: &'a ReadRates,
) -> impl Iterator<Item = ListRead> + use<'a, I> {
    let (num_lists, shortest) =
        lists.clone().fold((0_u32, u32::MAX), |(count, least), (_, len)| (count + 1, least.min(len)));
    let reads = f64::from(if num_lists > 1 { shortest } else { shortest.div_ceil(BLOCK_LEN as u32) });
    lists.map(move |(list, len)| ListRead { list, reads: reads * rates.of(len) })
}

/// The expected reads of a query's lists.
pub(in crate::search) fn query_reads<'a>(
    query: &'a Query,
    rates: &'a ReadRates,
) -> impl Iterator<Item = ListRead> + use<'a> {
    expected_reads(query.terms.iter().map(|term| (term.term.0, term.doc_freq)), rates)
}

/// The expected reads of all queries of a log, by list.
#[must_use]
pub(in crate::search) fn log_reads(log: &[Query], rates: &ReadRates) -> LearnedReads {
    let mut learned = LearnedReads::default();
    for (number, query) in log.iter().enumerate() {
        query_reads(query, rates).for_each(|read| learned.record(number, read.list, read.reads));
    }
    learned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_of_a_query_are_read_as_often_as_its_shortest() {
        let reads = |lists: &[(u32, u32)], rates: &ReadRates| -> Vec<(u32, f64)> {
            expected_reads(lists.iter().copied(), rates).map(|read| (read.list, read.reads)).collect()
        };
        assert_eq!(reads(&[(7, 100), (2, 128_000)], &ReadRates::default()), [(7, 100.0), (2, 100.0)]);
        // A single list is read by blocks.
        assert_eq!(reads(&[(2, 128_000)], &ReadRates::default()), [(2, 1000.0)]);
        // Few of the shortest list's documents are looked up in long lists.
        let rates = ReadRates::counted([(100, 1.0, 1.0), (128_000, 100.0, 5.0)]);
        let [(_, short), (_, long)] = reads(&[(7, 100), (2, 128_000)], &rates)[..] else { panic!("two lists") };
        assert!((short - 100.0).abs() < 1e-4 && (long - 5.0).abs() < 1e-4, "{short} and {long}");
    }
}
