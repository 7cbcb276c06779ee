//! `tail`: `combined`, whose CPU workers share queries. Long queries run on GPUs, short ones in parallel on CPU workers.
//!
//! An idle worker does the first of these that is possible:
//!
//! 1. what `combined` gives it to do alone;
//! 2. it starts the query on which a batch gains least, on the fewest idle workers that have it done before a GPU would;
//! 3. it helps the query whose latency is predicted to be longest, among those with less than an even share of the workers.
//!
//! Degrees fall with load: the more workers have their own queries, the fewer are idle for the other steps. Where GPUs answer in
//! batches and are loaded, the workers are never idle, and the policy is `combined`.
//!
//! Source: the least degree that meets a target: Jeon, He, Kim, Elnikety, Rixner, Cox, "TPC: Target-Driven Parallelism Combining
//! Prediction and Correction to Reduce Tail Latency in Interactive Services", ASPLOS 2016. The target here is the time at which a
//! GPU would have answered.

use super::combined::Combined;
use super::registry::{PolicyEntry, PolicySetup};
use super::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError};
use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::Class;
use crate::base::time::Nanos;
use crate::cost::MachineModel;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    batches: true,
    for_comparison: true,
    shares_jobs: true,
    ..PolicyEntry::new(
        "tail",
        "As combined; idle CPU workers share queries that they then answer before a GPU would",
        |setup| Ok(Box::new(Tail::new(setup)?)),
    )
};

/// The work of a CPU worker, and its helpers.
#[derive(Clone, Debug)]
struct Led {
    lead: ProcessorId,
    lanes: u32,
    /// `None` for several queries, which get no help.
    query: Option<Running>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    arrival: Nanos,
    started: Nanos,
    /// When it is predicted to end on its lanes of now.
    end: Nanos,
    /// Its predicted time on one lane.
    alone: Nanos,
}

impl Running {
    /// When it is predicted to end now. A query that outlasts its prediction is taken to run as long again.
    fn end(&self, now: Nanos) -> Nanos {
        if self.end > now { self.end } else { now + now.since(self.started) }
    }
}

#[derive(Clone, Debug)]
struct Tail {
    combined: Combined,
    /// `None` if no speed-up on several workers is known. The policy is then `combined`.
    shared: Option<MachineModel>,
    idle: u32,
    led: Vec<Led>,
}

impl Tail {
    /// No work, on idle workers. Fails as `combined` does.
    fn new(setup: &PolicySetup<'_>) -> Result<Self, PolicyError> {
        Ok(Self {
            combined: Combined::new(setup.options, setup.model)?,
            shared: setup.model.parallelism.is_some().then(|| setup.model.clone()),
            idle: setup.machine().count(Class::CPU) as u32,
            led: Vec::new(),
        })
    }

    fn start(&mut self, lead: ProcessorId, job: Option<(&Job, Nanos)>, lanes: u32, now: Nanos) -> Next {
        self.idle = self.idle.saturating_sub(lanes);
        let running = |(job, time): (&Job, Nanos)| Running {
            arrival: job.arrival,
            started: now,
            end: now + time,
            alone: job.alone(Class::CPU),
        };
        self.led.push(Led { lead, lanes, query: job.map(running) });
        if lanes == 1 { Next::Run } else { Next::RunOn(lanes) }
    }

