//! A core's part of the work: claim tasks, search them, deposit the results.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use tandem_base::base::ids::DocId;
use tandem_base::traffic::Mode;

use super::pool::claims::Claim;
use super::pool::slot::{Schedule, Slot, TaskPool};
use crate::query::{Query, QueryTerm};
use crate::search::cpu::executor::{CpuExecutor, Pass, needs_or};
use crate::search::{ExecError, Executor, Hit, MAX_K};

/// Fewer tasks take about ten microseconds and are not shared.
pub(super) const LONG_TASKS: u32 = 5;

/// The state of one thread: an executor, and room for a query and its results.
#[derive(Debug)]
pub(crate) struct Worker {
    number: usize,
    /// The sequential executor that searches each task.
    pub(crate) executor: CpuExecutor,
    terms: Vec<QueryTerm>,
    hits: Vec<Hit>,
    /// By slot: the last epoch in which the worker began to help.
    seen: Box<[u64]>,
    /// The slot that last had work. Queries are begun in slot order.
    look_first: usize,
}

impl Worker {
    /// Worker `number`, for pools of `slots` slots.
    pub(crate) fn new(number: usize, slots: usize, executor: CpuExecutor) -> Self {
        Self {
            number,
            executor,
            terms: Vec::with_capacity(Query::MAX_TERMS),
            hits: Vec::with_capacity(MAX_K),
            seen: vec![0; slots].into(),
            look_first: 0,
        }
    }

    /// Answers a query that is not worth sharing.
    pub(crate) fn answer(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<(), ExecError> {
        let searched = catch_unwind(AssertUnwindSafe(|| self.executor.search(query, mode, k, hits)));
        if searched.is_err() {
            self.executor = self.executor.clone_for_worker();
        }
        searched.unwrap_or(Err(ExecError::Panicked)).map(|_| ())
    }

    /// Works on the first query with an unclaimed task, up to `most_claims` claims. Returns whether there was one.
    pub(crate) fn work(&mut self, pool: &TaskPool, most_claims: usize) -> bool {
        let num_slots = pool.slots.len();
        (0..num_slots).any(|step| {
            let slot = (self.look_first + step) % num_slots;
            let worked = self.work_at(pool, slot, most_claims);
            if worked {
                self.look_first = slot;
            }
            worked
        })
    }

    /// Works on the query in slot `slot`, up to `most_claims` claims. Returns whether there was a task to claim.
    pub(crate) fn work_at(&mut self, pool: &TaskPool, slot: usize, most_claims: usize) -> bool {
        let place = &pool.slots[slot];
        let Some(claim) = self.claim(pool, slot) else { return false };
        let (pass, k) = place.read(&mut self.terms);
        // The query cannot finish before this worker reports its tasks, which it does once at the end.
        let mut claimed = claim.tasks.len() as u32;
        let searched = catch_unwind(AssertUnwindSafe(|| {
            self.executor.best().reset(k);
            place.take_back(self.number, self.executor.best());
            self.search(pool, place, pass, claim);
            for _ in 1..most_claims {
                let Some(claim) = self.claim(pool, slot) else { break };
                claimed += claim.tasks.len() as u32;
                self.search(pool, place, pass, claim);
            }
            self.executor.best().drain_into(&mut self.hits);
            // The stand-ins for other cores' documents are removed.
            self.hits.retain(|hit| hit.doc < DocId::END);
            place.deposit(self.number, &self.hits);
        }));
        if searched.is_err() {
            place.fail();
            // The panic left its scratch memory in an unknown state.
            self.executor = self.executor.clone_for_worker();
        }
        if place.claims.finish(claimed) {
            self.settle(pool, place, k);
        }
        true
    }

    fn claim(&mut self, pool: &TaskPool, slot: usize) -> Option<Claim> {
        let place = &pool.slots[slot];
        match pool.schedule {
            Schedule::Dynamic => place.claims.claim(|_| 1),
            Schedule::Guided => {
                let idle = pool.idle.load(Ordering::Relaxed) as u32;
                // One core, or two, take a short rest as a whole.
                let claim = place.claims.claim(|left| match place.cores().max(2 * (1 + idle)) {
                    2 if left < LONG_TASKS => left,
                    cores => left / cores,
                })?;
                if self.number != slot && self.seen[slot] != claim.epoch {
                    self.seen[slot] = claim.epoch;
                    place.arrive();
                }
                Some(claim)
            }
        }
    }

    /// Searches claimed tasks with the threshold that all cores together have reached.
    fn search(&mut self, pool: &TaskPool, place: &Slot, pass: Pass, claim: Claim) {
        place.lift(self.executor.best());
        let range = pool.partition.range(self.executor.index(), &self.terms, pass, claim.tasks);
        self.executor.search_range(&self.terms, pass, range);
        place.raise_threshold(self.executor.best());
    }

    /// Completes the query that this worker finished last, or publishes its OR.
    fn settle(&mut self, pool: &TaskPool, place: &Slot, k: usize) {
        self.executor.best().reset(k);
        place.merge(self.executor.best());
        let found = self.executor.best().len();
        if place.wants_or() && !place.has_failed() && needs_or(found, k, self.terms.len()) {
            let num_tasks = pool.partition.num_tasks(self.executor.index(), &self.terms, Pass::Or);
            place.publish_pass(Pass::Or, num_tasks);
        } else {
            self.executor.best().drain_into(&mut self.hits);
            place.answer(&self.hits);
        }
    }
}
