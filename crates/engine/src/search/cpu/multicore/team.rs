//! One core and its helpers, which all work on the same queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tandem_base::traffic::Mode;

use super::cores::Cores;
use super::idle::{Backoff, ParkedThreads};
use super::pool::slot::TaskPool;
use super::worker::Worker;
use crate::query::Query;
use crate::search::cpu::executor::Pass;
use crate::search::{ExecError, Hit, check};

/// The polling time of a helper without work before it sleeps. Under load the next long query usually comes within it.
/// Waking a thread costs the waker tens of microseconds.
const POLL: Duration = Duration::from_millis(2);

/// The caller as a worker, and helpers on their own threads. Dropping it ends the threads after their current tasks.
#[derive(Debug)]
pub(crate) struct Team {
    /// The caller's own worker.
    pub(crate) worker: Worker,
    shared: Arc<TeamState>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct TeamState {
    pool: TaskPool,
    is_closed: AtomicBool,
    parked: ParkedThreads,
    /// Whether there may be fewer cores than workers.
    is_crowded: bool,
}

impl Team {
    /// The caller's worker and a helper thread for each of the others. The caller should run on core `first_core` of
    /// `cores`; helpers are pinned to the following cores. Fails if the system refuses a thread.
    pub(crate) fn spawn(
        pool: TaskPool,
        worker: Worker,
        others: Vec<Worker>,
        cores: &Cores,
        first_core: usize,
    ) -> Result<Self, ExecError> {
        let is_crowded = cores.len() < first_core + 1 + others.len();
        let parked = ParkedThreads::new(others.len());
        let shared = Arc::new(TeamState { pool, is_closed: AtomicBool::new(false), parked, is_crowded });
        let mut team = Self { worker, shared: Arc::clone(&shared), threads: Vec::with_capacity(others.len()) };
        for (helper, worker) in others.into_iter().enumerate() {
            let (shared, cores) = (Arc::clone(&shared), cores.clone());
            let serve = move || {
                cores.pin(first_core + helper + 1);
                shared.serve(worker, helper);
            };
            let thread = std::thread::Builder::new().name(format!("helper {helper}")).spawn(serve);
            team.threads.push(thread.map_err(|e| ExecError::NoThread(e.to_string()))?);
        }
        shared.parked.set_threads(team.threads.iter().map(|handle| handle.thread().clone()).collect());
        Ok(team)
    }

    /// The number of cores: the caller's and the helpers'.
    pub(crate) fn num_cores(&self) -> usize {
        self.threads.len() + 1
    }

    /// Answers one query with all cores.
    pub(crate) fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<(), ExecError> {
        let (pass, pool) = (first_pass(mode), &self.shared.pool);
        let num_tasks = pool.partition.num_tasks(self.worker.executor.index(), &query.terms, pass);
        // Too short a query is not shared.
        if mode != Mode::AndOr && num_tasks == 1 {
            return self.worker.answer(query, mode, k, hits);
        }
        check(query, k)?;
        let slot = &pool.slots[0];
        slot.publish(query, mode, pass, k, (num_tasks, 1));
        self.shared.parked.unpark(num_tasks as usize);
        let mut backoff = Backoff::new(self.shared.is_crowded);
        while !slot.is_answered() {
            if self.worker.work_at(pool, 0, usize::MAX) {
                backoff.reset();
            } else {
                self.shared.parked.unpark_if_late(&mut backoff);
            }
        }
        slot.take_answer(hits);
        if slot.has_failed() { Err(ExecError::Panicked) } else { Ok(()) }
    }
}

pub(crate) fn first_pass(mode: Mode) -> Pass {
    if mode == Mode::Or { Pass::Or } else { Pass::And }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl TeamState {
    fn serve(&self, mut worker: Worker, helper: usize) {
        let mut idle_since = None;
        let mut backoff = Backoff::new(self.is_crowded);
        while !self.is_closed.load(Ordering::Relaxed) {
            if worker.work(&self.pool, usize::MAX) {
                idle_since = None;
                backoff.reset();
            } else if idle_since.get_or_insert_with(Instant::now).elapsed() < POLL {
                backoff.pause();
            } else {
                self.parked
                    .park(helper, || worker.work(&self.pool, usize::MAX) || self.is_closed.load(Ordering::Relaxed));
                idle_since = None;
            }
        }
    }
}
