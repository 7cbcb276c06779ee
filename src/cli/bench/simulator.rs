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
/// CPUs of a large machine, beside one GPU,
const MANY_CPUS: usize = 64;
/// and its load.
const HIGH_LOAD: f64 = 0.9;

pub(super) fn measure(rounds: usize) -> Result<(String, Vec<Measurement>), Failure> {
    let (mut note, mut rows) = on_machine(1, LOAD, "", rounds)?;
    let (many, rows_of_many) = on_machine(MANY_CPUS, HIGH_LOAD, " on 64+1", rounds)?;
    note.push_str(&many);
    rows.extend(rows_of_many);
    Ok((note, rows))
}

/// On so many CPUs and a GPU.
fn on_machine(cpus: usize, load: f64, suffix: &str, rounds: usize) -> Result<(String, Vec<Measurement>), Failure> {
    let machine = Machine::new(cpus, 1);
    let model = MachineModel::from(machine.clone());
    let (name, workload) = named_workload(None)?;
    let workload = workload.only(Mode::Or);
    let queries = sim_queries(&workload, &Estimates::Oracle, &machine)?;
    let arrivals = draw(&ArrivalProcess::Poisson, 1, QUERIES, queries.len());
    let options = PolicyOptions::default();
    let experiment = Experiment {
        model: model.clone(),
        queries,
        deadline: Nanos::from_ms(500.0),
        arrivals: vec![arrivals],
        cluster: None,
    };
    let rate_qps = experiment.region().map_or(1.0, |region| region.rate_qps) * load;
    let all = PolicyKind::ALL.map(|kind| kind.with(options));
    let policies: Vec<&dyn PolicyFactory> = all.iter().map(|policy| policy as &dyn PolicyFactory).collect();
    let times = time_simulator(&experiment, &policies, rate_qps, rounds)?;
    let row = |SimulatorTime { policy, ns_a_query }: SimulatorTime| Measurement {
        part: "simulator",
        name: format!("{policy}{suffix}"),
        metric: "ns_a_query",
        value: ns_a_query,
    };
    let rows = times.into_iter().map(row).collect();
    let note =
        format!("simulator: {name}, {rate_qps:.0} queries a second, CPUs: {cpus}, GPUs: 1; ns a simulated query\n");
    Ok((note, rows))
}
