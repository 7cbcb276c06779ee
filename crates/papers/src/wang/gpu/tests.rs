//! Tests of the kernel, its copies and post-processing against the host's algorithm, with random caches.
//!
//! Without a GPU the tests print a message and pass; with `TANDEM_REQUIRE_GPU` set they fail. With `TANDEM_SANITIZER`
//! set by kernels/sanitize.py they try fewer cases.

use std::collections::BTreeMap;

use tandem_model::base::random::Random;

use super::{CachedGpu, Session};
use crate::test_support::{gpu_or_skip, sized, with_a_hang};
use crate::wang::cache::prefixes::Prefixes;
use crate::wang::cache::sizes::Sizes;
use crate::wang::data::ExperimentData;
use crate::wang::ranker::{Best, MAX_K};
use crate::wang::report::RunOptions;
use crate::wang::tests::{Small, answer_on_cpu};

fn open(data: &ExperimentData, may_lock: bool) -> Option<CachedGpu<'_>> {
    gpu_or_skip(CachedGpu::open(data, may_lock))
}

/// Lists of lengths around those of rounds and cached blocks, and some that are copied directly.
fn collection() -> Small {
    let num_docs = 40_000;
    let lens = [1, 2, 31, 255, 256, 257, 511, 512, 513, 3000, 20_000, 39_999, 40_000];
    let mut random = Random::new(7, 0);
    let lists: Vec<BTreeMap<u32, u32>> = lens
        .iter()
        .map(|&len| {
            let mut docs: Vec<u32> = (0..num_docs).collect();
            for i in 0..len.min(num_docs as usize - 1) {
                docs.swap(i, i + random.below(num_docs - i as u32) as usize);
            }
            docs[..len].iter().map(|&doc| (doc, 1 + random.below(4))).collect()
        })
        .collect();
    let queries = (0..300).map(|_| (0..1 + random.below(5)).map(|_| random.below(13) as usize).collect());
    Small::of(&lists, &queries.collect::<Vec<_>>(), 3)
}

/// Caches nothing, all, or a beginning of each list.
fn residency(data: &ExperimentData, random: &mut Random) -> Prefixes {
    let held = (0..data.lists.num_lists() as u32).map(|list| match random.below(4) {
        0 => 0,
        1 => data.lists.len(list),
        _ => random.below(data.lists.len(list) + 1),
    });
    Prefixes::of(held.collect(), &data.lists)
}

fn expected(data: &ExperimentData) -> Vec<Best> {
    data.test.iter().map(|query| answer_on_cpu(data, query)).collect()
}

#[test]
fn gpu_answers_are_the_cpus_under_any_division() {
    let small = collection();
    let mut random = Random::new(11, 0);
    for k in sized(vec![1, 2, 5, 10, 15, MAX_K], vec![3, MAX_K]) {
        let data = small.data(k).unwrap();
        let expected = expected(&data);
        for may_lock in [true, false] {
            let Some(gpu) = open(&data, may_lock) else { return };
            assert_eq!(gpu.why_staged().is_some(), !may_lock);
            for number in 0..sized(12, 2) {
                let prefixes = residency(&data, &mut random);
                let largest = data.lists.all_bytes();
                let buffer = [largest + (1 << 20), largest / 2, 4096][number % 3];
                let cache = prefixes.bytes();
                let mut session = Session::new(&gpu, prefixes, cache, buffer).unwrap();
                for (post_threads, batch_limit, backlog) in [(1, 1 << 16, 4), (0, 7, 4), (3, 2, 0)] {
                    let options = RunOptions { k, post_threads, backlog, batch_limit };
                    let report = session.run(&data.test, options).unwrap();
                    assert_eq!(report.answers, expected, "k {k}, buffer {buffer}, {options:?}");
                    let in_batches: f64 = report.batches.iter().map(|batch| batch.queries).sum();
                    assert_eq!(in_batches as usize + report.oversized, data.test.len());
                }
            }
        }
    }
}

#[test]
fn gpu_needs_no_cpu_where_whole_lists_are_cached() {
    let data = collection().data(10).unwrap();
    let Some(gpu) = open(&data, true) else { return };
    let prefixes = Prefixes::all(&data.lists);
    let cache = prefixes.bytes();
    let report = Session::new(&gpu, prefixes, cache, 1 << 20).unwrap().run(&data.test, RunOptions::new(10)).unwrap();
    assert_eq!(report.answers, expected(&data));
    assert_eq!((report.post_processed, report.oversized), (0, 0));
}

#[test]
fn gpu_refuses_a_cache_or_buffer_larger_than_what_is_free() {
    let data = collection().data(10).unwrap();
    let Some(gpu) = open(&data, true) else { return };
    let none = || Prefixes::none(data.lists.num_lists());
    let error = Session::new(&gpu, none(), 1 << 50, 1 << 20).err().unwrap().to_string();
    assert!(error.contains("1125899906842624 and 1048576") && error.contains("are free"), "{error}");
    let all = Prefixes::all(&data.lists);
    let needed = all.bytes();
    let error = Session::new(&gpu, all, needed - 1, 1 << 20).err().unwrap().to_string();
    assert!(error.contains(&format!("lists of {needed} bytes")), "{error}");
}

#[test]
fn a_hang_ends_a_session_in_an_error() {
    with_a_hang("wang::gpu::tests::a_hang_ends_a_session_in_an_error", |hang| {
        let data = collection().data(10).unwrap();
        let gpu = CachedGpu::open(&data, true).unwrap();
        let mut session = Session::new(&gpu, Prefixes::none(data.lists.num_lists()), 0, 1 << 20).unwrap();
        session.run(&data.test, RunOptions::new(10)).unwrap();
        hang();
        let error = session.run(&data.test, RunOptions::new(10)).err().unwrap().to_string();
        assert!(error.contains("CUDA_ERROR_TIMEOUT"), "{error}");
    });
}
