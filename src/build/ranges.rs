//! Ranges of the vocabulary: packed by any thread, written in order.
//!
//! ```text
//! range 0: merge, pack ──┐
//! range 1: merge, pack ──┼─▶ in order ──▶ IndexWriter
//! range 2: merge, pack ──┘
//! ```
//!
//! Any thread takes the next range, but none that is far ahead of the writer, nor one that memory has no room for: what is packed
//! waits in memory.

use std::sync::{Condvar, Mutex, PoisonError};

use super::{BuildError, Progress, allocator};
use crate::index::{EncodedLists, IndexWriter};

/// Ranges a thread: enough that a long list in one of them keeps nobody waiting for long.
const RANGES_PER_THREAD: usize = 16;
/// Ranges a thread that may be packed before the writer has them.
const AHEAD_PER_THREAD: usize = 2;
/// Bytes of lists in a range, at most, roughly: what is packed of it waits in memory.
const RANGE_BYTES: u64 = 8 << 20;

/// And at least, where there is little memory.
const LEAST_RANGE_BYTES: u64 = 1 << 20;
/// How often a range's bytes are in memory while it is merged, roughly.
const COPIES: u64 = 8;
/// When ranges have taken such a part of their room, what was freed is given back to the system.
const GIVEN_BACK_SHARE: u64 = 4;

/// Bytes of lists that a range should have, and how many threads may merge, where all lists have `all_bytes`, merging may take
/// `room`, and a thread takes `thread_bytes` beside a range's lists.
pub(crate) fn division(all_bytes: u64, threads: usize, room: u64, thread_bytes: u64) -> (u64, usize) {
    // What a thread takes is read anew for each range: few threads with large ranges rather than many with small ones.
    let least = (thread_bytes / 4).clamp(LEAST_RANGE_BYTES, RANGE_BYTES);
    let most = (room / (threads as u64 * COPIES)).clamp(least, RANGE_BYTES);
    let fitting = (room / (thread_bytes + COPIES * most)).clamp(1, threads as u64);
    ((all_bytes / (threads * RANGES_PER_THREAD) as u64).clamp(1, most), fitting as usize)
}

/// What a range takes of memory, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RangeBytes {
    /// While it is merged and packed.
    pub(crate) merging: u64,
    /// From then on until it is written.
    pub(crate) packed: u64,
}

impl RangeBytes {
    /// All of it.
    pub(crate) fn all(self) -> u64 {
        self.merging + self.packed
    }
}

/// Which ranges are taken, which are packed, and which are written.
#[derive(Default)]
struct State {
    next: usize,
    written: usize,
    /// What ranges that are taken and not written take of memory.
    taken_bytes: u64,
    packed: Vec<(usize, Result<EncodedLists, BuildError>)>,
    is_over: bool,
}

impl State {
    /// Whether the next range may be merged.
    fn may_take(&self, ranges: &[RangeBytes], room: u64, threads: usize) -> bool {
        let is_near = self.next < self.written + threads * AHEAD_PER_THREAD;
        is_near && (self.taken_bytes == 0 || self.taken_bytes.saturating_add(ranges[self.next].all()) <= room)
    }
}

/// Appends ranges, which take so much, to `writer`, in order; `pack` makes each, on any of `threads` threads. Together they
/// take no more than `room` at a time, unless one takes more by itself.
///
/// # Errors
/// That of the first range that can't be packed or written, or if there are no threads.
pub(crate) fn write_ranges(
    ranges: &[RangeBytes],
    room: u64,
    threads: usize,
    writer: &mut IndexWriter,
    progress: &(dyn Fn(Progress) + Sync),
    pack: &(dyn Fn(usize) -> Result<EncodedLists, BuildError> + Sync),
) -> Result<(), BuildError> {
    let num_ranges = ranges.len();
    let state = Mutex::new(State::default());
    let changed = Condvar::new();
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        loop {
            let mut held = lock();
            while !held.is_over && held.next < num_ranges && !held.may_take(ranges, room, threads) {
                held = changed.wait(held).unwrap_or_else(PoisonError::into_inner);
            }
            let number = held.next;
            if held.is_over || number == num_ranges {
                return;
            }
            held.next += 1;
            held.taken_bytes += ranges[number].all();
            drop(held);
            let packed = pack(number);
            let mut held = lock();
            held.taken_bytes -= ranges[number].merging;
            held.packed.push((number, packed));
            drop(held);
            changed.notify_all();
        }
    };
    std::thread::scope(|scope| {
        // Whatever ends the writer's loop ends the workers'.
        let _over = OnDrop(|| {
            lock().is_over = true;
            changed.notify_all();
        });
        for worker in 0..threads {
            std::thread::Builder::new()
                .name(format!("merge-{worker}"))
                .spawn_scoped(scope, work)
                .map_err(|e| BuildError::Threads(e.to_string()))?;
        }
        let mut freed_bytes = 0_u64;
        for (number, range) in ranges.iter().enumerate() {
            let mut held = lock();
            let packed = loop {
                if let Some(at) = held.packed.iter().position(|(packed, _)| *packed == number) {
                    break held.packed.swap_remove(at).1;
                }
                held = changed.wait(held).unwrap_or_else(PoisonError::into_inner);
            };
            drop(held);
            writer.append(&packed?)?;
            let mut held = lock();
            held.written = number + 1;
            held.taken_bytes -= range.packed;
            drop(held);
            changed.notify_all();
            freed_bytes += range.all();
            if freed_bytes > room / GIVEN_BACK_SHARE {
                allocator::give_back();
                freed_bytes = 0;
            }
            progress(Progress::Writing { done: number + 1, of: num_ranges });
        }
        Ok(())
    })
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}
