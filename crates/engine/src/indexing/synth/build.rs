//! Making a synthetic index on all cores.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

use tandem_base::base::random::Random;
use tandem_base::files::{free_disk_bytes, free_memory_bytes};

use super::cascade::ListSampler;
use super::documents::Documents;
use super::queries::{synthetic_queries, write_queries};
use super::vocabulary::Vocabulary;
use super::{TERM_STREAMS, topic_of};
use crate::index::{Bm25, FILE_NAME, IndexError, IndexWriter, ListEncoder};
use crate::indexing::error::BuildError;
use crate::indexing::ranges::write_in_order;

/// Expected postings in a batch of terms. A longer list is a batch alone.
const BATCH_POSTINGS: f64 = 1e6;
/// Cost of a term in addition to its postings, in postings.
const TERM_COST: f64 = 20.0;

/// Options of a synthetic collection.
#[derive(Clone, Debug)]
pub struct SynthOptions {
    /// Documents, from 1000 to 2^31 - 1.
    pub num_docs: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// Mean tokens per document, from 20 to 5000.
    pub mean_length: f64,
    /// Terms, from 100 to 2^30, or Heaps' law if `None`.
    pub num_terms: Option<u32>,
    /// Number of queries, at most 100 million.
    pub num_queries: usize,
    /// Path of the queries, or `queries.tsv` in the index's folder if `None`.
    pub queries_path: Option<PathBuf>,
    /// Mean excess of the denser half's share over a half in any neighbourhood, from 0 to 0.3; `None` for the law of the shipped
    /// workloads, about 0.2.
    pub clustering: Option<f64>,
    /// Correlation of terms of one topic, from 0 (independent lists) to 1; also the chance that further terms of a query are of its first
    /// term's topic.
    pub correlation: f64,
    /// Threads, or all cores if `None`. The result does not depend on them.
    pub threads: Option<NonZeroUsize>,
}

impl SynthOptions {
    /// Range of `num_docs`.
    pub const DOCS: std::ops::RangeInclusive<u32> = 1000..=(1 << 31) - 1;
    /// Default mean document length.
    pub const MEAN_LENGTH: f64 = 240.0;

    /// The clustering that a fit found for the slice of the English Wikipedia with the first 4000 queries of the TREC 2005
    /// efficiency log: gaps save 0.248 bits over random ones in both.
    pub const FITTED_CLUSTERING: f64 = 0.1;
    /// The correlation that it finds, the greatest one: 25.9 % of the queries then have ten results with all terms, 33.7 % in the slice.
    pub const FITTED_CORRELATION: f64 = 1.0;

    /// Options of `num_docs` documents without queries, with defaults otherwise.
    pub fn new(num_docs: u32, seed: u64) -> Self {
        Self {
            num_docs,
            seed,
            mean_length: Self::MEAN_LENGTH,
            num_terms: None,
            num_queries: 0,
            queries_path: None,
            clustering: None,
            correlation: 0.0,
            threads: None,
        }
    }
}

/// Report on a synthetic collection.
#[derive(Clone, Debug, PartialEq)]
pub struct SynthReport {
    /// Documents.
    pub num_docs: u32,
    /// Terms.
    pub num_terms: usize,
    /// Postings in all lists.
    pub num_postings: u64,
    /// Occurrences in all lists. The documents' lengths add up to about as much.
    pub num_occurrences: u64,
    /// Bytes of the index file.
    pub index_bytes: u64,
    /// Time taken, in seconds.
    pub seconds: f64,
    /// Queries written and their path, or `None` if none were asked for.
    pub queries: Option<(usize, PathBuf)>,
    /// Mean postings in the lists of a query, or 0 if there are no queries.
    pub mean_query_postings: f64,
}

