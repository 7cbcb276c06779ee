//! What one core found of a query, as numbers in atomics.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::search::{Hit, MAX_K, TopK};

/// Most queries ask for no more than so many documents; room for more is made when one first does.
const FEW: usize = 1000;

/// Keys of documents, as [`TopK`] makes them.
#[derive(Debug)]
#[repr(align(128))]
pub(in crate::search::cpu::multicore) struct PartialResult {
    /// The epoch in which they were found, and how many they are: what is left of other epochs counts as nothing, so
    /// that nobody needs to clear it.
    tag: AtomicU64,
    few: Box<[AtomicU64]>,
    more: OnceLock<Box<[AtomicU64]>>,
}

impl PartialResult {
    /// Room for what a core finds; nothing is there yet.
    pub(in crate::search::cpu::multicore) fn new() -> Self {
        Self { tag: AtomicU64::new(0), few: zeros(FEW), more: OnceLock::new() }
    }

    /// Replaces what is there by `hits`, at most [`MAX_K`], found in `epoch`.
    pub(in crate::search::cpu::multicore) fn replace(&self, hits: &[Hit], epoch: u64) {
        let (few, more) = hits.split_at(hits.len().min(FEW));
        store(&self.few, few);
        if !more.is_empty() {
            store(self.more.get_or_init(|| zeros(MAX_K - FEW)), more);
        }
        self.tag.store(epoch << 32 | hits.len() as u64, Ordering::Relaxed);
    }

    /// What was found in `epoch`; nothing if the last was found in another.
    pub(in crate::search::cpu::multicore) fn hits(&self, epoch: u64) -> impl Iterator<Item = Hit> + '_ {
        let tag = self.tag.load(Ordering::Relaxed);
        let len = if tag >> 32 == epoch { tag as u32 as usize } else { 0 };
        let keys = self.few.iter().chain(self.more.get().into_iter().flatten());
        keys.take(len).map(|key| TopK::hit(key.load(Ordering::Relaxed)))
    }

    /// The same, offered to `best`.
    pub(in crate::search::cpu::multicore) fn offer_to(&self, best: &mut TopK, epoch: u64) {
        self.hits(epoch).for_each(|hit| best.offer(hit.doc.0, hit.score));
    }
}

fn zeros(len: usize) -> Box<[AtomicU64]> {
    (0..len).map(|_| AtomicU64::new(0)).collect()
}

fn store(keys: &[AtomicU64], hits: &[Hit]) {
    for (key, hit) in keys.iter().zip(hits) {
        key.store(TopK::key(hit.doc.0, hit.score), Ordering::Relaxed);
    }
}
