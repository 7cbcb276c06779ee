//! What one core found of a query, as numbers in atomics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::exec::{Hit, MAX_K, TopK};

/// Keys of documents, as [`TopK`] makes them.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct PartialResult {
    /// The epoch in which they were found, and how many they are: what is left of other epochs counts as nothing, so
    /// that nobody needs to clear it.
    tag: AtomicU64,
    keys: Box<[AtomicU64]>,
}

impl PartialResult {
    /// Room for what a core finds; nothing is there yet.
    pub(super) fn new() -> Self {
        Self { tag: AtomicU64::new(0), keys: (0..MAX_K).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Replaces what is there by `hits`, found in `epoch`.
    pub(super) fn replace(&self, hits: &[Hit], epoch: u64) {
        for (key, hit) in self.keys.iter().zip(hits) {
            key.store(TopK::key(hit.doc.0, hit.score), Ordering::Relaxed);
        }
        self.tag.store(epoch << 32 | hits.len() as u64, Ordering::Relaxed);
    }

    /// What was found in `epoch`; nothing if the last was found in another.
    pub(super) fn hits(&self, epoch: u64) -> impl Iterator<Item = Hit> + '_ {
        let tag = self.tag.load(Ordering::Relaxed);
        let len = if tag >> 32 == epoch { tag as u32 as usize } else { 0 };
        self.keys[..len].iter().map(|key| TopK::hit(key.load(Ordering::Relaxed)))
    }

    /// The same, offered to `best`.
    pub(super) fn offer_to(&self, best: &mut TopK, epoch: u64) {
        self.hits(epoch).for_each(|hit| best.offer(hit.doc.0, hit.score));
    }
}
