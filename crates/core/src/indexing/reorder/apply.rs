//! Writing an index in another order of documents.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::Permutation;
use crate::base::ids::{DocId, TermId};
use crate::index::{BLOCK_LEN, EncodedLists, Index, IndexError, IndexWriter, ListEncoder};

/// Postings that one task renumbers.
const POSTINGS_A_TASK: u64 = 1 << 18;

/// Writes `index` into folder `dir` with its documents renumbered, on all of rayon's threads. Names and lengths move
/// with their documents; documents that had no names are named by their old numbers.
///
/// `progress` is told how many terms are written.
///
/// # Errors
/// If the permutation is not of this index's documents, or the file system refuses; an index that was there stays.
pub fn apply(index: &Index, permutation: &Permutation, dir: &Path, progress: &dyn Fn(u64)) -> Result<(), IndexError> {
    let old_of_new = permutation.old_of_new();
    if old_of_new.len() != index.num_docs() as usize {
        let message = format!("a permutation of {} documents for an index of {}", old_of_new.len(), index.num_docs());
        return Err(IndexError::Collection(message));
    }
    write(index, &old_of_new, permutation.new_of_old(), dir, progress)
}

/// The number of a document that is left out.
const LEFT_OUT: u32 = u32::MAX;

/// Writes `index` into another folder `dir` without the documents whose name comes again behind them: of each name, the last document
/// stays. Returns how many were left out.
///
/// # Errors
/// If the file system refuses; an index that was there stays.
pub fn keep_last(index: &Index, dir: &Path) -> Result<u32, IndexError> {
    let mut last: HashMap<Cow<'_, str>, u32> = HashMap::with_capacity(index.num_docs() as usize);
    for doc in 0..index.num_docs() {
        last.insert(index.external_id(DocId(doc)), doc);
    }
    let mut old_of_new: Vec<u32> = last.into_values().collect();
    old_of_new.sort_unstable();
    let mut new_of_old = vec![LEFT_OUT; index.num_docs() as usize];
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
) -> Result<(), IndexError> {
    let doc_lengths = old_of_new.iter().map(|&old| index.doc_lengths()[old as usize]).collect();
    let external_ids = old_of_new.iter().map(|&old| index.external_id(DocId(old)).into_owned()).collect();
    let mut writer = IndexWriter::create(dir, doc_lengths, external_ids, index.built_with(), index.tokenizer_name())?;
    let norms = writer.norms();
    let tasks = cut(index);
    // A few tasks a thread at a time: what they pack waits in memory until it is written.
    for group in tasks.chunks(rayon::current_num_threads() * 4) {
        let packed: Vec<EncodedLists> = group
            .par_iter()
            .map(|terms| renumber(index, new_of_old, terms.clone(), Arc::clone(&norms)))
            .collect::<Result<_, _>>()?;
        packed.iter().try_for_each(|lists| writer.append(lists))?;
        progress(group.last().map_or(0, |terms| u64::from(terms.end)));
    }
    writer.finish()
}

/// Cuts the vocabulary into ranges of about equal work.
fn cut(index: &Index) -> Vec<Range<u32>> {
    let mut ranges = Vec::new();
    let (mut start, mut postings) = (0, 0);
    for term in 0..index.num_terms() {
        postings += u64::from(index.list(TermId(term)).doc_freq());
        if postings >= POSTINGS_A_TASK || term + 1 == index.num_terms() {
            ranges.push(start..term + 1);
            (start, postings) = (term + 1, 0);
        }
    }
    ranges
}

fn renumber(
    index: &Index,
    new_of_old: &[u32],
    terms: Range<u32>,
    norms: Arc<[f32]>,
) -> Result<EncodedLists, IndexError> {
    let mut encoder = ListEncoder::new(norms);
    let (mut docs, mut freqs) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
    // Document above frequency: sorted as one number.
    let mut postings: Vec<u64> = Vec::new();
    let (mut new_docs, mut new_freqs) = (Vec::new(), Vec::new());
    for term in terms.map(TermId) {
        let list = index.list(term);
        postings.clear();
        for block in 0..list.num_blocks() {
            let len = list.decode_docs(block, &mut docs);
            list.decode_freqs(block, &mut freqs);
            postings.extend(
                docs[..len]
                    .iter()
                    .zip(&freqs)
                    .map(|(&doc, &freq)| u64::from(new_of_old[doc as usize]) << 32 | u64::from(freq)),
            );
        }
        postings.retain(|posting| (posting >> 32) as u32 != LEFT_OUT);
        if postings.is_empty() {
            continue;
        }
        postings.sort_unstable();
        new_docs.clear();
        new_freqs.clear();
        new_docs.extend(postings.iter().map(|posting| (posting >> 32) as u32));
        new_freqs.extend(postings.iter().map(|&posting| posting as u32));
        encoder.add_columns(&index.term_text(term), &new_docs, &new_freqs)?;
    }
    Ok(encoder.take())
}
