//! The best threshold of `length-based`: it balances the loads of CPUs and GPUs.
//!
//! With threshold S, the GPUs serve queries of fewer than S blocks, at their cost in the best batches; the CPU workers
//! serve the others. The more loaded side limits the rate, so that the best S minimises the larger load. Prefix sums
//! over sorted lengths yield all loads in O(n log n), without a simulation.
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

/// The query lengths of a workload, for length-based policies.
#[derive(Clone, Debug, Default)]
pub struct QueryLengths {
    /// Number of blocks in all lists of the query, by row.
    pub blocks: Arc<[u32]>,
    /// The [best threshold](best_length_threshold) for these queries.
    pub best_threshold: u32,
    /// Number of rows without known blocks; they count as 0 blocks.
    pub unknown: usize,
}

impl QueryLengths {
    /// The lengths of a workload, with estimated costs by row.
    #[must_use]
    pub fn of(workload: &Workload, estimates: &[PerClass<Cost>], model: &MachineModel) -> Self {
        // An index has fewer blocks than `u32::MAX`; larger numbers in a file are capped.
        let blocks = workload.rows.iter().map(|row| u32::try_from(row.features.blocks).unwrap_or(u32::MAX));
        let blocks: Vec<u32> = blocks.collect();
        let queries: Vec<(u32, PerClass<Cost>)> = blocks.iter().copied().zip(estimates.iter().copied()).collect();
        let unknown = blocks.iter().filter(|&&blocks| blocks == 0).count();
        Self { best_threshold: best_length_threshold(&queries, model), blocks: blocks.into(), unknown }
    }
}

/// The best threshold for queries with these lengths in blocks and estimated costs; 0 without queries. Of equally good
/// ones it is the largest, which sends most queries to the GPUs.
#[must_use]
pub fn best_length_threshold(queries: &[(u32, PerClass<Cost>)], model: &MachineModel) -> u32 {
    let mut queries: Vec<&(u32, PerClass<Cost>)> = queries.iter().collect();
    queries.sort_unstable_by_key(|(blocks, _)| *blocks);
    let use_of = |costs: &PerClass<Cost>, is_gpu: bool| {
        model.machine.classes().filter(|class| class.is_gpu() == is_gpu).map(|class| load(model, class, costs)).reduce(
            // If a side has several classes, the load of the better class is a lower bound.
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
        // A threshold separates two lengths.
        let next = queries.get(place + 1).map_or(blocks.saturating_add(1), |(blocks, _)| *blocks);
        // After all queries are subtracted, the rest of the sum is rounding error.
        let larger = if place + 1 == queries.len() { on_gpus } else { on_cpus.max(on_gpus) };
        if next > *blocks && larger <= least {
            (best, least) = (next, larger);
        }
    }
    best
}

/// Load of a query in seconds of the whole class: of its lanes or its devices, whichever is larger.
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
        // A CPU takes 1 us per block and a GPU 2 us, so that the CPU gets two thirds of the blocks.
        let queries: Vec<_> = (1..=10).map(|n| query(n, f64::from(n), 2.0 * f64::from(n))).collect();
        let one_of_each = MachineModel::from(Machine::new(1, 1));
        // With 6 the GPU has 15 blocks (30 us) and the CPU 40 us; with 7 these are 42 and 34 us.
        assert_eq!(best_length_threshold(&queries, &one_of_each), 6);
        // A second CPU lowers the threshold, a second GPU raises it.
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
