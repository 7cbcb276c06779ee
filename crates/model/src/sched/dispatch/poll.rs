//! Decisions of a round: the dispatcher asks lanes for their next batches, and starts them.

use super::jobs::Place;
use super::lanes::PendingPolls;
use super::{Action, Dispatcher, LawBroken};
use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::Class;
use crate::base::time::Nanos;
use crate::sched::log::Sink;
use crate::sched::{Job, Next, Shed, ShedJob};

impl<S: Sink> Dispatcher<S> {
    pub(super) fn poll_pending(&mut self, actions: &mut Vec<Action>) -> Result<(), LawBroken> {
        let emptied = self.emptied;
        if self.shares_jobs {
            self.poll_idle(actions)?;
        }
        for i in 0..self.pending.processors.len() {
            let processor = self.pending.processors[i];
            while self.jobs.num_waiting() > 0 && self.lanes.has_room(processor) && self.poll(processor, actions)? {}
        }
        self.pending.processors.clear();
        while self.pending.classes != 0 {
            let class = Class::ALL[self.pending.classes.trailing_zeros() as usize];
            self.pending.classes &= self.pending.classes - 1;
            let asked = std::mem::take(&mut self.pending.lanes[class]);
            let others_too = std::mem::take(&mut self.pending.others_too[class]);
            let started = self.poll_class(class, asked, actions)?;
            // A job that no lane of this class took may run on another class.
            if started < asked && others_too {
                self.poll_others(class, actions)?;
            }
        }
        if std::mem::take(&mut self.pending.everyone) {
            self.poll_everyone(actions)?;
        }
        // An emptied batch may have unblocked lanes that were asked before it.
        if self.emptied != emptied {
            self.pending = PendingPolls::default();
            self.poll_everyone(actions)?;
        }
        if let Some(unasked) = self.unasked {
            let before = actions.len();
            self.poll_everyone(actions)?;
            self.unasked = Some(unasked + (actions.len() - before) as u64);
        }
        if self.jobs.num_waiting() > 0
            && self.lanes.under_way == 0
            && self.held_wake.is_none()
            && self.asked_wake.is_none()
        {
            self.poll_everyone(actions)?;
            if self.lanes.under_way == 0 && self.asked_wake.is_none() {
                return Err(
                    self.broken(format!("{} jobs wait, nothing runs and no wake-up is due", self.jobs.num_waiting()))
                );
            }
        }
        if let Some(at) = self.asked_wake.take()
            && self.held_wake.is_none_or(|held| at < held)
        {
            self.held_wake = Some(at);
            actions.push(Action::WakeAt(at));
        }
        Ok(())
    }

