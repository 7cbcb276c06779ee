//! Import of an index from exchange files.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use crate::corpus::{DocumentTable, ListSource, TermList};
use crate::index::{Bm25, EncodedLists, IndexError, IndexWriter, ListEncoder};
use crate::indexing::BuildError;

/// Postings that wait to be packed, at 8 bytes each.
const WAITING_POSTINGS: usize = 4 << 20;

/// Options that an exchange file does not contain.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// BM25's parameters for the stored impacts.
    pub bm25: Bm25,
    /// Tokenizer of queries: a [`Tokenizer::name`](crate::corpus::Tokenizer::name).
    pub tokenizer: String,
}

/// Writes an index of all lists and documents of `source` into folder `dir`, on all of rayon's threads. `progress`
/// receives the number of lists read.
///
/// # Errors
/// If the source can't be read, has no list or no document, or the index can't be written. A previous index stays then.
pub fn import(
    source: &mut dyn ListSource,
    dir: &Path,
    options: &ImportOptions,
    progress: &dyn Fn(u64),
) -> Result<(), BuildError> {
    let DocumentTable { lengths, external_ids } = source.take_documents();
    let mut writer = IndexWriter::create(dir, lengths, external_ids, options.bm25, &options.tokenizer)?;
    let norms = writer.norms();
    let mut waiting: Vec<TermList> = Vec::new();
    let (mut num_waiting, mut num_read) = (0, 0);
    loop {
        let mut list = TermList::default();
        let is_list = source.next_list(&mut list)?;
        if is_list {
            num_read += 1;
            num_waiting += list.docs.len();
            waiting.push(list);
        }
        if num_waiting >= WAITING_POSTINGS || !is_list {
            for packed in pack(&waiting, &norms)? {
                writer.append(&packed)?;
            }
            waiting.clear();
            num_waiting = 0;
            progress(num_read);
        }
        if !is_list {
            break;
        }
    }
    Ok(writer.finish()?)
}

/// Packs lists on all threads and returns the results in order.
fn pack(lists: &[TermList], norms: &Arc<[f32]>) -> Result<Vec<EncodedLists>, IndexError> {
    let share = lists.len().div_ceil(rayon::current_num_threads() * 4).max(1);
    lists
        .par_chunks(share)
        .map(|lists| {
            let mut encoder = ListEncoder::new(Arc::clone(norms));
            for list in lists {
                encoder.add_columns(&list.term, &list.docs, &list.freqs)?;
            }
            Ok(encoder.take())
        })
        .collect()
}
