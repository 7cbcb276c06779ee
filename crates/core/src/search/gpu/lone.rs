//! A query alone: one launch, straight from the lists to results in the host's memory.
//!
//! Queries that go by tiles or ask for many results, and those that found more candidates in a batch than there was room
//! for, run as a batch of one, with room for every document.

use std::sync::Arc;

use cudarc::driver::DriverError;

use super::accepted::{MAX_K, MAX_TERMS};
use super::arguments::{FEW_TERMS, LoneStage, StateArgument, TermEntry, WARP_K};
use super::batch::{Machine, Place, Room};
use super::kernels::{Kernels, QueryMemory};
use super::lists::DeviceLists;
use super::plan::{Plan, Pruning};
use super::share::{DriverShares, lone};
use super::slot::{Slot, Taken};
use crate::index::Index;
use crate::query::{Mode, Query};
use crate::search::device::{Device, GpuError};
use crate::search::{ExecError, Hit};

/// Words of the results of a lone query: their number, their keys, the nanoseconds that it took, and those after
/// scoring.
const LONE_RESULTS: usize = 3 + MAX_K;
/// Drivers and terms of a query, in both stages, as words of a batch's input, with some to spare.
const INPUT_WORDS: usize = 4096;

/// Runs queries one at a time, on a stream of its own.
#[derive(Debug)]
pub(super) struct LoneRunner {
    pub(super) device: Device,
    pub(super) kernels: Arc<Kernels>,
    pub(super) lists: Arc<DeviceLists>,
    pub(super) machine: Machine,
    /// Its buffers: of one query.
    pub(super) slot: Slot,
    /// The microseconds after scoring, of what ran last.
    pub(super) topk_us: f64,
    /// What is passed over.
    pub(super) pruning: Pruning,
    /// Why nothing can be run any more: a fault in a kernel ends its context.
    pub(super) broken: Option<String>,
    /// Memory that is used again.
    pub(super) hits: Vec<Hit>,
    terms: Vec<TermEntry>,
}

impl LoneRunner {
    /// What one query of an index may need.
    pub(super) fn room(index: &Index, device: &Device) -> Room {
        let blocks = index.blocks().len() as u64 + MAX_TERMS as u64;
        let hints = DriverShares::most_hints(2, blocks, 2 * MAX_TERMS, Kernels::resident_warps_of(device));
        Room {
            entries: 2,
            input_words: INPUT_WORDS + 2 * hints,
            // As a batch of one it ends with a word more.
            result_words: LONE_RESULTS + 1,
            // One for each document: `score_tiles` may leave k for every tile, and others all that they score.
            candidates: index.num_docs().max(1) as usize,
            is_for_one: true,
        }
    }

    /// A runner, with every kernel loaded: drivers load them when they are first launched.
    ///
    /// # Errors
    /// If the driver refuses.
    pub(super) fn new(
        device: Device,
        kernels: Arc<Kernels>,
        lists: Arc<DeviceLists>,
        room: Room,
    ) -> Result<Self, GpuError> {
        let stream = device.new_stream()?;
        let mut slot = Slot::new(&device, stream, room).map_err(|e| GpuError::of("allocating buffers", &e))?;
        let machine = Machine { warps: kernels.resident_warps(), multiprocessors: kernels.multiprocessors() };
        let memory = slot.memory();
        // SAFETY: the buffers live as long as the stream.
        let loaded = unsafe { kernels.load_all(&slot.stream, &lists.argument(&slot.stream), &memory) };
        let loaded = loaded.and_then(|()| slot.stream.synchronize());
        loaded.map_err(|e| GpuError::of("loading the kernels", &e))?;
        let (hits, terms) = (Vec::new(), Vec::new());
        Ok(Self {
            device,
            kernels,
            lists,
            machine,
            slot,
            topk_us: 0.0,
            pruning: Pruning::default(),
            broken: None,
            hits,
            terms,
        })
    }

