//! What queries cost with all lists of an index in the host's memory: the other end of what a budget of GPU memory may leave.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::{LabError, Progress, gpu_executor};
use crate::cost::{FarReads, ProfileOptions, Workload, profile_far};
use crate::exec::ReadCounter;
use crate::exec::cpu::CpuExecutor;
use crate::exec::gpu::{GpuExecutor, GpuMemory};
use crate::ids::{DeviceId, QueryId};
use crate::index::Index;
use crate::query::{Mode, Query};

/// Adds to a workload, measured on the first GPU with all of the index in its memory, what [`profile_far`] does. Lists are
/// ordered by what `memory` has learned; `staying_bytes` lie in GPU memory in any case.
///
/// # Errors
/// If the GPU can't be had, or as [`profile_far`].
pub fn measure_far(
    index: &Arc<Index>,
    queries: &[Query],
    memory: &GpuMemory,
    staying_bytes: u64,
    workload: &mut Workload,
    options: &ProfileOptions,
    progress: &dyn Progress,
) -> Result<(), LabError> {
    let memory = memory.with_bytes(staying_bytes);
    let gpu = gpu_executor(DeviceId(0), index, index.built_with(), Some(&memory), progress)?;
    let report = gpu.upload_report();
    let rows_bytes = (report.device_bytes + report.far_bytes).saturating_sub(staying_bytes);
    progress.doing("what queries read");
    let reads = count_reads(index, queries, options, &gpu);
    let searches = options.searches(1, queries.len());
    progress.begin("profile, lists far", searches);
    let measured = profile_far(
        Box::new(gpu),
        queries,
        workload,
        options,
        (staying_bytes, rows_bytes),
        &|query, mode| reads.get(&(query.id, mode)).copied(),
        &mut |done| progress.reach(done, searches),
    );
    progress.end();
    Ok(measured?)
}

/// What each query reads of lists that lie as they do on `gpu`, by mode. Queries that a CPU does not take are left out, as they are of
/// what is measured.
fn count_reads(
    index: &Arc<Index>,
    queries: &[Query],
    options: &ProfileOptions,
    gpu: &GpuExecutor,
) -> HashMap<(QueryId, Mode), FarReads> {
    let cpu = CpuExecutor::new(Arc::clone(index), index.built_with());
    let chunks = queries.par_chunks(64).map(|chunk| {
        let mut counter = ReadCounter::new(index, cpu.clone_for_worker(), options.k);
        let pairs = chunk.iter().flat_map(|query| options.modes.iter().map(move |&mode| (query, mode)));
        let count = |(query, mode): (&Query, Mode)| {
            let of_lists = counter.sectors(query, mode).ok()?;
            let sectors = of_lists.iter().map(|(_, sectors)| sectors).sum();
            Some(((query.id, mode), FarReads { curve: gpu.far_curve(&of_lists)?, sectors }))
        };
        pairs.filter_map(count).collect::<Vec<_>>()
    });
    chunks.flatten_iter().collect()
}
