//! Queries for a synthetic collection.
//!
//! A query term is drawn among the terms of at least one document in 5,000, with a chance that grows as a power of its
//! document frequency. The power is fitted so that the lists of a query together hold as many postings per document of
//! the collection as in Ding et al. 2009: 3.74 million of 25.2 million documents. Most queries are far below that mean,
//! and a few with very frequent terms are far above it, as in real logs.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use tandem_base::base::random::{Random, pow};
use tandem_base::files::write_atomically;

use super::vocabulary::Vocabulary;
use super::{QUERY_STREAM, topic_of};
use crate::index::IndexError;

/// Mean postings in a query's lists over documents in the collection.
pub const MEAN_QUERY_SHARE: f64 = 3.74 / 25.2;

/// Chances of queries of two, three, four and five terms. The mean of 2.8 is that of the TREC 2005 terabyte track.
const LENGTH_CHANCES: [f64; 4] = [0.45, 0.35, 0.15, 0.05];
const MEAN_TERMS: f64 = 2.8;
const MOST_TERMS: usize = 5;
/// Query terms occur in at least one document in this many.
const RAREST: f64 = 5000.0;

/// Draws `n` queries of distinct terms. A query is a set of ranks. With chance `correlation`, a further term is of the first one's topic.
/// Fails if the vocabulary is too small or too rare for queries of that many postings.
pub fn synthetic_queries(
    vocabulary: &Vocabulary,
    num_docs: u32,
    seed: u64,
    n: usize,
    correlation: f64,
) -> Result<Vec<Vec<usize>>, IndexError> {
    let all = vocabulary.doc_freqs();
    let asked = all.partition_point(|&doc_freq| doc_freq * RAREST >= f64::from(num_docs));
    let doc_freqs = &all[..asked];
    let wanted = MEAN_QUERY_SHARE * f64::from(num_docs) / MEAN_TERMS;
    let mean = |power: f64| {
        let weights = doc_freqs.iter().map(|&doc_freq| (doc_freq, pow(doc_freq, power)));
        let (sum, total) = weights.fold((0.0, 0.0), |(sum, total), (df, weight)| (sum + df * weight, total + weight));
        sum / total
    };
    let (mut low, mut high) = (-2.0, 3.0);
    if asked < 4 * MOST_TERMS || mean(low) > wanted || mean(high) < wanted {
        let message = "this vocabulary is too small to draw queries from (it takes more terms or longer documents)";
        return Err(IndexError::Collection(message.into()));
    }
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if mean(middle) < wanted { low = middle } else { high = middle }
    }
    let mut total = 0.0;
    let cumulated: Vec<f64> = doc_freqs
        .iter()
        .map(|&doc_freq| {
            total += pow(doc_freq, high);
            total
        })
        .collect();
    let mut random = Random::new(seed, QUERY_STREAM);
    let lengths: Vec<usize> = (0..n).map(|_| query_length(random.unit())).collect();
    // Each draw comes from one of as many equal strata as there are terms to draw, in random order. The mean of a small
    // set of queries then matches the fit, although a few long lists dominate it.
    let mut strata: Vec<u32> = (0..lengths.iter().sum::<usize>() as u32).collect();
    for last in (1..strata.len()).rev() {
        strata.swap(last, random.below(last as u32 + 1) as usize);
    }
    let num_strata = strata.len() as f64;
    let mut strata = strata.into_iter();
    let term_at = |share: f64| cumulated.partition_point(|&sum| sum < share * total).min(asked - 1);
    let mut queries = Vec::with_capacity(n);
    for num_terms in lengths {
        let mut terms = BTreeSet::new();
        let mut topic = None;
        for stratum in strata.by_ref().take(num_terms) {
            let mut term = term_at((f64::from(stratum) + random.unit()) / num_strata);
            let topic = *topic.get_or_insert(topic_of(seed, term));
            if correlation > 0.0 && topic_of(seed, term) != topic && random.unit() < correlation {
                term = of_topic(topic, || term_at(random.unit()), seed);
            }
            while !terms.insert(term) {
                term = term_at(random.unit());
            }
        }
        queries.push(terms.into_iter().collect());
    }
    Ok(queries)
}

/// Draws terms until one is of a topic; gives up where a topic has hardly any terms.
fn of_topic(topic: u64, mut draw: impl FnMut() -> usize, seed: u64) -> usize {
    const MOST_DRAWS: usize = 1000;
    let mut term = draw();
    for _ in 1..MOST_DRAWS {
        if topic_of(seed, term) == topic {
            break;
        }
        term = draw();
    }
    term
}

/// Number of terms of the query that drew `choice` from (0, 1].
fn query_length(mut choice: f64) -> usize {
    let longer = LENGTH_CHANCES.iter().take_while(|&&chance| {
        choice -= chance;
        choice > 0.0
    });
    (2 + longer.count()).min(MOST_TERMS)
}

/// Writes queries as `id<TAB>t0000017 t0000421` atomically.
pub fn write_queries(path: &Path, vocabulary: &Vocabulary, queries: &[Vec<usize>]) -> io::Result<()> {
    write_atomically(path, |out| {
        queries.iter().enumerate().try_for_each(|(id, terms)| {
            let texts: Vec<String> = terms.iter().map(|&term| vocabulary.text(term)).collect();
            writeln!(out, "{id}\t{}", texts.join(" "))
        })
    })
}
