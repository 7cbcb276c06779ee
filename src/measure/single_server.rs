//! One server that takes queries as they come, by Lindley's recursion: what the simulator must answer to the nanosecond, and how
//! fast the question can be answered at all.
//!
//! A query waits for as long as the one before it waited and was served, less the time between their arrivals:
//!
//! ```text
//! W' = max(0, W + S − A)       W: wait, S: service time, A: time to the next arrival
//! ```
//!
//! It knows one server, one order and no policy; a few instructions a query, where drawing arrivals takes longer than the
//! recursion itself.
//!
//! Source: Lindley, "The theory of queues with a single server", Proc. Cambridge Philosophical Society 48, 1952.

use std::time::{Duration, Instant};

use super::peak::{peak_bytes, reset_peak};
use super::simulator::BatchMeans;
use crate::machine::Class;
use crate::sched::{LogRow, PolicyFactory, ShedJob, Sink};
use crate::sim::{Arrivals, Experiment, SimError};
use crate::time::Nanos;

/// A run's mean delay, by one way to find it, and what that took.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleServerTime {
    /// Nanoseconds a query, from drawing its arrival to counting its delay.
    pub ns_a_query: f64,
    /// The most memory that the process had meanwhile, if the system tells.
    pub peak_bytes: Option<u64>,
    /// Mean delays of the run's parts, which are as long as each other to within a query in a hundred, in milliseconds.
    pub means_ms: Vec<f64>,
}

impl SingleServerTime {
    /// The mean of all delays, in milliseconds.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        self.means_ms.iter().sum::<f64>() / self.means_ms.len().max(1) as f64
    }
}

/// The recursion and the simulator, on the same arrivals.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleServer {
    /// The recursion.
    pub lindley: SingleServerTime,
    /// The simulator, under the policy.
    pub simulated: SingleServerTime,
    /// The mean delay of infinitely many queries, in milliseconds, by the formula of Pollaczek and Khinchine: arrivals at random,
    /// each of the workload's queries as likely.
    pub theory_ms: f64,
}

/// Why there is no comparison.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SingleServerError {
    /// The simulation failed.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The simulator is wrong, or the policy does not serve queries as they come.
    #[error(
        "{policy}: query {query} of the run waited {simulated} ns in the simulator, and {expected} ns by Lindley's recursion"
    )]
    Differs {
        /// The policy.
        policy: String,
        /// The number of the query in the run, from 0,
        query: usize,
        /// its wait in the simulation, in nanoseconds,
        simulated: u64,
        /// and by the recursion.
        expected: u64,
    },
    /// The simulator has lost queries, or made some.
    #[error("{policy}: {ended} queries ended in the simulator, of {arrived}")]
    Count {
        /// The policy.
        policy: String,
        /// So many ended,
        ended: usize,
        /// of so many.
        arrived: usize,
    },
}

/// Answers `arrivals` at `rate_qps` by the recursion, and by the simulator under a `policy` that serves them as they come on the
/// machine's one processor, of `class`; the best of `rounds`. All waits are compared, to the nanosecond.
///
/// # Errors
/// If any wait differs, or the simulation fails.
pub fn time_single_server(
    experiment: &Experiment,
    arrivals: &Arrivals,
    policy: &dyn PolicyFactory,
    class: Class,
    rate_qps: f64,
    rounds: usize,
) -> Result<SingleServer, SingleServerError> {
    let services: Vec<Nanos> = experiment.queries.iter().map(|query| query.service[class].alone).collect();
    check(experiment, arrivals, policy, &services, rate_qps)?;
    let mut lindley = Best::new();
    let mut simulated = Best::new();
    for _ in 0..rounds {
        lindley.round(|| {
            let mut delays = BatchMeans::new(arrivals.len());
            for (wait, service) in waits(arrivals, &services, rate_qps) {
                delays.add((wait + service).0);
            }
            Ok(delays)
        })?;
        simulated.round(|| {
            let delays = BatchMeans::new(arrivals.len());
            experiment.play(policy, rate_qps, arrivals, delays, |_| false)
        })?;
    }
    let theory_ms = pollaczek_khinchine_ms(&services, rate_qps);
    Ok(SingleServer { lindley: lindley.of(arrivals.len()), simulated: simulated.of(arrivals.len()), theory_ms })
}

/// By query, as they come: how long it waits, and its service.
fn waits<'a>(
    arrivals: &'a Arrivals,
    services: &'a [Nanos],
    rate_qps: f64,
) -> impl Iterator<Item = (Nanos, Nanos)> + use<'a> {
    // What the server has to do at the last arrival, and when that was.
    let (mut work, mut last) = (Nanos::ZERO, Nanos::ZERO);
    arrivals.at_rate(rate_qps).map(move |(arrival, query)| {
        let service = services[query as usize];
        let wait = work.since(arrival.since(last));
        (work, last) = (wait + service, arrival);
        (wait, service)
    })
}

/// Plays the arrivals once, and compares each wait with the recursion's.
fn check(
    experiment: &Experiment,
    arrivals: &Arrivals,
    policy: &dyn PolicyFactory,
    services: &[Nanos],
    rate_qps: f64,
) -> Result<(), SingleServerError> {
    let expected = waits(arrivals, services, rate_qps).map(|(wait, _)| wait);
    let sink = Beside { expected, ended: 0, difference: None };
    let Beside { ended, difference, .. } =
        experiment.play(policy, rate_qps, arrivals, sink, |sink| sink.difference.is_some())?;
    let policy = policy.name().to_owned();
    if let Some((query, simulated, expected)) = difference {
        return Err(SingleServerError::Differs { policy, query, simulated, expected });
    }
    if ended != arrivals.len() {
        return Err(SingleServerError::Count { policy, ended, arrived: arrivals.len() });
    }
    Ok(())
}

