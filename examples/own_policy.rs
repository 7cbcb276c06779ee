//! A scheduling policy of one's own beside those of the lab, on the shipped Wikipedia workload.
//!
//! `cargo run --release --example own_policy`
//!
//! The policy: one queue, shortest job first. An idle processor takes the job that it is predicted to finish soonest.
//! It is good for the mean delay and starves long queries, which the 99.9th percentile shows.

use std::error::Error;

use tandem::cost::shipped::default_workload;
use tandem::machine::{Class, Machine, PerClass};
use tandem::query::{ArrivalProcess, Mode, at_rate, draw_queries, unit_arrivals};
use tandem::report::summary::Summary;
use tandem::sched::{Batch, Job, Next, Policy, PolicyKind, PolicyOptions};
use tandem::sim::{SimQuery, SimRun, simulate};
use tandem::time::Nanos;

/// The jobs that wait, in no order: a heap per kind of processor would make `next` cheaper than its O(n).
struct ShortestFirst {
    machine: Machine,
    waiting: Vec<Job>,
}

impl Policy for ShortestFirst {
    fn name(&self) -> &'static str {
        "shortest-first"
    }

    fn arrive(&mut self, job: Job, _now: Nanos) {
        self.waiting.push(job);
    }

    fn next(&mut self, processor: tandem::ids::ProcessorId, _now: Nanos) -> Next {
        let kind = self.machine.class(processor);
        let shortest = (0..self.waiting.len()).min_by_key(|&i| (self.waiting[i].predicted[kind], self.waiting[i].id));
        shortest.map_or(Next::Wait, |i| Next::Run(Batch::One(self.waiting.swap_remove(i))))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (name, workload) = default_workload()?;
    // The estimates are the true times here; `tandem::cost::cross_validated_estimates` gives honest ones.
    let time = |us: Option<tandem::cost::Measured>| Nanos((us.map_or(0.0, |m| m.median_us) * 1e3) as u64);
    let query = |row: &tandem::cost::WorkloadRow| {
        let service = PerClass::two(time(row.measured[Class::CPU]), time(row.measured[Class::GPU]));
        SimQuery { id: row.query_id, service, estimate: service }
    };
    let queries: Vec<SimQuery> = workload.only(Mode::Or).rows.iter().map(query).collect();

    let machine = Machine::new(1, 1);
    let n = 100_000;
    let unit = unit_arrivals(&ArrivalProcess::named("poisson")?, 1, n);
    let drawn = draw_queries(1, n, queries.len());
    println!("{name}, OR, one CPU worker and one GPU stream, {n} queries; delays in milliseconds\n");
    println!("{:>8} {:>15} {:>8} {:>8} {:>8} {:>8}", "rate q/s", "policy", "mean", "p99", "p99.9", "longest");
    for rate_qps in [40_000.0, 60_000.0, 80_000.0] {
        let options = PolicyOptions::default();
        let policies: [Box<dyn Policy>; 3] = [
            PolicyKind::Stealing.build(&options, &machine)?,
            PolicyKind::Mct.build(&options, &machine)?,
            Box::new(ShortestFirst { machine: machine.clone(), waiting: Vec::new() }),
        ];
        for policy in policies {
            let name = policy.name();
            let arrivals = at_rate(&unit, rate_qps).zip(drawn.iter().copied());
            let run = SimRun { machine: &machine, policy, queries: &queries, arrivals, deadline: Nanos(500_000_000) };
            let log = simulate(run)?;
            if let Some(summary) = Summary::of_log(&log, &machine) {
                let Summary { mean_ms, p99_ms, p999_ms, max_ms, .. } = summary;
                println!("{rate_qps:>8} {name:>15} {mean_ms:>8.3} {p99_ms:>8.3} {p999_ms:>8.3} {max_ms:>8.3}");
            }
        }
    }
    Ok(())
}
