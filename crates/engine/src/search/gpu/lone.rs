//! Single queries: one launch, straight from the lists to results in host memory.
//!
//! Queries that are scored by tiles, ask for many results or exceeded the candidates of a batch run as a batch of one,
//! with room for every document.

use std::sync::Arc;

use cudarc::driver::DriverError;
use tandem_base::traffic::Mode;

use super::arguments::{FEW_TERMS, LoneStage, MAX_K, MAX_TERMS, StateArgument, TermEntry, WARP_K};
use super::batch::{AnswerSource, BatchCapacity, Parallelism};
use super::kernels::{Kernels, QueryMemory, Search};
use super::lists::DeviceLists;
use super::plan::{Plan, Pruning};
use super::share::{DriverShares, MOST_ROUNDS_A_BLOCK, lone};
use super::slot::{BatchSlot, QueryOutcome};
use crate::index::Index;
use crate::query::Query;
use crate::search::device::wait::{has_hung, wait};
use crate::search::device::{Device, GpuError};
use crate::search::{ExecError, Hit};

/// Result words of a single query: number, keys, nanoseconds in total, and nanoseconds after scoring.
const LONE_RESULTS: usize = 3 + MAX_K;
/// Input words of a batch for the drivers and terms of a query in both stages, with a margin.
const INPUT_WORDS: usize = 4096;

#[derive(Debug)]
pub(crate) struct LoneRunner {
    /// It waits for its kernels when it is dropped, so it must precede what they access.
    pub(crate) slot: BatchSlot,
    pub(crate) device: Device,
    pub(crate) kernels: Arc<Kernels>,
    pub(crate) lists: Arc<DeviceLists>,
    pub(crate) machine: Parallelism,
    /// Microseconds after scoring of the last query.
    pub(crate) topk_us: f64,
    pub(crate) pruning: Pruning,
    /// The reason why nothing can run any more. A fault in a kernel ends its context.
    pub(crate) broken: Option<String>,
    pub(crate) hits: Vec<Hit>,
    terms: Vec<TermEntry>,
}

impl LoneRunner {
    /// The largest buffers that one query of an index may need.
    pub(crate) fn room(index: &Index, device: &Device) -> BatchCapacity {
        let blocks = index.blocks().len() as u64 + MAX_TERMS as u64;
        let rounds = f64::from(MOST_ROUNDS_A_BLOCK) * blocks as f64;
        let hints = DriverShares::most_hints(2, rounds, blocks, 2 * MAX_TERMS, Parallelism::of(device).warps);
        BatchCapacity {
            entries: 2,
            input_words: INPUT_WORDS + 2 * hints,
            // A batch of one has one more word at its end.
            result_words: LONE_RESULTS + 1,
            // One per document: `score_tiles` may leave k per tile, and other kernels all that they score.
            candidates: index.num_docs().max(1) as usize,
            is_for_one: true,
        }
    }

    /// A runner with every kernel loaded, because drivers load kernels at their first launch. Fails if the driver
    /// refuses.
    pub(crate) fn new(
        device: Device,
        kernels: Arc<Kernels>,
        lists: Arc<DeviceLists>,
        room: BatchCapacity,
    ) -> Result<Self, GpuError> {
        let stream = device.new_stream()?;
        let mut slot = BatchSlot::new(&device, stream, room).map_err(|e| GpuError::of("allocating buffers", &e))?;
        let machine = Parallelism::of(&device);
        let memory = slot.memory();
        let search = Search::new(&kernels, &slot.stream, &lists, memory);
        // SAFETY: the buffers live as long as the stream.
        let loaded = unsafe { search.load_all() };
        let loaded = loaded.and_then(|()| wait(&slot.stream));
        loaded.map_err(|e| GpuError::of("loading the kernels", &e))?;
        let (hits, terms) = (Vec::new(), Vec::new());
        Ok(Self {
            slot,
            device,
            kernels,
            lists,
            machine,
            topk_us: 0.0,
            pruning: Pruning::default(),
            broken: None,
            hits,
            terms,
        })
    }

    /// Searches a query that has terms. Returns device time in microseconds.
    pub(crate) fn search(
        &mut self,
        query: &Query,
        mode: Mode,
        k: usize,
        hits: &mut Vec<Hit>,
    ) -> Result<f64, ExecError> {
        let mut terms = std::mem::take(&mut self.terms);
        terms.clear();
        let plan = Plan::new(&self.lists.terms, query, mode, k, self.pruning, &mut terms);
        let outcome = self.run(&plan, &terms, &query.label, hits);
        self.terms = terms;
        outcome
    }

