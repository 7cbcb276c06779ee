//! Ranges of the vocabulary: packed by any thread, written in order.
//!
//! ```text
//! range 0: merge, pack ──┐
//! range 1: merge, pack ──┼─▶ in order ──▶ IndexWriter
//! range 2: merge, pack ──┘
//! ```
//!
//! Any thread takes the next range, but none that is far ahead of the writer: what is packed waits in memory.

use std::sync::{Condvar, Mutex, PoisonError};

use super::{BuildError, Progress};
use crate::index::{EncodedLists, IndexWriter};

/// Ranges a thread: enough that a long list in one of them keeps nobody waiting for long.
const RANGES_PER_THREAD: usize = 16;
/// Ranges a thread that may be packed before the writer has them.
const AHEAD_PER_THREAD: usize = 2;
/// Bytes of lists in a range, at most, roughly: what is packed of it waits in memory.
const RANGE_BYTES: u64 = 8 << 20;

/// Bytes of lists that a range should have, where all lists have `all_bytes`.
pub(crate) fn range_bytes(all_bytes: u64, threads: usize) -> u64 {
    (all_bytes / (threads * RANGES_PER_THREAD) as u64).clamp(1, RANGE_BYTES)
}

/// Which ranges are taken, which are packed, and which are written.
#[derive(Default)]
struct State {
    next: usize,
    written: usize,
    packed: Vec<(usize, Result<EncodedLists, BuildError>)>,
    is_over: bool,
}

/// Appends `num_ranges` ranges to `writer`, in order; `pack` makes each, on any of `threads` threads.
///
/// # Errors
/// That of the first range that can't be packed or written, or if there are no threads.
pub(crate) fn write_ranges(
    num_ranges: usize,
    threads: usize,
    writer: &mut IndexWriter,
    progress: &(dyn Fn(Progress) + Sync),
    pack: &(dyn Fn(usize) -> Result<EncodedLists, BuildError> + Sync),
) -> Result<(), BuildError> {
    let state = Mutex::new(State::default());
    let changed = Condvar::new();
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        loop {
            let mut held = lock();
            while !held.is_over && held.next < num_ranges && held.next >= held.written + threads * AHEAD_PER_THREAD {
                held = changed.wait(held).unwrap_or_else(PoisonError::into_inner);
            }
            let number = held.next;
            if held.is_over || number == num_ranges {
                return;
            }
            held.next += 1;
            drop(held);
            let packed = pack(number);
            lock().packed.push((number, packed));
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
        for number in 0..num_ranges {
            let mut held = lock();
            let packed = loop {
                if let Some(at) = held.packed.iter().position(|(packed, _)| *packed == number) {
                    break held.packed.swap_remove(at).1;
                }
                held = changed.wait(held).unwrap_or_else(PoisonError::into_inner);
            };
            drop(held);
            writer.append(&packed?)?;
            lock().written = number + 1;
            changed.notify_all();
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
