//! `mct`: minimum completion time. Every arriving job joins the processor that is predicted to finish it first, and stays
//! there.
//!
//! This list-scheduling rule is not in the 2009 paper (Braun et al. 2001; StarPU's `dm` is this rule, without data transfers).
//! The predicted free time of a processor is the estimate of its running job plus the sum of its queue. Estimates are
//! corrected as jobs finish. An arrival looks at an eighth of the processors.

use std::collections::VecDeque;

use super::registry::PolicyEntry;
use super::{FifoQueues, Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, QueueServers, QueuedJob};
use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::{Class, Machine};
use crate::base::time::Nanos;

pub(super) const ENTRY: PolicyEntry =
    PolicyEntry::new("mct", "Each query to the processor that is predicted to finish it first", |setup| {
        Ok(Box::new(EarliestCompletion::new(setup.machine())?))
    });

/// Lanes that share one stored minimum.
const GROUP: usize = 8;

/// The processors of one class, in columns. Each arrival looks for the one that will be free first.
#[derive(Clone, Debug)]
struct Lanes {
    class: Class,
    processors: Vec<ProcessorId>,
    /// When the running job is predicted to finish.
    free_at: Vec<Nanos>,
    /// Predicted time of the jobs in the lane's queue.
    backlog: Vec<Nanos>,
    /// When running job and queue are predicted to be done. It is later if the running job takes longer than predicted.
    done_at: Vec<Nanos>,
    /// The least `done_at` of each [`GROUP`] of lanes.
    least: Vec<Nanos>,
}

impl Lanes {
    fn of(machine: &Machine, class: Class) -> Self {
        let of_class = machine.processors().filter(|(_, processor)| processor.class == class);
        let processors: Vec<ProcessorId> = of_class.map(|(id, _)| id).collect();
        let zeros = vec![Nanos::ZERO; processors.len()];
        let least = vec![Nanos::ZERO; processors.len().div_ceil(GROUP)];
        Self { class, processors, free_at: zeros.clone(), backlog: zeros.clone(), done_at: zeros, least }
    }

    /// The lane that is predicted to be done first, and when; ties go to the first.
    fn first_free(&mut self, now: Nanos) -> (Nanos, usize) {
        if let ([free_at], [backlog]) = (&self.free_at[..], &self.backlog[..]) {
            return ((*free_at).max(now) + *backlog, 0);
        }
        loop {
            let soonest = self.least.iter().copied().min().unwrap_or(Nanos::MAX).max(now);
            let group = first_at_most(&self.least, soonest);
            let at = group * GROUP + first_at_most(&self.done_at[group * GROUP..], soonest);
            let done_at = self.free_at[at].max(now) + self.backlog[at];
            if done_at <= soonest {
                return (done_at, at);
            }
            // The running job takes longer than predicted.
            self.set_done_at(at, done_at);
        }
    }

    /// Updates a lane after a job was queued, started or finished.
    fn update(&mut self, at: usize, free_at: Nanos, backlog: Nanos) {
        (self.free_at[at], self.backlog[at]) = (free_at, backlog);
        let done_at = free_at + backlog;
        if done_at != self.done_at[at] {
            self.set_done_at(at, done_at);
        }
    }

    fn set_done_at(&mut self, at: usize, done_at: Nanos) {
        let before = std::mem::replace(&mut self.done_at[at], done_at);
        let group = at / GROUP;
        if done_at <= self.least[group] {
            self.least[group] = done_at;
            return;
        }
        if before != self.least[group] {
            return;
        }
        let end = self.done_at.len().min((group + 1) * GROUP);
        self.least[group] = self.done_at[group * GROUP..end].iter().copied().fold(Nanos::MAX, Nanos::min);
    }
}

/// The position of the first of these times that is at most `latest`; 0 if there is none. It compares a whole [`GROUP`] before
/// it branches, since a mispredicted branch costs more than the comparisons.
#[inline]
fn first_at_most(times: &[Nanos], latest: Nanos) -> usize {
    for (group, times) in times.chunks(GROUP).enumerate() {
        let found = times.iter().rev().fold(0_u32, |found, time| found << 1 | u32::from(*time <= latest));
        if found != 0 {
            return group * GROUP + found.trailing_zeros() as usize;
        }
    }
    0
}

