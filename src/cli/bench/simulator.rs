//! What a simulated query costs, by policy.

use super::Measurement;
use crate::cli::Failure;
use crate::cost::MachineModel;
use crate::lab::{Estimates, draw, named_workload, sim_queries};
use crate::machine::Machine;
use crate::measure::{SimulatorTime, time_simulator};
use crate::query::{ArrivalProcess, Mode};
use crate::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use crate::sim::Experiment;
use crate::time::Nanos;

/// Queries in the run that is timed.
const QUERIES: usize = 200_000;
/// Its rate, as a share of the rate above which no scheduler is stable: queues build up under all policies, and most
/// can still serve it or are far behind it, as in a search for a capacity.
const LOAD: f64 = 0.5;

pub(super) fn measure(rounds: usize) -> Result<(String, Vec<Measurement>), Failure> {
    let machine = Machine::new(1, 1);
    let model = MachineModel::from(machine.clone());
    let (name, workload) = named_workload(None)?;
    let workload = workload.only(Mode::Or);
    let queries = sim_queries(&workload, &Estimates::Oracle, &machine)?;
    let arrivals = draw(&ArrivalProcess::Poisson, 1, QUERIES, queries.len());
    let options = PolicyOptions::default();
    let experiment =
        Experiment { model: model.clone(), queries, deadline: Nanos::from_ms(500.0), arrivals: vec![arrivals] };
    let rate_qps = experiment.region().map_or(1.0, |region| region.rate_qps) * LOAD;
    let all = PolicyKind::ALL.map(|kind| kind.with(options));
    let policies: Vec<&dyn PolicyFactory> = all.iter().map(|policy| policy as &dyn PolicyFactory).collect();
    let times = time_simulator(&experiment, &policies, rate_qps, rounds)?;
    let row = |SimulatorTime { policy, ns_a_query }: SimulatorTime| Measurement {
        part: "simulator",
        name: policy.to_string(),
        metric: "ns_a_query",
        value: ns_a_query,
    };
    let rows = times.into_iter().map(row).collect();
    let note =
        format!("simulator: {name}, {rate_qps:.0} queries a second, one CPU and one GPU; M/s are simulated queries\n");
    Ok((note, rows))
}
