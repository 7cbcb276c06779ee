//! The best threshold of `length-based`: where neither side waits for the other.
//!
//! With threshold S the GPUs' load is what queries of fewer than S blocks take of them at least, in the best of batches, and
//! the CPUs' load is what the others take of their workers. The rate that the machine can carry at most is what the more
//! loaded side can: so the best S makes the larger of the two loads least. Lengths are tried in order, the loads of each
//! being sums over those before and after it: O(n log n), and no run is played.
//!
//! ```text
//!   load │ GPUs            ╱
//!        │ ╲            ╱    the larger one is least
//!        │    ╲      ╱       where they cross
//!        │ CPUs  ╳
//!        └────────┴─────────── S
//! ```

use std::sync::Arc;

use crate::base::machine::{Class, PerClass};
use crate::cost::{BatchSizes, Cost, MachineModel, Workload};

/// What policies that go by length know of a workload.
#[derive(Clone, Debug, Default)]
pub struct QueryLengths {
    /// By row, the blocks in all lists of the query.
    pub blocks: Arc<[u32]>,
    /// [`best_length_threshold`] for them.
    pub best_threshold: u32,
    /// Rows whose blocks are not known; they count as none.
    pub unknown: usize,
}

impl QueryLengths {
    /// Those of a workload, whose queries are estimated to cost so much, by row.
    #[must_use]
    pub fn of(workload: &Workload, estimates: &[PerClass<Cost>], model: &MachineModel) -> Self {
        // An index has fewer; what else a file may say is the longest.
        let blocks = workload.rows.iter().map(|row| u32::try_from(row.features.blocks).unwrap_or(u32::MAX));
        let blocks: Vec<u32> = blocks.collect();
        let queries: Vec<(u32, PerClass<Cost>)> = blocks.iter().copied().zip(estimates.iter().copied()).collect();
        let unknown = blocks.iter().filter(|&&blocks| blocks == 0).count();
        Self { best_threshold: best_length_threshold(&queries, model), blocks: blocks.into(), unknown }
    }
}

/// The threshold for queries of these lengths, in blocks, and estimated costs; of several that are as good the largest, so
/// that what can go to the GPUs does. 0 for no queries.
#[must_use]
pub fn best_length_threshold(queries: &[(u32, PerClass<Cost>)], model: &MachineModel) -> u32 {
    let mut queries: Vec<&(u32, PerClass<Cost>)> = queries.iter().collect();
    queries.sort_unstable_by_key(|(blocks, _)| *blocks);
    let use_of = |costs: &PerClass<Cost>, is_gpu: bool| {
        model.machine.classes().filter(|class| class.is_gpu() == is_gpu).map(|class| load(model, class, costs)).reduce(
            // Where a side has several classes each takes its share: the better one's load bounds it from below.
            f64::min,
        )
    };
    let cpu = |costs| use_of(costs, false).unwrap_or(f64::INFINITY);
    let gpu = |costs| use_of(costs, true).unwrap_or(f64::INFINITY);
    let mut on_cpus: f64 = queries.iter().map(|(_, costs)| cpu(costs)).sum();
    let mut on_gpus = 0.0;
    let (mut best, mut least) = (queries.first().map_or(0, |(blocks, _)| *blocks), on_cpus);
    for (place, (blocks, costs)) in queries.iter().enumerate() {
        on_cpus -= cpu(costs);
        on_gpus += gpu(costs);
        // A threshold is between two lengths.
        let next = queries.get(place + 1).map_or(blocks.saturating_add(1), |(blocks, _)| *blocks);
        // What is left of a sum of all, when all have been taken away, is rounding.
        let larger = if place + 1 == queries.len() { on_gpus } else { on_cpus.max(on_gpus) };
        if next > *blocks && larger <= least {
            (best, least) = (next, larger);
        }
    }
    best
}

/// Seconds of the whole class that a query takes: of its lanes or its devices, whichever is more.
fn load(model: &MachineModel, class: Class, costs: &PerClass<Cost>) -> f64 {
    let least = model.least_use(class, costs[class], BatchSizes::Any);
    let lanes = least.lane.as_us() / model.machine.count(class) as f64;
    lanes.max(least.device.as_us() / model.machine.num_devices(class) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::machine::Machine;
    use crate::base::time::Nanos;

    fn query(blocks: u32, cpu_us: f64, gpu_us: f64) -> (u32, PerClass<Cost>) {
        (blocks, Cost::on_cpu_and_gpu(Nanos::from_us(cpu_us), Nanos::from_us(gpu_us)))
    }

    #[test]
    fn the_threshold_is_where_neither_side_waits_for_the_other() {
        // Ten lengths; a CPU takes 1 us a block, a GPU 2 us: two thirds of the blocks are the CPU's.
        let queries: Vec<_> = (1..=10).map(|n| query(n, f64::from(n), 2.0 * f64::from(n))).collect();
        let one_of_each = MachineModel::from(Machine::new(1, 1));
        // Below 6: 15 blocks, 30 us; the others 40 us. Below 7: 42 and 34 us.
        assert_eq!(best_length_threshold(&queries, &one_of_each), 6);
        // A second CPU takes more of it, a second GPU less.
        assert!(best_length_threshold(&queries, &Machine::new(2, 1).into()) < 6);
        assert!(best_length_threshold(&queries, &Machine::new(1, 2).into()) > 6);
    }

    #[test]
    fn all_goes_to_a_side_that_the_other_cannot_help() {
        let model = MachineModel::from(Machine::new(1, 1));
        let quick_gpu: Vec<_> = (1..=5).map(|n| query(n, 1e6, 1.0)).collect();
        assert_eq!(best_length_threshold(&quick_gpu, &model), 6);
        let quick_cpu: Vec<_> = (1..=5).map(|n| query(n, 1.0, 1e6)).collect();
        assert_eq!(best_length_threshold(&quick_cpu, &model), 1);
        assert_eq!(best_length_threshold(&[], &model), 0);
    }

    #[test]
    fn queries_of_one_length_stay_together() {
        let model = MachineModel::from(Machine::new(1, 1));
        let alike = vec![query(7, 5.0, 4.0); 10];
        assert_eq!(best_length_threshold(&alike, &model), 8);
    }
}
