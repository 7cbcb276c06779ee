//! Lock-free claims of the tasks of a query.
//!
//! Two words hold the state, and all other data of a query may be plain:
//!
//! ```text
//! owner    publish ──┐ unfinished = 8                    word = [epoch 7 | next 0 | tasks 8]
//! core 2             ├─ claim: next 0 -> 1 ── search ── claim: 1 -> 2 ── ... none left ── unfinished -= 3
//! core 5             └─ claim: next 2 -> 3 ── search ── ...                            ── unfinished -= 5 = 0: last
//! ```
//!
//! - A core that claims a task sees all writes of the owner before [`publish`](Claims::publish).
//! - A claim is a compare-and-swap of one word that includes the epoch. It fails if the slot has moved on to another
//!   query.
//! - A claimed and unfinished task keeps the slot in its epoch, so its data can be read without a lock.
//! - The core that finishes last sees all writes before any [`finish`](Claims::finish), and owns the slot from then on.
//!
//! `tests/task_pool.rs` explores the interleavings and memory orders of small cases.

use std::ops::Range;

use super::atomics::{AtomicU32, AtomicU64, Ordering};

/// Bits of the word for each of `next` and `tasks`. The epoch has the others.
const COUNT_BITS: u32 = 16;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
pub(crate) const MAX_TASKS: usize = COUNT_MASK as usize;

/// A value on its own cache lines, to avoid false sharing.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Polled by idle cores and changed by every claim.
    word: CachePadded<AtomicU64>,
    /// Changed once by every core.
    unfinished: CachePadded<AtomicU32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) epoch: u64,
    pub(crate) tasks: Range<u32>,
}

impl Claims {
    /// Publishes tasks. The caller owns the slot: it is new, or the caller finished last or saw that another core did.
    pub(crate) fn publish(&self, num_tasks: u32) {
        self.unfinished.0.store(num_tasks, Ordering::Relaxed);
        // The epoch has 32 bits and wraps around.
        let epoch = (self.epoch() + 1) & (u64::MAX >> (2 * COUNT_BITS));
        // Release: a core that claims a task sees all earlier writes.
        self.word.0.store(epoch << (2 * COUNT_BITS) | u64::from(num_tasks), Ordering::Release);
    }

    /// The current epoch. It stays while the caller holds a claim or has finished last.
    pub(crate) fn epoch(&self) -> u64 {
        self.word.0.load(Ordering::Relaxed) >> (2 * COUNT_BITS)
    }

    /// Claims the next `share(left)` tasks, at least one. `None` if none is left.
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

    /// Marks `count` claimed tasks as finished. Returns whether they were the last; the caller then owns the slot.
    pub(crate) fn finish(&self, count: u32) -> bool {
        // Releases this core's writes and acquires the others'.
        self.unfinished.0.fetch_sub(count, Ordering::AcqRel) == count
    }
}

#[inline]
fn counts(word: u64) -> (u32, u32) {
    ((word >> COUNT_BITS & COUNT_MASK) as u32, (word & COUNT_MASK) as u32)
}
