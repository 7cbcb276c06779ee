//! Jobs of indexing as they were measured, and their file.
//!
//! One row a job, `*.index.csv`:
//!
//! | column | meaning |
//! | --- | --- |
//! | `run`, `job` | which run, from 0, and which group of slots |
//! | `tokens`, `stream_bytes`, `tree_bytes` | its tokens, the bytes that they come in, and its trees' after the run |
//! | `cpu_us`, `gpu_us`, `gpu_longest_us` | what it takes one CPU indexer; the GPU's warps together, and the longest of them; empty where not measured |
//! | `text_bytes`, `reading_us`, `unpacking_us`, `parsing_us`, `preparing_us`, `collecting_us` | of the whole run, the same in all of its rows |
//!
//! All of a CPU's times are those of a thread that works alone. What company does to them says a comment line:
//! `# company: [[2, 1.1], [4, 1.3]]`, how many times as long work takes on so many threads ([`Company`]).

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::company::Company;
use crate::cost::comment_line;
use crate::files::{CsvReader, InputError, Provenance, Record, Us, open_text, write_csv};
use crate::time::Nanos;

/// The comment line that says what company does.
const COMPANY: &str = "company";

/// What a group of slots has in a run, and what that takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IndexJob {
    /// Tokens.
    pub tokens: u64,
    /// Bytes of the parsed stream.
    pub stream_bytes: u64,
    /// Bytes of the group's trees after the run: what moves with the group.
    pub tree_bytes: u64,
    /// What one CPU indexer takes.
    pub cpu: Option<Nanos>,
    /// What a GPU's warps take together, and the longest of them.
    pub gpu: Option<(Nanos, Nanos)>,
}

/// A run: what its parser took, and its jobs, one a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexRun {
    /// Text that it was parsed from.
    pub text_bytes: u64,
    /// Reading, while no other parser reads.
    pub reading: Nanos,
    /// Decompressing, then parsing, on the parser's thread.
    pub unpacking: Nanos,
    /// As before.
    pub parsing: Nanos,
    /// Before and after indexing, while nobody indexes.
    pub preparing: Nanos,
    /// As before.
    pub collecting: Nanos,
    /// What is to be indexed, group by group.
    pub jobs: Vec<IndexJob>,
}

/// A collection's runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexTrace {
    /// In order; all have as many jobs.
    pub runs: Vec<IndexRun>,
    /// How threads slow each other down.
    pub company: Company,
}

impl IndexTrace {
    /// Groups of slots.
    #[must_use]
    pub fn num_groups(&self) -> usize {
        self.runs.first().map_or(0, |run| run.jobs.len())
    }

    /// Text of all runs.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.text_bytes).sum()
    }

    /// Whether every job was measured on a GPU.
    #[must_use]
    pub fn has_gpu_times(&self) -> bool {
        self.runs.iter().flat_map(|run| &run.jobs).all(|job| job.gpu.is_some())
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path, provenance: &Provenance) -> io::Result<()> {
        let rows = self.runs.iter().enumerate().flat_map(|(number, run)| {
            run.jobs.iter().enumerate().map(move |(job, what)| Row {
                run: number as u64,
                job: job as u64,
                tokens: what.tokens,
                stream_bytes: what.stream_bytes,
                tree_bytes: what.tree_bytes,
                cpu_us: what.cpu.map(Us),
                gpu_us: what.gpu.map(|gpu| Us(gpu.0)),
                gpu_longest_us: what.gpu.map(|gpu| Us(gpu.1)),
                text_bytes: run.text_bytes,
                reading_us: Us(run.reading),
                unpacking_us: Us(run.unpacking),
                parsing_us: Us(run.parsing),
                preparing_us: Us(run.preparing),
                collecting_us: Us(run.collecting),
            })
        });
        write_csv(path, &comment_line::with(provenance, COMPANY, Some(&self.company)), rows)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If it can't be read, a row is out of order, a run lacks a job that another one has, or its company makes no sense.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let mut reader = CsvReader::<Row, _>::new(path, open_text(path)?)?;
        let mut runs: Vec<IndexRun> = Vec::new();
        while let Some(row) = reader.next_row()? {
            let Row { run, job, .. } = row.value;
            if run == runs.len() as u64 && job == 0 {
                runs.push(IndexRun {
                    text_bytes: row.value.text_bytes,
                    reading: row.value.reading_us.0,
                    unpacking: row.value.unpacking_us.0,
                    parsing: row.value.parsing_us.0,
                    preparing: row.value.preparing_us.0,
                    collecting: row.value.collecting_us.0,
                    jobs: Vec::new(),
                });
            }
            let jobs = runs.last().map_or(0, |run| run.jobs.len());
            let is_next = run + 1 == runs.len() as u64 && job == jobs as u64;
            let (Some(last), true) = (runs.last_mut(), is_next) else {
                return Err(row.error_at("job", "is out of order, expected all jobs of run 0 from 0 on, then of run 1"));
            };
            last.jobs.push(IndexJob {
                tokens: row.value.tokens,
                stream_bytes: row.value.stream_bytes,
                tree_bytes: row.value.tree_bytes,
                cpu: row.value.cpu_us.map(|us| us.0),
                gpu: row.value.gpu_us.zip(row.value.gpu_longest_us).map(|(all, longest)| (all.0, longest.0)),
            });
        }
        let company = comment_line::take(&mut reader.into_provenance(), COMPANY, Company::check);
        let company = company.map_err(|fault| InputError::file(path, fault))?.unwrap_or_default();
        let trace = Self { runs, company };
        match trace.runs.iter().position(|run| run.jobs.len() != trace.num_groups()) {
            _ if trace.runs.is_empty() => Err(InputError::file(path, "has no jobs")),
            Some(run) => Err(InputError::file(path, format!("run {run} has not as many jobs as run 0"))),
            None => Ok(trace),
        }
    }
}

/// A row of the file.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Row {
    run: u64,
    job: u64,
    tokens: u64,
    stream_bytes: u64,
    tree_bytes: u64,
    cpu_us: Option<Us>,
    gpu_us: Option<Us>,
    gpu_longest_us: Option<Us>,
    text_bytes: u64,
    reading_us: Us,
    unpacking_us: Us,
    parsing_us: Us,
    preparing_us: Us,
    collecting_us: Us,
}

impl Record for Row {}
