//! One core and its helpers, who all work on the same queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::backoff::Backoff;
use super::board::{Board, Slot, Taking};
use super::cores::Cores;
use super::hand::Hand;
use super::sleepers::Sleepers;
use crate::exec::cpu::executor::Pass;
use crate::exec::{ExecError, Hit, check_k};
use crate::query::{Mode, Query};

/// How long a helper without work polls before it sleeps. Under load the next query that is long enough for it comes
/// within it; waking a sleeping thread takes tens of microseconds, most of them of the one who wakes it.
const POLL: Duration = Duration::from_millis(2);

/// The caller's hand, and helpers on threads of their own.
///
/// Dropping it ends the threads; they first finish the task that they are at.
#[derive(Debug)]
pub(super) struct Team {
    pub(super) hand: Hand,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    board: Board,
    is_closed: AtomicBool,
    sleepers: Sleepers,
    /// Whether there may be fewer cores than hands.
    is_crowded: bool,
}

impl Team {
    /// The caller's hand, and a helper for each further one. The caller runs on core `first_core` of `cores`, or
    /// should; helpers are tied to the following ones.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(super) fn spawn(
        board: Board,
        hand: Hand,
        others: Vec<Hand>,
        cores: &Cores,
        first_core: usize,
    ) -> Result<Self, ExecError> {
        let is_crowded = cores.len() < first_core + 1 + others.len();
        let sleepers = Sleepers::new(others.len());
        let shared = Arc::new(Shared { board, is_closed: AtomicBool::new(false), sleepers, is_crowded });
        let mut team = Self { hand, shared: Arc::clone(&shared), threads: Vec::with_capacity(others.len()) };
        for (helper, hand) in others.into_iter().enumerate() {
            let (shared, cores) = (Arc::clone(&shared), cores.clone());
            let serve = move || {
                cores.pin(first_core + helper + 1);
                shared.serve(hand, helper);
            };
            let thread = std::thread::Builder::new().name(format!("helper {helper}")).spawn(serve);
            team.threads.push(thread.map_err(|e| ExecError::NoThread(e.to_string()))?);
        }
        shared.sleepers.know(team.threads.iter().map(|handle| handle.thread().clone()).collect());
        Ok(team)
    }

    /// The board that all work at.
    pub(super) fn board(&self) -> &Board {
        &self.shared.board
    }

    /// Pauses for a member of the team.
    pub(super) fn backoff(&self) -> Backoff {
        Backoff::new(self.shared.is_crowded)
    }

    /// How many cores work: the caller's and the helpers'.
    pub(super) fn num_cores(&self) -> usize {
        self.threads.len() + 1
    }

    /// Answers one query, all cores at it.
    pub(super) fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<(), ExecError> {
        if self.is_one_task(query, mode) {
            return self.hand.search_alone(query, mode, k, hits);
        }
        self.begin(0, query, mode, k)?;
        let mut backoff = self.backoff();
        while !self.slot(0).is_answered() {
            if self.hand.work_at(&self.shared.board, 0, usize::MAX) {
                backoff.reset();
            } else {
                self.shared.sleepers.wake_if_late(&mut backoff);
            }
        }
        self.take(0, hits)
    }

    /// Whether a query is too short to be shared. Where tasks belong to cores, nobody has the whole index.
    fn is_one_task(&self, query: &Query, mode: Mode) -> bool {
        let (board, index) = (self.board(), self.hand.executor.index());
        let is_final = mode != Mode::AndOr;
        is_final
            && board.taking == Taking::Next
            && board.partition.num_tasks(index, &query.terms, first_pass(mode)) == 1
    }

    /// Puts a query up in a slot that is free.
    pub(super) fn begin(&mut self, slot: usize, query: &Query, mode: Mode, k: usize) -> Result<(), ExecError> {
        check_k(k)?;
        let pass = first_pass(mode);
        let board = &self.shared.board;
        let num_tasks = board.partition.num_tasks(self.hand.executor.index(), &query.terms, pass);
        board.slots[slot].publish(query, mode, pass, k, num_tasks);
        self.shared.sleepers.wake(num_tasks as usize);
        Ok(())
    }

    /// One task of any query. Whether there was one.
    pub(super) fn work(&mut self) -> bool {
        self.hand.work(&self.shared.board, 1)
    }

    /// Replaces `hits` by the answer in a slot.
    pub(super) fn take(&self, slot: usize, hits: &mut Vec<Hit>) -> Result<(), ExecError> {
        let slot = self.slot(slot);
        slot.take_answer(hits);
        if slot.has_failed() { Err(ExecError::Panicked) } else { Ok(()) }
    }

    fn slot(&self, slot: usize) -> &Slot {
        &self.shared.board.slots[slot]
    }
}

/// The pass that a query begins with.
pub(super) fn first_pass(mode: Mode) -> Pass {
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

impl Shared {
    /// A helper's life.
    fn serve(&self, mut hand: Hand, helper: usize) {
        let mut idle_since = None;
        let mut backoff = Backoff::new(self.is_crowded);
        while !self.is_closed.load(Ordering::Relaxed) {
            if hand.work(&self.board, usize::MAX) {
                idle_since = None;
                backoff.reset();
            } else if idle_since.get_or_insert_with(Instant::now).elapsed() < POLL {
                backoff.pause();
            } else {
                self.sleepers
                    .sleep(helper, || hand.work(&self.board, usize::MAX) || self.is_closed.load(Ordering::Relaxed));
                idle_since = None;
            }
        }
    }
}