    /// Starts the next query of a worker on the fewest idle workers that have it done before a GPU would.
    fn share(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Option<Next> {
        let model = self.shared.as_ref()?;
        let allowed = self.combined.gpu_finish(now).since(now + model.handoff[Class::CPU]);
        let mut found = None;
        let job = self.combined.take_next(lane.class, jobs, |job| {
            found = (2..=self.idle)
                .map(|lanes| (lanes, time(model, job.alone(Class::CPU), lanes)))
                .find(|(_, time)| *time <= allowed);
            found.is_some()
        })?;
        let (lanes, time) = found?;
        batch.push(job.id);
        Some(self.start(lane.processor, Some((job, time)), lanes, now))
    }

    /// Helps the query whose latency is predicted to be longest.
    fn help(&mut self, now: Nanos) -> Next {
        let Some(model) = &self.shared else { return Next::Wait };
        let (running, workers) = (self.led.len(), model.machine.count(Class::CPU));
        let gains = |led: &&mut Led| {
            let faster =
                led.query.filter(|query| time(model, query.alone, led.lanes + 1) < time(model, query.alone, led.lanes));
            faster.is_some() && running * (led.lanes as usize) < workers
        };
        let latency = |led: &&mut Led| led.query.map(|query| query.end(now).since(query.arrival));
        let Some(Led { lead, lanes, query: Some(query) }) = self.led.iter_mut().filter(gains).max_by_key(latency)
        else {
            return Next::Wait;
        };
        let ratio =
            model.speed_up(Class::CPU, query.alone, *lanes) / model.speed_up(Class::CPU, query.alone, *lanes + 1);
        query.end = now + query.end(now).since(now).scaled(ratio);
        *lanes += 1;
        self.idle = self.idle.saturating_sub(1);
        Next::Join(*lead)
    }
}

/// The predicted time of a query on several CPU workers.
fn time(model: &MachineModel, alone: Nanos, lanes: u32) -> Nanos {
    alone.scaled(1.0 / model.speed_up(Class::CPU, alone, lanes))
}

impl Policy for Tail {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn shares_jobs(&self) -> bool {
        self.shared.is_some()
    }

    fn arrive(&mut self, job: &Job, jobs: &Jobs, now: Nanos) -> LanesToPoll {
        self.combined.arrive(job, jobs, now)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        let next = self.combined.next(lane, jobs, now, batch);
        if self.shared.is_none() || lane.class != Class::CPU || lane.under_way > 0 {
            return next;
        }
        match (next, &batch[..]) {
            (Next::Run, [id]) => {
                let job = jobs.job(*id);
                self.start(lane.processor, Some((job, job.alone(Class::CPU))), 1, now)
            }
            (Next::Run, _) => self.start(lane.processor, None, 1, now),
            _ => self.share(lane, jobs, now, batch).unwrap_or_else(|| self.help(now)),
        }
    }

