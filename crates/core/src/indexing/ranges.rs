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

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

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
pub fn division(all_bytes: u64, threads: usize, room: u64, thread_bytes: u64) -> (u64, usize) {
    // What a thread takes is read anew for each range: few threads with large ranges rather than many with small ones.
    let least = (thread_bytes / 4).clamp(LEAST_RANGE_BYTES, RANGE_BYTES);
    let most = (room / (threads as u64 * COPIES)).clamp(least, RANGE_BYTES);
    let fitting = (room / (thread_bytes + COPIES * most)).clamp(1, threads as u64);
    ((all_bytes / (threads * RANGES_PER_THREAD) as u64).clamp(1, most), fitting as usize)
}

/// What a range takes of memory, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct RangeBytes {
    /// While it is merged and packed.
    pub merging: u64,
    /// From then on until it is written.
    pub packed: u64,
}

impl RangeBytes {
    /// All of it.
    pub(crate) fn all(self) -> u64 {
        self.merging + self.packed
    }
}

/// Appends ranges, which take so much, to `writer`, in order; `pack` makes each, on any of `threads` threads. Together they
/// take no more than `room` at a time, unless one takes more by itself.
///
/// # Errors
/// That of the first range that can't be packed or written, or if there are no threads.
pub fn write_ranges(
    ranges: &[RangeBytes],
    room: u64,
    threads: usize,
    writer: &mut IndexWriter,
    progress: &(dyn Fn(Progress) + Sync),
    pack: &(dyn Fn(usize) -> Result<EncodedLists, BuildError> + Sync),
) -> Result<(), BuildError> {
    let shared = Shared { ranges, room, threads, state: Mutex::default(), changed: Condvar::new() };
    std::thread::scope(|scope| {
        // Whatever ends the writer's loop ends the workers'.
        let _over = OnDrop(|| shared.end());
        for worker in 0..threads {
            std::thread::Builder::new()
                .name(format!("merge-{worker}"))
                .spawn_scoped(scope, || shared.pack_ranges(pack))
                .map_err(|e| BuildError::Threads(e.to_string()))?;
        }
        let mut freed_bytes = 0_u64;
        for (number, range) in ranges.iter().enumerate() {
            writer.append(&shared.wait_for(number)?)?;
            shared.count_written(number);
            freed_bytes += range.all();
            if freed_bytes > room / GIVEN_BACK_SHARE {
                allocator::give_back();
                freed_bytes = 0;
            }
            progress(Progress::Writing { done: number + 1, of: ranges.len() });
        }
        Ok(())
    })
}

/// What the threads that pack and the writer have in common.
struct Shared<'a> {
    ranges: &'a [RangeBytes],
    room: u64,
    threads: usize,
    state: Mutex<State>,
    changed: Condvar,
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

impl Shared<'_> {
    /// A thread that packs: one range after another, as long as there are any.
    fn pack_ranges(&self, pack: &(dyn Fn(usize) -> Result<EncodedLists, BuildError> + Sync)) {
        while let Some(number) = self.take_next() {
            // The writer waits for this range, whatever becomes of it.
            let packed = catch_unwind(AssertUnwindSafe(|| pack(number)));
            self.hand_over(number, packed.unwrap_or(Err(BuildError::Panicked)));
        }
    }

    /// Takes the next range, once it may be merged; `None` if there is none, or nobody wants any more.
    fn take_next(&self) -> Option<usize> {
        let mut state = self.lock();
        while !state.is_over && state.next < self.ranges.len() && !self.may_take_next(&state) {
            state = self.wait(state);
        }
        let number = state.next;
        if state.is_over || number == self.ranges.len() {
            return None;
        }
        state.next += 1;
        state.taken_bytes += self.ranges[number].all();
        Some(number)
    }

    /// Whether the next range is near enough to the writer, and there is room for it.
    fn may_take_next(&self, state: &State) -> bool {
        let is_near = state.next < state.written + self.threads * AHEAD_PER_THREAD;
        let taken_bytes = || state.taken_bytes.saturating_add(self.ranges[state.next].all());
        is_near && (state.taken_bytes == 0 || taken_bytes() <= self.room)
    }

    /// Gives the writer what became of a range.
    fn hand_over(&self, number: usize, packed: Result<EncodedLists, BuildError>) {
        let mut state = self.lock();
        state.taken_bytes -= self.ranges[number].merging;
        state.packed.push((number, packed));
        drop(state);
        self.changed.notify_all();
    }

    /// What became of a range, as soon as that is known.
    fn wait_for(&self, number: usize) -> Result<EncodedLists, BuildError> {
        let mut state = self.lock();
        loop {
            if let Some(at) = state.packed.iter().position(|(packed, _)| *packed == number) {
                return state.packed.swap_remove(at).1;
            }
            state = self.wait(state);
        }
    }

    /// That a range is in the index, and its memory free.
    fn count_written(&self, number: usize) {
        let mut state = self.lock();
        state.written = number + 1;
        state.taken_bytes -= self.ranges[number].packed;
        drop(state);
        self.changed.notify_all();
    }

    /// That the writer takes no more.
    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::index::Bm25;

    #[test]
    fn a_panic_while_a_range_is_packed_ends_the_build_with_an_error() {
        let (done, result) = mpsc::channel();
        // In a thread of its own: a writer that waits for ever fails the test, and does not hang it.
        std::thread::spawn(move || {
            let dir = tempfile::tempdir().unwrap();
            let mut writer = IndexWriter::create(dir.path(), vec![10], Vec::new(), Bm25::default(), "ascii").unwrap();
            let pack = |number| match number {
                3 => std::panic::resume_unwind(Box::new("a planned fault")),
                _ => Ok(EncodedLists::default()),
            };
            let ranges = [RangeBytes { merging: 1, packed: 1 }; 8];
            done.send(write_ranges(&ranges, 16, 2, &mut writer, &|_| (), &pack)).unwrap();
        });
        let result = result.recv_timeout(Duration::from_secs(60)).expect("the writer waits for the range");
        assert!(matches!(result, Err(BuildError::Panicked)), "{result:?}");
    }
}
