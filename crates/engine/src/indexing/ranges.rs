//! Ranges of the vocabulary, packed by any thread and written in order.
//!
//! ```text
//! range 0: merge, pack ──┐
//! range 1: merge, pack ──┼─▶ in order ──▶ IndexWriter
//! range 2: merge, pack ──┘
//! ```
//!
//! Any thread takes the next range, unless it is far ahead of the writer or memory has no room for it. Packed ranges
//! wait in memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tandem_base::base::ids::TermId;

use super::budget::give_back;
use super::error::BuildError;
use super::progress::Progress;
use crate::index::{EncodedLists, Index, IndexWriter, ListEncoder};

/// Ranges per thread. With this number, a long list in one range hardly delays the others.
const RANGES_PER_THREAD: usize = 16;
/// Ranges per thread that may be packed before the writer takes them.
const AHEAD_PER_THREAD: usize = 2;
/// Approximate maximum of bytes of lists in a range, because packed ranges wait in memory.
const RANGE_BYTES: u64 = 8 << 20;

/// Approximate minimum of bytes of lists in a range, where memory is scarce.
const LEAST_RANGE_BYTES: u64 = 1 << 20;
/// Approximate number of copies of a range's bytes in memory during a merge.
const COPIES: u64 = 8;
/// Divisor of the room. After ranges have taken this part of it, free memory is returned to the system.
const GIVEN_BACK_SHARE: u64 = 4;

/// Divides lists of `all_bytes` into ranges. Returns the bytes of lists per range and the number of threads that may
/// merge, if merging may take `room` bytes and each thread takes `thread_bytes` in addition to its range's lists.
pub fn division(all_bytes: u64, threads: usize, room: u64, thread_bytes: u64) -> (u64, usize) {
    // A thread's other data is read anew for each range, so few threads with large ranges beat many with small ones.
    let least = (thread_bytes / 4).clamp(LEAST_RANGE_BYTES, RANGE_BYTES);
    let most = (room / (threads as u64 * COPIES)).clamp(least, RANGE_BYTES);
    let fitting = (room / (thread_bytes + COPIES * most)).clamp(1, threads as u64);
    ((all_bytes / (threads * RANGES_PER_THREAD) as u64).clamp(1, most), fitting as usize)
}

/// Memory of a range, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct RangeBytes {
    /// While the range is merged and packed.
    pub merging: u64,
    /// While the packed range waits to be written.
    pub packed: u64,
}

impl RangeBytes {
    pub(crate) fn all(self) -> u64 {
        self.merging + self.packed
    }
}

/// Appends ranges to `writer` in order; `pack` makes each on any of `threads` threads. Together they take at most
/// `room` bytes at a time, unless a single range takes more. Fails with the error of the first range that can't be
/// packed or written, or of starting threads.
pub fn write_ranges(
    ranges: &[RangeBytes],
    room: u64,
    threads: usize,
    writer: &mut IndexWriter,
    progress: &dyn Fn(Progress),
    pack: &(dyn Fn(usize) -> Result<EncodedLists, BuildError> + Sync),
) -> Result<(), BuildError> {
    let shared = RangeQueue { ranges, room, threads, state: Mutex::default(), changed: Condvar::new() };
    std::thread::scope(|scope| {
        // The end of the writer's loop, for any reason, ends the workers'.
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
                give_back();
                freed_bytes = 0;
            }
            progress(Progress::Writing { done: number + 1, of: ranges.len() });
        }
        Ok(())
    })
}

/// Appends `count` chunks of lists to `writer` in order; `pack` makes each on any of `threads` threads. `progress`
/// receives the number of chunks written.
pub(crate) fn write_in_order(
    count: usize,
    threads: usize,
    writer: &mut IndexWriter,
    progress: &dyn Fn(usize),
    pack: &(dyn Fn(usize) -> Result<EncodedLists, BuildError> + Sync),
) -> Result<(), BuildError> {
    let report = |written| {
        if let Progress::Writing { done, .. } = written {
            progress(done);
        }
    };
    write_ranges(&vec![RangeBytes::default(); count], u64::MAX, threads, writer, &report, pack)
}

