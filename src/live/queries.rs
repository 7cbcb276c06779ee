//! The queries that workers run, and what is known of their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::Xxh3Default;

use crate::exec::Hit;
use crate::ids::QueryId;
use crate::query::{Mode, Query};

/// A query as workers run it.
#[derive(Clone, Debug)]
pub struct LiveQuery {
    /// Its id in the workload: what jobs ask for.
    pub id: QueryId,
    /// Its terms.
    pub query: Query,
    /// How they combine.
    pub mode: Mode,
    /// How many documents the profile found, where there is one.
    pub results: Option<u32>,
}

/// The queries of a fleet, by their id in the workload, with the `k` that all of them ask for.
#[derive(Debug, Default)]
pub struct QuerySet {
    k: usize,
    entries: Vec<Entry>,
    positions: HashMap<QueryId, u32>,
}

#[derive(Debug)]
struct Entry {
    live: LiveQuery,
    /// The hash of the first answer to come, 0 until then. Written once, by whichever worker comes first.
    answer: AtomicU64,
}

impl QuerySet {
    /// Takes the queries in; of equal ids the last one counts.
    pub fn new(k: usize, queries: impl IntoIterator<Item = LiveQuery>) -> Self {
        let entries: Vec<Entry> = queries.into_iter().map(|live| Entry { live, answer: AtomicU64::new(0) }).collect();
        let positions = entries.iter().enumerate().map(|(i, entry)| (entry.live.id, i as u32)).collect();
        Self { k, entries, positions }
    }

    /// How many documents each query asks for.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// The queries, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = &LiveQuery> {
        self.entries.iter().map(|entry| &entry.live)
    }

    /// The query with this id.
    #[must_use]
    pub fn get(&self, id: QueryId) -> Option<&LiveQuery> {
        self.entry(id).map(|entry| &entry.live)
    }

    /// Compares an answer with the profile's and with the first answer to the same query.
    ///
    /// # Errors
    /// In words, what differs.
    pub(super) fn check(&self, id: QueryId, hits: &[Hit]) -> Result<(), String> {
        let Some(entry) = self.entry(id) else {
            return Err(String::from("the query is not in the set"));
        };
        if let Some(results) = entry.live.results
            && hits.len() != results as usize
        {
            return Err(format!("it found {} documents, its profile has {results}", hits.len()));
        }
        let hash = hash(hits);
        // The hash guards no other memory: relaxed will do.
        match entry.answer.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed) {
            Err(first) if first != hash => {
                Err(String::from("its documents or scores differ from those of an earlier run of the same query"))
            }
            _ => Ok(()),
        }
    }

    fn entry(&self, id: QueryId) -> Option<&Entry> {
        self.positions.get(&id).map(|&position| &self.entries[position as usize])
    }
}

/// A hash of documents and score bits in order; never 0.
fn hash(hits: &[Hit]) -> u64 {
    let mut hasher = Xxh3Default::new();
    for hit in hits {
        hasher.update(&hit.doc.0.to_le_bytes());
        hasher.update(&hit.score.to_bits().to_le_bytes());
    }
    hasher.digest().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::DocId;

    #[test]
    fn an_answer_must_have_the_profiles_length_and_repeat_exactly() {
        let query = Query { id: QueryId(0), label: String::new(), terms: Vec::new(), dropped_terms: 0 };
        let live = LiveQuery { id: QueryId(9), query, mode: Mode::And, results: Some(1) };
        let set = QuerySet::new(10, [live]);
        let hit = |doc, score| Hit { doc: DocId(doc), score };
        assert!(set.check(QueryId(9), &[]).unwrap_err().contains("found 0 documents, its profile has 1"));
        set.check(QueryId(9), &[hit(1, 2.0)]).unwrap();
        set.check(QueryId(9), &[hit(1, 2.0)]).unwrap();
        assert!(set.check(QueryId(9), &[hit(1, 2.5)]).unwrap_err().contains("differ"));
        assert!(set.check(QueryId(8), &[]).unwrap_err().contains("not in the set"));
    }
}