    fn finished(&mut self, lane: Lane, batch: &[JobId], jobs: &Jobs, service: Nanos, now: Nanos) -> LanesToPoll {
        if let Some(at) = self.led.iter().position(|led| led.lead == lane.processor) {
            self.idle += self.led.swap_remove(at).lanes;
        }
        self.combined.finished(lane, batch, jobs, service, now)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::PolicyOptions;
    use super::super::stealing::tests::{CPU, GPU, job};
    use super::*;
    use crate::base::machine::Machine;
    use crate::cost::{Parallelism, SpeedUp};

    struct Play {
        policy: Tail,
        jobs: Jobs,
    }

    impl Play {
        fn new(gpus: usize) -> Self {
            Self::with(4, gpus)
        }

        /// On one to four workers a query is 1, 2, 2.5 and 2.5 times as fast.
        fn with(workers: usize, gpus: usize) -> Self {
            let speed_up = SpeedUp::of_all(vec![1.0, 2.0, 2.5, 2.5]);
            let parallelism = Some(Arc::new(Parallelism::of(speed_up, vec![Nanos(1)])));
            let model = MachineModel { parallelism, ..Machine::new(workers, gpus).into() };
            let (options, blocks): (_, Arc<[u32]>) = (PolicyOptions::default(), Arc::from([]));
            let policy = Tail::new(&PolicySetup { options: &options, model: &model, blocks: &blocks }).unwrap();
            Self { policy, jobs: Jobs::default() }
        }

        /// The job arrives at this time and takes these on a CPU and on a GPU, in ms.
        fn arrive(&mut self, at: u64, cpu: u64, gpu: u64) {
            let job = job(self.jobs.next_id().0, at, cpu, gpu);
            self.jobs.arrive(job.arrival, |_| job);
            self.policy.arrive(&job, &self.jobs, job.arrival);
        }

        /// The step of the lane, and the job that it starts.
        fn next(&mut self, lane: Lane, at: u64) -> (Next, Option<u32>) {
            let mut batch = Vec::new();
            let next = self.policy.next(lane, &self.jobs, Nanos(at * 1_000_000), &mut batch);
            (next, batch.first().map(|&id| self.jobs.start(id).id.0))
        }
    }

    fn worker(at: u32) -> Lane {
        Lane { processor: ProcessorId(at), ..CPU }
    }

    fn gpu() -> Lane {
        Lane { processor: ProcessorId(4), ..GPU }
    }

    #[test]
    fn a_query_takes_the_fewest_workers_that_beat_a_gpu() {
        for (cpu, expected) in [
            (10, (Next::Run, Some(1))),
            (11, (Next::RunOn(2), Some(1))),
            (20, (Next::RunOn(2), Some(1))),
            (25, (Next::RunOn(3), Some(1))),
            (26, (Next::Wait, None)),
        ] {
            let mut play = Play::new(1);
            play.arrive(0, 900, 6);
            assert_eq!(play.next(gpu(), 0), (Next::Run, Some(0)));
            // The GPU would be done with the next query after 10 ms.
            play.arrive(0, cpu, 4);
            assert_eq!(play.next(worker(0), 0), expected, "{cpu} ms");
        }
    }

    #[test]
    fn idle_workers_help_the_latest_query_up_to_an_even_share() {
        let mut play = Play::new(0);
        play.arrive(0, 30, 0);
        play.arrive(0, 10, 0);
        assert_eq!(play.next(worker(0), 0), (Next::Run, Some(0)));
        assert_eq!(play.next(worker(1), 0), (Next::Run, Some(1)));
        // On two workers it ends after 15 ms, later than the other. Two of four workers are its even share.
        assert_eq!(play.next(worker(2), 0), (Next::Join(ProcessorId(0)), None));
        assert_eq!(play.next(worker(3), 0), (Next::Join(ProcessorId(1)), None));
        assert_eq!(play.policy.idle, 0);
        play.policy.finished(worker(1), &[JobId(1)], &play.jobs, Nanos(5_000_000), Nanos(5_000_000));
        // Alone it may have all workers, but a fourth would gain nothing.
        assert_eq!(play.next(worker(1), 5), (Next::Join(ProcessorId(0)), None));
        assert_eq!(play.next(worker(3), 5), (Next::Wait, None));
        play.policy.finished(worker(0), &[JobId(0)], &play.jobs, Nanos(13_000_000), Nanos(13_000_000));
        assert_eq!(play.policy.idle, 4);
    }

    #[test]
    fn a_helped_query_is_helped_again_while_it_is_still_the_latest() {
        let mut play = Play::with(6, 0);
        play.arrive(0, 30, 0);
        play.arrive(0, 10, 0);
        assert_eq!(play.next(worker(0), 0), (Next::Run, Some(0)));
        assert_eq!(play.next(worker(1), 0), (Next::Run, Some(1)));
        // On two workers the first query ends after 15 ms, still later than the other.
        for helper in [2, 3] {
            assert_eq!(play.next(worker(helper), 0), (Next::Join(ProcessorId(0)), None));
        }
        assert_eq!(play.next(worker(4), 0), (Next::Join(ProcessorId(1)), None));
    }

    #[test]
    fn a_query_that_outlasts_its_prediction_is_helped_first() {
        let mut play = Play::new(0);
        play.arrive(0, 4, 0);
        play.arrive(8, 9, 0);
        assert_eq!(play.next(worker(0), 0), (Next::Run, Some(0)));
        assert_eq!(play.next(worker(1), 8), (Next::Run, Some(1)));
        // It was to end at 4 ms. At 8 ms it is taken to end at 16 ms, with a latency of 16 ms against 9 ms.
        assert_eq!(play.next(worker(2), 8), (Next::Join(ProcessorId(0)), None));
    }
}
