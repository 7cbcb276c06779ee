//! A scheduling policy of one's own beside those of the lab, on the shipped Wikipedia workload.
//!
//! `cargo run --release --example own_policy`
//!
//! The policy: one queue, shortest job first. An idle processor takes the job that it is predicted to finish soonest.
//! It is good for the mean delay and starves long queries, which the 99.9th percentile shows. Its factory is all that
//! the lab needs: simulations, the capacity search and the bound that it is compared with take it like their own.

use std::error::Error;

use tandem::cost::MachineModel;
use tandem::cost::shipped::default_workload;
use tandem::ids::JobId;
use tandem::lab::{CapacitySearch, Objective, RunLength, Summary, Tally};
use tandem::machine::{Class, Machine};
use tandem::query::{ArrivalProcess, Mode};
use tandem::sched::{
    Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyFactory, PolicyKind, PolicyOptions, Promise,
    preferred_class,
};
use tandem::sim::{Arrivals, Experiment, SimQuery};
use tandem::time::Nanos;

/// Looks through all that waits: a heap per class of processor would make `next` cheaper than its O(n).
struct ShortestFirst;

impl Policy for ShortestFirst {
    fn name(&self) -> &str {
        "shortest-first"
    }

    fn arrive(&mut self, job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        LanesToPoll::ClassThenOthers(preferred_class(&job.predicted))
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, _now: Nanos, batch: &mut Vec<JobId>) -> Next {
        let shortest = jobs.iter_waiting().min_by_key(|job| (job.alone(lane.class), job.id));
        let Some(job) = shortest else { return Next::Wait };
        batch.push(job.id);
        Next::Run
    }
}

struct Factory;

impl PolicyFactory for Factory {
    fn name(&self) -> &str {
        "shortest-first"
    }

    fn build(&self, _model: &MachineModel) -> Result<Box<dyn Policy>, PolicyError> {
        Ok(Box::new(ShortestFirst))
    }

    // While a job waits, every processor works: rates that are low enough need not be played.
    fn promise(&self) -> Option<Promise> {
        Some(Promise { idle_wait: Nanos::ZERO })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (name, workload) = default_workload()?;
    let workload = workload.only(Mode::Or);
    // The estimates are the true costs here; `tandem::cost::cross_validated_estimates` gives honest ones.
    let rows = workload.rows.iter().zip(workload.costs());
    let queries: Vec<SimQuery> =
        rows.map(|(row, costs)| SimQuery { id: row.query_id, service: costs, estimate: costs }).collect();

    let n = 100_000;
    let experiment = Experiment {
        cluster: None,
        model: Machine::new(1, 1).into(),
        deadline: Nanos::from_ms(50.0),
        arrivals: vec![Arrivals::drawn(&ArrivalProcess::Poisson, 1, n, queries.len())],
        queries,
    };
    let options = PolicyOptions::default();
    let (stealing, mct) = (PolicyKind::Stealing.with(options), PolicyKind::Mct.with(options));
    let policies: [&dyn PolicyFactory; 3] = [&stealing, &mct, &Factory];

    println!("{name}, OR, one {} worker and one {} stream, {n} queries; delays in ms\n", Class::CPU, Class::GPU);
    println!("{:>8} {:>15} {:>8} {:>8} {:>8} {:>8}", "rate q/s", "policy", "mean", "p99", "p99.9", "longest");
    for rate_qps in [40_000.0, 60_000.0, 80_000.0] {
        for policy in policies {
            let tally = Tally::new(&experiment.model.machine, n);
            let tally = experiment.play(policy, rate_qps, &experiment.arrivals[0], tally, |_| false)?;
            if let Some(Summary { mean_ms, p99_ms, p999_ms, max_ms, .. }) = tally.summary() {
                let policy = policy.name();
                println!("{rate_qps:>8} {policy:>15} {mean_ms:>8.3} {p99_ms:>8.3} {p999_ms:>8.3} {max_ms:>8.3}");
            }
        }
    }
    let search = CapacitySearch::new(&experiment, Objective::default(), RunLength::default())?;
    println!("\nhighest rate with p99 <= 50 ms; no scheduler is stable above {:.0} q/s", search.region_qps);
    for policy in policies {
        println!("{:>24} {:>8.0}", policy.name(), search.of(policy)?.objective.qps);
    }
    Ok(())
}
