//! Tests of all methods against the sequential executor.

use std::sync::Arc;

use proptest::prelude::*;
use tandem_base::base::ids::{QueryId, TermId};
use tandem_base::base::random::Random;
use tandem_base::base::time::Nanos;
use tandem_base::traffic::Mode;

use super::{Cores, FineGrained, Served, Stream, adaptive_lanes, digest, inter_lanes, serve};
use crate::index::Index;
use crate::query::Query;
use crate::search::cpu::CpuExecutor;
use crate::search::{ExecError, Executor, Hit, MAX_K};

/// Makes an index of random lists, each with one in so many documents, and the last one.
fn random_index(num_docs: u32, densities: &[u32], seed: u64) -> Arc<Index> {
    let mut random = Random::new(seed, 0);
    let list = |(term, &one_in): (usize, &u32)| {
        let docs = (0..num_docs).filter(|doc| random.below(one_in) == 0 || doc + 1 == num_docs);
        (format!("t{term:04}"), docs.map(|doc| (doc, 1 + doc % 5)).collect())
    };
    let lists: Vec<(String, Vec<(u32, u32)>)> = densities.iter().enumerate().map(list).collect();
    Arc::new(Index::from_lists(&lists).unwrap())
}

fn query_of(index: &Index, terms: impl IntoIterator<Item = usize>) -> Query {
    let names: Vec<String> = terms.into_iter().map(|term| format!("t{term:04}")).collect();
    Query::prepare(QueryId(0), "q", &names, index).unwrap()
}

fn bits(hits: &[Hit]) -> Vec<(u32, u32)> {
    hits.iter().map(|hit| (hit.doc.0, hit.score.to_bits())).collect()
}

/// Makes queries of one term, of neighbours, and of all terms.
fn queries(index: &Index, num_terms: usize) -> Vec<Query> {
    let mut sets: Vec<Vec<usize>> = (0..num_terms).map(|term| vec![term]).collect();
    sets.extend((1..num_terms).map(|term| vec![term - 1, term]));
    sets.push((0..num_terms).collect());
    sets.into_iter().map(|terms| query_of(index, terms)).collect()
}

/// Makes an executor of every kind. Threads are not pinned, because test machines have few cores.
fn gangs(executor: &CpuExecutor, workers: usize) -> Vec<Box<dyn Executor>> {
    let fine = FineGrained::new(executor, workers, &Cores::default(), 0).unwrap();
    let adaptive = adaptive_lanes(executor, workers).remove(0);
    vec![Box::new(fine), adaptive]
}