/// Compares waits as queries finish: in the order of their arrival.
struct Beside<I> {
    expected: I,
    ended: usize,
    /// The first: the query, its wait, and the expected one.
    difference: Option<(usize, u64, u64)>,
}

impl<I: Iterator<Item = Nanos>> Sink for Beside<I> {
    fn record(&mut self, row: &LogRow) {
        let wait = row.started.since(row.arrival);
        if let Some(expected) = self.expected.next()
            && self.difference.is_none()
            && (wait != expected || row.job.index() != self.ended)
        {
            self.difference = Some((row.job.index(), wait.0, expected.0));
        }
        self.ended += 1;
    }

    fn shed(&mut self, _job: &ShedJob) {}
}

/// The quickest round, the most memory of any, and what all of them found.
struct Best {
    least: Duration,
    peak_bytes: Option<u64>,
    delays: BatchMeans,
}

impl Best {
    fn new() -> Self {
        Self { least: Duration::MAX, peak_bytes: None, delays: BatchMeans::new(0) }
    }

    fn round(&mut self, play: impl FnOnce() -> Result<BatchMeans, SimError>) -> Result<(), SimError> {
        let _ = reset_peak();
        let began = Instant::now();
        self.delays = play()?;
        self.least = began.elapsed().min(self.least);
        self.peak_bytes = peak_bytes().max(self.peak_bytes);
        Ok(())
    }

    fn of(self, queries: usize) -> SingleServerTime {
        SingleServerTime {
            ns_a_query: self.least.as_nanos() as f64 / queries.max(1) as f64,
            peak_bytes: self.peak_bytes,
            means_ms: self.delays.means_ms(),
        }
    }
}

/// The mean delay of one server that takes queries as they come: E S + λ E S² / (2 (1 − λ E S)).
fn pollaczek_khinchine_ms(services: &[Nanos], rate_qps: f64) -> f64 {
    let n = services.len() as f64;
    let (mean, square) = services.iter().fold((0.0, 0.0), |(mean, square), service| {
        let ms = service.as_ms();
        (mean + ms / n, square + ms * ms / n)
    });
    let a_ms = rate_qps / 1e3;
    mean + a_ms * square / (2.0 * (1.0 - a_ms * mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Cost, MachineModel};
    use crate::ids::QueryId;
    use crate::machine::Machine;
    use crate::query::ArrivalProcess;
    use crate::sched::{PolicyKind, PolicyOptions};
    use crate::sim::SimQuery;

    fn experiment(model: MachineModel) -> Experiment {
        let query = |us: u64| {
            let service = Cost::on_cpu_and_gpu(Nanos(us * 1000), Nanos(us * 500));
            SimQuery { id: QueryId(us as u32), service, estimate: service }
        };
        let queries = [10, 20, 90].map(query).to_vec();
        let arrivals = vec![Arrivals::drawn(&ArrivalProcess::Poisson, 3, 4000, 3)];
        Experiment { model, queries, deadline: Nanos::from_ms(1.0), arrivals, cluster: None }
    }

    fn compared(model: MachineModel, kind: PolicyKind, class: Class) -> Result<SingleServer, SingleServerError> {
        let experiment = experiment(model);
        let policy = kind.with(PolicyOptions::default());
        time_single_server(&experiment, &experiment.arrivals[0], &policy, class, 15_000.0, 1)
    }

    #[test]
    fn the_recursion_by_hand() {
        // A second apart, then half of one: the third comes when the second has half a second to go.
        let arrivals = Arrivals::given(0, vec![1.0, 2.0, 2.5, 9.0], vec![0; 4]);
        let found: Vec<f64> =
            waits(&arrivals, &[Nanos::from_secs(1.25)], 1.0).map(|(wait, _)| wait.as_secs()).collect();
        assert_eq!(found, [0.0, 0.25, 1.0, 0.0]);
    }

    #[test]
    fn the_simulator_waits_as_the_recursion_does_on_either_processor() {
        for (machine, kind, class) in [
            (Machine::new(1, 0), PolicyKind::CpuOnly, Class::CPU),
            (Machine::new(0, 1), PolicyKind::GpuOnly, Class::GPU),
        ] {
            let SingleServer { lindley, simulated, theory_ms } = compared(machine.into(), kind, class).unwrap();
            assert_eq!(lindley.means_ms, simulated.means_ms);
            // 4000 queries: within a tenth.
            assert!((lindley.mean_ms() / theory_ms - 1.0).abs() < 0.1, "{} for {theory_ms}", lindley.mean_ms());
        }
    }

    #[test]
    fn what_is_no_single_server_is_told() {
        // A dispatcher that takes a nanosecond of its own, and a second server.
        let slow = MachineModel { decision: Nanos(1), ..Machine::new(1, 0).into() };
        let two = Machine::new(2, 0).into();
        for model in [slow, two] {
            let error = compared(model, PolicyKind::CpuOnly, Class::CPU).unwrap_err();
            assert!(matches!(error, SingleServerError::Differs { .. }), "{error}");
            assert!(error.to_string().contains("by Lindley's recursion"), "{error}");
        }
    }
}
