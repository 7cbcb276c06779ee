//! Who has claimed which tasks of a query, without a lock.
//!
//! Two words say it all, and everything else of a query may be plain data around them:
//!
//! ```text
//! owner    publish ──┐ unfinished = 8                    word = [epoch 7 | next 0 | tasks 8]
//! core 2             ├─ claim: next 0 -> 1 ── search ── claim: 1 -> 2 ── ... none left ── unfinished -= 3
//! core 5             └─ claim: next 2 -> 3 ── search ── ...                            ── unfinished -= 5 = 0: last
//! ```
//!
//! - What the owner wrote before [`publish`](Claims::publish), whoever claims a task sees.
//! - A claim is a compare-and-swap of one word that names its epoch: it fails if the slot has moved on to another query.
//! - Who has claimed and not finished keeps the slot from moving on, so that its data can be read without a lock.
//! - What anybody wrote before [`finish`](Claims::finish), the one who finishes last sees, and owns the slot from then on.
//!
//! `tests/task_pool.rs` goes through the interleavings of small cases, and the orders in which writes may become visible.

use std::ops::Range;

use super::atomics::{AtomicU32, AtomicU64, Ordering};

/// Bits of the word for each of `next` and `tasks`; the epoch has the rest.
const COUNT_BITS: u32 = 16;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// The most tasks of a query.
pub(crate) const MAX_TASKS: usize = COUNT_MASK as usize;

/// What lies on cache lines of its own, so that changing it disturbs no core that reads something else.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

/// The claims of one slot.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Polled by the idle, and changed by every claim.
    word: CachePadded<AtomicU64>,
    /// Changed once by every core.
    unfinished: CachePadded<AtomicU32>,
}

/// Tasks that one core has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) epoch: u64,
    pub(crate) tasks: Range<u32>,
}

impl Claims {
    /// Puts up tasks. The caller owns the slot: it is new, or the caller finished last, or saw that somebody did.
    pub(crate) fn publish(&self, num_tasks: u32) {
        self.unfinished.0.store(num_tasks, Ordering::Relaxed);
        // Epochs are the remaining 32 bits, and begin again some day.
        let epoch = (self.epoch() + 1) & (u64::MAX >> (2 * COUNT_BITS));
        // Release: who claims a task sees what was written before.
        self.word.0.store(epoch << (2 * COUNT_BITS) | u64::from(num_tasks), Ordering::Release);
    }

    /// The present epoch; it stays while the caller holds a claim, or has finished last.
    pub(crate) fn epoch(&self) -> u64 {
        self.word.0.load(Ordering::Relaxed) >> (2 * COUNT_BITS)
    }

    /// Tasks that nobody has claimed.
    #[inline]
    pub(crate) fn unclaimed(&self) -> u32 {
        let word = self.word.0.load(Ordering::Relaxed);
        let (next, tasks) = counts(word);
        tasks - next
    }

    /// Claims the next tasks, `share(left)` of them but at least one; `None` if none is left.
    #[inline]
    pub(crate) fn claim(&self, share: impl Fn(u32) -> u32) -> Option<Claim> {
        let mut word = self.word.0.load(Ordering::Acquire);
        loop {
            let (next, tasks) = counts(word);
            if next == tasks {
                return None;
            }
            let end = next + share(tasks - next).clamp(1, tasks - next);
            let claimed = word + (u64::from(end - next) << COUNT_BITS);
            match self.word.0.compare_exchange_weak(word, claimed, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(Claim { epoch: word >> (2 * COUNT_BITS), tasks: next..end }),
                Err(now) => word = now,
            }
        }
    }

    /// Claims task `task`, which belongs to the caller, unless that was in epoch `seen`. `None` if there is none.
    #[inline]
    pub(crate) fn claim_own(&self, task: u32, seen: u64) -> Option<Claim> {
        let word = self.word.0.load(Ordering::Acquire);
        let (next, tasks) = counts(word);
        let epoch = word >> (2 * COUNT_BITS);
        // All of the tasks stand as unclaimed until the last is finished.
        (epoch != seen && next == 0 && task < tasks).then(|| Claim { epoch, tasks: task..task + 1 })
    }

    /// Says that `count` claimed tasks are finished. Whether they were the last: then the caller owns the slot.
    pub(crate) fn finish(&self, count: u32) -> bool {
        // Release what the caller wrote; acquire what the others did.
        let is_last = self.unfinished.0.fetch_sub(count, Ordering::AcqRel) == count;
        if is_last {
            let word = self.word.0.load(Ordering::Relaxed);
            // Tasks that belong to cores were never counted as claimed.
            self.word.0.store(word | (word & COUNT_MASK) << COUNT_BITS, Ordering::Relaxed);
        }
        is_last
    }
}

/// `next` and `tasks` of a word.
#[inline]
fn counts(word: u64) -> (u32, u32) {
    ((word >> COUNT_BITS & COUNT_MASK) as u32, (word & COUNT_MASK) as u32)
}