    /// Runs a planned query. Returns device time in microseconds. `label` names the query in errors.
    pub(crate) fn run(
        &mut self,
        plan: &Plan,
        terms: &[TermEntry],
        label: &str,
        hits: &mut Vec<Hit>,
    ) -> Result<f64, ExecError> {
        self.check(|| doing(plan, label))?;
        let ran = if plan.by_tiles || plan.query.k as usize > WARP_K {
            self.run_in_steps(plan, terms, hits)
        } else if terms.len() <= FEW_TERMS {
            self.run_at_once::<FEW_TERMS>(plan, terms, hits)
        } else {
            self.run_at_once::<{ MAX_TERMS }>(plan, terms, hits)
        };
        match ran {
            Ok((device_us, QueryOutcome::Hits)) => Ok(device_us),
            Ok((_, taken)) => {
                let message = match taken {
                    QueryOutcome::Fault(message) => message,
                    _ => "more candidates than there is room for".to_owned(),
                };
                Err(GpuError::Failed { doing: doing(plan, label), message }.into())
            }
            Err(error) => Err(self.failed(doing(plan, label), &error)),
        }
    }

    /// Launches each stage once. The kernels clear the states and write the results to host memory, so no other driver
    /// call is needed.
    fn run_at_once<const TERMS: usize>(
        &mut self,
        plan: &Plan,
        terms: &[TermEntry],
        hits: &mut Vec<Hit>,
    ) -> Result<(f64, QueryOutcome), DriverError> {
        if cfg!(debug_assertions) {
            self.slot.poison()?;
        }
        let mut memory = self.slot.memory();
        let stream = &self.slot.stream;
        let first_state = memory.states;
        let mut gate = 0;
        for needs_all in [true, false] {
            if plan.mode == (if needs_all { Mode::Or } else { Mode::And }) {
                continue;
            }
            let mut lone = lone::<TERMS>(plan, terms, needs_all, self.machine.warps);
            let is_last = u32::from(!needs_all || plan.mode == Mode::And);
            lone.stage = LoneStage { capacity: self.slot.num_candidates(), is_last, ..lone.stage };
            // SAFETY: both states are clear, there is room for every document, the terms are the index's own, and the
            // results have this many words and live as long as the stream.
            unsafe { Search::new(&self.kernels, stream, &self.lists, memory).score_lone(&lone, gate) }?;
            gate = first_state;
            memory = QueryMemory { states: first_state + size_of::<StateArgument>() as u64, ..memory };
        }
        let taken = self.slot.take_hits(0, plan.query.k as usize, hits)?;
        self.topk_us = self.slot.take(LONE_RESULTS - 1)? as f64 * 1e-3;
        let device_us = self.slot.take(LONE_RESULTS - 2)? as f64 * 1e-3;
        Ok((device_us, taken))
    }

    /// Runs queries with many results or tiles as a batch of one.
    fn run_in_steps(
        &mut self,
        plan: &Plan,
        terms: &[TermEntry],
        hits: &mut Vec<Hit>,
    ) -> Result<(f64, QueryOutcome), DriverError> {
        let Self { slot, kernels, lists, machine, .. } = self;
        slot.batch.clear();
        slot.batch.terms.extend(terms);
        let num_docs = lists.terms.num_docs;
        slot.batch.add_planned(*plan, 0, num_docs, &slot.room, *machine);
        assert_eq!(slot.batch.planned[0].place, AnswerSource::At(0), "there is room for any query");
        slot.launch(kernels, lists, *machine)?;
        let taken = slot.take_hits(0, plan.query.k as usize, hits)?;
        let end = slot.take_end()?.unwrap_or_default();
        self.topk_us = 0.0;
        Ok((end.ended_ns.saturating_sub(end.began_ns) as f64 * 1e-3, taken))
    }

    /// Converts the error of a failed call and resets the buffers. If that fails, the device is marked as lost.
    pub(crate) fn failed(&mut self, doing: String, error: &DriverError) -> ExecError {
        let error = GpuError::of(doing, error);
        // A refused launch leaves the output of earlier stages.
        if self.slot.reset().is_err() {
            self.broken = Some(format!("the GPU stopped at an earlier error: {error}"));
        }
        error.into()
    }

    /// Fails if the device is lost.
    pub(crate) fn check(&self, doing: impl FnOnce() -> String) -> Result<(), ExecError> {
        match &self.broken {
            Some(message) => Err(GpuError::Failed { doing: doing(), message: message.clone() }.into()),
            None => Ok(()),
        }
    }
}

impl Drop for LoneRunner {
    fn drop(&mut self) {
        self.device.context.record_err(wait(&self.slot.stream));
        // Kernels that hang may access the index until the process ends.
        if has_hung(&self.device.context) {
            std::mem::forget((Arc::clone(&self.kernels), Arc::clone(&self.lists)));
        }
    }
}

/// The kernels and the query, for an error.
fn doing(plan: &Plan, label: &str) -> String {
    let kernels = match (plan.by_tiles, plan.mode) {
        (true, Mode::Or) => "kernel `score_tiles` or `score_impact_tiles`",
        (true, _) => "kernels `score_batch`, `score_tiles` or `score_impact_tiles`",
        (false, _) if plan.query.k as usize > WARP_K => "kernels `score_batch`, `merge_topk`",
        (false, _) => "kernel `score_lone`",
    };
    format!("{kernels} for query {label}")
}
