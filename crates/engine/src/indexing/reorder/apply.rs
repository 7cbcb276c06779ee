//! Writing an index in another order of documents, and measuring an order.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use rayon::prelude::*;
use tandem_base::base::ids::{DocId, TermId};

use super::permutation::Permutation;
use crate::index::{BLOCK_LEN, Index, IndexError, IndexWriter};
use crate::indexing::error::BuildError;
use crate::indexing::ranges::rewrite;

/// Writes `index` into folder `dir` with renumbered documents, on as many threads as rayon has. Names and lengths move
/// with the documents. Documents without names are named by their old numbers. `progress` receives the number of terms
/// written. Fails if the permutation is of another number of documents, or the file system fails. A previous index
/// stays then.
pub fn apply(index: &Index, permutation: &Permutation, dir: &Path, progress: &dyn Fn(u64)) -> Result<(), BuildError> {
    let old_of_new = permutation.old_of_new();
    if old_of_new.len() != index.num_docs() as usize {
        let message = format!("a permutation of {} documents for an index of {}", old_of_new.len(), index.num_docs());
        return Err(IndexError::Collection(message).into());
    }
    write(index, &old_of_new, permutation.new_of_old(), dir, progress)
}

/// The number of a document that is left out.
const LEFT_OUT: u32 = u32::MAX;

/// Writes `index` into another folder `dir` with the last document of each name only, and with all documents that have
/// none. Returns the number of documents that are left out. Fails if the file system fails. A previous index stays
/// then.
pub fn keep_last(index: &Index, dir: &Path) -> Result<u32, BuildError> {
    let mut last: HashMap<Cow<'_, str>, u32> = HashMap::with_capacity(index.num_docs() as usize);
    let mut new_of_old = vec![0; index.num_docs() as usize];
    for doc in 0..index.num_docs() {
        let id = index.external_id(DocId(doc));
        if !id.is_empty()
            && let Some(earlier) = last.insert(id, doc)
        {
            new_of_old[earlier as usize] = LEFT_OUT;
        }
    }
    let old_of_new: Vec<u32> = (0..index.num_docs()).filter(|&doc| new_of_old[doc as usize] != LEFT_OUT).collect();
    (0..).zip(&old_of_new).for_each(|(new, &old)| new_of_old[old as usize] = new);
    write(index, &old_of_new, &new_of_old, dir, &|_| {})?;
    Ok(index.num_docs() - old_of_new.len() as u32)
}

/// Writes `index` with the documents `old_of_new`, in this order.
fn write(
    index: &Index,
    old_of_new: &[u32],
    new_of_old: &[u32],
    dir: &Path,
    progress: &dyn Fn(u64),
) -> Result<(), BuildError> {
    let doc_lengths = old_of_new.iter().map(|&old| index.doc_lengths()[old as usize]).collect();
    let external_ids = old_of_new.iter().map(|&old| index.external_id(DocId(old)).into_owned()).collect();
    let mut writer = IndexWriter::create(dir, doc_lengths, external_ids, index.built_with(), index.tokenizer_name())?;
    rewrite(index, &mut writer, progress, &|term, docs, freqs| {
        let renumbered = index.list(term).postings().map(|(doc, freq)| (new_of_old[doc as usize], freq));
        let mut postings: Vec<(u32, u32)> = renumbered.filter(|posting| posting.0 != LEFT_OUT).collect();
        postings.sort_unstable();
        docs.extend(postings.iter().map(|posting| posting.0));
        freqs.extend(postings.iter().map(|posting| posting.1));
    })?;
    Ok(writer.finish()?)
}

const TERMS_A_TASK: u32 = 1024;

/// The mean of log2(gap) over all postings, in bits. A code that knew each gap's size would take as much, and
/// [bisection](super::bisect) minimises it. The first gap of a list counts from document -1.
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
