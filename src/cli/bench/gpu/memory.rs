//! Whether the GPU's memory is given back: after a million queries, after executors, after an index that does not fit.

use std::sync::Arc;

use super::Measurement;
use super::crossover::pairs;
use super::queries::K;
use crate::cli::bench::{Arguments, input};
use crate::cli::{Failure, defaults};
use crate::exec::gpu::GpuExecutor;
use crate::exec::{Answers, ExecError, Executor, Request};
use crate::gpu::{GpuError, Reservation, free_device_bytes};
use crate::ids::DeviceId;
use crate::index::Index;
use crate::query::{Mode, Query};

/// Queries in all, and of a batch.
const QUERIES: usize = 1_000_000;
const BATCH: usize = 4096;
/// Postings of a query at most: a million of them take seconds.
const MAX_POSTINGS: u32 = 20_000;
/// What a reservation leaves free: enough for kernels to be loaded, too little for an index that is worth a GPU.
const LEFT_BYTES: u64 = 256 << 20;

/// Runs the three checks; an error if memory is lost, or if an index that does not fit is not refused in words.
pub(in crate::cli::bench) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    // First of all, so that a machine without a GPU says so at once.
    free_device_bytes(DeviceId(0))?;
    let (index, _) = input(arguments)?;
    let is_small = |query: &Query| query.terms.iter().map(|term| term.doc_freq).sum::<u32>() <= MAX_POSTINGS;
    let queries: Vec<Query> = pairs(&index).into_iter().filter(is_small).collect();
    if queries.is_empty() {
        return Err(Failure::input("the index has no two terms of few postings".to_owned()));
    }

    // The first executor loads kernels, which stay.
    drop(GpuExecutor::new(&index, index.built_with())?);
    let free_at_first = free_device_bytes(DeviceId(0))?;
    let mut gpu = GpuExecutor::new(&index, index.built_with())?;
    let lost_by_queries = lost_by_queries(&mut gpu, &queries)?;
    drop(gpu);
    let lost_by_executors = free_at_first.saturating_sub(free_device_bytes(DeviceId(0))?);

    let refusal = refusal(&index)?;
    drop(GpuExecutor::new(&index, index.built_with())?);
    let lost_by_refusal = free_at_first.saturating_sub(free_device_bytes(DeviceId(0))?);

    let lost = [
        ("bytes lost over a million queries", lost_by_queries),
        ("bytes lost after the executor", lost_by_executors),
        ("bytes lost after a refusal", lost_by_refusal),
    ];
    if let Some((what, bytes)) = lost.iter().find(|(_, bytes)| *bytes > 0) {
        return Err(Failure::failed(format!("device memory: {bytes} {what}; this is a bug")));
    }
    let note = format!(
        "GPU memory: {QUERIES} queries in batches of {BATCH}, all modes: nothing lost; a full device answers: \
         {refusal}\n"
    );
    let rows = lost.map(|(name, bytes)| Measurement {
        part: "gpu-memory",
        name: name.to_owned(),
        metric: "bytes",
        value: bytes as f64,
    });
    Ok((note, rows.into()))
}

/// Bytes that are gone after a million queries in all modes.
fn lost_by_queries(gpu: &mut GpuExecutor, queries: &[Query]) -> Result<u64, Failure> {
    let mut answers = Answers::default();
    let mut search = |first: usize, mode: Mode| {
        let asked = queries.iter().cycle().skip(first % queries.len()).take(BATCH);
        let batch: Vec<Request<'_>> = asked.map(|query| Request { query, mode, k: K }).collect();
        gpu.search_batch(&batch, &mut answers).map(drop)
    };
    for mode in Mode::ALL {
        search(0, mode)?;
    }
    let free_before = free_device_bytes(DeviceId(0))?;
    let bar = defaults::progress("queries", QUERIES as u64);
    for (number, first) in (0..QUERIES).step_by(BATCH).enumerate() {
        search(first, Mode::ALL[number % Mode::ALL.len()])?;
        bar.inc(BATCH as u64);
    }
    bar.finish_and_clear();
    Ok(free_before.saturating_sub(free_device_bytes(DeviceId(0))?))
}

/// What a device says that has no room for the index.
fn refusal(index: &Arc<Index>) -> Result<String, Failure> {
    let _reservation = Reservation::leaving(DeviceId(0), LEFT_BYTES)?;
    match GpuExecutor::new(index, index.built_with()) {
        Err(error @ ExecError::Gpu(GpuError::DoesNotFit { .. })) => Ok(error.to_string()),
        Err(other) => Err(other.into()),
        Ok(_) => Ok(format!("nothing, since this index fits into {} MiB", LEFT_BYTES >> 20)),
    }
}