    /// Asks the lanes of every class until one of the class waits, since any event may concern any idle lane if jobs are shared.
    fn poll_idle(&mut self, actions: &mut Vec<Action>) -> Result<(), LawBroken> {
        for i in 0..self.classes.len() {
            while let Some(processor) = self.lanes.first_with_room(self.classes[i]) {
                if !self.poll(processor, actions)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Asks up to `count` lanes of a class until one waits. Returns the number of lanes that started a batch.
    fn poll_class(&mut self, class: Class, count: u32, actions: &mut Vec<Action>) -> Result<u32, LawBroken> {
        for started in 0..count {
            if self.jobs.num_waiting() == 0 {
                return Ok(started);
            }
            let Some(processor) = self.lanes.first_with_room(class) else { return Ok(started) };
            if !self.poll(processor, actions)? {
                return Ok(started);
            }
        }
        Ok(count)
    }

    /// Asks lanes of every other class, one after another until one waits. With several such classes, a start on one may
    /// unblock another.
    fn poll_others(&mut self, class: Class, actions: &mut Vec<Action>) -> Result<(), LawBroken> {
        loop {
            let mut started = 0;
            for i in 0..self.classes.len() {
                if self.classes[i] != class {
                    started += self.poll_class(self.classes[i], u32::MAX, actions)?;
                }
            }
            if started == 0 || self.classes.len() <= 2 {
                return Ok(());
            }
        }
    }

    /// Asks all lanes with room until none starts anything, since a start may unblock another lane.
    fn poll_everyone(&mut self, actions: &mut Vec<Action>) -> Result<(), LawBroken> {
        loop {
            let emptied = self.emptied;
            let mut any_started = false;
            let mut from = 0;
            while self.jobs.num_waiting() > 0
                && let Some(processor) = self.lanes.next_with_room(from)
            {
                any_started |= self.poll(processor, actions)?;
                from = processor.index() + 1;
            }
            if !any_started && self.emptied == emptied {
                return Ok(());
            }
        }
    }

    /// Asks a lane with room for its next batch. Returns whether it starts one.
    #[inline]
    fn poll(&mut self, processor: ProcessorId, actions: &mut Vec<Action>) -> Result<bool, LawBroken> {
        let mut chosen = std::mem::take(&mut self.chosen);
        let result = loop {
            chosen.clear();
            let next = self.policy.next(self.lanes.lane(processor), &self.jobs, self.now, &mut chosen);
            let stolen = match next {
                Next::Run | Next::RunOn(_) => false,
                Next::Steal => true,
                _ if !chosen.is_empty() => {
                    break Err(self.broken(format!("filled a batch for processor {processor} and waits")));
                }
                Next::Join(lead) => break self.join(lead, processor).map(|()| true),
                Next::Wait => break Ok(false),
                Next::WaitUntil(until) if until > self.now => {
                    self.asked_wake = Some(self.asked_wake.map_or(until, |earlier| earlier.min(until)));
                    break Ok(false);
                }
                Next::WaitUntil(until) => {
                    break Err(self.broken(format!("asked to wait until {} ns, which has passed", until.0)));
                }
            };
            if self.shed == Shed::Late && !chosen.is_empty() {
                self.drop_late(processor, &mut chosen);
                if chosen.is_empty() {
                    if self.jobs.num_waiting() == 0 {
                        break Ok(false);
                    }
                    continue;
                }
            }
            let started = self.start(processor, &chosen, stolen, actions);
            break match next {
                Next::RunOn(lanes) => started.and_then(|()| self.join_idle(processor, lanes)).map(|()| true),
                _ => started.map(|()| true),
            };
        };
        self.chosen = chosen;
        result
    }

    /// Idle lanes join the job that has just started on `lead`, which then has up to `lanes` lanes.
    fn join_idle(&mut self, lead: ProcessorId, lanes: u32) -> Result<(), LawBroken> {
        let class = self.lanes.lane(lead).class;
        for _ in 1..lanes {
            let Some(helper) = self.lanes.first_idle(class) else { break };
            self.join(lead, helper)?;
        }
        Ok(())
    }

    fn join(&mut self, lead: ProcessorId, helper: ProcessorId) -> Result<(), LawBroken> {
        if !self.shares_jobs {
            return Err(self.broken(format!("processor {helper} was to help {lead}, but jobs run on one lane here")));
        }
        if self.lanes.join(lead, helper, self.now).is_none() {
            return Err(self.broken(format!("processor {helper} was to help {lead}, which is impossible")));
        }
        let lanes = self.lanes.team(lead).map_or(1, |(_, helpers)| helpers.len() as u32 + 1);
        self.joins.push_back((lead, lanes));
        Ok(())
    }

    /// Drops those chosen jobs that would finish after their deadline if they started on this lane now, alone and as
    /// predicted. The policy is notified if none is left.
    fn drop_late(&mut self, processor: ProcessorId, chosen: &mut Vec<JobId>) {
        let lane = self.lanes.lane(processor);
        let now = self.now;
        chosen.retain(|&id| {
            // Jobs that may not start are left for `start` to report.
            let Some(&Job { query, arrival, deadline, priority, predicted, .. }) = self.jobs.waiting(id) else {
                return true;
            };
            if now + predicted[lane.class].alone <= deadline {
                return true;
            }
            self.jobs.start(id);
            self.jobs.finish(id);
            self.sink.shed(&ShedJob {
                job: id,
                query,
                arrival,
                released: self.jobs.released(id),
                dropped: now,
                processor,
                class: lane.class,
                deadline,
                priority,
                predicted: predicted.map(|cost| cost.alone),
            });
            false
        });
        if chosen.is_empty() {
            self.emptied += 1;
            // The answer is ignored because all lanes are asked again after this round.
            let _ = self.policy.finished(lane, &[], &self.jobs, Nanos::ZERO, now);
        }
        self.jobs.leave();
    }

    #[inline]
    fn start(
        &mut self,
        processor: ProcessorId,
        chosen: &[JobId],
        stolen: bool,
        actions: &mut Vec<Action>,
    ) -> Result<(), LawBroken> {
        if chosen.is_empty() {
            return Err(self.broken(format!("started an empty batch on processor {processor}")));
        }
        let batch = self.lanes.start(processor);
        (batch.number, batch.started, batch.stolen, batch.again) = (self.batches, self.now, stolen, false);
        for &id in chosen {
            let fault = match self.jobs.place(id) {
                Some(Place::Waiting) => {
                    batch.rows.push(self.jobs.start(id).row);
                    batch.jobs.push(id);
                    continue;
                }
                Some(_) => format!("job {id} ran twice"),
                None if self.jobs.is_past(id) => format!("job {id} ran again after it had finished"),
                None => format!("job {id} ran before it arrived"),
            };
            return Err(self.broken(fault));
        }
        self.running += chosen.len();
        actions.push(Action::Start(processor, self.batches));
        self.batches += 1;
        Ok(())
    }
}