#[derive(Clone, Debug)]
struct EarliestCompletion {
    classes: Vec<Lanes>,
    /// By processor: the position of its class, and its position in that class.
    places: Vec<(usize, usize)>,
    /// By processor: its queued jobs, with their predicted service times.
    queues: Vec<VecDeque<(JobId, Nanos)>>,
}

impl EarliestCompletion {
    /// An empty queue for each processor of `machine`. Fails if `machine` has no processor.
    fn new(machine: &Machine) -> Result<Self, PolicyError> {
        PolicyError::require(machine, ENTRY.name, &[])?;
        let classes: Vec<Lanes> = machine.classes().map(|class| Lanes::of(machine, class)).collect();
        let mut places = vec![(0, 0); machine.len()];
        for (of, class) in classes.iter().enumerate() {
            for (at, processor) in class.processors.iter().enumerate() {
                places[processor.index()] = (of, at);
            }
        }
        Ok(Self { classes, places, queues: vec![VecDeque::new(); machine.len()] })
    }
}

impl Policy for EarliestCompletion {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn arrive(&mut self, job: &Job, _jobs: &Jobs, now: Nanos) -> LanesToPoll {
        let alone = job.predicted.map(|cost| cost.alone);
        let at = self.join(QueuedJob { id: job.id, row: job.row, alone: &alone }, now);
        let processor = ProcessorId(at as u32);
        let (of, _) = self.places[at];
        self.queues[at].push_back((job.id, alone[self.classes[of].class]));
        LanesToPoll::Processor(processor)
    }

    fn next(&mut self, lane: Lane, _jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if lane.under_way > 0 {
            return Next::Wait;
        }
        let Some((job, alone)) = self.queues[lane.processor.index()].pop_front() else { return Next::Wait };
        FifoQueues::started(self, lane.processor, alone, now);
        batch.push(job);
        Next::Run
    }

    fn finished(&mut self, lane: Lane, _batch: &[JobId], _jobs: &Jobs, _service: Nanos, now: Nanos) -> LanesToPoll {
        FifoQueues::finished(self, lane.processor, now);
        LanesToPoll::Nobody
    }

    fn as_fifo_queues(&mut self) -> Option<&mut dyn FifoQueues> {
        Some(self)
    }
}

impl FifoQueues for EarliestCompletion {
    fn queues(&self) -> Vec<QueueServers> {
        (0..self.places.len() as u32).map(|processor| QueueServers::Lane(ProcessorId(processor))).collect()
    }

    #[inline]
    fn join(&mut self, job: QueuedJob<'_>, now: Nanos) -> usize {
        let completion = |lanes: &mut Lanes| {
            let (free, at) = lanes.first_free(now);
            (free + job.alone[lanes.class], lanes.processors[at])
        };
        let processor = self.classes.iter_mut().map(completion).min().map_or(0, |(_, processor)| processor.index());
        let (of, at) = self.places[processor];
        let lanes = &mut self.classes[of];
        lanes.update(at, lanes.free_at[at], lanes.backlog[at] + job.alone[lanes.class]);
        processor
    }

    #[inline]
    fn started(&mut self, processor: ProcessorId, alone: Nanos, now: Nanos) {
        let (of, at) = self.places[processor.index()];
        let lanes = &mut self.classes[of];
        lanes.update(at, now + alone, lanes.backlog[at] - alone);
    }

    #[inline]
    fn finished(&mut self, processor: ProcessorId, now: Nanos) {
        let (of, at) = self.places[processor.index()];
        let lanes = &mut self.classes[of];
        lanes.update(at, now, lanes.backlog[at]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_free_lane_is_found(
            cpus in 1..70_usize,
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0..50_u64, 0..9_u64, 0..4_u64), 1..200),
        ) {
            let mut lanes = Lanes::of(&Machine::new(cpus, 0), Class::CPU);
            let mut now = 0;
            for (at, running, waiting, passes) in steps {
                let of = |at: usize| lanes.free_at[at].max(Nanos(now)) + lanes.backlog[at];
                let first = (0..cpus).map(|at| (of(at), at)).min();
                prop_assert_eq!(Some(lanes.first_free(Nanos(now))), first);
                lanes.update(at.index(cpus), Nanos(now + running), Nanos(waiting));
                now += passes;
            }
        }
    }
}
