//! Building by the paper's method, again and again, with who works at what changed.

use std::path::PathBuf;

use super::collections::{Kind, Part, files};
use crate::wei::trie::{TrieIndexer, TrieOptions, TrieReport};
use crate::{Context, ExperimentError, Findings};
use tandem_core::corpus::{Collection, Tokenizer, Words};
use tandem_core::index::Bm25;
use tandem_core::indexing::{BuildOptions, Indexer};
use tandem_core::search::device::list_gpus;

/// Documents of a synthetic collection, and the files that they come in.
pub(super) const DOCS: u32 = 20_000;
pub(super) const FILES: u32 = 16;
/// The paper's machine: cores, parsers of the best configuration, CPU indexers and GPUs beside them.
pub(super) const PAPERS_CORES: usize = 8;
pub(super) const PAPERS_PARSERS: usize = 6;
pub(super) const PAPERS_CPU_INDEXERS: usize = 2;
pub(super) const PAPERS_GPUS: usize = 2;
/// The paper's megabyte.
pub(super) const MB: f64 = (1 << 20) as f64;

/// A collection, and how it is cut into terms.
pub(super) struct Bench<'a> {
    context: &'a Context<'a>,
    pub(super) files: Vec<PathBuf>,
    options: BuildOptions,
    /// GPUs that there are, of the paper's two.
    pub(super) gpus: usize,
}

impl<'a> Bench<'a> {
    /// On web pages, as most of the paper is.
    pub(super) fn new(context: &'a Context<'a>, findings: &mut Findings) -> Result<Self, ExperimentError> {
        let docs = context.docs.unwrap_or(DOCS);
        Self::of(context, findings, &[Part { kind: Kind::ClueWeb, vocabulary: 0, docs, files: FILES }])
    }

    /// On a collection of these parts.
    pub(super) fn of(
        context: &'a Context<'a>,
        findings: &mut Findings,
        parts: &[Part],
    ) -> Result<Self, ExperimentError> {
        context.progress.doing("making a collection");
        let files = files(context, parts)?;
        let name = match (files.first(), parts.first()) {
            (Some(first), _) if !context.text.is_empty() => format!("{}, {} files", first.display(), files.len()),
            (_, Some(Part { kind, docs, .. })) => {
                format!(
                    "synthetic, like {}: {docs} documents, {} files, seed {}",
                    kind.name(),
                    files.len(),
                    context.seed
                )
            }
            _ => String::new(),
        };
        findings.provenance("collection", name);
        let gpus = match list_gpus() {
            Ok(gpus) => gpus.len().min(PAPERS_GPUS),
            Err(reason) => {
                findings.note(format!("{reason}: what GPUs would do is left empty."));
                0
            }
        };
        let tokenizer = Tokenizer::new(Words::Ascii).with_stem("porter").map_err(ExperimentError::Input)?;
        let options = BuildOptions {
            tokenizer: tokenizer.with_english_stop_words(),
            bm25: Bm25::default(),
            threads: context.cores,
            memory_bytes: None,
        };
        findings.provenance("tokenizer", options.tokenizer.name());
        Ok(Self { context, files, options, gpus })
    }

    pub(super) fn cores(&self) -> usize {
        self.context.cores
    }

    /// Parsers beside so many CPU indexers, on the cores that there are: the paper's six if they have room.
    pub(super) fn parsers_beside(&self, cpu_indexers: usize) -> usize {
        PAPERS_PARSERS.min(self.context.cores.saturating_sub(cpu_indexers)).max(1)
    }

    /// Indexes all of it, up to the dictionary on disk: the paper's lists are partial ones then.
    pub(super) fn index(
        &self,
        parsers: usize,
        cpu_indexers: usize,
        gpus: usize,
    ) -> Result<TrieReport, ExperimentError> {
        let mut trie = self.trie(parsers, cpu_indexers, gpus)?;
        let dir = self.folder()?;
        trie.invert(self.collection()?, dir.path(), &self.options, &|_| ())?;
        Ok(trie.report().clone())
    }

    /// As [`index`](Self::index), and merged into one index; returns how long that took, in seconds, too.
    pub(super) fn build(
        &self,
        parsers: usize,
        cpu_indexers: usize,
        gpus: usize,
    ) -> Result<(TrieReport, f64), ExperimentError> {
        let mut trie = self.trie(parsers, cpu_indexers, gpus)?;
        let dir = self.folder()?;
        let began = std::time::Instant::now();
        tandem_core::indexing::build_by(&mut trie, self.collection()?, dir.path(), &self.options, &|_| ())?;
        let all_s = began.elapsed().as_secs_f64();
        let report = trie.report().clone();
        let merging_s = (all_s - report.total_s()).max(0.0);
        Ok((report, merging_s))
    }

    /// Parses all of it on so many threads, and nothing else.
    pub(super) fn parse(&self, parsers: usize) -> Result<TrieReport, ExperimentError> {
        Ok(self.trie(parsers, 1, 0)?.parse_alone(self.collection()?, &self.options, &|_| ())?)
    }

    fn trie(&self, parsers: usize, cpu_indexers: usize, gpus: usize) -> Result<TrieIndexer, ExperimentError> {
        self.context.progress.doing(&format!("indexing: {parsers} parsers, {cpu_indexers} CPU indexers, {gpus} GPUs"));
        Ok(TrieIndexer::new(TrieOptions { parsers, cpu_indexers, gpus, buffer_bytes: None })?)
    }

    fn collection(&self) -> Result<Collection, ExperimentError> {
        Ok(Collection::open_all(self.files.clone(), 1).map_err(tandem_core::indexing::BuildError::from)?)
    }

    /// A folder for what a build writes, which goes when it is done.
    fn folder(&self) -> Result<tempfile::TempDir, ExperimentError> {
        let scratch = &self.context.scratch;
        tempfile::tempdir_in(scratch).map_err(|e| ExperimentError::Input(format!("{}: {e}", scratch.display())))
    }
}

/// MB (2^20) a second.
pub(super) fn mb_per_s(text_bytes: u64, seconds: f64) -> f64 {
    text_bytes as f64 / MB / seconds
}
