//! The memory budget of a build, and its parts.
//!
//! The budget is for the whole process. Stages follow each other in time, so each has nearly all of it:
//!
//! | stage | what is in memory |
//! | --- | --- |
//! | inverting | the program; queued batches, two per thread and two more; growing lists; runs in memory; text decompressed ahead |
//! | checking | the program; runs in memory, and contents of the others; 4 bytes per document for lengths, and 8 for digests of names, or 4 in two passes if that is too much |
//! | merging | the program; those runs; 4 bytes per document for norms; the writer's queue; columns of the index that don't wait on disk; for each current range a block of each run, and its packed lists |
//!
//! A budget smaller than the minimum of a stage is exceeded, and the caller learns by how much and why.

use super::progress::{MemoryNeed, MemoryPurpose};
use crate::index::IndexWriter;

/// The program and its threads' stacks.
const PROGRAM_BYTES: u64 = 24 << 20;
/// A queued batch of text, with the text that it was cut from.
const BATCH_BYTES: u64 = 5 << 19;
/// Excess of a worker's lists over their share: the lists of one batch.
const OVERSHOOT_BYTES: u64 = 1 << 20;
/// Share of the memory for inverting that all workers' growing lists may take. A quarter is for sorting them and for
/// memory that the allocator keeps.
const GROWING_SHARE: f64 = 0.5625;
/// Share of that memory for runs that stay in memory while lists grow.
const KEPT_SHARE: f64 = 0.125;
/// Share of that memory for text that is decompressed before workers take it.
const AHEAD_SHARE: f64 = 0.0625;
/// Minimum size to which a worker's lists may grow. Only the last run is smaller.
const LEAST_GROWING_BYTES: u64 = 256 << 10;
/// Maximum size to which they may grow, because positions in them are 32 bits.
const MOST_GROWING_BYTES: u64 = 2 << 30;
/// Minimum memory of a worker for text and lists.
const LEAST_WORKER_BYTES: u64 = 2 << 20;
/// Divisor of the budget that gives the memory of the index's waiting columns.
const COLUMNS_SHARE: u64 = 16;
const LEAST_COLUMNS_BYTES: u64 = 1 << 20;
const LENGTH_BYTES: u64 = size_of::<u32>() as u64;
const DIGEST_BYTES: u64 = size_of::<u64>() as u64;
const LEAST_DIGESTS_BYTES: u64 = 1 << 20;
/// Approximate memory of a range while others are merged.
const RANGE_BYTES: u64 = 16 << 20;
/// Memory for merging the longest list, per document, before more is known.
const LONGEST_LIST_BYTES: u64 = 5;

/// The memory that a build may take, and the number of threads that share it.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// `None` stands for no limit.
    bytes: Option<u64>,
    threads: u64,
}

impl Budget {
    pub(crate) fn new(bytes: Option<u64>, threads: usize) -> Self {
        Self { bytes, threads: threads as u64 }
    }

    /// The missing memory for a build of any size.
    pub(crate) fn lacks_for_any(self) -> Option<MemoryNeed> {
        let inverting = self.batches_bytes() + self.threads * LEAST_WORKER_BYTES;
        let merging = IndexWriter::BYTES + LEAST_COLUMNS_BYTES + RANGE_BYTES;
        let needed_bytes = PROGRAM_BYTES + inverting.max(merging);
        self.lacks(needed_bytes, MemoryPurpose::Threads(self.threads))
    }

    /// The need of `needed_bytes`, if the budget is smaller.
    fn lacks(self, needed_bytes: u64, purpose: MemoryPurpose) -> Option<MemoryNeed> {
        self.bytes.filter(|&bytes| bytes < needed_bytes).map(|_| MemoryNeed { bytes: needed_bytes, purpose })
    }

    fn batches_bytes(self) -> u64 {
        (2 * self.threads + 2) * BATCH_BYTES + self.threads * OVERSHOOT_BYTES
    }

    /// Memory for growing lists and runs.
    fn inverting_bytes(self) -> Option<u64> {
        self.bytes.map(|bytes| bytes.saturating_sub(PROGRAM_BYTES + self.batches_bytes()))
    }

    fn inverting_share(self, share: f64) -> u64 {
        self.inverting_bytes().map_or(u64::MAX, |bytes| (bytes as f64 * share) as u64)
    }

    /// Memory of one worker's lists.
    pub(crate) fn most_growing(self) -> u64 {
        (self.inverting_share(GROWING_SHARE) / self.threads).clamp(LEAST_GROWING_BYTES, MOST_GROWING_BYTES)
    }

    /// Memory of all runs while lists grow.
    pub(crate) fn most_kept(self) -> u64 {
        self.inverting_share(KEPT_SHARE)
    }

    /// Memory of text that is decompressed before workers take it.
    pub(crate) fn most_ahead(self) -> u64 {
        self.inverting_share(AHEAD_SHARE)
    }