/// Makes a synthetic index in folder `dir`, and its queries. `progress` receives postings written and expected. Fails
/// if an option is out of its range, the index would exceed the format, the disk or the memory, or the file system
/// fails.
pub fn build_synthetic(
    options: &SynthOptions,
    dir: &Path,
    progress: &dyn Fn(u64, u64),
) -> Result<SynthReport, BuildError> {
    options.check()?;
    options.check_room(dir, free_disk_bytes(dir), free_memory_bytes())?;
    let begun = Instant::now();
    let vocabulary = Vocabulary::fit(options.num_docs, options.mean_length, options.vocabulary_size())?;
    // Queries are drawn before the index, which takes long, so that impossible ones are refused at once.
    let queries = synthetic_queries_of(options, &vocabulary)?;
    let documents = Documents::draw(options.num_docs as usize, options.mean_length, options.seed);
    let mut writer = IndexWriter::create(dir, documents.lengths().to_vec(), Vec::new(), Bm25::default(), "ascii")?;
    let made = make_lists(options, &vocabulary, &documents, &mut writer, progress)?;
    writer.finish()?;

    let io_error = |path: &Path| {
        let path = path.to_owned();
        move |source| IndexError::Io { path, source }
    };
    let index_path = dir.join(FILE_NAME);
    let index_bytes = std::fs::metadata(&index_path).map_err(io_error(&index_path))?.len();
    let mut report = SynthReport {
        num_docs: options.num_docs,
        num_terms: vocabulary.len(),
        num_postings: made.num_postings,
        num_occurrences: made.num_occurrences,
        index_bytes,
        seconds: 0.0,
        queries: None,
        mean_query_postings: 0.0,
    };
    if !queries.is_empty() {
        let path = options.queries_path.clone().unwrap_or_else(|| dir.join("queries.tsv"));
        write_queries(&path, &vocabulary, &queries).map_err(io_error(&path))?;
        let postings: u64 = queries.iter().flatten().map(|&term| u64::from(made.doc_freqs[term])).sum();
        report.mean_query_postings = postings as f64 / queries.len() as f64;
        report.queries = Some((queries.len(), path));
    }
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}

/// Draws the queries of an existing synthetic collection, and writes them to `path`. Fails if an option is out of its
/// range, or the file system fails.
pub fn draw_queries(options: &SynthOptions, path: &Path) -> Result<(), IndexError> {
    options.check()?;
    let vocabulary = Vocabulary::fit(options.num_docs, options.mean_length, options.vocabulary_size())?;
    let queries = synthetic_queries_of(options, &vocabulary)?;
    write_queries(path, &vocabulary, &queries).map_err(|source| IndexError::Io { path: path.to_owned(), source })
}

pub(super) fn synthetic_queries_of(
    options: &SynthOptions,
    vocabulary: &Vocabulary,
) -> Result<Vec<Vec<usize>>, IndexError> {
    match options.num_queries {
        0 => Ok(Vec::new()),
        n => synthetic_queries(vocabulary, options.num_docs, options.seed, n, options.correlation),
    }
}

#[derive(Debug, Default)]
struct Made {
    doc_freqs: Vec<u32>,
    num_postings: u64,
    num_occurrences: u64,
}

fn make_lists(
    options: &SynthOptions,
    vocabulary: &Vocabulary,
    documents: &Documents,
    writer: &mut IndexWriter,
    progress: &dyn Fn(u64, u64),
) -> Result<Made, BuildError> {
    let batches = cut_batches(vocabulary.doc_freqs());
    let cores = options.threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let (histogram, norms) = (documents.histogram(), writer.norms());
    let made: Vec<OnceLock<Made>> = batches.iter().map(|_| OnceLock::new()).collect();
    let pack = |number: usize| {
        let mut sampler = ListSampler::new(documents, &histogram, options.clustering, options.correlation);
        let mut encoder = ListEncoder::new(norms.clone());
        let mut batch = Made::default();
        for term in batches[number].clone() {
            let random = Random::new(options.seed, TERM_STREAMS + term as u64);
            let (docs, freqs) = sampler.draw(vocabulary.doc_freqs()[term], topic_of(options.seed, term), random);
            encoder.add_columns(&vocabulary.text(term), docs, freqs)?;
            batch.doc_freqs.push(docs.len() as u32);
            batch.num_postings += docs.len() as u64;
            batch.num_occurrences += freqs.iter().map(|&freq| u64::from(freq)).sum::<u64>();
        }
        let _ = made[number].set(batch);
        Ok(encoder.take())
    };
    let expected = vocabulary.doc_freqs().iter().sum::<f64>() as u64;
    let written = Cell::new(0);
    let report = |done: usize| {
        written.set(written.get() + made[done - 1].get().map_or(0, |batch| batch.num_postings));
        progress(written.get(), expected);
    };
    write_in_order(batches.len(), cores.min(batches.len()), writer, &report, &pack)?;
    let mut all = Made::default();
    for batch in made.into_iter().filter_map(OnceLock::into_inner) {
        all.doc_freqs.extend(batch.doc_freqs);
        all.num_postings += batch.num_postings;
        all.num_occurrences += batch.num_occurrences;
    }
    Ok(all)
}

/// Cuts the vocabulary into ranges of about [`BATCH_POSTINGS`] each.
fn cut_batches(doc_freqs: &[f64]) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let (mut begin, mut cost) = (0, 0.0);
    for (term, doc_freq) in doc_freqs.iter().enumerate() {
        cost += doc_freq + TERM_COST;
        if cost >= BATCH_POSTINGS || term + 1 == doc_freqs.len() {
            batches.push(begin..term + 1);
            (begin, cost) = (term + 1, 0.0);
        }
    }
    batches
}
