//! Clustering and correlation of a synthetic collection that resembles a real one.
//!
//! Two properties of a log's lists are matched, one after another:
//!
//! | property | option |
//! | --- | --- |
//! | bits that bursty gaps save over a random list of equal length, mean over lists | clustering |
//! | share of queries for which at least ten documents have all terms | correlation |
//!
//! The first hardly depends on the correlation, so that two bisections are enough. Only the lists of the queries are drawn.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use tandem_model::base::ids::TermId;
use tandem_model::base::random::Random;

use super::build::{SynthOptions, synthetic_queries_of};
use super::cascade::ListSampler;
use super::documents::Documents;
use super::vocabulary::Vocabulary;
use super::{TERM_STREAMS, topic_of};
use crate::index::{Index, IndexError};

/// Results that count as enough.
const ENOUGH: usize = 10;
/// Lists shorter than this have too few gaps, and lists of a larger share of the documents than one in `DENSE` hardly any.
const LEAST_LEN: usize = 64;
const DENSE: usize = 8;
/// Mean of log2 of an exponential gap of mean 1: -γ / ln 2.
const RANDOM_BITS: f64 = -0.833;
const STEPS: usize = 10;

/// Properties of a log's lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likeness {
    /// Mean bits per gap below those of random lists.
    pub gap_bits: f64,
    /// Share of queries with at least ten documents that have all terms, from 0 to 1.
    pub full_ands: f64,
}

impl Likeness {
    /// Measures an index with queries of several terms; those of one term are left out.
    #[must_use]
    pub fn of_index(index: &Index, queries: &[Vec<TermId>]) -> Self {
        let terms = |query: &Vec<TermId>| query.iter().map(|term| term.0 as usize).collect::<BTreeSet<_>>();
        let queries: Vec<Vec<usize>> = queries.iter().map(|query| terms(query).into_iter().collect()).collect();
        let docs = |term: usize| index.list(TermId(term as u32)).docs();
        Self::of_lists(index.num_docs(), &queries, docs)
    }

    /// Measures the queries of a synthetic collection without making its index.
    ///
    /// # Errors
    /// If an option is out of its range, or there are no queries.
    pub fn of_synthetic(options: &SynthOptions) -> Result<Self, IndexError> {
        options.check()?;
        let vocabulary = Vocabulary::fit(options.num_docs, options.mean_length, options.vocabulary_size())?;
        let queries = synthetic_queries_of(options, &vocabulary)?;
        let documents = Documents::draw(options.num_docs as usize, options.mean_length, options.seed);
        let histogram = documents.histogram();
        let docs = |term: usize| {
            let mut sampler = ListSampler::new(&documents, &histogram, options.clustering, options.correlation);
            let random = Random::new(options.seed, TERM_STREAMS + term as u64);
            sampler.draw(vocabulary.doc_freqs()[term], topic_of(options.seed, term), random).0.to_vec()
        };
        Ok(Self::of_lists(options.num_docs, &queries, docs))
    }

    fn of_lists(num_docs: u32, queries: &[Vec<usize>], docs: impl Fn(usize) -> Vec<u32> + Sync) -> Self {
        let terms: BTreeSet<usize> = queries.iter().flatten().copied().collect();
        let terms: Vec<usize> = terms.into_iter().collect();
        let lists: BTreeMap<usize, Vec<u32>> = terms.par_iter().map(|&term| (term, docs(term))).collect();
        let saved: Vec<f64> = lists.values().filter_map(|docs| saved_bits(num_docs, docs)).collect();
        let queries: Vec<&Vec<usize>> = queries.iter().filter(|terms| terms.len() > 1).collect();
        let is_full =
            |terms: &&&Vec<usize>| common(terms.iter().map(|term| lists[term].as_slice()).collect()) >= ENOUGH;
        let full = queries.par_iter().filter(is_full).count();
        Self {
            gap_bits: saved.iter().sum::<f64>() / saved.len().max(1) as f64,
            full_ands: full as f64 / queries.len().max(1) as f64,
        }
    }
}

/// Bits per gap of a list below those of a random list; `None` for lists that are too short or too dense.
fn saved_bits(num_docs: u32, docs: &[u32]) -> Option<f64> {
    if docs.len() < LEAST_LEN || docs.len() > num_docs as usize / DENSE {
        return None;
    }
    let bits = docs.windows(2).map(|pair| f64::from(pair[1] - pair[0]).log2()).sum::<f64>() / (docs.len() - 1) as f64;
    Some((f64::from(num_docs) / docs.len() as f64).log2() + RANDOM_BITS - bits)
}

/// The number of documents that all lists have, at most [`ENOUGH`].
fn common(mut lists: Vec<&[u32]>) -> usize {
    lists.sort_by_key(|docs| docs.len());
    let Some((shortest, others)) = lists.split_first() else { return 0 };
    let is_in_all = |doc: &&u32| others.iter().all(|docs| docs.binary_search(doc).is_ok());
    shortest.iter().filter(is_in_all).take(ENOUGH).count()
}

/// Returns `options` with the clustering and the correlation that match a target best, and the properties that they give.
///
/// # Errors
/// Those of [`Likeness::of_synthetic`].
pub fn fit(target: &Likeness, options: &SynthOptions) -> Result<(SynthOptions, Likeness), IndexError> {
    let with = |clustering, correlation| SynthOptions { clustering: Some(clustering), correlation, ..options.clone() };
    let clustering =
        bisect(0.3, |clustering| Ok(Likeness::of_synthetic(&with(clustering, 0.0))?.gap_bits < target.gap_bits))?;
    let correlation = bisect(1.0, |correlation| {
        Ok(Likeness::of_synthetic(&with(clustering, correlation))?.full_ands < target.full_ands)
    })?;
    let found = with(clustering, correlation);
    let likeness = Likeness::of_synthetic(&found)?;
    Ok((found, likeness))
}

/// The number from 0 to `most` up to which `is_too_small` holds.
fn bisect(most: f64, is_too_small: impl Fn(f64) -> Result<bool, IndexError>) -> Result<f64, IndexError> {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        if is_too_small(middle)? { low = middle } else { high = middle }
    }
    Ok(0.5 * (low + high))
}
