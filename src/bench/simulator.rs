//! Time of a simulated query, by policy and by the length of a run.

use std::fs;
use std::time::{Duration, Instant};

use tandem_model::base::machine::Machine;
use tandem_model::base::time::Nanos;
use tandem_model::cost::{MachineModel, Workload};
use tandem_model::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use tandem_model::sim::{Arrivals, Experiment};
use tandem_model::study::{Estimates, draw_all, named_workload, sim_queries};
use tandem_model::traffic::{ArrivalProcess, Mode};

use super::Measurement;
use crate::failure::Failure;
use crate::options::lists::numbers;

/// Number of queries up to which a run is played in all rounds.
const ROUND_QUERIES: usize = 200_000;
/// Valid lengths of a run: shorter runs end too soon to be timed, and longer runs exceed the numbers of queries.
const LEAST_QUERIES: f64 = 1e3;
const MOST_QUERIES: f64 = 1e9;
/// The rate of the small machine, as a share of the rate above which no scheduler is stable. Queues form under all policies, and
/// some policies are overloaded, as in a search for a capacity.
const LOAD: f64 = 0.5;
/// Number of CPUs of the large machine, which has one GPU.
const MANY_CPUS: usize = 64;
/// The load of the large machine.
const HIGH_LOAD: f64 = 0.9;
const SEED: u64 = 1;

/// The requested numbers of queries, ascending.
pub(super) fn sizes(text: &str) -> Result<Vec<usize>, Failure> {
    let mut sizes = Vec::new();
    for queries in numbers("--num-queries", text, LEAST_QUERIES, MOST_QUERIES)? {
        if queries.fract() != 0.0 {
            return Err(Failure::input(format!("--num-queries: {queries}, expected whole numbers")));
        }
        sizes.push(queries as usize);
    }
    sizes.sort_unstable();
    Ok(sizes)
}

/// Plays runs of these lengths under each of these policies, or all, on a small and on a large machine.
pub(super) fn measure(
    sizes: &[usize],
    policies: &[PolicyKind],
    rounds: usize,
) -> Result<(String, Vec<Measurement>), Failure> {
    let (name, workload) = named_workload(None)?;
    let workload = workload.only(Mode::Or);
    let kinds = if policies.is_empty() { PolicyKind::ALL.to_vec() } else { policies.to_vec() };
    let mut note = format!("simulator: {name}, Poisson arrivals; ns a simulated query\n");
    let mut rows = Vec::new();
    for (cpus, load, on) in [(1, LOAD, ""), (MANY_CPUS, HIGH_LOAD, " on 64+1")] {
        let (experiment, rate_qps) = experiment(&workload, &Machine::new(cpus, 1), load)?;
        note += &format!("  CPUs: {cpus}, GPUs: 1: {rate_qps:.0} queries per second\n");
        for &queries in sizes {
            let arrivals = experiment.arrivals[0].first(queries);
            // All rounds together play about the same number of queries, for any length of a run.
            let rounds = (rounds.saturating_mul(ROUND_QUERIES) / queries).clamp(1, rounds.max(1));
            let length = if sizes.len() > 1 { format!(", {queries:e} queries") } else { String::new() };
            for (kind, (least, peak_bytes)) in kinds.iter().zip(time(&experiment, &arrivals, &kinds, rate_qps, rounds)?)
            {
                let name = format!("{}{on}{length}", kind.name());
                let row = |metric, value| Measurement { part: "simulator", name: name.clone(), metric, value };
                rows.push(row("ns_a_query", least.as_nanos() as f64 / queries as f64));
                rows.extend(peak_bytes.map(|bytes| row("peak_bytes", bytes as f64)));
            }
        }
    }
    Ok((note, rows))
}

/// Arrivals that are drawn while they are played, and the rate at this load.
fn experiment(workload: &Workload, machine: &Machine, load: f64) -> Result<(Experiment, f64), Failure> {
    let queries = sim_queries(workload, &Estimates::Oracle, machine)?;
    let arrivals: Vec<Arrivals> = draw_all(&ArrivalProcess::Poisson, &[SEED], ROUND_QUERIES, queries.len());
    let model = MachineModel::from(machine.clone());
    let experiment = Experiment { model, queries, deadline: Nanos::from_ms(500.0), arrivals, cluster: None };
    let rate_qps = experiment.region().map_or(1.0, |region| region.rate_qps) * load;
    Ok((experiment, rate_qps))
}

/// Plays the arrivals under each policy in turn. Returns the least time of all rounds and the peak memory of the process. Delays
/// are only summed, so that this is the simulator's memory.
fn time(
    experiment: &Experiment,
    arrivals: &Arrivals,
    kinds: &[PolicyKind],
    rate_qps: f64,
    rounds: usize,
) -> Result<Vec<(Duration, Option<u64>)>, Failure> {
    let policies: Vec<_> = kinds.iter().map(|kind| kind.with(PolicyOptions::default())).collect();
    let mut best = vec![(Duration::MAX, None); policies.len()];
    for _ in 0..rounds {
        for (policy, (least, peak)) in policies.iter().zip(&mut best) {
            // If the system does not allow this reset, the peak includes all runs before.
            let _ = fs::write("/proc/self/clear_refs", "5");
            let began = Instant::now();
            let sum = experiment.total_delay(policy as &dyn PolicyFactory, rate_qps, arrivals)?;
            *least = began.elapsed().min(*least);
            *peak = peak_bytes().max(*peak);
            std::hint::black_box(sum);
        }
    }
    Ok(best)
}

/// The peak memory of the process in bytes, if the system reports it.
fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_queries_are_whole_and_in_order() {
        assert_eq!(sizes("1e6,1e5,250000").unwrap(), [100_000, 250_000, 1_000_000]);
        for (text, expected) in [
            ("10", "--num-queries: \"10\", expected numbers from 1000 to 1000000000"),
            ("1e5,1e5", "--num-queries: 100000 is given twice"),
            ("1000.5", "--num-queries: 1000.5, expected whole numbers"),
            ("many", "--num-queries: \"many\", expected numbers"),
        ] {
            let message = sizes(text).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{text}: {message}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_touched_raises_the_peak() {
        let touched = vec![1_u8; 64 << 20];
        assert_eq!(std::hint::black_box(&touched).len(), 64 << 20);
        assert!(peak_bytes().unwrap() >= 64 << 20);
    }
}
