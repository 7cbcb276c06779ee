//! The result of one core, as numbers in atomics.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::search::{Hit, MAX_K, TopK};

/// Most queries ask for at most this number of documents. The first larger one allocates more room.
const FEW: usize = 1000;

#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct PartialResult {
    /// Epoch and number of the documents. Documents of another epoch count as none, so nothing must be cleared.
    tag: AtomicU64,
    few: Box<[AtomicU64]>,
    more: OnceLock<Box<[AtomicU64]>>,
}

impl PartialResult {
    pub(crate) fn new() -> Self {
        Self { tag: AtomicU64::new(0), few: zeros(FEW), more: OnceLock::new() }
    }

    /// Replaces the documents by `hits`, at most [`MAX_K`], found in `epoch`.
    pub(crate) fn replace(&self, hits: &[Hit], epoch: u64) {
        let (few, more) = hits.split_at(hits.len().min(FEW));
        store(&self.few, few);
        if !more.is_empty() {
            store(self.more.get_or_init(|| zeros(MAX_K - FEW)), more);
        }
        self.tag.store(epoch << 32 | hits.len() as u64, Ordering::Relaxed);
    }

    /// The documents found in `epoch`, or none if the last epoch was another one.
    pub(crate) fn hits(&self, epoch: u64) -> impl Iterator<Item = Hit> + '_ {
        let tag = self.tag.load(Ordering::Relaxed);
        let len = if tag >> 32 == epoch { tag as u32 as usize } else { 0 };
        let keys = self.few.iter().chain(self.more.get().into_iter().flatten());
        keys.take(len).map(|key| TopK::hit(key.load(Ordering::Relaxed)))
    }

    pub(crate) fn offer_to(&self, best: &mut TopK, epoch: u64) {
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
