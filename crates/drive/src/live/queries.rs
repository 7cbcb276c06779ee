//! The queries that workers run, with the check of their answers.

use std::sync::atomic::{AtomicU64, Ordering};

use tandem_engine::query::Query;
use tandem_engine::search::{Hit, Request};
use tandem_model::base::ids::QueryId;
use tandem_model::traffic::Mode;

/// A query as workers run it.
#[derive(Clone, Debug)]
pub struct LiveQuery {
    /// Its id in the workload, by which jobs name it.
    pub id: QueryId,
    /// Its terms.
    pub query: Query,
    /// How its terms combine.
    pub mode: Mode,
    /// The number of documents that the profile found, if one is given.
    pub results: Option<u32>,
}

/// The queries of a lane pool, by their row in the workload, with the `k` common to all.
#[derive(Debug, Default)]
pub struct QuerySet {
    k: usize,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    live: LiveQuery,
    /// Hash of the query's first answer, 0 before that. The first worker to answer writes it, once.
    answer: AtomicU64,
}

impl QuerySet {
    /// Takes in the queries in the order of the workload's rows.
    pub fn new(k: usize, queries: impl IntoIterator<Item = LiveQuery>) -> Self {
        let entry = |live| Entry { live, answer: AtomicU64::new(0) };
        Self { k, entries: queries.into_iter().map(entry).collect() }
    }

    /// Documents asked for by each query.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// The number of queries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no queries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The query in this row.
    #[must_use]
    pub fn get(&self, row: u32) -> Option<&LiveQuery> {
        self.entries.get(row as usize).map(|entry| &entry.live)
    }

    /// The workload's id of the query in this row.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn id(&self, row: u32) -> QueryId {
        self.entries[row as usize].live.id
    }

    /// The query in this row, as a request to an executor.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn request(&self, row: u32) -> Request<'_> {
        let LiveQuery { query, mode, .. } = &self.entries[row as usize].live;
        Request { query, mode: *mode, k: self.k }
    }

    /// Compares an answer with the profile's and with the first answer to this query.
    ///
    /// # Errors
    /// The difference, in words.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn check(&self, row: u32, hits: &[Hit]) -> Result<(), String> {
        let entry = &self.entries[row as usize];
        if let Some(results) = entry.live.results
            && hits.len() != results as usize
        {
            return Err(format!("it found {} documents, its profile has {results}", hits.len()));
        }
        let hash = hash(hits);
        // The hash guards no other memory: relaxed will do. A load first leaves the cache line shared.
        let first = match entry.answer.load(Ordering::Relaxed) {
            0 => entry.answer.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed).err().unwrap_or(hash),
            first => first,
        };
        if first == hash {
            Ok(())
        } else {
            Err(String::from("its documents or scores differ from those of an earlier run of the same query"))
        }
    }
}

/// A hash of documents and score bits in order; never 0. Each hit is multiplied and the halves of the product are folded,
/// as in wyhash: about a nanosecond a hit.
fn hash(hits: &[Hit]) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let folded = hits.iter().fold(hits.len() as u64, |state, hit| {
        let word = u64::from(hit.doc.0) << 32 | u64::from(hit.score.to_bits());
        let product = u128::from(state ^ word.wrapping_mul(ODD)) * u128::from(ODD | 1 << 63);
        (product as u64) ^ (product >> 64) as u64 ^ word.rotate_left(23)
    });
    folded.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::base::ids::DocId;

    #[test]
    fn an_answer_must_have_the_profiles_length_and_repeat_exactly() {
        let query = Query { id: QueryId(0), label: String::new(), terms: Vec::new(), dropped_terms: 0 };
        let live = LiveQuery { id: QueryId(9), query, mode: Mode::And, results: Some(1) };
        let set = QuerySet::new(10, [live]);
        assert!(set.k() == 10 && set.len() == 1 && !set.is_empty());
        let none = QuerySet::new(10, []);
        assert_eq!((none.len(), none.is_empty()), (0, true));
        let hit = |doc, score| Hit { doc: DocId(doc), score };
        assert!(set.check(0, &[]).unwrap_err().contains("found 0 documents, its profile has 1"));
        set.check(0, &[hit(1, 2.0)]).unwrap();
        set.check(0, &[hit(1, 2.0)]).unwrap();
        assert!(set.check(0, &[hit(1, 2.5)]).unwrap_err().contains("differ"));
    }

    #[test]
    fn answers_that_differ_in_anything_hash_differently() {
        let hit = |doc, score| Hit { doc: DocId(doc), score };
        let mut hashes: Vec<u64> = Vec::new();
        for a in 0..20 {
            for b in 0..20 {
                hashes.push(hash(&[hit(a, 1.0), hit(b, 1.0)]));
                hashes.push(hash(&[hit(a, 1.0), hit(b, 1.5)]));
                hashes.push(hash(&[hit(a, 1.5), hit(b, 1.0), hit(0, 0.0)]));
            }
        }
        let all = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), all);
    }
}
