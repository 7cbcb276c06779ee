//! A scheduling policy of your own next to two of the lab's, on the shipped Wikipedia workload.
//!
//! `cargo run --release --example own_policy` prints the tables of `tandem simulate` and writes its files and figure.
//!
//! The policy is shortest job first: an idle processor takes the waiting job that it is estimated to finish soonest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;

use tandem::base::ids::JobId;
use tandem::base::machine::PerClass;
use tandem::base::time::Nanos;
use tandem::cost::shipped::default_workload;
use tandem::cost::{Cost, MachineModel, ModelKind};
use tandem::report::policies::compare;
use tandem::sched::{
    Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyFactory, PolicyKind, PolicyOptions, preferred_class,
};
use tandem::study::{Comparison, Estimates, RunLength, Silent, SimulatedMachine, experiment};
use tandem::traffic::Mode;

/// By class of processor, the waiting jobs by their estimated time there. A job is in all of these heaps. Its
/// remaining entries are dropped when they reach the top.
#[derive(Default)]
struct ShortestFirst(PerClass<BinaryHeap<Reverse<(Nanos, JobId)>>>);

impl Policy for ShortestFirst {
    fn name(&self) -> &str {
        "shortest-first"
    }

    fn arrive(&mut self, job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        for (class, cost) in job.predicted.iter().filter(|(_, cost)| **cost != Cost::NEVER) {
            self.0[class].push(Reverse((cost.alone, job.id)));
        }
        LanesToPoll::ClassThenOthers(preferred_class(&job.predicted))
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, _now: Nanos, batch: &mut Vec<JobId>) -> Next {
        while let Some(Reverse((_, id))) = self.0[lane.class].pop() {
            if jobs.waiting(id).is_some() {
                batch.push(id);
                return Next::Run;
            }
        }
        Next::Wait
    }
}

struct Factory;

impl PolicyFactory for Factory {
    fn name(&self) -> &str {
        "shortest-first"
    }

    fn build(&self, _model: &MachineModel) -> Result<Box<dyn Policy>, PolicyError> {
        Ok(Box::<ShortestFirst>::default())
    }

    fn makes_batches(&self) -> bool {
        false
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (name, workload) = default_workload()?;
    let (machine, deadline, seeds) = (SimulatedMachine::new(1, 1), Nanos::from_ms(5.0), [1]);
    // Policies see estimates: each query's come from a tree on list lengths that was fitted without it.
    let estimates = Estimates::Fitted(ModelKind::Lengths);
    let experiment = experiment(&workload.only(Mode::Or), &estimates, &machine, deadline, &seeds)?;
    let built_in = |kind: PolicyKind| Box::new(kind.with(PolicyOptions::default()));
    let (stealing, mct) = (built_in(PolicyKind::Stealing), built_in(PolicyKind::Mct));
    let mut comparison = Comparison::new(experiment, vec![stealing, mct, Box::new(Factory)]);
    // Short runs, so that the example takes seconds; without this line a capacity is confirmed in two million queries.
    comparison.length = RunLength::Exactly(80_000);
    let subject = format!("{name}, OR, one CPU worker and one GPU stream, deadline 5 ms");
    print!("{}", compare(&comparison, &subject, "out/own_policy".as_ref(), &Silent)?);
    Ok(())
}
