//! The GPU executor: single queries, batches, and pipelines of batches.
//!
//! ```text
//! search          lone.rs: one launch, straight from lists to results
//! search_batch    submit, then wait for all
//! submit ──▶ chunks of the batch ──▶ slots, round-robin ──▶ poll
//!               prepare, launch        one stream each     read available results
//! ```
//!
//! A large batch is split into chunks, so that one is prepared while another runs, and the end of one, with few active
//! warps, overlaps the start of the next. Slots are used round-robin and batches end in order, so if no slot is free,
//! the next one to use is the next one to read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::DriverError;
use tandem_base::base::ids::DeviceId;
use tandem_base::base::machine::Class;
use tandem_base::base::prefetch::prefetch_line;
use tandem_base::traffic::Mode;

use super::batch::{AnswerSource, Batch, BatchCapacity, Planned};
use super::lists::DeviceLists;
use super::lone::LoneRunner;
use super::plan::check;
use super::slot::{BatchEnd, BatchSlot, QueryOutcome};
use super::tiered::GpuMemory;
use super::upload::{UploadOptions, upload};
use crate::index::{Bm25, Index};
use crate::query::Query;
use crate::search::device::{Device, GpuError};
use crate::search::{Answers, ExecError, Execution, Executor, Hit, PIPELINE_DEPTH, Pipeline, Request, UploadReport};

/// The most chunks in flight.
const SLOTS: usize = 6;
/// The least chunks of a batch, so that one is prepared while another runs.
const CHUNKS: usize = 3;
/// The least requests of a chunk, which takes precedence over [`CHUNKS`].
const SMALL_CHUNK: usize = 128;
const MAX_CHUNK: usize = 1024;
/// The capacity of a chunk: candidates of about a thousand queries with ten results each.
const CHUNK_ROOM: BatchCapacity = BatchCapacity {
    entries: 2 * MAX_CHUNK,
    input_words: 1 << 19,
    result_words: 1 << 18,
    candidates: 9 << 19,
    is_for_one: false,
};
/// Distances from the planned request to those whose query, whose terms, and whose terms' planning data are prefetched.
const AHEAD: [usize; 3] = [16, 10, 4];
/// Distances from results that are read to the cache lines that are prefetched, in words.
const RESULTS_AHEAD: [usize; 2] = [128, 136];
/// Up to this number of requests, results are read as they arrive, else after all have arrived.
const READ_AT_ONCE: usize = 64;

/// One stream of a GPU for single queries, and some for batches.
#[derive(Debug)]
pub struct GpuExecutor {
    /// They wait for their kernels when they are dropped, so they must precede `lone`, which has the kernels and the index.
    slots: Vec<BatchSlot>,
    pub(crate) lone: LoneRunner,
    /// The memory that all slots plan in.
    scratch: Batch,
    next_slot: usize,
    slots_in_use: usize,
    flights: VecDeque<BatchInFlight>,
    spare: Vec<Answers>,
    postings_scored: u64,
}

#[derive(Debug, Default)]
struct BatchInFlight {
    len: usize,
    slots: VecDeque<usize>,
    answers: Answers,
    host_us: f64,
    device_ns: u64,
    ended_ns: u64,
    /// Scored postings of driving lists.
    scored: u64,
    lost: Option<String>,
}

impl BatchInFlight {
    fn add(&mut self, end: BatchEnd) {
        self.device_ns += end.ended_ns.saturating_sub(end.began_ns.max(self.ended_ns));
        self.ended_ns = self.ended_ns.max(end.ended_ns);
        self.scored += end.scored;
    }
}

impl GpuExecutor {
    /// Copies `index` to the machine's first GPU and prepares to search it with `bm25`. Fails with [`GpuError::NoGpu`]
    /// if there is none to use, [`GpuError::DoesNotFit`] if its memory is too small.
    pub fn new(index: &Arc<Index>, bm25: Bm25) -> Result<Self, ExecError> {
        Self::on_device(DeviceId(0), index, bm25, None, &|_, _| ())
    }

