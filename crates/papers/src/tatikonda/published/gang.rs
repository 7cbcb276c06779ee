//! DOCP: a range of the documents per core, and one master.
//!
//! ```text
//! master    query ─▶ all, own range ─── waits for the slowest ─▶ merged
//! others      ╰────▶ own range ─╯
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use tandem_engine::query::{Query, QueryTerm};
use tandem_engine::search::cpu::multicore::Cores;
use tandem_engine::search::{ExecError, Execution, Executor, Hit, TopK, check};
use tandem_model::base::machine::Class;
use tandem_model::traffic::Mode;

use super::core::Core;

/// The master on the caller's core, and a thread for each other core.
#[derive(Debug)]
pub(crate) struct Gang {
    master: Core,
    shared: Arc<GangState>,
    threads: Vec<JoinHandle<()>>,
    best: TopK,
}

#[derive(Debug)]
struct GangState {
    query: Mutex<(Vec<QueryTerm>, usize)>,
    /// Number of queries; a change announces a new one.
    epoch: AtomicUsize,
    is_closed: AtomicBool,
    /// Hits of each other core.
    found: Vec<Mutex<Vec<Hit>>>,
    /// Number of other cores that are done.
    done: AtomicUsize,
    is_crowded: bool,
}

impl Gang {
    /// Spawns a thread for each of `cores` but the first, the caller's, and pins them to the machine's cores in order.
    /// Fails if the system provides no thread.
    pub(crate) fn spawn(mut cores: Vec<Core>, machine: &Cores) -> Result<Self, ExecError> {
        let others = cores.split_off(1);
        let master = cores.remove(0);
        let shared = Arc::new(GangState {
            query: Mutex::default(),
            epoch: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            found: others.iter().map(|_| Mutex::default()).collect(),
            done: AtomicUsize::new(0),
            is_crowded: machine.len() <= others.len(),
        });
        let mut gang = Self { master, shared, threads: Vec::new(), best: TopK::default() };
        for (number, core) in others.into_iter().enumerate() {
            let (shared, machine) = (Arc::clone(&gang.shared), machine.clone());
            let thread = std::thread::Builder::new().spawn(move || {
                machine.pin(1 + number);
                shared.work(core, number);
            });
            gang.threads.push(thread.map_err(|e| ExecError::NoThread(e.to_string()))?);
        }
        Ok(gang)
    }
}

impl GangState {
    /// Runs a thread: waits for a query, searches its range, and repeats.
    fn work(&self, mut core: Core, number: usize) {
        let mut seen = 0;
        let mut hits = Vec::new();
        loop {
            wait(self.is_crowded, || {
                self.epoch.load(Ordering::Acquire) != seen || self.is_closed.load(Ordering::Acquire)
            });
            if self.is_closed.load(Ordering::Acquire) {
                return;
            }
            seen = self.epoch.load(Ordering::Acquire);
            let (terms, k) = self.query.lock().unwrap_or_else(PoisonError::into_inner).clone();
            core.intersect(&terms, k, &mut hits);
            std::mem::swap(&mut *self.found[number].lock().unwrap_or_else(PoisonError::into_inner), &mut hits);
            self.done.fetch_add(1, Ordering::Release);
        }
    }
}

/// Polls until `is_over`; with fewer cores than threads, yields the core between polls.
pub(crate) fn wait(is_crowded: bool, is_over: impl Fn() -> bool) {
    let mut looks = 0_u32;
    while !is_over() {
        std::hint::spin_loop();
        looks += 1;
        if is_crowded && looks.is_multiple_of(64) {
            std::thread::yield_now();
        }
    }
}

impl Executor for Gang {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        format!("{} cores, a range of the documents each", self.num_cores())
    }

    fn search(&mut self, query: &Query, _: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        check(query, k)?;
        let shared = &*self.shared;
        *shared.query.lock().unwrap_or_else(PoisonError::into_inner) = (query.terms.clone(), k);
        shared.done.store(0, Ordering::Relaxed);
        shared.epoch.fetch_add(1, Ordering::Release);
        self.master.intersect(&query.terms, k, hits);
        // A thread that panicked has ended and will not finish.
        let is_broken = || self.threads.iter().any(JoinHandle::is_finished);
        wait(shared.is_crowded, || shared.done.load(Ordering::Acquire) == self.threads.len() || is_broken());
        if is_broken() {
            return Err(ExecError::Panicked);
        }
        self.best.reset(k);
        hits.iter().for_each(|hit| self.best.offer(hit.doc.0, hit.score));
        for found in &shared.found {
            let found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.iter().for_each(|hit| self.best.offer(hit.doc.0, hit.score));
        }
        self.best.drain_into(hits);
        Ok(Execution::default())
    }

    fn num_cores(&self) -> usize {
        1 + self.threads.len()
    }
}

impl Drop for Gang {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A panic was already reported by the unfinished query.
            let _ = thread.join();
        }
    }
}
