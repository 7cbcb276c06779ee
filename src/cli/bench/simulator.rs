//! What a simulated query costs, by policy, and beside Lindley's recursion and SimPy.

use super::Measurement;
use crate::cli::Failure;
use crate::cli::options::numbers;
use crate::cost::{MachineModel, Workload};
use crate::lab::{Estimates, draw_all, named_workload, sim_queries};
use crate::machine::{Class, Machine};
use crate::measure::{
    SimPy, SimPyError, SimulatorTime, SingleServer, SingleServerError, SingleServerTime, time_simulator,
    time_single_server,
};
use crate::query::{ArrivalProcess, Mode};
use crate::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use crate::sim::{Arrivals, Experiment};
use crate::stats::mean_interval;
use crate::time::Nanos;

/// Queries of a run that is played in all rounds.
const ROUND_QUERIES: usize = 200_000;
/// Fewer tell nothing, more than that have no numbers of their own.
const LEAST_QUERIES: f64 = 1e3;
const MOST_QUERIES: f64 = 1e9;
/// SimPy plays runs of up to so many queries: ten seconds,
const MOST_OF_SIMPY: usize = 1_000_000;
/// and each at most so often.
const ROUNDS_OF_SIMPY: usize = 3;
/// Its rate, as a share of the rate above which no scheduler is stable: queues build up under all policies, and most
/// can still serve it or are far behind it, as in a search for a capacity.
const LOAD: f64 = 0.5;
/// CPUs of a large machine, beside one GPU,
const MANY_CPUS: usize = 64;
/// and its load.
const HIGH_LOAD: f64 = 0.9;
const SEED: u64 = 1;
/// Mean delays of two simulators differ by less with this probability: one run of ten thousand raises a false alarm.
const CONFIDENCE: f64 = 0.9999;

/// The numbers of queries that are asked for, ascending.
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

/// Runs of these numbers of queries, each through these policies, or all, on a small machine and a large one; then one server.
pub(super) fn measure(
    sizes: &[usize],
    policies: &[PolicyKind],
    rounds: usize,
) -> Result<(String, Vec<Measurement>), Failure> {
    let (name, workload) = named_workload(None)?;
    let workload = workload.only(Mode::Or);
    let kinds = if policies.is_empty() { PolicyKind::ALL.to_vec() } else { policies.to_vec() };
    let world = World { workload, kinds, sizes, rounds };
    let mut rows = Vec::new();
    let small = world.by_policy(1, LOAD, "", &mut rows)?;
    let large = world.by_policy(MANY_CPUS, HIGH_LOAD, " on 64+1", &mut rows)?;
    let mut note = format!("simulator: {name}, Poisson arrivals; ns a simulated query\n{small}{large}");
    note += &world.single_server(&mut rows)?;
    Ok((note, rows))
}

struct World<'a> {
    workload: Workload,
    kinds: Vec<PolicyKind>,
    sizes: &'a [usize],
    rounds: usize,
}