    /// Memory of all runs at the end, for `documents` documents, while `growing_workers` other workers still have
    /// lists.
    pub(crate) fn most_kept_last(self, documents: u64, growing_workers: u64) -> u64 {
        let Some(bytes) = self.bytes else { return u64::MAX };
        let while_inverting =
            self.inverting_bytes().unwrap_or(u64::MAX).saturating_sub(growing_workers * self.most_growing());
        let checking = documents * (LENGTH_BYTES + DIGEST_BYTES);
        let lists = documents * (LENGTH_BYTES + LONGEST_LIST_BYTES) + self.threads * RANGE_BYTES;
        let merging = IndexWriter::BYTES + self.columns_bytes() + lists;
        while_inverting.min(bytes.saturating_sub(PROGRAM_BYTES + checking.max(merging)))
    }

    /// Memory for digests of names of `documents` documents, in addition to `held_bytes` in memory.
    pub(crate) fn digests_bytes(self, documents: u64, held_bytes: u64) -> u64 {
        let taken = PROGRAM_BYTES + held_bytes + documents * LENGTH_BYTES;
        // Norms will follow in the same place.
        let least = LEAST_DIGESTS_BYTES.max(documents * LENGTH_BYTES);
        self.bytes.map_or(u64::MAX, |bytes| bytes.saturating_sub(taken).max(least))
    }

    /// The missing memory for checking `documents` documents in addition to `held_bytes` in memory, and for their norms.
    pub(crate) fn lacks_for_documents(self, documents: u64, held_bytes: u64) -> Option<MemoryNeed> {
        let needed_bytes = PROGRAM_BYTES + held_bytes + 2 * documents * LENGTH_BYTES;
        self.lacks(needed_bytes, MemoryPurpose::Documents { documents, held_bytes })
    }

    /// Memory of the index's columns that wait.
    pub(crate) fn columns_bytes(self) -> u64 {
        self.bytes.map_or(u64::MAX, |bytes| (bytes / COLUMNS_SHARE).max(LEAST_COLUMNS_BYTES))
    }

    /// Memory for merging `documents` documents in addition to `held_bytes` in memory.
    pub fn merging_bytes(self, documents: u64, held_bytes: u64) -> u64 {
        let taken = self.beside_ranges(documents, held_bytes);
        self.bytes.map_or(u64::MAX, |bytes| bytes.saturating_sub(taken))
    }

    /// The missing memory if the largest range of terms takes `range_bytes`.
    pub(crate) fn lacks_for_merging(self, documents: u64, held_bytes: u64, range_bytes: u64) -> Option<MemoryNeed> {
        let needed_bytes = self.beside_ranges(documents, held_bytes) + range_bytes;
        self.lacks(needed_bytes, MemoryPurpose::Merging { documents, range_bytes })
    }

    fn beside_ranges(self, documents: u64, held_bytes: u64) -> u64 {
        let columns = self.bytes.map_or(0, |_| self.columns_bytes());
        PROGRAM_BYTES + held_bytes + documents * LENGTH_BYTES + IndexWriter::BYTES + columns
    }
}

/// Blocks of at least this size are mappings of their own where memory is scarce. The system's allocator has about one
/// heap per thread, and returns only free memory at a heap's end to the system. Threads that invert and merge leave
/// holes. In a build on sixteen threads, holes took more memory than the lists.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 1 << 20;

/// Returns free memory to the system, if the allocator can.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it touches only free memory, under the allocator's own locks; any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes the allocator return large blocks when they are freed, in all of the process and from now on, so that growing
/// and packed lists leave no holes. By default the allocator takes blocks of up to 32 MiB from heaps once such a block
/// has been freed.
pub(crate) fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets a parameter of the allocator, under its own lock; any thread may call it at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_budget_are_within_it() {
        for threads in [1, 2, 16, 64] {
            for bytes in [0, 1 << 20, 64 << 20, 512 << 20, 2 << 30, 64 << 30] {
                let budget = Budget::new(Some(bytes), threads);
                let growing = budget.most_growing() * threads as u64;
                let inverting =
                    PROGRAM_BYTES + budget.batches_bytes() + growing + budget.most_kept() + budget.most_ahead();
                assert!(inverting <= bytes || budget.lacks_for_any().is_some() || growing < 32 << 20, "{budget:?}");
                for documents in [0, 1 << 20, 1 << 25] {
                    let held = budget.most_kept_last(documents, 0);
                    let checking =
                        PROGRAM_BYTES + held + LENGTH_BYTES * documents + budget.digests_bytes(documents, held);
                    let merging = budget.beside_ranges(documents, held) + budget.merging_bytes(documents, held);
                    let least = budget.beside_ranges(documents, 0) + LEAST_DIGESTS_BYTES + LENGTH_BYTES * documents;
                    assert!(checking.max(merging) <= bytes.max(least), "{budget:?}, {documents} documents");
                }
            }
        }
    }

    #[test]
    fn without_a_budget_nothing_is_bounded_but_a_workers_lists() {
        let budget = Budget::new(None, 3);
        assert_eq!(budget.most_growing(), MOST_GROWING_BYTES);
        let bounds = [
            budget.most_kept(),
            budget.most_ahead(),
            budget.most_kept_last(1 << 30, 3),
            budget.digests_bytes(1 << 30, 1 << 40),
            budget.columns_bytes(),
            budget.merging_bytes(1 << 30, 1 << 40),
        ];
        assert!(bounds.iter().all(|&bytes| bytes == u64::MAX), "{bounds:?}");
        assert!(budget.lacks_for_any().is_none() && budget.lacks_for_merging(9, 9, 1 << 40).is_none());
    }
}
