//! Making a synthetic index on all cores.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use crossbeam_channel::{Receiver, bounded};

use super::cascade::ListSampler;
use super::{Documents, TERM_STREAMS, Vocabulary, synthetic_queries, write_queries};
use crate::base::random::Random;
use crate::files::{free_disk_bytes, free_memory_bytes};
use crate::index::{Bm25, EncodedLists, FILE_NAME, IndexError, IndexWriter, ListEncoder};

/// Expected postings in a batch of terms. A longer list is a batch alone.
const BATCH_POSTINGS: f64 = 1e6;
/// Cost of a term in addition to its postings, in postings.
const TERM_COST: f64 = 20.0;
/// Batches that a thread may be ahead of the writer.
const QUEUE_BATCHES: usize = 4;

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
    /// Threads, or all cores if `None`. The result does not depend on them.
    pub threads: Option<NonZeroUsize>,
}

impl SynthOptions {
    /// Range of `num_docs`.
    pub const DOCS: std::ops::RangeInclusive<u32> = 1000..=(1 << 31) - 1;
    /// Default mean document length.
    pub const MEAN_LENGTH: f64 = 240.0;

    /// Options of `num_docs` documents without queries, with defaults otherwise.
    #[must_use]
    pub fn new(num_docs: u32, seed: u64) -> Self {
        Self {
            num_docs,
            seed,
            mean_length: Self::MEAN_LENGTH,
            num_terms: None,
            num_queries: 0,
            queries_path: None,
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

/// Makes a synthetic index in folder `dir`, and its queries. `progress` receives postings written and expected.
///
/// # Errors
/// If an option is out of its range, the index would exceed the format, the disk or the memory, or the file system
/// fails.
pub fn build_synthetic(
    options: &SynthOptions,
    dir: &Path,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<SynthReport, IndexError> {
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

/// Draws the queries of an existing synthetic collection, and writes them to `path`.
///
/// # Errors
/// If an option is out of its range, or the file system fails.
pub fn draw_queries(options: &SynthOptions, path: &Path) -> Result<(), IndexError> {
    options.check()?;
    let vocabulary = Vocabulary::fit(options.num_docs, options.mean_length, options.vocabulary_size())?;
    let queries = synthetic_queries_of(options, &vocabulary)?;
    write_queries(path, &vocabulary, &queries).map_err(|source| IndexError::Io { path: path.to_owned(), source })
}

fn synthetic_queries_of(options: &SynthOptions, vocabulary: &Vocabulary) -> Result<Vec<Vec<usize>>, IndexError> {
    match options.num_queries {
        0 => Ok(Vec::new()),
        n => synthetic_queries(vocabulary, options.num_docs, options.seed, n),
    }
}

/// Lists of a range of terms.
struct Batch {
    lists: EncodedLists,
    doc_freqs: Vec<u32>,
    num_occurrences: u64,
}

/// Totals of all batches.
#[derive(Default)]
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
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Made, IndexError> {
    let batches = cut_batches(vocabulary.doc_freqs());
    let cores = options.threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let num_threads = cores.min(batches.len());
    let histogram = documents.histogram();
    let expected = vocabulary.doc_freqs().iter().sum::<f64>() as u64;
    thread::scope(|scope| {
        let queues: Vec<Receiver<Result<Batch, IndexError>>> = (0..num_threads)
            .map(|worker| {
                let (sender, receiver) = bounded(QUEUE_BATCHES);
                let (batches, histogram) = (&batches, &histogram);
                let mut encoder = ListEncoder::new(writer.norms());
                scope.spawn(move || {
                    let mut sampler = ListSampler::new(documents, histogram);
                    for terms in batches.iter().skip(worker).step_by(num_threads) {
                        let batch = make_batch(options.seed, terms.clone(), vocabulary, &mut sampler, &mut encoder);
                        let failed = batch.is_err();
                        // No receiver: the writer has failed and says so itself.
                        if sender.send(batch).is_err() || failed {
                            return;
                        }
                    }
                });
                receiver
            })
            .collect();
        let mut made = Made::default();
        for number in 0..batches.len() {
            let received = queues[number % num_threads].recv();
            let batch = received.map_err(|_| IndexError::Collection("a thread that draws lists has died".into()))??;
            writer.append(&batch.lists)?;
            made.num_postings += batch.doc_freqs.iter().map(|&doc_freq| u64::from(doc_freq)).sum::<u64>();
            made.num_occurrences += batch.num_occurrences;
            made.doc_freqs.extend(batch.doc_freqs);
            progress(made.num_postings, expected);
        }
        Ok(made)
    })
}

/// Draws and packs the lists of `terms`.
fn make_batch(
    seed: u64,
    terms: Range<usize>,
    vocabulary: &Vocabulary,
    sampler: &mut ListSampler<'_>,
    encoder: &mut ListEncoder,
) -> Result<Batch, IndexError> {
    let mut doc_freqs = Vec::with_capacity(terms.len());
    let mut num_occurrences = 0;
    for term in terms {
        let random = Random::new(seed, TERM_STREAMS + term as u64);
        let (docs, freqs) = sampler.draw(vocabulary.doc_freqs()[term], random);
        encoder.add_columns(&vocabulary.text(term), docs, freqs)?;
        doc_freqs.push(docs.len() as u32);
        num_occurrences += freqs.iter().map(|&freq| u64::from(freq)).sum::<u64>();
    }
    Ok(Batch { lists: encoder.take(), doc_freqs, num_occurrences })
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
