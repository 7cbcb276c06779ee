//! The whole indexer: samples, splits, parses and indexes run after run, and combines.
//!
//! ```text
//! buffer of parser 0, 1, ..., M - 1, 0, ...
//!    │ one run
//!    ▼
//! prepare ─▶ index: all indexers in parallel ─▶ collect ─▶ a file
//! ```
//!
//! As in the paper, preparing (input to the GPUs) and collecting (encoding and writing lists) do not overlap with other
//! work of the same run. Parsers continue meanwhile.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tandem_engine::corpus::{Collection, Cutter, Tokenizer};
use tandem_engine::indexing::journal::Journal;
use tandem_engine::indexing::{BuildError, BuildOptions, BuildSummary, Indexer, Inverted, Progress};
use tandem_engine::search::device::GpuError;
use tandem_model::files::{InputError, write_atomically};

use super::buffer::Buffer;
use super::combine::{Combined, PartialLists};
use super::cpu_indexer::CpuIndexer;
use super::dictionary::Dictionary;
use super::grants::Grants;
use super::indexer::SlotIndexer;
use super::parsers::{Parsed, parse_all};
use super::report::{PartReport, RunReport, TrieReport};
use super::run_file::RunFile;
use super::sections::Sections;
use super::slots::NUM_SLOTS;
use super::split::split;

/// Maximum text of a run, as in the paper.
const MOST_BUFFER_BYTES: u64 = 1 << 30;
const LEAST_BUFFER_BYTES: u64 = 1 << 20;
/// Inverse share of memory for the buffers: one is filled, one waits, and a run is indexed.
const BUFFER_SHARE: u64 = 4;
/// Maximum number of sampled batches of 2 MB.
const SAMPLE_BATCHES: usize = 64;

/// Numbers of parsers and indexers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrieOptions {
    /// Threads that parse; at least 1.
    pub parsers: usize,
    /// Threads that index on a CPU.
    pub cpu_indexers: usize,
    /// GPUs that index, from the first. There must be at least one indexer in total.
    pub gpus: usize,
    /// Text of a run in bytes; `None` takes as much as memory allows, up to 1 GiB.
    pub buffer_bytes: Option<u64>,
}

/// The paper's indexer.
#[derive(Debug)]
pub struct TrieIndexer {
    options: TrieOptions,
    gpus: Vec<Box<dyn SlotIndexer>>,
    report: TrieReport,
}

#[derive(Debug)]
struct SlotWorker {
    indexer: Box<dyn SlotIndexer>,
    is_gpu: bool,
    slots: Vec<u16>,
    sections: Sections,
}

impl TrieIndexer {
    /// Opens the GPUs. Fails if there are fewer usable GPUs.
    pub fn new(options: TrieOptions) -> Result<Self, GpuError> {
        let gpus = (0..options.gpus).map(super::gpu::open).collect::<Result<_, _>>()?;
        Ok(Self { options, gpus, report: TrieReport::default() })
    }

    /// Makes an indexer with replacements of GPUs.
    #[cfg(test)]
    pub(crate) fn with_gpus(options: TrieOptions, gpus: Vec<Box<dyn SlotIndexer>>) -> Self {
        Self { options, gpus, report: TrieReport::default() }
    }

    /// Returns the report of the last build.
    pub fn report(&self) -> &TrieReport {
        &self.report
    }

    fn grants(&self, collection: Collection, options: &BuildOptions) -> Grants {
        let share = |memory: u64| memory / (BUFFER_SHARE * (self.options.parsers as u64 + 1));
        let by_memory = options.memory_bytes.map_or(MOST_BUFFER_BYTES, share);
        let bytes = self.options.buffer_bytes.unwrap_or(by_memory);
        Grants::new(collection, bytes.clamp(LEAST_BUFFER_BYTES, MOST_BUFFER_BYTES))
    }

