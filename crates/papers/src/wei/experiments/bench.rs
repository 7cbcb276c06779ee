//! Index builds by the paper's method with varying numbers of parsers and indexers.

use std::path::PathBuf;

use tandem_engine::corpus::{Batch, Collection, Tokenizer, Words};
use tandem_engine::index::Bm25;
use tandem_engine::indexing::{BuildError, BuildOptions, Indexer};
use tandem_engine::search::device::list_gpus;
use tandem_model::files::InputError;

use super::collections::{CollectionPart, Kind, files};
use crate::wei::trie::{TrieIndexer, TrieOptions, TrieReport};
use crate::{Context, ExperimentError, Findings, Result};

pub(crate) const DOCS: u32 = 20_000;
pub(crate) const FILES: u32 = 16;
/// Cores of the paper's machine.
pub(crate) const PAPERS_CORES: usize = 8;
pub(crate) const PAPERS_PARSERS: usize = 6;
pub(crate) const PAPERS_CPU_INDEXERS: usize = 2;
pub(crate) const PAPERS_GPUS: usize = 2;
/// The paper's megabyte.
pub(crate) const MB: f64 = (1 << 20) as f64;

pub(crate) struct Bench<'a> {
    context: &'a Context<'a>,
    pub(crate) files: Vec<PathBuf>,
    options: BuildOptions,
    /// GPUs of this machine, at most the paper's two.
    pub(crate) gpus: usize,
}

impl<'a> Bench<'a> {
    /// Makes a collection of web pages, as in most of the paper.
    pub(crate) fn new(context: &'a Context<'a>, findings: &mut Findings) -> Result<Self> {
        let docs = context.docs.unwrap_or(DOCS);
        Self::of(context, findings, &[CollectionPart { kind: Kind::ClueWeb, vocabulary: 0, docs, files: FILES }])
    }

    /// Makes a collection of these parts, unless the user names files.
    pub(crate) fn of(context: &'a Context<'a>, findings: &mut Findings, parts: &[CollectionPart]) -> Result<Self> {
        context.progress.doing("making a collection");
        let files = files(context, parts)?;
        let count = files.len();
        let name = match (files.first(), parts.first()) {
            (Some(first), _) if !context.text.is_empty() => format!("{}, {count} files", first.display()),
            (_, Some(CollectionPart { kind, docs, .. })) => {
                let (name, seed) = (kind.name(), context.seed);
                format!("synthetic, like {name}: {docs} documents, {count} files, seed {seed}")
            }
            _ => String::new(),
        };
        findings.provenance("collection", name);
        let gpus = match list_gpus() {
            Ok(gpus) => gpus.len().min(PAPERS_GPUS),
            Err(reason) => {
                findings.note(format!("No GPU here ({reason}): its numbers are left empty."));
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

    pub(crate) fn cores(&self) -> usize {
        self.context.cores
    }

    /// Returns the number of parsers next to these CPU indexers: the paper's six, or as many as there are other cores.
    pub(crate) fn parsers_for(&self, cpu_indexers: usize) -> usize {
        PAPERS_PARSERS.min(self.context.cores.saturating_sub(cpu_indexers)).max(1)
    }

    /// Indexes the collection up to the dictionary on disk, with partial lists as in the paper.
    pub(crate) fn index(&self, parsers: usize, cpu_indexers: usize, gpus: usize) -> Result<TrieReport> {
        let mut trie = self.trie(parsers, cpu_indexers, gpus)?;
        let dir = self.folder()?;
        trie.invert(self.collection()?, dir.path(), &self.options, &|_| ())?;
        Ok(trie.report().clone())
    }

    /// Indexes the collection and merges the lists into one index; returns the seconds of merging as well.
    pub(crate) fn build(&self, parsers: usize, cpu_indexers: usize, gpus: usize) -> Result<(TrieReport, f64)> {
        let mut trie = self.trie(parsers, cpu_indexers, gpus)?;
        let dir = self.folder()?;
        let began = std::time::Instant::now();
        tandem_engine::indexing::build_by(&mut trie, self.collection()?, dir.path(), &self.options, &|_| ())?;
        let all_s = began.elapsed().as_secs_f64();
        let report = trie.report().clone();
        let merging_s = (all_s - report.total_s()).max(0.0);
        Ok((report, merging_s))
    }

    pub(crate) fn parse(&self, parsers: usize) -> Result<TrieReport> {
        Ok(self.trie(parsers, 1, 0)?.parse_alone(self.collection()?, &self.options, &|_| ())?)
    }

    fn trie(&self, parsers: usize, cpu_indexers: usize, gpus: usize) -> Result<TrieIndexer> {
        self.context.progress.doing(&format!("indexing: {parsers} parsers, {cpu_indexers} CPU indexers, {gpus} GPUs"));
        Ok(TrieIndexer::new(TrieOptions { parsers, cpu_indexers, gpus, buffer_bytes: None })?)
    }

    /// Calls `visit` with every batch of the collection.
    pub(crate) fn for_each_batch(
        &self,
        mut visit: impl FnMut(&Batch, &Tokenizer) -> Result<(), InputError>,
    ) -> Result<()> {
        let of = |e: InputError| ExperimentError::from(BuildError::from(e));
        let mut collection = self.collection()?;
        while let Some(batch) = collection.next_batch().map_err(of)? {
            visit(&batch, &self.options.tokenizer).map_err(of)?;
        }
        Ok(())
    }

    fn collection(&self) -> Result<Collection> {
        Ok(Collection::open_all(self.files.clone(), 1).map_err(BuildError::from)?)
    }

    fn folder(&self) -> Result<tempfile::TempDir> {
        let scratch = &self.context.scratch;
        tempfile::tempdir_in(scratch).map_err(|e| ExperimentError::Input(format!("{}: {e}", scratch.display())))
    }
}

pub(crate) fn mb_per_s(text_bytes: u64, seconds: f64) -> f64 {
    text_bytes as f64 / MB / seconds
}
