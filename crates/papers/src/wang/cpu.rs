//! The rival of the GPU: its algorithm on CPU threads, one query per thread.

use std::time::Instant;

use super::ranker::{Best, Ranker};
use super::{lists::SortedLists, train_test_split::RankedQuery};

/// Documents of a round. A thread looks them up one after another, so that short rounds end early.
pub(crate) const CPU_ROUND: usize = 16;

/// Answers all queries in order: query i runs on thread i modulo their number. Returns the answers and the seconds from
/// start to end.
pub(crate) fn answer_all(
    ranker: &Ranker<'_>,
    lists: &SortedLists,
    queries: &[RankedQuery],
    k: usize,
    threads: usize,
) -> (Vec<Best>, f64) {
    let mut answers = vec![Best::default(); queries.len()];
    let mut shares: Vec<Vec<(&RankedQuery, &mut Best)>> = (0..threads).map(|_| Vec::new()).collect();
    for (i, pair) in queries.iter().zip(&mut answers).enumerate() {
        shares[i % threads].push(pair);
    }
    let began = Instant::now();
    std::thread::scope(|scope| {
        for share in shares {
            scope.spawn(move || {
                for (query, best) in share {
                    *best = answer(ranker, lists, query, k);
                }
            });
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    (answers, seconds)
}

pub(crate) fn answer(ranker: &Ranker<'_>, lists: &SortedLists, query: &RankedQuery, k: usize) -> Best {
    let mut best = Best::new(k);
    let mut depths = vec![0; query.lists.len()];
    ranker.rank(&query.postings(lists), &query.weights, 0, CPU_ROUND, &mut best, &mut depths);
    best
}
