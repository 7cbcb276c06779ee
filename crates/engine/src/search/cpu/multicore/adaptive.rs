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
//! INTER cores help, too, if a scheduler [shares](Executor::search_shared) a query and names the [helpers](Executor::help).
//! A claim is then an even share of the rest for each core that helps already, and a half of the rest for a core alone: it
//! claims a few times only, and a helper that joins later finds at least as much as the lead still has to do.
//!
//! Source: guided self-scheduling (Polychronopoulos and Kuck 1987), applied to ranges of documents.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use tandem_base::base::machine::Class;
use tandem_base::traffic::Mode;

use crate::query::Query;
use crate::search::cpu::executor::CpuExecutor;
use crate::search::cpu::multicore::cores::Cores;
use crate::search::cpu::multicore::idle::Backoff;
use crate::search::cpu::multicore::pool::partition::Partition;
use crate::search::cpu::multicore::pool::slot::{Schedule, TaskPool};
use crate::search::cpu::multicore::team::first_pass;
use crate::search::cpu::multicore::worker::{LONG_TASKS, Worker};
use crate::search::{ExecError, Execution, Executor, Help, Hit, check};

/// An adaptive executor for each of `workers` cores. Their driver must call [`Executor::help`] on idle ones.
pub fn adaptive_lanes(executor: &CpuExecutor, workers: usize) -> Vec<Box<dyn Executor>> {
    lanes(executor, workers, true)
}

/// An INTER executor for each of `workers` cores, which answers whole queries on its own. A scheduler may name helpers.
pub fn inter_lanes(executor: &CpuExecutor, workers: usize) -> Vec<Box<dyn Executor>> {
    lanes(executor, workers, false)
}

fn lanes(executor: &CpuExecutor, workers: usize, is_adaptive: bool) -> Vec<Box<dyn Executor>> {
    let pool = Arc::<OnceLock<TaskPool>>::default();
    if is_adaptive {
        pool_of(&pool, workers);
    }
    // The driver needs a core, too.
    let is_crowded = Cores::of_this_machine().len() <= workers;
    let lane = |number| {
        let worker = Worker::new(number, workers, executor.clone_for_worker());
        let pool = Arc::clone(&pool);
        Box::new(Core { pool, worker, number, workers, is_adaptive, is_idle: false, is_crowded }) as Box<dyn Executor>
    };
    (0..workers).map(lane).collect()
}

/// One of several cores that can help each other.
#[derive(Debug)]
struct Core {
    /// The pool of shared queries, made with the first one.
    pool: Arc<OnceLock<TaskPool>>,
    worker: Worker,
    /// The slot for this core's queries.
    number: usize,
    workers: usize,
    /// Whether it shares all queries, and helps when it is idle.
    is_adaptive: bool,
    /// Whether the pool counts this core as idle.
    is_idle: bool,
    /// Whether there may be fewer cores than threads.
    is_crowded: bool,
}

/// The pool of `workers` cores.
fn pool_of(pool: &OnceLock<TaskPool>, workers: usize) -> &TaskPool {
    pool.get_or_init(|| {
        let partition = Partition { most_tasks: usize::MAX };
        TaskPool::new(workers, workers, partition, Schedule::Guided)
    })
}

impl Core {
    fn set_idle(&mut self, is_idle: bool) {
        let Some(pool) = self.pool.get().filter(|_| is_idle != self.is_idle) else { return };
        if is_idle {
            pool.idle.fetch_add(1, Ordering::Relaxed);
        } else {
            pool.idle.fetch_sub(1, Ordering::Relaxed);
        }
        self.is_idle = is_idle;
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.set_idle(false);
    }
}

impl Executor for Core {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        self.worker.executor.device()
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        if self.is_adaptive {
            return self.search_shared(query, mode, k, 1, hits);
        }
        self.worker.executor.search(query, mode, k, hits)
    }

    fn search_shared(
        &mut self,
        query: &Query,
        mode: Mode,
        k: usize,
        lanes: u32,
        hits: &mut Vec<Hit>,
    ) -> Result<Execution, ExecError> {
        check(query, k)?;
        self.set_idle(false);
        let pool = pool_of(&self.pool, self.workers);
        let pass = first_pass(mode);
        let num_tasks = pool.partition.num_tasks(self.worker.executor.index(), &query.terms, pass);
        if self.workers == 1 || num_tasks < LONG_TASKS && mode != Mode::AndOr {
            return self.worker.answer(query, mode, k, hits).map(|()| Execution::default());
        }
        let slot = &pool.slots[self.number];
        slot.publish(query, mode, pass, k, (num_tasks, lanes));
        let mut backoff = Backoff::new(self.is_crowded);
        while !slot.is_answered() {
            if !self.worker.work_at(pool, self.number, usize::MAX) {
                backoff.pause();
            }
        }
        slot.take_answer(hits);
        if slot.has_failed() { Err(ExecError::Panicked) } else { Ok(Execution::default()) }
    }

    fn help(&mut self, lead: Option<usize>) -> Help {
        if lead.is_none() && !self.is_adaptive {
            return Help::Never;
        }
        self.set_idle(self.is_adaptive);
        let pool = pool_of(&self.pool, self.workers);
        // One claim per call lets the caller check for its own queries.
        let worked = match lead {
            Some(lead) => lead < self.workers && self.worker.work_at(pool, lead, 1),
            None => self.worker.work(pool, 1),
        };
        if worked { Help::Given } else { Help::NotNow }
    }
}
