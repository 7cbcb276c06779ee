//! What queries cost with all lists of an index in the host's memory: the other end of what a budget of GPU memory may leave.

use std::collections::HashMap;
use std::sync::Arc;

use super::{LabError, Progress, gpu_executor};
use crate::cache::FarCurve;
use crate::cost::{ProfileOptions, Workload, profile_far};
use crate::exec::gpu::GpuMemory;
use crate::ids::{DeviceId, QueryId};
use crate::index::Index;
use crate::query::Query;

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
    let curves: HashMap<QueryId, FarCurve> =
        queries.iter().filter_map(|query| Some((query.id, gpu.far_curve(query)?))).collect();
    let searches = options.searches(1, queries.len());
    progress.begin("profile, lists far", searches);
    let measured = profile_far(
        Box::new(gpu),
        queries,
        workload,
        options,
        (staying_bytes, rows_bytes),
        &|query| curves.get(&query.id).copied(),
        &mut |done| progress.reach(done, searches),
    );
    progress.end();
    Ok(measured?)
}
