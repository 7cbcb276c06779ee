//! The cost of an order of documents.

use rayon::prelude::*;

use crate::base::ids::TermId;
use crate::index::{BLOCK_LEN, Index};

/// Terms per task.
const TERMS_A_TASK: u32 = 1024;

/// The mean of log2(gap) over all postings, in bits. A code that knew each gap's size would take as much, and
/// [bisection](super::bisect) minimises it. The first gap of a list counts from document -1.
#[must_use]
pub fn log_gap_bits(index: &Index) -> f64 {
    let tasks = 0..index.num_terms().div_ceil(TERMS_A_TASK);
    let sums: Vec<f64> = tasks
        .into_par_iter()
        .map(|task| {
            let end = ((task + 1) * TERMS_A_TASK).min(index.num_terms());
            (task * TERMS_A_TASK..end).map(|term| list_bits(index, TermId(term))).sum()
        })
        .collect();
    sums.iter().sum::<f64>() / index.num_postings().max(1) as f64
}

fn list_bits(index: &Index, term: TermId) -> f64 {
    let list = index.list(term);
    let mut docs = [0; BLOCK_LEN];
    let (mut bits, mut next) = (0.0, 0);
    for block in 0..list.num_blocks() {
        let len = list.decode_docs(block, &mut docs);
        for &doc in &docs[..len] {
            bits += f64::from(doc - next + 1).log2();
            next = doc + 1;
        }
    }
    bits
}
