//! A thread that feeds a stream of a GPU.
//!
//! The thread parses batches and sends their text. When a run is full, it fetches the distinct words, finds their
//! terms, and fetches the lists. It keeps the batches, or the places to read them again, until their run is stored. If
//! the GPU fails, these batches and all later ones go to the CPU's accumulator. So does a batch that fits into no
//! piece.

use std::sync::{Arc, Mutex, PoisonError};

use super::accumulator::{GpuAccumulator, Refusal};
use super::backend::Backend;
use crate::corpus::{Batch, Tokenizer};
use crate::indexing::error::BuildError;
use crate::indexing::invert::run::RunSource;
use crate::indexing::invert::store::Store;
use crate::indexing::invert::worker::{CpuWorker, Worker};
use crate::search::device::GpuError;

/// The part of a build that GPUs did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuReport {
    /// Streams that were fed, each by a thread.
    pub streams: usize,
    /// Bytes of the collection that GPUs inverted.
    pub bytes: u64,
    /// Reasons for the loss of GPUs, one per stream. CPUs did their part of the work.
    pub lost: Vec<String>,
}

/// The report that all lanes share.
pub(crate) type SharedReport = Arc<Mutex<GpuReport>>;

/// A stream of a GPU, its thread, and a CPU's accumulator for batches that the GPU does not take.
#[derive(Debug)]
pub(crate) struct Lane<'a> {
    /// `None` once the GPU is lost.
    gpu: Option<GpuAccumulator>,
    /// Batches that the GPU has not returned as a run yet.
    held: Vec<(u64, Batch)>,
    held_bytes: usize,
    /// Memory of batches that the lane reads itself.
    memory: Vec<u8>,
    cpu: CpuWorker<'a>,
    tokenizer: &'a Tokenizer,
    report: SharedReport,
}

impl<'a> Lane<'a> {
    pub(crate) fn new(backend: Box<dyn Backend>, tokenizer: &'a Tokenizer, report: SharedReport) -> Self {
        report.lock().unwrap_or_else(PoisonError::into_inner).streams += 1;
        Self {
            gpu: Some(GpuAccumulator::new(backend)),
            held: Vec::new(),
            held_bytes: 0,
            memory: Vec::new(),
            cpu: CpuWorker::new(tokenizer),
            tokenizer,
            report,
        }
    }

    fn bytes(&self) -> usize {
        self.held_bytes + self.cpu.bytes() + self.gpu.as_ref().map_or(0, GpuAccumulator::bytes)
    }

    /// Fetches the GPU's run, and passes it to the store.
    fn seal(&mut self, store: &Store, is_last: bool) -> Result<(), BuildError> {
        let Some(gpu) = &mut self.gpu else { return Ok(()) };
        match gpu.invert(self.tokenizer) {
            Ok(mut lists) => {
                let take = |lists: &mut dyn RunSource| if is_last { store.take_last(lists) } else { store.take(lists) };
                take(&mut lists)?;
                let bytes: u64 = self.held.iter().map(|(_, batch)| batch.bytes()).sum();
                self.report.lock().unwrap_or_else(PoisonError::into_inner).bytes += bytes;
                self.held.clear();
                self.held_bytes = 0;
                Ok(())
            }
            Err(error) => self.lose(&error, store),
        }
    }

    /// Continues without the GPU, beginning with its batches.
    fn lose(&mut self, error: &GpuError, store: &Store) -> Result<(), BuildError> {
        self.gpu = None;
        self.report.lock().unwrap_or_else(PoisonError::into_inner).lost.push(error.to_string());
        self.held_bytes = 0;
        self.held.drain(..).try_for_each(|(number, batch)| self.cpu.take(number, batch, store).map(|_| ()))
    }
}

impl Worker for Lane<'_> {
    fn take(&mut self, number: u64, mut batch: Batch, store: &Store) -> Result<u32, BuildError> {
        let Some(gpu) = &mut self.gpu else { return self.cpu.take(number, batch, store) };
        batch.load(&mut self.memory)?;
        let num_docs = match gpu.add(number, &batch, self.tokenizer) {
            Ok(num_docs) => num_docs,
            Err(Refusal::Input(error)) => return Err(error.into()),
            Err(Refusal::TooLarge) => return self.cpu.take(number, batch, store),
            Err(Refusal::Gpu(error)) => {
                self.lose(&error, store)?;
                return self.cpu.take(number, batch, store);
            }
        };
        batch.unload(&mut self.memory);
        self.held_bytes += batch.bytes_in_memory();
        self.held.push((number, batch));
        match gpu.is_full() {
            Ok(is_full) => {
                if is_full || store.is_full(self.bytes()) {
                    self.seal(store, false)?;
                }
            }
            Err(error) => self.lose(&error, store)?,
        }
        Ok(num_docs)
    }

    fn finish(&mut self, store: &Store) -> Result<(), BuildError> {
        self.seal(store, true)?;
        self.cpu.finish(store)
    }
}
