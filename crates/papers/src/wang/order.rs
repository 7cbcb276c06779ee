//! Documents by descending global score GS, in which a query can stop early.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use tandem_engine::index::Index;
use tandem_model::base::ids::TermId;

use super::ranking::Ranking;

/// Arrays over documents in global order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Documents {
    /// α PR of each document.
    pub(crate) priors: Vec<f32>,
    pub(crate) norms: Vec<f32>,
    /// GS, which never rises.
    pub(crate) global_scores: Vec<f32>,
}

/// The global order with the arrays of its documents.
#[derive(Clone, Debug)]
pub(crate) struct GlobalOrder {
    pub(crate) new_of_old: Vec<u32>,
    pub(crate) documents: Documents,
}

impl GlobalOrder {
    /// Computes the order from all postings of the index. `page_rank` is by old number.
    pub(crate) fn of(index: &Index, ranking: &Ranking, page_rank: &[f32]) -> Self {
        let average = index.average_length();
        let norms: Vec<f32> = index.doc_lengths().iter().map(|&length| ranking.norm(length, average)).collect();
        // Impacts are positive, so that their bits order as they do.
        let max_impacts: Vec<AtomicU32> = norms.iter().map(|_| AtomicU32::new(0)).collect();
        (0..index.num_terms()).into_par_iter().for_each(|term| {
            for (doc, freq) in index.list(TermId(term)).postings() {
                let bits = ranking.impact(freq, norms[doc as usize]).to_bits();
                // Most postings are not their document's best, and a read is cheaper than an atomic maximum.
                if max_impacts[doc as usize].load(Ordering::Relaxed) < bits {
                    max_impacts[doc as usize].fetch_max(bits, Ordering::Relaxed);
                }
            }
        });
        let max_impacts = max_impacts.into_iter().map(|bits| f32::from_bits(bits.into_inner()));
        let scored: Vec<(f32, f32)> = max_impacts
            .zip(page_rank)
            .map(|(max_impact, &page_rank)| {
                let prior = ranking.prior(page_rank);
                (ranking.global_score(prior, max_impact), prior)
            })
            .collect();
        let mut old_of_new: Vec<u32> = (0..scored.len() as u32).collect();
        old_of_new.par_sort_by(|&a, &b| scored[b as usize].0.total_cmp(&scored[a as usize].0));
        let mut new_of_old = vec![0; scored.len()];
        for (new, &old) in (0..).zip(&old_of_new) {
            new_of_old[old as usize] = new;
        }
        let by_new =
            |value: &(dyn Fn(usize) -> f32 + Sync)| old_of_new.iter().map(|&old| value(old as usize)).collect();
        let documents = Documents {
            priors: by_new(&|old| scored[old].1),
            norms: by_new(&|old| norms[old]),
            global_scores: by_new(&|old| scored[old].0),
        };
        Self { new_of_old, documents }
    }
}
