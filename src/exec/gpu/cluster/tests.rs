//! Two executors, on two GPUs where there are two and else on one, against the CPU.

use std::sync::Arc;

use super::super::lists::tests::open;
use super::{GpuReplicas, GpuShards};
use crate::exec::cpu::CpuExecutor;
use crate::exec::cpu::multicore::PartitionedIndex;
use crate::exec::{Answers, ExecError, Executor, Hit, Request};
use crate::gpu::list_gpus;
use crate::ids::{DeviceId, QueryId};
use crate::index::Index;
use crate::query::{Mode, Query};

/// Both GPUs, or the only one twice.
fn two() -> [DeviceId; 2] {
    let second = u32::from(list_gpus().is_ok_and(|gpus| gpus.len() > 1));
    [DeviceId(0), DeviceId(second)]
}

/// Lists that are in both halves, in one alone, and short ones; queries of them, terms repeated.
fn world() -> (Arc<Index>, Vec<Query>) {
    let list = |from: u32, to: u32, step: usize| (from..to).step_by(step).map(|doc| (doc, 1 + doc % 5)).collect();
    let lists: [(&str, Vec<(u32, u32)>); 6] = [
        ("all", list(0, 50_000, 1)),
        ("first", list(10, 24_000, 7)),
        ("last", list(26_000, 50_000, 5)),
        ("one", vec![(49_999, 3)]),
        ("some", list(3, 50_000, 101)),
        ("thirds", list(1, 50_000, 3)),
    ];
    let index = Arc::new(Index::from_lists(&lists).unwrap());
    let texts = [
        "all",
        "one",
        "first",
        "first last",
        "one all",
        "some thirds",
        "some some all",
        "last thirds all",
        "first some thirds all one",
    ];
    let queries = texts.iter().enumerate().map(|(number, text)| {
        let terms: Vec<&str> = text.split(' ').collect();
        Query::prepare(QueryId(number as u32), text, &terms, &index).unwrap()
    });
    let queries = queries.collect();
    (index, queries)
}

/// Compares with the CPU, in batches of all sizes and one by one.
fn compare(cluster: &mut dyn Executor, index: &Arc<Index>, queries: &[Query]) {
    let mut cpu = CpuExecutor::new(Arc::clone(index), index.built_with());
    let (mut expected, mut found): (Vec<Hit>, Vec<Hit>) = (Vec::new(), Vec::new());
    let requests: Vec<Request<'_>> = [1, 10, 200]
        .into_iter()
        .flat_map(|k| Mode::ALL.map(|mode| (mode, k)))
        .flat_map(|(mode, k)| queries.iter().map(move |query| Request { query, mode, k }))
        .collect();
    let mut answers = Answers::default();
    for batch in [&requests[..], &requests[..2], &[]] {
        cluster.search_batch(batch, &mut answers).unwrap();
        assert_eq!(answers.len(), batch.len());
        for (&Request { query, mode, k }, hits) in batch.iter().zip(answers.iter()) {
            cpu.search(query, mode, k, &mut expected).unwrap();
            assert_eq!(hits, expected, "{mode}, k {k}: {}", query.label);
        }
    }
    for &Request { query, mode, k } in &requests {
        cpu.search(query, mode, k, &mut expected).unwrap();
        cluster.search(query, mode, k, &mut found).unwrap();
        assert_eq!(found, expected, "{mode}, k {k}, alone: {}", query.label);
    }
}

#[test]
fn gpu_replicas_answer_as_the_cpu_does() {
    if open().is_none() {
        return;
    }
    let (index, queries) = world();
    let mut replicas = GpuReplicas::new(&two(), &index, index.built_with()).unwrap();
    compare(&mut replicas, &index, &queries);
    assert_eq!(replicas.num_gpus(), 2);
    assert!(matches!(replicas.search(&queries[0], Mode::Or, 0, &mut Vec::new()), Err(ExecError::BadK(0))));
    assert_eq!(replicas.num_gpus(), 2, "what is asked wrongly is no GPU's fault");
}

#[test]
fn gpu_shards_answer_as_the_cpu_does() {
    if open().is_none() {
        return;
    }
    let (index, queries) = world();
    let parts = PartitionedIndex::build(&index, 2, |_| true).unwrap();
    let mut shards = GpuShards::new(&two(), &index, parts, index.built_with()).unwrap();
    compare(&mut shards, &index, &queries);
}