    /// Like [`GpuExecutor::new`], on the given GPU and with at most `memory` of the index in its memory. `progress` gets the bytes copied and the bytes in total.
    ///
    /// # Errors
    /// See [`GpuExecutor::new`]. [`GpuError::BadBudget`] if the budget is too small or exceeds free memory.
    pub fn on_device(
        ordinal: DeviceId,
        index: &Arc<Index>,
        bm25: Bm25,
        memory: Option<&GpuMemory>,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Self, ExecError> {
        let device = Device::open(ordinal)?;
        let stream = device.new_stream()?;
        let kernels = Arc::new(super::kernels::Kernels::load(&device, &stream)?);
        let room = LoneRunner::room(index, &device);
        let reserved_bytes = BatchSlot::bytes(&room) + SLOTS as u64 * BatchSlot::bytes(&CHUNK_ROOM);
        let options = UploadOptions { memory, ..UploadOptions::reserving(reserved_bytes) };
        let uploaded = upload(&device, &stream, &kernels, index, bm25, options, progress)?;
        let lists = DeviceLists::new(index, bm25, uploaded);
        Self::assemble(LoneRunner::new(device, kernels, Arc::new(lists), room)?)
    }

    /// Another executor on the same GPU that shares this one's index. Fails if device memory is too small for its
    /// buffers.
    pub fn for_another_stream(&self) -> Result<Self, ExecError> {
        let room = self.lone.slot.room;
        self.lone.device.check_room(BatchSlot::bytes(&room) + SLOTS as u64 * BatchSlot::bytes(&CHUNK_ROOM))?;
        let (kernels, lists) = (Arc::clone(&self.lone.kernels), Arc::clone(&self.lone.lists));
        Self::assemble(LoneRunner::new(self.lone.device.clone(), kernels, lists, room)?)
    }

    fn assemble(lone: LoneRunner) -> Result<Self, ExecError> {
        let slot = |_| {
            let stream = lone.device.new_stream()?;
            let slot = BatchSlot::new(&lone.device, stream, CHUNK_ROOM);
            slot.map_err(|e| GpuError::of("allocating buffers for batches", &e))
        };
        let slots = (0..SLOTS).map(slot).collect::<Result<Vec<_>, _>>()?;
        let (scratch, flights, spare) = (Batch::default(), VecDeque::new(), Vec::new());
        Ok(Self { slots, lone, scratch, next_slot: 0, slots_in_use: 0, flights, spare, postings_scored: 0 })
    }

    /// Sizes and time of the index upload.
    pub fn upload_report(&self) -> UploadReport {
        self.lone.lists.uploaded.report
    }

    /// Sets the pruning rules, to measure their effect. Answers stay the same.
    pub fn set_pruning(&mut self, pruning: super::Pruning) {
        self.lone.pruning = pruning;
    }

    /// Device time from scores to sorted results of the last single query, in microseconds.
    pub fn topk_us(&self) -> f64 {
        self.lone.topk_us
    }

    /// Whether a query is scored by tiles of documents.
    pub fn goes_by_tiles(&self, query: &Query, mode: Mode, k: usize) -> bool {
        super::plan::Plan::new(&self.lone.lists.terms, query, mode, k, self.lone.pruning, &mut Vec::new()).by_tiles
    }

    /// Scored postings of driving lists of the last batch, without tiles and without queries for more than 128 results.
    pub fn postings_scored(&self) -> u64 {
        self.postings_scored
    }

    /// Prepares and launches a batch. It waits only if all slots are in flight.
    fn start(&mut self, batch: &[Request<'_>]) -> Result<(), ExecError> {
        batch.iter().try_for_each(|request| check(request.query, request.k))?;
        self.lone.check(|| doing(batch.len(), 0))?;
        let answers = self.spare.pop().unwrap_or_default();
        let mut flight = BatchInFlight { len: batch.len(), answers, ..BatchInFlight::default() };
        flight.answers.clear();
        self.flights.push_back(flight);
        let chunk_len = batch.len().div_ceil(CHUNKS).clamp(SMALL_CHUNK, MAX_CHUNK);
        let mut next = 0;
        while next < batch.len() {
            if self.slots_in_use == self.slots.len()
                && let Err(error) = self.read_oldest()
            {
                self.flights.pop_back();
                return Err(error);
            }
            let began = Instant::now();
            let first = next;
            let slot = &mut self.slots[self.next_slot];
            slot.batch.swap_scratch(&mut self.scratch);
            slot.batch.clear();
            while next < batch.len() && next - first < chunk_len {
                let [query, terms, records] = AHEAD.map(|ahead| batch.get(next + ahead).map(|request| request.query));
                query.inspect(|query| prefetch_line(&raw const query.terms));
                // Always three lines, since the end of a loop of varying length would often be predicted wrong.
                let lines = terms.map(|query| [0, 6, 11].map(|term| query.terms.as_ptr().wrapping_add(term)));
                lines.into_iter().flatten().for_each(prefetch_line);
                records.inspect(|query| self.lone.lists.terms.prefetch(&query.terms));
                let LoneRunner { lists, pruning, machine, .. } = &self.lone;
                if !slot.batch.add(&lists.terms, &batch[next], *pruning, &slot.room, *machine) {
                    break;
                }
                next += 1;
            }
            let launched = slot.launch(&self.lone.kernels, &self.lone.lists, self.lone.machine);
            slot.batch.swap_scratch(&mut self.scratch);
            if let Err(error) = launched {
                let error = self.failed(doing(batch.len(), first), &error);
                self.flights.pop_back();
                return Err(error);
            }
            let flight = self.flights.back_mut().expect("it was pushed above");
            flight.slots.push_back(self.next_slot);
            flight.host_us += began.elapsed().as_secs_f64() * 1e6;
            self.slots_in_use += 1;
            self.next_slot = (self.next_slot + 1) % self.slots.len();
        }
        Ok(())
    }

    /// Waits for the oldest slot in flight and reads it.
    fn read_oldest(&mut self) -> Result<(), ExecError> {
        let Some(place) = self.flights.iter().position(|flight| !flight.slots.is_empty()) else { return Ok(()) };
        let flight = &mut self.flights[place];
        let number = flight.slots.pop_front().expect("it has one");
        self.slots_in_use -= 1;
        let slot = &mut self.slots[number];
        let len = flight.len;
        let error = match read_slot(slot, &mut self.lone, flight) {
            Ok(()) => return Ok(()),
            Err(ReadError::Driver(error)) => self.lone.failed(doing(len, 0), &error),
            Err(ReadError::Fault(message)) => GpuError::Failed { doing: doing(len, 0), message }.into(),
            Err(ReadError::Alone(error)) => error,
        };
        // Its last slot is no longer in flight, so `lose_all` would miss it.
        self.flights[place].lost = Some(error.to_string());
        self.lose_all(&error.to_string());
        Err(error)
    }

    /// Converts the error of a failed call and resets all slots. If that fails, the device is marked as lost.
    fn failed(&mut self, doing: String, error: &DriverError) -> ExecError {
        let error = self.lone.failed(doing, error);
        self.lose_all(&error.to_string());
        error
    }

    /// Drops all batches in flight.
    fn lose_all(&mut self, why: &str) {
        for flight in &mut self.flights {
            if !flight.slots.is_empty() {
                flight.lost = Some(why.to_owned());
                flight.slots.clear();
            }
        }
        self.slots_in_use = 0;
        for slot in &mut self.slots {
            if slot.reset().is_err() {
                self.lone.broken.get_or_insert_with(|| format!("the GPU stopped at an earlier error: {why}"));
            }
        }
    }

    /// Replaces `answers` by those of a read batch.
    fn finish(&mut self, mut flight: BatchInFlight, answers: &mut Answers) -> Result<Execution, ExecError> {
        if let Some(message) = flight.lost {
            return Err(GpuError::Failed { doing: doing(flight.len, 0), message }.into());
        }
        self.postings_scored = flight.scored;
        std::mem::swap(answers, &mut flight.answers);
        self.spare.push(flight.answers);
        Ok(Execution { device_us: Some(flight.device_ns as f64 * 1e-3), host_us: Some(flight.host_us) })
    }
}

enum ReadError {
    Driver(DriverError),
    Fault(String),
    /// A query that had to run alone failed.
    Alone(ExecError),
}

impl From<DriverError> for ReadError {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

/// Waits for a slot's results and appends them to its batch's answers.
fn read_slot(slot: &mut BatchSlot, lone: &mut LoneRunner, flight: &mut BatchInFlight) -> Result<(), ReadError> {
    let is_large = slot.batch.planned.len() > READ_AT_ONCE;
    if is_large {
        while !slot.has_ended() {
            slot.spin()?;
        }
    }
    let began = Instant::now();
    for number in 0..slot.batch.planned.len() {
        let place = slot.batch.planned[number].place;
        if let (true, AnswerSource::At(word)) = (is_large, place) {
            RESULTS_AHEAD.into_iter().for_each(|ahead| slot.results.prefetch(word as usize + ahead));
        }
        let device_ns = &mut flight.device_ns;
        flight.answers.push_by(|hits| {
            let k = slot.batch.planned[number].plan.query.k as usize;
            let taken = match place {
                AnswerSource::At(word) => slot.take_hits(word as usize, k, hits)?,
                AnswerSource::Alone => QueryOutcome::TooMany,
                AnswerSource::Nowhere => QueryOutcome::Hits,
            };
            match taken {
                QueryOutcome::Hits => Ok(()),
                QueryOutcome::TooMany => {
                    let Planned { ref plan, first_term, .. } = slot.batch.planned[number];
                    let terms = &slot.batch.terms[first_term as usize..][..plan.query.num_terms as usize];
                    let device_us = lone.run(plan, terms, "of a batch", hits).map_err(ReadError::Alone)?;
                    *device_ns += (device_us * 1e3) as u64;
                    Ok(())
                }
                QueryOutcome::Fault(message) => Err(ReadError::Fault(format!("{message}, query {number}"))),
            }
        })?;
    }
    if is_large {
        flight.host_us += began.elapsed().as_secs_f64() * 1e6;
    }
    if let Some(end) = slot.take_end()? {
        flight.add(end);
    }
    Ok(())
}

/// The kernels and the batch, for an error.
fn doing(num_queries: usize, first: usize) -> String {
    format!(
        "kernels `score_batch`, `score_tiles` or `score_impact_tiles`, `merge_topk` for a batch of {num_queries} queries \
         from number {first} on"
    )
}

impl Pipeline for GpuExecutor {
    fn depth(&self) -> usize {
        PIPELINE_DEPTH
    }

    fn submit(&mut self, batch: &[Request<'_>]) -> Result<(), ExecError> {
        assert!(self.flights.len() < PIPELINE_DEPTH, "{} batches are under way", self.flights.len());
        self.start(batch)
    }

    fn poll(&mut self, answers: &mut Answers) -> Option<Result<Execution, ExecError>> {
        while let Some(&number) = self.flights.front()?.slots.front() {
            match self.slots[number].look() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    let len = self.flights.front()?.len;
                    self.failed(doing(len, 0), &error);
                    break;
                }
            }
            if self.read_oldest().is_err() {
                break;
            }
        }
        let flight = self.flights.pop_front()?;
        Some(self.finish(flight, answers))
    }
}

impl Executor for GpuExecutor {
    fn class(&self) -> Class {
        Class::GPU
    }

    fn device(&self) -> String {
        let name = &self.lone.device.info.name;
        match self.lone.lists.uploaded.report {
            UploadReport { host_bytes: 0, .. } => name.clone(),
            UploadReport { device_bytes, host_bytes, .. } => {
                let mb = |bytes: u64| bytes as f64 / 1e6;
                format!("{name} with {:.1} of {:.1} MB of the index", mb(device_bytes), mb(device_bytes + host_bytes))
            }
        }
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        hits.clear();
        check(query, k)?;
        if query.terms.is_empty() {
            return Ok(Execution { device_us: Some(0.0), host_us: None });
        }
        let device_us = self.lone.search(query, mode, k, hits)?;
        Ok(Execution { device_us: Some(device_us), host_us: None })
    }

    fn search_batch(&mut self, batch: &[Request<'_>], answers: &mut Answers) -> Result<Execution, ExecError> {
        if let [Request { query, mode, k }] = *batch {
            answers.clear();
            let mut hits = std::mem::take(&mut self.lone.hits);
            let execution = self.search(query, mode, k, &mut hits);
            answers.push(&hits);
            self.lone.hits = hits;
            return execution;
        }
        self.start(batch)?;
        while self.flights.back().is_some_and(|flight| !flight.slots.is_empty()) {
            // An error is stored with its batch.
            let _ = self.read_oldest();
        }
        match self.flights.pop_back() {
            Some(flight) => self.finish(flight, answers),
            None => Ok(Execution::default()),
        }
    }

    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::lists::tests::open;
    use super::super::plan::{Plan, Pruning};
    use super::*;
    use crate::search::cpu::CpuExecutor;
    use tandem_base::base::ids::QueryId;

    const ALONE: &str = "search::gpu::executor::tests::a_fault_alone_in_its_process";

    #[test]
    fn gpu_fault_names_kernel_and_query_and_the_cpu_goes_on() {
        if open().is_none() {
            return;
        }
        // A fault ends the device's context for a whole process, so the test runs in its own process.
        let child =
            Command::new(std::env::current_exe().unwrap()).args(["--exact", ALONE, "--ignored"]).output().unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&child.stderr)
        );
    }

    #[test]
    fn gpu_answers_stay_the_same_whatever_is_passed_over() {
        if open().is_none() {
            return;
        }
        let list =
            |step: usize, from: usize| (from as u32..60_000).step_by(step).map(|doc| (doc, 1 + doc % 7)).collect();
        let lists: [(&str, Vec<(u32, u32)>); 4] =
            [("every", list(1, 0)), ("few", list(401, 9)), ("many", list(3, 1)), ("some", list(17, 5))];
        let index = Arc::new(Index::from_lists(&lists).unwrap());
        let queries: Vec<Query> =
            [&["few"][..], &["some", "many"], &["few", "many", "every"], &["many", "every", "some", "few"]]
                .iter()
                .map(|terms| Query::prepare(QueryId(0), "q", terms, &index).unwrap())
                .collect();
        let mut gpu = GpuExecutor::new(&index, index.built_with()).unwrap();
        let mut cpu = CpuExecutor::new(Arc::clone(&index), index.built_with());
        for (seeds, bounds) in [(true, true), (false, true), (true, false), (false, false)] {
            gpu.set_pruning(Pruning { seeds, bounds });
            for (mode, k) in Mode::ALL.into_iter().flat_map(|mode| [1, 10, 300].map(|k| (mode, k))) {
                let batch: Vec<Request<'_>> = queries.iter().map(|query| Request { query, mode, k }).collect();
                let mut together = Answers::default();
                gpu.search_batch(&batch, &mut together).unwrap();
                for (query, together) in queries.iter().zip(together.iter()) {
                    let (mut expected, mut alone) = (Vec::new(), Vec::new());
                    cpu.search(query, mode, k, &mut expected).unwrap();
                    gpu.search(query, mode, k, &mut alone).unwrap();
                    assert_eq!(alone, expected, "{mode}, k {k}, seeds {seeds}, bounds {bounds}");
                    assert_eq!(together, expected, "{mode}, k {k}, seeds {seeds}, bounds {bounds}, in a batch");
                }
            }
        }
    }

    #[test]
    #[ignore = "ends its process's device context: the test above runs it"]
    fn a_fault_alone_in_its_process() {
        if open().is_none() {
            return;
        }
        let list = |step: usize| (0..10_000).step_by(step).map(|doc| (doc, 1 + doc % 3)).collect();
        let lists: [(&str, Vec<(u32, u32)>); 2] = [("rare", list(7)), ("frequent", list(2))];
        let index = Arc::new(Index::from_lists(&lists).unwrap());
        let query = Query::prepare(QueryId(0), "seven", &["rare", "frequent"], &index).unwrap();
        let mut gpu = GpuExecutor::new(&index, index.built_with()).unwrap();
        let mut cpu = CpuExecutor::new(Arc::clone(&index), index.built_with());
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        gpu.search(&query, Mode::And, 10, &mut found).unwrap();
        cpu.search(&query, Mode::And, 10, &mut expected).unwrap();
        assert_eq!(found, expected);

        let mut terms = Vec::new();
        let plan = Plan::new(&gpu.lone.lists.terms, &query, Mode::And, 10, Pruning::default(), &mut terms);
        terms[0].first_block = u32::MAX; // 64 GiB behind the first block: nothing is there
        let text = gpu.lone.run(&plan, &terms, "seven", &mut found).unwrap_err().to_string();
        assert!(text.contains("`score_lone`") && text.contains("CUDA_ERROR"), "{text}");

        let stopped = "stopped at an earlier error";
        let text = gpu.search(&query, Mode::And, 10, &mut found).unwrap_err().to_string();
        assert!(text.contains("query seven") && text.contains(stopped), "{text}");
        let batch = [Request { query: &query, mode: Mode::And, k: 10 }; 2];
        let text = gpu.search_batch(&batch, &mut Answers::default()).unwrap_err().to_string();
        assert!(text.contains("a batch of 2 queries") && text.contains(stopped), "{text}");
        cpu.search(&query, Mode::And, 10, &mut found).unwrap();
        assert_eq!(found, expected);
    }
}
