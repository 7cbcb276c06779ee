//! Policies that assign each query to the CPUs or the GPUs on arrival, by a rule: `length-based` and `random-split`.
//!
//! ```text
//!               the rule says GPUs ──▶ all that waits for these, as one batch
//!   arrival ──┤
//!               the rule says CPUs ──▶ the oldest of what waits for these
//! ```
//!
//! Neither side helps the other. A job costs O(1).
//!
//! | policy | rule |
//! | --- | --- |
//! | `length-based` | queries of fewer blocks than a threshold go to the GPUs, the others to the CPUs |
//! | `random-split` | a coin: half of the queries go to the GPUs |
//!
//! The paper's GPU threads own ranges of documents. A long list makes them wait for the thread with the fullest range, so long
//! queries go to the CPU. The paper's threshold, 30,000 blocks of 64 postings, is 15,000 blocks here. The best threshold
//! depends on the machine, and `lab` finds it. Lengths are given by row of the workload.
//!
//! The paper compares `length-based` with `random-split`, whose coin is a stream of the run's seed and the node.
//!
//! Source: Huang, Ren, Zhao, Stones, Zhang, Wang, Liu, "GPU-Accelerated Block-Max Query Processing", 2017, sections 3.2 and
//! 4.3.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batching::{BatchLimits, poll_batching};
use super::forecast::Forecast;
use super::registry::{PolicyEntry, PolicySetup};
use super::{
    FifoQueues, Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyOptions, QueueServers, QueuedJob,
};
use crate::base::ids::JobId;
use crate::base::machine::Class;
use crate::base::random::{Purpose, Random};
use crate::base::time::Nanos;
use crate::cost::MachineModel;

pub(super) const LENGTH_BASED: PolicyEntry = PolicyEntry {
    batches: true,
    required_classes: &[Class::CPU, Class::GPU],
    ..PolicyEntry::new(
        "length-based",
        "Queries of short lists on GPUs, in batches, those of long ones on CPUs (Huang et al.)",
        |setup| Ok(Box::new(StaticSplit::by(ByLength::of(setup), setup.options, setup.model)?)),
    )
};

pub(super) const RANDOM_SPLIT: PolicyEntry = PolicyEntry {
    batches: true,
    required_classes: &[Class::CPU, Class::GPU],
    for_comparison: true,
    ..PolicyEntry::new(
        "random-split",
        "Half of the queries on GPUs, in batches, half on CPUs, by a coin (Huang et al.)",
        |setup| Ok(Box::new(StaticSplit::by(ByCoin(Purpose::Policy.stream(0)), setup.options, setup.model)?)),
    )
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Cpus,
    Gpus,
}

trait SplitRule: Send {
    const NAME: &'static str;

    /// The side of the job that has just arrived, by its query's row of the workload.
    fn side(&mut self, row: u32) -> Side;

    /// Sets the random stream of a rule that draws.
    fn set_chance(&mut self, _chance: Random) {}
}

#[derive(Clone, Debug)]
struct StaticSplit<R> {
    rule: R,
    limits: BatchLimits,
    forecast: Forecast,
    cpus: Vec<Class>,
    gpus: Vec<Class>,
    for_cpus: VecDeque<JobId>,
    for_gpus: VecDeque<JobId>,
    /// Whether the sides are just two queues: one class each, and lanes that take one query at a time.
    is_lines: bool,
}

impl<R: SplitRule> StaticSplit<R> {
    /// Empty queues. Fails if the machine lacks CPUs or GPUs, or an option is out of range.
    fn by(rule: R, options: &PolicyOptions, model: &MachineModel) -> Result<Self, PolicyError> {
        options.check()?;
        PolicyError::require(&model.machine, R::NAME, &[])?;
        let (gpus, cpus): (Vec<Class>, Vec<Class>) = model.machine.classes().partition(|class| class.is_gpu());
        for (side, class) in [(&cpus, Class::CPU), (&gpus, Class::GPU)] {
            if side.is_empty() {
                return Err(PolicyError::MissingClass { policy: R::NAME, class });
            }
        }
        let (limits, forecast) = (BatchLimits::new(options), Forecast::new(model));
        let takes_one = |class: &Class| options.batch_limit.min(model.most_queries(*class)) == 1;
        let is_shallow = model.machine.processors().all(|(_, processor)| processor.depth == 1);
        let is_lines = cpus.len() == 1 && gpus.len() == 1 && gpus.iter().all(takes_one) && is_shallow;
        let (for_cpus, for_gpus) = (VecDeque::new(), VecDeque::new());
        Ok(Self { rule, limits, forecast, cpus, gpus, for_cpus, for_gpus, is_lines })
    }
}

