//! Inter-query parallelism, and its adaptive form in which idle cores help.
//!
//! INTER wastes idle cores under low load, and FGQP cuts every query even if all cores are busy. Adaptive cores take
//! whole queries as under INTER, but leave the unsearched rest of a long query in the pool for idle cores:
//!
//! ```text
//! busy   core 1  q1 [████████ half ████████|██ half of the rest ██|████|██|█]     a few claims, no help
//! quiet  core 1  q1 [██|██|█|█]      core 2  [██|██|█|█]   core 3 ...              ever smaller pieces of an even share
//! ```
//!
//! The size of a claim follows from the number of idle cores, so no separate decision selects the mode. Queries that
//! end before help could arrive are not published.
//!
//! Source: guided self-scheduling (Polychronopoulos and Kuck 1987), applied to ranges of documents.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::machine::Class;
use crate::query::{Mode, Query};
use crate::search::cpu::executor::CpuExecutor;
use crate::search::cpu::multicore::cores::Cores;
use crate::search::cpu::multicore::idle::Backoff;
use crate::search::cpu::multicore::pool::partition::Partition;
use crate::search::cpu::multicore::pool::slot::{Schedule, TaskPool};
use crate::search::cpu::multicore::team::first_pass;
use crate::search::cpu::multicore::worker::Worker;
use crate::search::{ExecError, Execution, Executor, Help, Hit, check};

/// Queries of fewer tasks take about ten microseconds and are not shared.
const LONG_TASKS: u32 = 5;

/// An adaptive executor for each of `workers` cores. Their driver must call [`Executor::help`] on idle ones.
#[must_use]
pub fn adaptive_lanes(executor: &CpuExecutor, workers: usize) -> Vec<Box<dyn Executor>> {
    let pool = TaskPool::new(workers, workers, Partition::Blocks { most_tasks: usize::MAX }, Schedule::Guided);
    let pool = Arc::new(pool);
    let is_crowded = Cores::of_this_machine().len() < workers;
    let lane = |number| {
        let worker = Worker::new(number, workers, executor.clone_for_worker(), None);
        Box::new(Adaptive { pool: Arc::clone(&pool), worker, slot: number, is_idle: false, is_crowded })
            as Box<dyn Executor>
    };
    (0..workers).map(lane).collect()
}

#[derive(Debug)]
struct Adaptive {
    pool: Arc<TaskPool>,
    worker: Worker,
    /// The slot for this core's queries.
    slot: usize,
    /// Whether the pool counts this core as idle.
    is_idle: bool,
    /// Whether there may be fewer cores than lanes.
    is_crowded: bool,
}

impl Adaptive {
    fn set_idle(&mut self, is_idle: bool) {
        if is_idle && !self.is_idle {
            self.pool.idle.fetch_add(1, Ordering::Relaxed);
        } else if !is_idle && self.is_idle {
            self.pool.idle.fetch_sub(1, Ordering::Relaxed);
        }
        self.is_idle = is_idle;
    }
}

impl Drop for Adaptive {
    fn drop(&mut self) {
        self.set_idle(false);
    }
}

impl Executor for Adaptive {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        self.worker.executor.device()
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        check(query, k)?;
        self.set_idle(false);
        let pass = first_pass(mode);
        let num_tasks = self.pool.partition.num_tasks(self.worker.executor.index(), &query.terms, pass);
        if num_tasks < LONG_TASKS && mode != Mode::AndOr {
            return self.worker.answer(query, mode, k, hits).map(|()| Execution::default());
        }
        let slot = &self.pool.slots[self.slot];
        slot.publish(query, mode, pass, k, num_tasks);
        let mut backoff = Backoff::new(self.is_crowded);
        while !slot.is_answered() {
            if !self.worker.work_at(&self.pool, self.slot, usize::MAX) {
                backoff.pause();
            }
        }
        slot.take_answer(hits);
        if slot.has_failed() { Err(ExecError::Panicked) } else { Ok(Execution::default()) }
    }

    fn help(&mut self) -> Help {
        self.set_idle(true);
        // One claim per call lets the caller check for its own queries.
        if self.worker.work(&self.pool, 1) { Help::Given } else { Help::NotNow }
    }
}

/// An INTER executor for each of `workers` cores, which answers whole queries on its own.
#[must_use]
pub fn inter_lanes(executor: &CpuExecutor, workers: usize) -> Vec<Box<dyn Executor>> {
    (0..workers).map(|_| Box::new(executor.clone_for_worker()) as Box<dyn Executor>).collect()
}
