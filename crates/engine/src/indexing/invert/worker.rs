//! What a thread does that inverts batches.

use super::accumulator::Accumulator;
use super::run::RunSource;
use super::store::Store;
use crate::corpus::{Batch, Tokenizer};
use crate::indexing::error::BuildError;

/// Inverts batches, and makes runs of them.
#[derive(Debug)]
pub(crate) struct Worker<'a> {
    tokenizer: &'a Tokenizer,
    accumulator: Accumulator,
    /// Memory of batches that the worker reads itself.
    memory: Vec<u8>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(tokenizer: &'a Tokenizer) -> Self {
        Self { tokenizer, accumulator: Accumulator::default(), memory: Vec::new() }
    }

    /// Inverts batch `number`, and hands over a run if it is time. Returns the number of documents in the batch. Fails
    /// if a document can't be read, or a run can't be stored. The worker can't be used afterwards.
    pub(crate) fn take(&mut self, number: u64, mut batch: Batch, store: &Store) -> Result<u32, BuildError> {
        batch.load(&mut self.memory)?;
        let before = self.accumulator.num_docs();
        self.accumulator.add(number, &batch, self.tokenizer)?;
        batch.unload(&mut self.memory);
        let num_docs = self.accumulator.num_docs() - before;
        if store.is_full(self.accumulator.bytes()) {
            store.take(&mut self.accumulator)?;
        }
        Ok(num_docs)
    }

    /// Hands over the remaining lists.
    pub(crate) fn finish(&mut self, store: &Store) -> Result<(), BuildError> {
        store.take_last(&mut self.accumulator)
    }
}
