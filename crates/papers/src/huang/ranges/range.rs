//! Ranges of documents, one per owner.
//!
//! The published ranges all have ⌈N/P⌉ documents. Lists are not evenly spread, so that some owners have several times
//! the work of others, and all wait for the slowest. [`equal_work`] cuts ranges with equally many postings, from a
//! sample of the blocks' greatest documents.

use std::ops::Range;

use tandem_engine::search::ExecError;

use super::list::{RANGE_BLOCK_LEN, RangeList};

/// Maximum number of owners of a query: `RANGE_THREADS` in kernels/huang/huang.cuh.
pub(crate) const MAX_OWNERS: u32 = 512;

/// Checks the number of owners of a query. Returns [`ExecError::BadThreads`] if a query cannot have `threads` of them.
pub(crate) fn check_owners(threads: u32) -> Result<(), ExecError> {
    let is_good = (32..=MAX_OWNERS).contains(&threads) && threads.is_multiple_of(32);
    if is_good { Ok(()) } else { Err(ExecError::BadThreads { threads, most: MAX_OWNERS }) }
}

/// Returns the documents of an owner: ⌈N/P⌉ of them, fewer or none at the end of the collection.
pub(crate) fn range_of(owner: u32, owners: u32, num_docs: u32) -> Range<u32> {
    let each = num_docs.div_ceil(owners);
    // The product is below N + P and does not overflow.
    let begin = (owner * each).min(num_docs);
    begin..(begin + each).min(num_docs)
}

/// Division of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ranges {
    /// ⌈N/P⌉ documents each; owners do not share results.
    AsPublished,
    /// Equal numbers of postings; owners share their thresholds.
    EqualWork,
}

/// Sampled blocks per owner; a range then exceeds its share by about an eighth at most.
const SAMPLES_AN_OWNER: usize = 8;

/// Returns the first documents of the ranges of `owners` and the end of the last one, with about equally many postings
/// of `lists` in each.
pub(crate) fn equal_work<'a>(lists: impl Iterator<Item = &'a RangeList>, owners: u32, num_docs: u32) -> Vec<u32> {
    let lists: Vec<&RangeList> = lists.collect();
    let blocks: usize = lists.iter().map(|list| list.blocks.len()).sum();
    let stride = blocks.div_ceil(SAMPLES_AN_OWNER * owners as usize).max(1);
    // A sample is a document and the number of postings since the previous sample of its list.
    let mut samples: Vec<(u32, u64)> = Vec::with_capacity(blocks / stride + 2 * lists.len());
    for list in lists {
        for blocks in list.blocks.chunks(stride) {
            samples.push((blocks[blocks.len() - 1].greatest, (blocks.len() * RANGE_BLOCK_LEN) as u64));
        }
    }
    samples.sort_unstable();
    let total: u64 = samples.iter().map(|&(_, postings)| postings).sum();
    let mut cuts = vec![0];
    let mut before = 0;
    for (doc, postings) in samples {
        before += postings;
        while cuts.len() < owners as usize && before * u64::from(owners) >= total * cuts.len() as u64 {
            cuts.push((doc + 1).min(num_docs));
        }
    }
    cuts.resize(owners as usize, num_docs);
    cuts.push(num_docs);
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_come_in_whole_warps() {
        assert!([32, 64, 96, 320, 512].iter().all(|&threads| check_owners(threads).is_ok()));
        for threads in [0, 1, 31, 33, 100, 513, 544, u32::MAX] {
            let refused = check_owners(threads).unwrap_err().to_string();
            assert!(refused.contains("multiple of 32 up to 512"), "{refused}");
        }
    }

    #[test]
    fn ranges_of_equal_work_have_about_as_many_postings() {
        let list = |docs: Vec<u32>| RangeList::encode(&docs, &vec![1; docs.len()], |_| 1.0);
        // Nine tenths of the postings are in the first tenth of the documents.
        let lists = [
            list((0..90_000).chain((100_000..1_000_000).step_by(90)).collect()),
            list((500_000..520_000).collect()),
            list(vec![999_999]),
        ];
        for owners in [32, 64, 512] {
            let cuts = equal_work(lists.iter(), owners, 1_000_000);
            assert!(cuts.len() == owners as usize + 1 && cuts.is_sorted());
            assert_eq!((cuts[0], cuts[owners as usize]), (0, 1_000_000));
            let inside = |from: u32, to: u32| {
                let dense =
                    to.min(90_000).saturating_sub(from) + to.clamp(500_000, 520_000) - from.clamp(500_000, 520_000);
                dense + (to.max(100_000) - from.max(100_000)) / 90
            };
            let share = 120_000 / owners;
            for pair in cuts.windows(2) {
                assert!(inside(pair[0], pair[1]) <= share + share / 4 + 2 * 64, "{owners} owners: {pair:?}");
            }
        }
        assert_eq!(equal_work(std::iter::empty(), 32, 7), [&[0][..], &[7; 32]].concat());
    }

    #[test]
    fn ranges_of_any_number_cover_every_document_once() {
        for num_docs in [1, 2, 31, 63, 64, 65, 1000, (1 << 31) - 1] {
            for owners in [1, 2, 32, 64, 320, 512] {
                let mut next = 0;
                for owner in 0..owners {
                    let range = range_of(owner, owners, num_docs);
                    assert!(range.start == next && range.end >= range.start, "{owner} of {owners}: {range:?}");
                    assert!(range.len() <= num_docs.div_ceil(owners) as usize);
                    next = range.end;
                }
                assert_eq!(next, num_docs, "{owners} owners");
            }
        }
    }
}