/// Compares all gangs with the sequential executor in all modes.
fn compare(alone: &mut CpuExecutor, gangs: &mut [Box<dyn Executor>], query: &Query, k: usize) {
    let (mut expected, mut hits) = (Vec::new(), Vec::new());
    for mode in Mode::ALL {
        alone.search(query, mode, k, &mut expected).unwrap();
        for (method, gang) in gangs.iter_mut().enumerate() {
            gang.search(query, mode, k, &mut hits).unwrap();
            assert_eq!(bits(&hits), bits(&expected), "method {method}, {} terms, {mode}", query.terms.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_method_gives_the_sequential_executors_bits(
        num_docs in 1..30_000_u32,
        densities in prop::collection::vec(1..200_u32, 1..6),
        workers in 1..=16_usize,
        k in prop_oneof![1..20_usize, 500..=1001_usize, Just(MAX_K)],
        seed in any::<u64>(),
    ) {
        let index = random_index(num_docs, &densities, seed);
        let mut alone = CpuExecutor::new(Arc::clone(&index), index.built_with());
        let mut gangs = gangs(&alone, workers);
        for query in queries(&index, densities.len()) {
            compare(&mut alone, &mut gangs, &query, k);
        }
    }
}

proptest! {
    // Sixteen threads on few cores are slow.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn every_method_serves_a_stream_whole_and_rightly(
        workers in 1..=16_usize,
        gap_us in 0..200_u64,
        most_at_once in prop_oneof![1..4_usize, Just(usize::MAX)],
        mode in prop::sample::select(Mode::ALL.to_vec()),
        seed in any::<u64>(),
    ) {
        let index = random_index(20_000, &[100, 20, 5, 2, 1], seed);
        let queries = queries(&index, 5);
        let mut alone = CpuExecutor::new(Arc::clone(&index), index.built_with());
        let order: Vec<u32> = (0..100).map(|i| i % queries.len() as u32).collect();
        let arrivals = (0..100).map(|i| Nanos(i * gap_us * 1000)).collect();
        let stream = Stream { queries: &queries, order, arrivals, most_at_once, mode, k: 10 };
        let cores = Cores::default();
        let mut methods = vec![
            serve(&mut inter_lanes(&alone, workers), &stream, &cores).unwrap(),
            serve(&mut adaptive_lanes(&alone, workers), &stream, &cores).unwrap(),
        ];
        let gangs = gangs(&alone, workers).into_iter();
        methods.extend(gangs.map(|gang| serve(&mut [gang], &stream, &cores).unwrap()));
        let mut hits = Vec::new();
        let expected: Vec<u64> = queries
            .iter()
            .map(|query| {
                alone.search(query, mode, 10, &mut hits).unwrap();
                digest(&hits)
            })
            .collect();
        for (method, served) in methods.iter().enumerate() {
            prop_assert_eq!(served.len(), 100);
            for (position, &Served { arrival, started, finished, digest }) in served.iter().enumerate() {
                prop_assert_eq!(digest, expected[position % queries.len()], "method {}, query {}", method, position);
                prop_assert!(arrival <= started && started <= finished, "{arrival:?} {started:?} {finished:?}");
            }
        }
    }
}

#[test]
fn every_method_answers_long_queries_alike() {
    let densities: Vec<u32> = (0..1024).map(|term| 1 + term % 60).collect();
    let index = random_index(5000, &densities, 7);
    let mut alone = CpuExecutor::new(Arc::clone(&index), index.built_with());
    let mut gangs = gangs(&alone, 3);
    for (num_terms, k) in [(65, 10), (100, 4000), (1024, MAX_K), (2, 10)] {
        compare(&mut alone, &mut gangs, &query_of(&index, 0..num_terms), k);
    }
}

#[test]
fn teams_can_be_dropped_at_any_time() {
    let index = random_index(20_000, &[10, 2], 1);
    let executor = CpuExecutor::new(Arc::clone(&index), index.built_with());
    let query = query_of(&index, [0, 1]);
    let mut hits = Vec::new();
    for round in 0..20 {
        for mut gang in gangs(&executor, 8) {
            for _ in 0..round % 3 {
                gang.search(&query, Mode::And, 10, &mut hits).unwrap();
            }
            if round % 5 == 0 {
                // The pause is long enough for helpers to fall asleep.
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        }
    }
}

#[test]
fn sleeping_helpers_wake_for_the_next_query() {
    let index = random_index(20_000, &[10, 2], 1);
    let executor = CpuExecutor::new(Arc::clone(&index), index.built_with());
    let query = query_of(&index, [0, 1]);
    let (mut expected, mut hits) = (Vec::new(), Vec::new());
    executor.clone_for_worker().search(&query, Mode::AndOr, 1000, &mut expected).unwrap();
    for mut gang in gangs(&executor, 4) {
        for _ in 0..10 {
            std::thread::sleep(std::time::Duration::from_millis(3));
            gang.search(&query, Mode::AndOr, 1000, &mut hits).unwrap();
            assert_eq!(bits(&hits), bits(&expected));
        }
    }
}

#[test]
fn a_panic_in_a_core_ends_the_query_with_an_error_and_no_other() {
    let index = random_index(20_000, &[10, 2], 1);
    let executor = CpuExecutor::new(Arc::clone(&index), index.built_with());
    let good = query_of(&index, [0, 1]);
    let mut bad = good.clone();
    // The second list does not exist, so that opening it panics.
    bad.terms[1].term = TermId(1 << 30);
    let (mut expected, mut hits) = (Vec::new(), Vec::new());
    executor.clone_for_worker().search(&good, Mode::And, 10, &mut expected).unwrap();
    for mut gang in gangs(&executor, 4) {
        for _ in 0..3 {
            let failed = gang.search(&bad, Mode::And, 10, &mut hits);
            assert!(matches!(failed, Err(ExecError::Panicked)), "{failed:?}");
            gang.search(&good, Mode::And, 10, &mut hits).unwrap();
            assert_eq!(bits(&hits), bits(&expected));
        }
    }
    let queries = [good, bad];
    let order: Vec<u32> = (0..50).map(|i| u32::from(i == 20)).collect();
    let (arrivals, most_at_once) = (Vec::new(), usize::MAX);
    let stream = Stream { queries: &queries, order, arrivals, most_at_once, mode: Mode::And, k: 10 };
    let cores = Cores::default();
    let outcomes = [
        serve(&mut inter_lanes(&executor, 4), &stream, &cores),
        serve(&mut adaptive_lanes(&executor, 4), &stream, &cores),
    ];
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(ExecError::Panicked))), "{outcomes:?}");
}

#[test]
fn a_bad_k_is_refused_and_the_team_works_on() {
    let index = random_index(1000, &[2], 1);
    let executor = CpuExecutor::new(Arc::clone(&index), index.built_with());
    let query = query_of(&index, [0]);
    let mut hits = Vec::new();
    for mut gang in gangs(&executor, 3) {
        for k in [0, MAX_K + 1] {
            let refused = gang.search(&query, Mode::Or, k, &mut hits);
            assert!(matches!(refused, Err(ExecError::BadK(bad)) if bad == k), "{k}");
        }
        gang.search(&query, Mode::Or, MAX_K, &mut hits).unwrap();
        assert_eq!(hits.len(), index.list(query.terms[0].term).doc_freq() as usize);
    }
}