impl World<'_> {
    /// On so many CPUs and a GPU.
    fn by_policy(&self, cpus: usize, load: f64, of: &str, rows: &mut Vec<Measurement>) -> Result<String, Failure> {
        let (experiment, rate_qps) = self.experiment(&Machine::new(cpus, 1), load)?;
        let policies: Vec<_> = self.kinds.iter().map(|kind| kind.with(PolicyOptions::default())).collect();
        let policies: Vec<&dyn PolicyFactory> = policies.iter().map(|policy| policy as &dyn PolicyFactory).collect();
        for &queries in self.sizes {
            let arrivals = experiment.arrivals[0].first(queries);
            let times = time_simulator(&experiment, &arrivals, &policies, rate_qps, self.rounds_of(queries))?;
            for SimulatorTime { policy, ns_a_query, peak_bytes } in times {
                let name = format!("{policy}{of}{}", self.size(queries));
                rows.extend(measurements(name, ns_a_query, peak_bytes));
            }
        }
        Ok(format!("  CPUs: {cpus}, GPUs: 1: {rate_qps:.0} queries a second\n"))
    }

    /// One processor, served as queries come: by the recursion, by the simulator, by SimPy.
    fn single_server(&self, rows: &mut Vec<Measurement>) -> Result<String, Failure> {
        let mut note = String::new();
        let simpy = match SimPy::find() {
            Ok(simpy) => Some(simpy),
            Err(e) if e.is_absence() => {
                note += &format!("  SimPy: {e}\n");
                let name = format!("SimPy, {e}");
                rows.push(Measurement { part: "simulator", name, metric: "is_installed", value: 0.0 });
                None
            }
            Err(e) => return Err(Failure::failed(e.to_string())),
        };
        for (kind, class) in [(PolicyKind::CpuOnly, Class::CPU), (PolicyKind::GpuOnly, Class::GPU)] {
            let machine = if class == Class::CPU { Machine::new(1, 0) } else { Machine::new(0, 1) };
            let (experiment, rate_qps) = self.experiment(&machine, LOAD)?;
            let policy = kind.with(PolicyOptions::default());
            note += &format!("  one {class} as a single server: {rate_qps:.0} queries a second\n");
            for &queries in self.sizes {
                let rounds = self.rounds_of(queries);
                let arrivals = experiment.arrivals[0].first(queries);
                let SingleServer { lindley, simulated, theory_ms } =
                    time_single_server(&experiment, &arrivals, &policy, class, rate_qps, rounds)
                        .map_err(|e: SingleServerError| Failure::failed(e.to_string()))?;
                let size = self.size(queries);
                let mean_ms = simulated.mean_ms();
                note += &format!(
                    "    all {queries} waits equal Lindley's recursion to the nanosecond; mean delay {mean_ms:.5} ms, in \
                     theory {theory_ms:.5}\n"
                );
                let mut row = |name: String, time: &SingleServerTime| {
                    rows.extend(measurements(name.clone(), time.ns_a_query, time.peak_bytes));
                    rows.push(Measurement { part: "simulator", name, metric: "mean_delay_ms", value: time.mean_ms() });
                };
                row(format!("Lindley, one {class}{size}"), &lindley);
                row(format!("{}, one {class}{size}", kind.name()), &simulated);
                let Some(simpy) = &simpy else { continue };
                if queries > MOST_OF_SIMPY {
                    note += &format!("    SimPy is asked for at most {MOST_OF_SIMPY} queries\n");
                    continue;
                }
                let time = self.of_simpy(simpy, &experiment, class, queries, rate_qps)?;
                note += &format!("    SimPy: {}\n", agreement(&simulated, &time)?);
                row(format!("SimPy {}, one {class}{size}", simpy.version), &time);
            }
        }
        Ok(note)
    }

    /// The quickest of a few runs, all of which find the same.
    fn of_simpy(
        &self,
        simpy: &SimPy,
        experiment: &Experiment,
        class: Class,
        queries: usize,
        rate_qps: f64,
    ) -> Result<SingleServerTime, Failure> {
        let run = || simpy.time_single_server(&experiment.queries, class, queries, rate_qps, SEED);
        let failed = |e: SimPyError| Failure::failed(format!("SimPy: {e}"));
        let mut best = run().map_err(failed)?;
        for _ in 1..self.rounds_of(queries).min(ROUNDS_OF_SIMPY) {
            let again = run().map_err(failed)?;
            best.ns_a_query = again.ns_a_query.min(best.ns_a_query);
        }
        Ok(best)
    }

    /// Arrivals drawn as they are played, and a rate of this load.
    fn experiment(&self, machine: &Machine, load: f64) -> Result<(Experiment, f64), Failure> {
        let queries = sim_queries(&self.workload, &Estimates::Oracle, machine)?;
        let arrivals: Vec<Arrivals> = draw_all(&ArrivalProcess::Poisson, &[SEED], ROUND_QUERIES, queries.len());
        let model = MachineModel::from(machine.clone());
        let experiment = Experiment { model, queries, deadline: Nanos::from_ms(500.0), arrivals, cluster: None };
        let rate_qps = experiment.region().map_or(1.0, |region| region.rate_qps) * load;
        Ok((experiment, rate_qps))
    }

    /// So often is a run played: all rounds together are of about as many queries, however long one is.
    fn rounds_of(&self, queries: usize) -> usize {
        (self.rounds.saturating_mul(ROUND_QUERIES) / queries).clamp(1, self.rounds.max(1))
    }

    /// What tells runs of one length from those of another, where there are several.
    fn size(&self, queries: usize) -> String {
        if self.sizes.len() > 1 { format!(", {queries:e} queries") } else { String::new() }
    }
}

fn measurements(name: String, ns_a_query: f64, peak_bytes: Option<u64>) -> impl Iterator<Item = Measurement> {
    let row = |name, metric, value| Measurement { part: "simulator", name, metric, value };
    let peak = peak_bytes.map(|bytes| row(name.clone(), "peak_bytes", bytes as f64));
    std::iter::once(row(name, "ns_a_query", ns_a_query)).chain(peak)
}

/// How far SimPy's mean delay is from the simulator's, which may be by chance.
fn agreement(simulated: &SingleServerTime, simpy: &SingleServerTime) -> Result<String, Failure> {
    let (mean_ms, simpy_ms) = (simulated.mean_ms(), simpy.mean_ms());
    let half_ms = |time: &SingleServerTime| {
        mean_interval(&time.means_ms, CONFIDENCE).map_or(f64::INFINITY, |interval| (interval.high - interval.low) / 2.0)
    };
    let percent = |ms: f64| 100.0 * ms / mean_ms;
    let by_chance_ms = half_ms(simulated).hypot(half_ms(simpy));
    let (off, by_chance) = (percent(simpy_ms - mean_ms), percent(by_chance_ms));
    let said = format!("mean delay {simpy_ms:.5} ms, {off:+.2} %, and by chance up to {by_chance:.2} %");
    if (simpy_ms - mean_ms).abs() > by_chance_ms {
        return Err(Failure::failed(format!(
            "one server of the same queries: SimPy and the simulator ({mean_ms:.5} ms) disagree: {said}"
        )));
    }
    Ok(said)
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
    fn simulators_that_disagree_by_more_than_chance_are_an_error() {
        let time = |means_ms: &[f64]| SingleServerTime { ns_a_query: 1.0, peak_bytes: None, means_ms: means_ms.into() };
        let of = |offset: f64| time(&[1.0, 1.01, 0.99, 1.02, 0.98].map(|mean| mean + offset));
        assert!(agreement(&of(0.0), &of(0.005)).unwrap().starts_with("mean delay 1.00500 ms, +0.50 %"));
        let error = agreement(&of(0.0), &of(0.5)).unwrap_err().to_string();
        assert!(error.contains("disagree: mean delay 1.50000 ms, +50.00 %"), "{error}");
    }
}
