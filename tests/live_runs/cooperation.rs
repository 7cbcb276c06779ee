//! CPU and GPU together by length and by random halves, after Huang et al.: the rate of each, and the best threshold.

use std::sync::Arc;

use tandem::base::ids::QueryId;
use tandem::base::machine::{Machine, PerClass};
use tandem::base::time::Nanos;
use tandem::cost::{Cost, shipped};
use tandem::sched::{BuiltIn, PolicyKind, PolicyOptions};
use tandem::sim::{Arrivals, Experiment, SimQuery};
use tandem::study::{
    CapacitySearch, Estimates, Objective, QueryLengths, RunLength, best_length_threshold, sim_queries,
};
use tandem::traffic::{ArrivalProcess, Mode};

/// Queries of 10 to 1000 blocks, many short and few long. A CPU takes a microsecond a block; a GPU takes a third, but
/// more for long queries, whose ranges differ.
fn papers_queries() -> (Vec<SimQuery>, Vec<u32>) {
    let blocks: Vec<u32> = (0..300).map(|i| (10.0 * (100_f64).powf(f64::from(i) / 299.0)) as u32).collect();
    let query = |(id, &blocks): (u32, &u32)| {
        let cpu_us = f64::from(blocks);
        let gpu_us = cpu_us / 3.0 * (1.0 + (cpu_us / 300.0).powi(2));
        let service = Cost::on_cpu_and_gpu(Nanos::from_us(cpu_us), Nanos::from_us(gpu_us));
        SimQuery { id: QueryId(id), service, estimate: service }
    };
    ((0..).zip(&blocks).map(query).collect(), blocks)
}

fn experiment(queries: Vec<SimQuery>, machine: Machine) -> Experiment {
    let arrivals = vec![Arrivals::drawn(&ArrivalProcess::Poisson, 1, 0, queries.len())];
    Experiment { model: machine.into(), queries, deadline: Nanos::from_ms(100.0), arrivals, cluster: None }
}

fn length_based(threshold: u32, blocks: &Arc<[u32]>) -> BuiltIn {
    let options = PolicyOptions { length_threshold: threshold, ..PolicyOptions::default() };
    PolicyKind::LengthBased.with(options).with_lengths(Arc::clone(blocks))
}

fn capacity_qps(experiment: &Experiment, policy: &BuiltIn) -> f64 {
    let search = CapacitySearch::new(experiment, Objective::default(), RunLength::default()).unwrap();
    // One seed and short runs suffice: the compared values differ by more.
    search.estimate_capacity_coarse(&[policy], &|| ()).unwrap()[0]
}

#[test]
fn by_length_carries_more_than_random_halves_wherever_length_tells() {
    let (queries, blocks) = papers_queries();
    for machine in [Machine::new(1, 1), Machine::new(4, 1), Machine::new(1, 2)] {
        let lengths: Vec<(u32, PerClass<Cost>)> =
            blocks.iter().copied().zip(queries.iter().map(|query| query.estimate)).collect();
        let threshold = best_length_threshold(&lengths, &machine.clone().into());
        let experiment = experiment(queries.clone(), machine);
        let by_length = capacity_qps(&experiment, &length_based(threshold, &blocks.clone().into()));
        let by_coin = capacity_qps(&experiment, &PolicyKind::RandomSplit.with(PolicyOptions::default()));
        assert!(by_length > 1.2 * by_coin, "{:?}: {by_length} and {by_coin} q/s", experiment.model.machine);
    }
}

#[test]
fn the_threshold_without_a_run_is_the_best_of_those_that_are_played() {
    let (queries, blocks) = papers_queries();
    let lengths: Vec<(u32, PerClass<Cost>)> =
        blocks.iter().copied().zip(queries.iter().map(|query| query.estimate)).collect();
    let best = best_length_threshold(&lengths, &Machine::new(1, 1).into());
    let experiment = experiment(queries, Machine::new(1, 1));
    let blocks: Arc<[u32]> = blocks.into();
    // The grid has quarter steps, so that every threshold is within a step of one of its points.
    let grid: Vec<u32> = (0..24).map(|step| (10.0 * 1.25_f64.powi(step)) as u32).collect();
    let played: Vec<f64> = grid.iter().map(|&s| capacity_qps(&experiment, &length_based(s, &blocks))).collect();
    let at = (0..grid.len()).max_by(|&a, &b| played[a].total_cmp(&played[b])).unwrap();
    let within = grid[at.saturating_sub(1)]..=grid[(at + 1).min(grid.len() - 1)];
    assert!(within.contains(&best), "{best} blocks; played, {} is best of {grid:?}: {played:?}", grid[at]);
    let found = capacity_qps(&experiment, &length_based(best, &blocks));
    assert!(found >= 0.98 * played[at], "{found} q/s at {best} blocks, {} at {}", played[at], grid[at]);
}

#[test]
fn by_length_is_never_below_random_halves_on_the_workloads_that_ship() {
    for name in shipped::workload_names() {
        let workload = shipped::workload(name).unwrap().only(Mode::Or);
        let machine = Machine::new(1, 1);
        let model = tandem::cost::MachineModel { batches: workload.batches.batch_costs(), ..machine.clone().into() };
        let queries = sim_queries(&workload, &Estimates::Oracle, &machine).unwrap();
        let estimates: Vec<PerClass<Cost>> = queries.iter().map(|query| query.estimate).collect();
        let lengths = QueryLengths::of(&workload, &estimates, &model);
        let experiment = Experiment { model, ..experiment(queries, machine) };
        let by_length = capacity_qps(&experiment, &length_based(lengths.best_threshold, &lengths.blocks));
        let by_coin = capacity_qps(&experiment, &PolicyKind::RandomSplit.with(PolicyOptions::default()));
        assert!(by_length >= by_coin, "{name}: {by_length} and {by_coin} q/s");
    }
}
