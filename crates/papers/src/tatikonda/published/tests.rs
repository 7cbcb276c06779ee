//! Tests that every way of sharing a query gives the bits of the reference.

use std::sync::Arc;

use proptest::prelude::*;
use tandem_engine::query::Query;
use tandem_engine::search::cpu::CpuExecutor;
use tandem_engine::search::cpu::multicore::{Cores, Stream, digest, serve};
use tandem_engine::search::{ExecError, Executor, MAX_K};
use tandem_model::base::time::Nanos;
use tandem_model::traffic::Mode;

use super::core::Core;
use super::gang::Gang;
use super::pools::serve_by_tasks;
use crate::codec::Pfor;
use crate::test_support::{coded, query_of, random_index};

const NUM_DOCS: u32 = 30_000;

proptest! {
    // Several threads on few cores are slow.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn every_method_answers_a_stream_as_the_reference_does(
        densities in prop::collection::vec(1..300_u32, 2..6),
        workers in 1..=6_u32,
        threshold in prop_oneof![0..8_usize, 100..200_usize],
        gap_us in 0..100_u64,
        most_at_once in prop_oneof![1..4_usize, Just(usize::MAX)],
        seed in any::<u64>(),
    ) {
        let index = random_index(NUM_DOCS, &densities, seed);
        let queries: Vec<Query> = (1..=densities.len()).map(|num_terms| query_of(&index, 0..num_terms)).collect();
        let mut reference = CpuExecutor::new(Arc::clone(&index), index.built_with());
        let mut hits = Vec::new();
        let expected: Vec<u64> = queries.iter().map(|query| {
            reference.search(query, Mode::And, 10, &mut hits).unwrap();
            digest(&hits)
        }).collect();

        let lists = coded(&index, Box::new(Pfor::<512>), 0..NUM_DOCS);
        let range = |part: u32| NUM_DOCS * part / workers..NUM_DOCS * (part + 1) / workers;
        let order: Vec<u32> = (0..60).map(|i| i % queries.len() as u32).collect();
        let arrivals = (0..60).map(|i| Nanos(i * gap_us * 1000)).collect();
        let stream = Stream { queries: &queries, order, arrivals, most_at_once, mode: Mode::And, k: 10 };
        let cores = Cores::default();
        let unified = (0..workers).map(|part| Core::new(Arc::clone(&lists), range(part)));
        let physical = (0..workers).map(|part| Core::new(coded(&index, Box::new(Pfor::<512>), range(part)), range(part)));
        let mut outcomes = vec![serve_by_tasks(&lists, workers as usize, threshold, &stream, &cores).unwrap()];
        for gang in [unified.collect(), physical.collect()] {
            outcomes.push(serve(&mut [Box::new(Gang::spawn(gang, &cores).unwrap())], &stream, &cores).unwrap());
        }
        let mut lanes: Vec<Box<dyn Executor>> = (0..workers).map(|_| Box::new(Core::whole(&lists)) as _).collect();
        outcomes.push(serve(&mut lanes, &stream, &cores).unwrap());
        for (method, served) in outcomes.iter().enumerate() {
            for (position, one) in served.iter().enumerate() {
                prop_assert_eq!(one.digest, expected[position % queries.len()], "method {}, query {}", method, position);
                prop_assert!(one.arrival <= one.started && one.started <= one.finished);
            }
        }
    }
}

#[test]
fn a_bad_k_is_refused_by_all() {
    let index = random_index(NUM_DOCS, &[2, 3], 1);
    let lists = coded(&index, Box::new(Pfor::<512>), 0..NUM_DOCS);
    let query = query_of(&index, [0, 1]);
    let cores = Cores::default();
    let mut hits = Vec::new();
    let mut gang = Gang::spawn(vec![Core::whole(&lists), Core::whole(&lists)], &cores).unwrap();
    for k in [0, MAX_K + 1] {
        let refused = |outcome: Result<(), ExecError>| matches!(outcome, Err(ExecError::BadK(bad)) if bad == k);
        assert!(refused(Core::whole(&lists).search(&query, Mode::And, k, &mut hits).map(drop)));
        assert!(refused(gang.search(&query, Mode::And, k, &mut hits).map(drop)));
        let queries = std::slice::from_ref(&query);
        let stream = Stream { queries, order: vec![0], arrivals: Vec::new(), most_at_once: 1, mode: Mode::And, k };
        assert!(refused(serve_by_tasks(&lists, 2, 5, &stream, &cores).map(drop)));
    }
}