    /// Parses a collection without indexing it; returns the times. Fails like [`Indexer::invert`].
    pub fn parse_alone(
        &mut self,
        collection: Collection,
        options: &BuildOptions,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<TrieReport, BuildError> {
        let grants = self.grants(collection, options);
        let began = Instant::now();
        let mut report = TrieReport::default();
        parse_all(&grants, self.options.parsers, &options.tokenizer, progress, |parsed| {
            report.runs.push(run_report(&parsed));
            Ok(parsed.buffer)
        })?;
        report.reading_s = grants.reading_s();
        (report.parsers_s, report.indexers_s) = (began.elapsed().as_secs_f64(), began.elapsed().as_secs_f64());
        Ok(report)
    }
}

impl Indexer for TrieIndexer {
    fn invert(
        &mut self,
        collection: Collection,
        dir: &Path,
        options: &BuildOptions,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Arc<dyn Inverted>, BuildError> {
        // The dictionary is only in memory, so that an interrupted build is useless and removed.
        let journal = Journal::open(dir, "trie", |_| false);
        let mut journal = journal.map_err(|e| BuildError::of(dir, "cannot clean up", &e))?;
        let grants = self.grants(collection, options);
        let mut report = TrieReport::default();
        let began = Instant::now();
        let owners = self.split(&grants, &options.tokenizer)?;
        report.sampling_s = began.elapsed().as_secs_f64();

        let mut workers = self.workers(&owners);
        let (mut runs, mut first_docs, mut next_doc) = (Vec::new(), Vec::new(), 0_u32);
        let mut summary = BuildSummary::default();
        let began = Instant::now();
        let mut waited_from = Instant::now();
        parse_all(&grants, self.options.parsers, &options.tokenizer, progress, |parsed| {
            let path = journal.next_path().map_err(|e| BuildError::of(dir, "cannot make a folder", &e))?;
            let mut run = run_report(&parsed);
            run.waiting_s = waited_from.elapsed().as_secs_f64();
            runs.push(index_run(&mut workers, &parsed.buffer, next_doc, &path, &mut run)?);
            summary.bytes += parsed.buffer.text_bytes;
            summary.skipped += parsed.buffer.skipped.clone();
            first_docs.push(next_doc);
            next_doc = next_doc.saturating_add(parsed.buffer.num_docs);
            report.parsers_s = began.elapsed().as_secs_f64() - run.preparing_s - run.indexing_s - run.collecting_s;
            report.runs.push(run);
            waited_from = Instant::now();
            Ok(parsed.buffer)
        })?;
        report.indexers_s = began.elapsed().as_secs_f64();
        report.reading_s = grants.reading_s();
        summary.runs_on_disk = runs.len();

        let began = Instant::now();
        let finish = |worker: &mut SlotWorker| worker.indexer.finish();
        let parts = workers.iter_mut().map(finish).collect::<Result<_, _>>();
        let parts = parts.map_err(|e: GpuError| BuildError::Run { path: dir.to_owned(), message: e.to_string() })?;
        let dictionary = Combined::new(parts, owners);
        report.combining_s = began.elapsed().as_secs_f64();
        let began = Instant::now();
        if let Some(run) = runs.first() {
            write_dictionary(&dictionary, &run.path.with_file_name("dictionary"))?;
        }
        report.writing_s = began.elapsed().as_secs_f64();
        report.parts = part_reports(&workers, &dictionary, &report.runs);
        self.report = report;
        Ok(Arc::new(PartialLists { dictionary, runs, first_docs, num_docs: u64::from(next_doc), summary }))
    }
}

impl TrieIndexer {
    /// Assigns slots to indexers from a sample.
    fn split(&self, grants: &Grants, tokenizer: &Tokenizer) -> Result<Vec<u16>, InputError> {
        let mut sampled = Buffer::default();
        let mut cutter = Cutter::default();
        grants.sample(SAMPLE_BATCHES, |batch| sampled.parse(batch, tokenizer, &mut cutter))?;
        let tokens: Vec<u64> = (0..NUM_SLOTS as u16).map(|slot| u64::from(sampled.stream(slot).tokens())).collect();
        Ok(split(&tokens, self.options.cpu_indexers, self.gpus.len()))
    }

