//! One core and its helpers, who all work on the same queries.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::board::{Board, Slot, Taking};
use super::cores::Cores;
use super::hand::Hand;
use crate::exec::cpu::executor::Pass;
use crate::exec::{ExecError, Hit, MAX_K};
use crate::query::{Mode, Query};

/// How long a helper without work polls before it sleeps. Under load the next query that is long enough for it comes within
/// it; waking a sleeping thread takes tens of microseconds, most of them of the one who wakes it.
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
    /// The caller's hand, and a helper for each further one. The caller runs on core `first_core` of `cores`, or should;
    /// helpers are tied to the following ones.
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
        // Never set before, so that setting it can't fail.
        let _ = shared.sleepers.threads.set(team.threads.iter().map(|handle| handle.thread().clone()).collect());
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
        if !(1..=MAX_K).contains(&k) {
            return Err(ExecError::BadK(k));
        }
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

/// Helpers that sleep, and how to wake them.
#[derive(Debug)]
struct Sleepers {
    count: AtomicUsize,
    is_asleep: Box<[AtomicBool]>,
    threads: OnceLock<Box<[Thread]>>,
}

impl Sleepers {
    fn new(helpers: usize) -> Self {
        let is_asleep = (0..helpers).map(|_| AtomicBool::new(false)).collect();
        Self { count: AtomicUsize::new(0), is_asleep, threads: OnceLock::new() }
    }

    /// Sleeps until woken, unless `last_look` finds a reason not to.
    fn sleep(&self, helper: usize, last_look: impl FnOnce() -> bool) {
        self.is_asleep[helper].store(true, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `wake`: who puts work up after this last look sees the sleeper.
        fence(Ordering::SeqCst);
        if !last_look() {
            std::thread::park();
        }
        self.is_asleep[helper].store(false, Ordering::Relaxed);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes up to `most` sleepers, after work was put up.
    fn wake(&self, most: usize) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let sleepers = self.is_asleep.iter().zip(self.threads.get().into_iter().flatten());
        let woken = sleepers.filter(|(is_asleep, _)| is_asleep.swap(false, Ordering::Relaxed)).take(most);
        woken.for_each(|(_, thread)| thread.unpark());
    }

    /// Pauses; and when that has gone on for long, wakes everybody. An OR that follows an AND is put up by whoever
    /// finished the AND, who wakes nobody, and a core whose own task it is may have gone to sleep.
    fn wake_if_late(&self, backoff: &mut Backoff) {
        backoff.pause();
        if backoff.is_late() {
            self.wake(usize::MAX);
        }
    }
}

/// Pauses between two looks: short ones, then longer ones; and where there are more threads than cores, the core is then
/// left to others.
#[derive(Debug)]
pub(super) struct Backoff {
    looks: u32,
    is_crowded: bool,
}

impl Backoff {
    /// So many looks are frequent.
    const FREQUENT_LOOKS: u32 = 400;
    /// Spins between frequent looks, and between later ones. The core may be half of one whose other half is at work, even
    /// where the system doesn't tell, and looking without rest takes from that half: with 15 idle cores that looked as
    /// often as they could, the sixteenth was slower by a quarter.
    const SPINS: [u32; 2] = [16, 32];

    /// `is_crowded`: whether there may be fewer cores than threads.
    pub(super) fn new(is_crowded: bool) -> Self {
        Self { looks: 0, is_crowded }
    }

    /// Begins anew, after there was something to do.
    pub(super) fn reset(&mut self) {
        self.looks = 0;
    }

    pub(super) fn pause(&mut self) {
        self.looks = self.looks.saturating_add(1);
        let is_late = self.is_late();
        (0..Self::SPINS[usize::from(is_late)]).for_each(|_| std::hint::spin_loop());
        if is_late && self.is_crowded {
            std::thread::yield_now();
        }
    }

    /// Whether frequent looks were not enough.
    fn is_late(&self) -> bool {
        self.looks > Self::FREQUENT_LOOKS
    }
}
