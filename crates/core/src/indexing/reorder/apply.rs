//! Writing an index in another order of documents.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::Permutation;
use crate::base::ids::{DocId, TermId};
use crate::index::{BLOCK_LEN, EncodedLists, Index, IndexError, IndexWriter, ListEncoder};

/// Postings per task.
const POSTINGS_A_TASK: u64 = 1 << 18;

/// Writes `index` into folder `dir` with renumbered documents, on all of rayon's threads. Names and lengths move with
/// the documents. Documents without names are named by their old numbers. `progress` receives the number of terms
/// written.
///
/// # Errors
/// If the permutation is of another number of documents, or the file system fails. A previous index stays then.
pub fn apply(index: &Index, permutation: &Permutation, dir: &Path, progress: &dyn Fn(u64)) -> Result<(), IndexError> {
    let old_of_new = permutation.old_of_new();
    if old_of_new.len() != index.num_docs() as usize {
        let message = format!("a permutation of {} documents for an index of {}", old_of_new.len(), index.num_docs());
        return Err(IndexError::Collection(message));
    }
    let doc_lengths = old_of_new.iter().map(|&old| index.doc_lengths()[old as usize]).collect();
    let external_ids = old_of_new.iter().map(|&old| index.external_id(DocId(old)).into_owned()).collect();
    let mut writer = IndexWriter::create(dir, doc_lengths, external_ids, index.built_with(), index.tokenizer_name())?;
    let norms = writer.norms();
    let tasks = cut(index);
    for group in tasks.chunks(rayon::current_num_threads() * 4) {
        let packed: Vec<EncodedLists> = group
            .par_iter()
            .map(|terms| renumber(index, permutation, terms.clone(), Arc::clone(&norms)))
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
    permutation: &Permutation,
    terms: Range<u32>,
    norms: Arc<[f32]>,
) -> Result<EncodedLists, IndexError> {
    let mut encoder = ListEncoder::new(norms);
    let (mut docs, mut freqs) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
    // A document in the high half and its frequency in the low half sort as one number.
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
                    .map(|(&doc, &freq)| u64::from(permutation.new_of_old()[doc as usize]) << 32 | u64::from(freq)),
            );
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