    fn workers(&mut self, owners: &[u16]) -> Vec<SlotWorker> {
        let cpus = (0..self.options.cpu_indexers).map(|_| -> Box<dyn SlotIndexer> { Box::<CpuIndexer>::default() });
        let gpus = std::mem::take(&mut self.gpus);
        let indexers = cpus.map(|cpu| (cpu, false)).chain(gpus.into_iter().map(|gpu| (gpu, true)));
        let mut workers: Vec<SlotWorker> = indexers
            .map(|(indexer, is_gpu)| SlotWorker { indexer, is_gpu, slots: Vec::new(), sections: Sections::default() })
            .collect();
        for (slot, &owner) in (0..).zip(owners) {
            workers[usize::from(owner)].slots.push(slot);
        }
        workers
    }
}

fn run_report(parsed: &Parsed) -> RunReport {
    RunReport {
        text_bytes: parsed.buffer.text_bytes,
        tokens: parsed.buffer.tokens,
        unpacking_s: parsed.unpacking_s,
        parsing_s: parsed.parsing_s,
        ..RunReport::default()
    }
}

/// Writes the dictionary to the folder of the runs.
fn write_dictionary(dictionary: &Combined, path: &Path) -> Result<(), BuildError> {
    let written = write_atomically(path, |file| file.write_all(&dictionary.encode()));
    written.map_err(|e| BuildError::of(path, "cannot write", &e))
}

fn part_reports(workers: &[SlotWorker], dictionary: &Combined, runs: &[RunReport]) -> Vec<PartReport> {
    let parts = workers.iter().zip(dictionary.parts()).enumerate();
    let report = |(place, (worker, part)): (usize, (&SlotWorker, &Dictionary))| PartReport {
        is_gpu: worker.is_gpu,
        slots: worker.slots.len(),
        tokens: runs.iter().map(|run| run.part_tokens[place]).sum(),
        terms: part.terms.len() as u64,
        characters: part.characters(),
    };
    parts.map(report).collect()
}

/// Indexes one run into its file.
fn index_run(
    workers: &mut [SlotWorker],
    buffer: &Buffer,
    first_doc: u32,
    path: &Path,
    report: &mut RunReport,
) -> Result<RunFile, BuildError> {
    let failed = |e: GpuError| BuildError::Run { path: path.to_owned(), message: e.to_string() };
    let tokens = |slots: &[u16]| slots.iter().map(|&slot| u64::from(buffer.stream(slot).tokens())).sum();
    report.part_tokens = workers.iter().map(|worker| tokens(&worker.slots)).collect();

    let began = Instant::now();
    for worker in &mut *workers {
        worker.indexer.prepare(buffer, &worker.slots, first_doc).map_err(failed)?;
    }
    report.preparing_s = began.elapsed().as_secs_f64();

    let began = Instant::now();
    std::thread::scope(|scope| -> Result<(), BuildError> {
        let mut threads = Vec::new();
        for (number, worker) in workers.iter_mut().enumerate() {
            let thread = std::thread::Builder::new().name(format!("index-{number}"));
            let work = move || worker.indexer.index(buffer, &worker.slots);
            threads.push(thread.spawn_scoped(scope, work).map_err(|e| BuildError::Threads(e.to_string()))?);
        }
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(indexed) => indexed.map_err(failed),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    report.indexing_s = began.elapsed().as_secs_f64();

    let began = Instant::now();
    for worker in &mut *workers {
        worker.sections.clear();
        worker.indexer.collect(&mut worker.sections).map_err(failed)?;
    }
    let sections: Vec<&Sections> = workers.iter().map(|worker| &worker.sections).collect();
    let run = RunFile::write(path, &sections, &buffer.segments);
    let run = run.map_err(|e| BuildError::of(path, "cannot write", &e))?;
    report.collecting_s = began.elapsed().as_secs_f64();
    Ok(run)
}
