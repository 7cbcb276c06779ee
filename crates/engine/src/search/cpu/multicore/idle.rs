//! Threads without work: they poll with growing pauses, then sleep until woken.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::thread::Thread;

/// Growing pauses between polls. If there are more threads than cores, later pauses also yield the core.
#[derive(Debug)]
pub(crate) struct Backoff {
    polls: u32,
    is_crowded: bool,
}

impl Backoff {
    /// The number of frequent polls.
    const FREQUENT_POLLS: u32 = 400;
    /// Spins between frequent polls, and between later ones. Polling without pauses slows the other hardware thread of
    /// the core: with 15 polling cores the sixteenth was slower by a quarter.
    const SPINS: [u32; 2] = [16, 32];

    /// `is_crowded`: whether there may be fewer cores than threads.
    pub(crate) fn new(is_crowded: bool) -> Self {
        Self { polls: 0, is_crowded }
    }

    /// Restarts with frequent polls, after work was found.
    pub(crate) fn reset(&mut self) {
        self.polls = 0;
    }

    pub(crate) fn pause(&mut self) {
        self.polls = self.polls.saturating_add(1);
        let is_late = self.is_late();
        (0..Self::SPINS[usize::from(is_late)]).for_each(|_| std::hint::spin_loop());
        if is_late && self.is_crowded {
            std::thread::yield_now();
        }
    }

    pub(crate) fn is_late(&self) -> bool {
        self.polls > Self::FREQUENT_POLLS
    }
}

#[derive(Debug)]
pub(crate) struct ParkedThreads {
    /// The number of sleeping helpers, for a quick check.
    count: AtomicUsize,
    is_asleep: Box<[AtomicBool]>,
    /// Empty until the helpers are spawned, since they share this struct.
    threads: OnceLock<Box<[Thread]>>,
}

impl ParkedThreads {
    /// Running helpers, whose threads [`set_threads`](Self::set_threads) sets.
    pub(crate) fn new(helpers: usize) -> Self {
        let is_asleep = (0..helpers).map(|_| AtomicBool::new(false)).collect();
        Self { count: AtomicUsize::new(0), is_asleep, threads: OnceLock::new() }
    }

    /// Sets the helpers' threads in order, once.
    pub(crate) fn set_threads(&self, threads: Box<[Thread]>) {
        let _ = self.threads.set(threads);
    }

    /// Sleeps until woken, unless `last_look` finds a reason not to.
    pub(crate) fn park(&self, helper: usize, last_look: impl FnOnce() -> bool) {
        self.is_asleep[helper].store(true, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `unpark`: a core that publishes work after this last look sees the sleeper.
        fence(Ordering::SeqCst);
        if !last_look() {
            std::thread::park();
        }
        self.is_asleep[helper].store(false, Ordering::Relaxed);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes up to `most` helpers after work was published.
    pub(crate) fn unpark(&self, most: usize) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let asleep = self.is_asleep.iter().zip(self.threads.get().into_iter().flatten());
        let woken = asleep.filter(|(is_asleep, _)| is_asleep.swap(false, Ordering::Relaxed)).take(most);
        woken.for_each(|(_, thread)| thread.unpark());
    }

    /// Pauses, and wakes all helpers if it takes long. The core that finishes an AND publishes its OR without waking
    /// helpers, and a core with an own task in it may be asleep.
    pub(crate) fn unpark_if_late(&self, backoff: &mut Backoff) {
        backoff.pause();
        if backoff.is_late() {
            self.unpark(usize::MAX);
        }
    }
}
