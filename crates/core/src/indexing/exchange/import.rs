//! From lists to an index.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use crate::corpus::{DocumentTable, ListSource, TermList, Tokenizer};
use crate::index::{Bm25, EncodedLists, IndexError, IndexWriter, ListEncoder};
use crate::indexing::BuildError;

/// Postings that wait until they are packed: 8 bytes each.
const WAITING_POSTINGS: usize = 4 << 20;

/// What an exchange file does not say.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// BM25's parameters, for the stored impacts.
    pub bm25: Bm25,
    /// How queries are cut into terms: a [`Tokenizer::name`](crate::corpus::Tokenizer::name).
    pub tokenizer: String,
}

/// Writes an index of all lists and documents of `source` into folder `dir`, on all of rayon's threads.
///
/// `progress` is told how many lists are read. Returns how many terms no query can ask for, since the tokenizer cuts no text into
/// them.
///
/// # Errors
/// If the source can't be read, has no list or no document, or the index can't be written. An index that
/// was there stays then.
pub fn import(
    source: &mut dyn ListSource,
    dir: &Path,
    options: &ImportOptions,
    progress: &dyn Fn(u64),
) -> Result<u64, BuildError> {
    // A stem need not be its own stem: what counts is how words are cut.
    let words = options.tokenizer.split('+').next().unwrap_or_default();
    let tokenizer = Tokenizer::from_name(words).ok();
    let is_reachable = |term: &str| tokenizer.as_ref().is_none_or(|tokenizer| tokenizer.terms(term) == [term]);
    let mut unreachable = 0;
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
            unreachable += u64::from(!is_reachable(&list.term));
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
    writer.finish()?;
    Ok(unreachable)
}

/// Packs lists on all threads; the results are in order.
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