impl<R: SplitRule> Policy for StaticSplit<R> {
    fn name(&self) -> &str {
        R::NAME
    }

    fn set_chance(&mut self, chance: Random) {
        self.rule.set_chance(chance);
    }

    fn arrive(&mut self, job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        let (queue, classes) = match self.rule.side(job.row) {
            Side::Cpus => (&mut self.for_cpus, &self.cpus),
            Side::Gpus => (&mut self.for_gpus, &self.gpus),
        };
        queue.push_back(job.id);
        poll_batching(classes)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if !lane.class.is_gpu() {
            if lane.under_way > 0 {
                return Next::Wait;
            }
            batch.extend(self.for_cpus.pop_front());
            return if batch.is_empty() { Next::Wait } else { Next::Run };
        }
        if self.for_gpus.is_empty() {
            return Next::Wait;
        }
        if lane.under_way > 0 {
            let close_at = self.forecast.close_at(lane, self.for_gpus.len());
            if close_at > now {
                return Next::WaitUntil(close_at);
            }
        }
        let waiting = self.for_gpus.iter().map(|&id| jobs.job(id));
        let load = self.limits.fill(waiting, lane, &self.forecast, now, batch);
        self.for_gpus.drain(..batch.len());
        self.forecast.start(lane, &load, now);
        Next::Run
    }

    fn finished(&mut self, lane: Lane, _batch: &[JobId], _jobs: &Jobs, _service: Nanos, now: Nanos) -> LanesToPoll {
        if lane.class.is_gpu() {
            self.forecast.finished(lane, now);
        }
        LanesToPoll::Nobody
    }

    fn as_fifo_queues(&mut self) -> Option<&mut dyn FifoQueues> {
        if self.is_lines { Some(self) } else { None }
    }
}

impl<R: SplitRule> FifoQueues for StaticSplit<R> {
    fn queues(&self) -> Vec<QueueServers> {
        // The index is the `Side`.
        vec![QueueServers::Class(self.cpus[0]), QueueServers::Class(self.gpus[0])]
    }

    fn join(&mut self, job: QueuedJob<'_>, _now: Nanos) -> usize {
        self.rule.side(job.row) as usize
    }
}

#[derive(Clone, Debug)]
struct ByLength {
    threshold: u32,
    /// Blocks in all lists of the query, by row of the workload. Rows beyond the end count as short.
    blocks: Arc<[u32]>,
}

impl ByLength {
    fn of(setup: &PolicySetup<'_>) -> Self {
        Self { threshold: setup.options.length_threshold, blocks: Arc::clone(setup.blocks) }
    }
}

impl SplitRule for ByLength {
    const NAME: &'static str = LENGTH_BASED.name;

    fn side(&mut self, row: u32) -> Side {
        let is_short = self.blocks.get(row as usize).is_none_or(|&blocks| blocks < self.threshold);
        if is_short { Side::Gpus } else { Side::Cpus }
    }
}

#[derive(Clone, Debug)]
struct ByCoin(Random);

impl SplitRule for ByCoin {
    const NAME: &'static str = RANDOM_SPLIT.name;

    fn side(&mut self, _row: u32) -> Side {
        let is_heads = self.0.below(2) == 0;
        if is_heads { Side::Gpus } else { Side::Cpus }
    }

    fn set_chance(&mut self, chance: Random) {
        self.0 = chance;
    }
}