    /// Searches a query that has terms. Returns the device's time in microseconds.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn search(
        &mut self,
        query: &Query,
        mode: Mode,
        k: usize,
        hits: &mut Vec<Hit>,
    ) -> Result<f64, ExecError> {
        let mut terms = std::mem::take(&mut self.terms);
        terms.clear();
        let plan = Plan::new(&self.lists.terms, query, mode, k, self.pruning, &mut terms);
        let outcome = self.run_labelled(&plan, &terms, &query.label, hits);
        self.terms = terms;
        outcome
    }

    /// Runs what was planned. Returns the device's time in microseconds.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn run(&mut self, plan: &Plan, terms: &[TermEntry], hits: &mut Vec<Hit>) -> Result<f64, ExecError> {
        self.run_labelled(plan, terms, "of a batch", hits)
    }

    fn run_labelled(
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
            Ok((device_us, Taken::Hits)) => Ok(device_us),
            Ok((_, taken)) => {
                let message = match taken {
                    Taken::Fault(message) => message,
                    _ => "more candidates than there is room for".to_owned(),
                };
                Err(GpuError::Failed { doing: doing(plan, label), message }.into())
            }
            Err(error) => Err(self.failed(doing(plan, label), &error)),
        }
    }

    /// The short way: each stage is one launch, which leaves the states clear and the results in the host's memory.
    /// Nothing else is asked of the driver.
    fn run_at_once<const TERMS: usize>(
        &mut self,
        plan: &Plan,
        terms: &[TermEntry],
        hits: &mut Vec<Hit>,
    ) -> Result<(f64, Taken), DriverError> {
        if cfg!(debug_assertions) {
            self.slot.poison()?;
        }
        let mut memory = self.slot.memory();
        let stream = &self.slot.stream;
        let lists = self.lists.argument(stream);
        let first_state = memory.states;
        let mut gate = 0;
        for needs_all in [true, false] {
            if plan.mode == (if needs_all { Mode::Or } else { Mode::And }) {
                continue;
            }
            let mut lone = lone::<TERMS>(plan, terms, needs_all, self.machine.warps);
            let is_last = u32::from(!needs_all || plan.mode == Mode::And);
            lone.stage = LoneStage { capacity: self.slot.num_candidates(), is_last, ..lone.stage };
            // SAFETY: there are two states, which are clear, and room for every document; the terms are the index's
            // own; the results have that many words, and live as long as the stream.
            unsafe { self.kernels.score_lone(stream, &lists, &lone, &memory, gate) }?;
            gate = first_state;
            memory = QueryMemory { states: first_state + size_of::<StateArgument>() as u64, ..memory };
        }
        let taken = self.slot.take_results(0, plan.query.k as usize, hits)?;
        self.topk_us = self.slot.take(LONE_RESULTS - 1)? as f64 * 1e-3;
        let device_us = self.slot.take(LONE_RESULTS - 2)? as f64 * 1e-3;
        Ok((device_us, taken))
    }

    /// The long way, for many results and for queries that go through all lists: as a batch of one.
    fn run_in_steps(
        &mut self,
        plan: &Plan,
        terms: &[TermEntry],
        hits: &mut Vec<Hit>,
    ) -> Result<(f64, Taken), DriverError> {
        let Self { slot, kernels, lists, machine, .. } = self;
        slot.batch.clear();
        slot.batch.terms.extend(terms);
        let num_docs = lists.terms.num_docs();
        slot.batch.add_planned(*plan, 0, num_docs, &slot.room, *machine);
        assert_eq!(slot.batch.planned[0].place, Place::At(0), "there is room for any query");
        slot.launch(kernels, lists, *machine)?;
        let taken = slot.take_results(0, plan.query.k as usize, hits)?;
        let end = slot.take_end()?.unwrap_or_default();
        self.topk_us = 0.0;
        Ok((end.ended_ns.saturating_sub(end.began_ns) as f64 * 1e-3, taken))
    }

    /// Makes an error of a failed call, and the buffers as new; notes that the device is lost if it is.
    pub(super) fn failed(&mut self, doing: String, error: &DriverError) -> ExecError {
        let error = GpuError::of(doing, error);
        // A launch that was refused leaves what the stages before it did.
        if self.slot.reset().is_err() {
            self.broken = Some(format!("the GPU stopped at an earlier error: {error}"));
        }
        error.into()
    }

    /// An error if the device is lost.
    pub(super) fn check(&self, doing: impl FnOnce() -> String) -> Result<(), ExecError> {
        match &self.broken {
            Some(message) => Err(GpuError::Failed { doing: doing(), message: message.clone() }.into()),
            None => Ok(()),
        }
    }
}

/// What was being done, for an error: the kernels that run in `query` and the query itself.
fn doing(plan: &Plan, label: &str) -> String {
    let kernels = match (plan.by_tiles, plan.mode) {
        (true, Mode::Or) => "kernel `score_tiles`",
        (true, _) => "kernels `score_batch`, `score_tiles`",
        (false, _) if plan.query.k as usize > WARP_K => "kernels `score_batch`, `merge_topk`",
        (false, _) => "kernel `score_lone`",
    };
    format!("{kernels} for query {label}")
}