/// Postings of a range of terms that [`rewrite`] packs at once.
const REWRITTEN_POSTINGS: u64 = 1 << 18;

/// Appends the documents and frequencies of a term to two columns.
type ListChange<'a> = dyn Fn(TermId, &mut Vec<u32>, &mut Vec<u32>) + Sync + 'a;

/// Appends the lists of `index` to `writer`, each as `change` makes it: `change` appends the term's documents and
/// frequencies to two empty columns. A list without documents is left out. It runs on as many threads as rayon has. `progress` receives the number of terms
/// written.
pub(crate) fn rewrite(
    index: &Index,
    writer: &mut IndexWriter,
    progress: &dyn Fn(u64),
    change: &ListChange<'_>,
) -> Result<(), BuildError> {
    let (mut ends, mut postings) = (Vec::new(), 0);
    for term in 0..index.num_terms() {
        postings += u64::from(index.list(TermId(term)).doc_freq());
        if postings >= REWRITTEN_POSTINGS || term + 1 == index.num_terms() {
            ends.push(term + 1);
            postings = 0;
        }
    }
    let norms = writer.norms();
    let pack = |number: usize| {
        let mut encoder = ListEncoder::new(Arc::clone(&norms));
        let (mut docs, mut freqs) = (Vec::new(), Vec::new());
        let start = number.checked_sub(1).map_or(0, |before| ends[before]);
        for term in (start..ends[number]).map(TermId) {
            docs.clear();
            freqs.clear();
            change(term, &mut docs, &mut freqs);
            if docs.is_empty() {
                continue;
            }
            encoder.add_columns(&index.term_text(term), &docs, &freqs)?;
        }
        Ok(encoder.take())
    };
    let written = |done: usize| progress(ends[done - 1].into());
    write_in_order(ends.len(), rayon::current_num_threads(), writer, &written, &pack)
}

struct RangeQueue<'a> {
    ranges: &'a [RangeBytes],
    room: u64,
    threads: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: usize,
    written: usize,
    /// Memory of the ranges that are taken and not written.
    taken_bytes: u64,
    packed: Vec<(usize, Result<EncodedLists, BuildError>)>,
    is_over: bool,
}

impl RangeQueue<'_> {
    fn pack_ranges(&self, pack: &(dyn Fn(usize) -> Result<EncodedLists, BuildError> + Sync)) {
        while let Some(number) = self.take_next() {
            // The writer waits for this range, even if packing it panics.
            let packed = catch_unwind(AssertUnwindSafe(|| pack(number)));
            self.hand_over(number, packed.unwrap_or(Err(BuildError::Panicked)));
        }
    }

    /// Takes the next range once it may be merged, or returns `None` if there is none or the writer has ended.
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

    /// Whether the next range is close enough to the writer, and fits into the room.
    fn may_take_next(&self, state: &State) -> bool {
        let is_near = state.next < state.written + self.threads * AHEAD_PER_THREAD;
        let taken_bytes = || state.taken_bytes.saturating_add(self.ranges[state.next].all());
        is_near && (state.taken_bytes == 0 || taken_bytes() <= self.room)
    }

    /// Passes the result of packing a range to the writer.
    fn hand_over(&self, number: usize, packed: Result<EncodedLists, BuildError>) {
        let mut state = self.lock();
        state.taken_bytes -= self.ranges[number].merging;
        state.packed.push((number, packed));
        drop(state);
        self.changed.notify_all();
    }

    fn wait_for(&self, number: usize) -> Result<EncodedLists, BuildError> {
        let mut state = self.lock();
        loop {
            if let Some(at) = state.packed.iter().position(|(packed, _)| *packed == number) {
                return state.packed.swap_remove(at).1;
            }
            state = self.wait(state);
        }
    }

    /// Notes that a range is in the index, and its memory free.
    fn count_written(&self, number: usize) {
        let mut state = self.lock();
        state.written = number + 1;
        state.taken_bytes -= self.ranges[number].packed;
        drop(state);
        self.changed.notify_all();
    }

    /// Notes that the writer takes no more ranges.
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
        // A thread of its own makes a writer that waits forever fail the test instead of blocking it.
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
