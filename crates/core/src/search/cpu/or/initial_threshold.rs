//! Initial threshold of a pruned disjunction.
//!
//! If one term alone gives k documents some score, the query's k-th best score is at least that: other terms only add,
//! and adding non-negative numbers never lowers a rounded sum. So the best of the terms' k-th best scores is a safe
//! threshold. The index stores lower bounds of the k-th best impact of longer lists for a few k; a list of one block is
//! decoded instead.
//!
//! Source: Petri, Moffat, Mackenzie, Culpepper and Beck, "Accelerated Query Processing via Similarity Score
//! Prediction", SIGIR 2019; PISA's `kth_threshold`.

use crate::index::{BLOCK_LEN, BlockBuffer, Bm25};
use crate::search::cpu::blocks::Term;

/// A score that at least `k` documents reach, or 0 if none is known.
pub(crate) fn estimate(terms: &[Term<'_>], k: usize, norms: &[f32], buffer: &mut BlockBuffer) -> f32 {
    let mut seed = 0.0_f32;
    for term in terms {
        if (term.list.doc_freq() as usize) < k || term.bound <= seed {
            continue;
        }
        let stored = term.kth_score(k);
        if stored > 0.0 {
            seed = seed.max(stored);
        } else if term.list.num_blocks() == 1 {
            seed = seed.max(kth_score_of_block(term, k, norms, buffer));
        }
    }
    seed
}

/// The exact `k`-th best score of a list of one block with at least `k` postings.
fn kth_score_of_block(term: &Term<'_>, k: usize, norms: &[f32], buffer: &mut BlockBuffer) -> f32 {
    let len = term.list.decode_docs(0, &mut buffer.docs);
    term.list.decode_freqs(0, &mut buffer.freqs);
    let mut scores = [0.0_f32; BLOCK_LEN];
    for ((score, &doc), &freq) in scores.iter_mut().zip(&buffer.docs[..len]).zip(&buffer.freqs) {
        *score = Bm25::score(term.weight, freq, norms[doc as usize]);
    }
    let (_, kth, _) = scores[..len].select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    *kth
}
