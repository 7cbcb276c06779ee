//! Helpers that have slept since they found no work, and how they are woken.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::thread::Thread;

use super::backoff::Backoff;

/// Helpers that sleep, and how to wake them.
#[derive(Debug)]
pub(crate) struct ParkedThreads {
    /// How many sleep, so that nobody looks further while none does.
    count: AtomicUsize,
    is_asleep: Box<[AtomicBool]>,
    /// Empty until they are spawned, which takes what they share: this, for one.
    threads: OnceLock<Box<[Thread]>>,
}

impl ParkedThreads {
    /// So many helpers, all awake; [`set_threads`](Self::set_threads) tells their threads.
    pub(crate) fn new(helpers: usize) -> Self {
        let is_asleep = (0..helpers).map(|_| AtomicBool::new(false)).collect();
        Self { count: AtomicUsize::new(0), is_asleep, threads: OnceLock::new() }
    }

    /// Tells the helpers' threads, in order.
    pub(crate) fn set_threads(&self, threads: Box<[Thread]>) {
        // Called once, so that setting it can't fail.
        let _ = self.threads.set(threads);
    }

    /// Sleeps until woken, unless `last_look` finds a reason not to.
    pub(crate) fn park(&self, helper: usize, last_look: impl FnOnce() -> bool) {
        self.is_asleep[helper].store(true, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `unpark`: who puts work up after this last look sees the one who sleeps.
        fence(Ordering::SeqCst);
        if !last_look() {
            std::thread::park();
        }
        self.is_asleep[helper].store(false, Ordering::Relaxed);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes up to `most` of them, after work was put up.
    pub(crate) fn unpark(&self, most: usize) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let asleep = self.is_asleep.iter().zip(self.threads.get().into_iter().flatten());
        let woken = asleep.filter(|(is_asleep, _)| is_asleep.swap(false, Ordering::Relaxed)).take(most);
        woken.for_each(|(_, thread)| thread.unpark());
    }

    /// Pauses; and when that has gone on for long, wakes everybody. An OR that follows an AND is put up by whoever
    /// finished the AND, who wakes nobody, and a core whose own task it is may have gone to sleep.
    pub(crate) fn unpark_if_late(&self, backoff: &mut Backoff) {
        backoff.pause();
        if backoff.is_late() {
            self.unpark(usize::MAX);
        }
    }
}
