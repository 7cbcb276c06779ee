//! Pages of an index that follow the queries in a GPU's memory: what is simulated of them.

use std::collections::HashMap;

use super::{Estimates, LabError};
use crate::cache::OnlineOptions;
use crate::cost::{
    Cost, Following, FollowingPace, IndexPages, MachineModel, MemoryBudget, Retold, TierError, Workload,
};
use crate::ids::{JobId, QueryId};
use crate::machine::{Class, Machine, PerClass};
use crate::sched::{LogRow, RunLog};
use crate::sim::SimQuery;

/// How pages are to follow the queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowingOptions {
    /// The memory that they lie in.
    pub budget: MemoryBudget,
    /// Queries of an epoch.
    pub epoch_queries: u32,
    /// Bytes a second at which pages come where nobody else reads.
    pub copy_rate: f64,
}

/// The workload whose queries find all of the index near: what is played of them beside [`following`].
///
/// # Errors
/// If nobody has measured them with lists in the host's memory.
pub fn all_near(workload: Workload) -> Result<Workload, TierError> {
    workload.under(MemoryBudget::Share(1.0))
}

/// What follows from pages that follow the queries of a workload, on a machine. `queries` are those of [`all_near`], as they are simulated
/// alone; what they take beyond is what the workload's two ends say, in a stream of others as its machine file has it.
///
/// # Errors
/// If the pages are of another index or log, or the budget is too small.
pub fn following(
    workload: &Workload,
    queries: &[SimQuery],
    estimates: &Estimates,
    pages: &IndexPages,
    options: FollowingOptions,
    model: &MachineModel,
) -> Result<Following, LabError> {
    let tiers = workload.tiers.as_ref().ok_or(TierError::NotMeasured)?;
    let near: Vec<PerClass<Cost>> = queries.iter().map(|query| query.service).collect();
    let expected_near: Vec<PerClass<Cost>> = queries.iter().map(|query| query.estimate).collect();
    let far = workload.far_costs(&near, false)?;
    let expected_far = match estimates {
        // Measured times are known under a budget, too, as wrong as they are made.
        Estimates::Oracle => {
            let wrong = |query: &SimQuery| {
                query.estimate[Class::GPU].alone.as_us()
                    / query.service[Class::GPU].alone.as_us().max(f64::MIN_POSITIVE)
            };
            far.iter().zip(queries).map(|(far, query)| far.scaled(wrong(query))).collect()
        }
        _ => workload.far_costs(&expected_near, true)?,
    };
    let in_stream = |far: Cost| {
        let far = PerClass::from_fn(|class| if class == Class::GPU { far } else { Cost::default() });
        model.in_stream(&far)[Class::GPU]
    };
    let far = far.into_iter().map(in_stream).collect();
    let online = OnlineOptions::of_pages(pages.layout.page_rows, options.epoch_queries);
    let pace = FollowingPace::new(options.copy_rate, pages.layout.num_pages);
    Ok(Following::new(workload, pages, tiers.bytes(options.budget), online, pace, (far, expected_far))?)
}

/// What the queries of a live run cost on its GPUs, by job: as their pages lay when their batches started, by what such a run's
/// simulation would make of the same batches. `near` is what each row costs with all that it reads near.
pub(super) fn costs_in_run(
    following: &Following,
    machine: &Machine,
    log: &RunLog,
    row_of: impl Fn(QueryId) -> u32,
    near: &[PerClass<Cost>],
) -> HashMap<JobId, Cost> {
    let mut on_gpus: Vec<&LogRow> = log.rows.iter().filter(|row| row.class == Class::GPU).collect();
    on_gpus.sort_by_key(|row| (row.started, row.batch, row.job));
    let mut retold = Retold::new(following, machine.num_devices(Class::GPU));
    let mut costs = HashMap::with_capacity(on_gpus.len());
    for batch in on_gpus.chunk_by(|a, b| a.batch == b.batch) {
        let [first, ..] = batch else { continue };
        let rows: Vec<u32> = batch.iter().map(|row| row_of(row.query)).collect();
        let gpu = machine.processor(first.processor).device.index();
        let of_rows = retold.batch(gpu, &rows, (first.started, first.finished), |row| near[row as usize][Class::GPU]);
        costs.extend(batch.iter().map(|row| row.job).zip(of_rows));
    }
    costs
}
