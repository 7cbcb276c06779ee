//! Import of other engines' files, and export as [CIFF](crate::corpus::ciff).
//!
//! ```text
//! x.ciff ──CiffReader────┐
//!                        ├── ListSource ──import──▶ index ──export──CiffWriter──▶ x.ciff
//! x.jsonl ──VectorReader─┘
//! ```
//!
//! Postings, lengths, terms and names are equal after a round trip. Impacts and bounds are no part of CIFF. They are
//! computed on import.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;
use tandem_base::base::ids::{DocId, TermId};
use tandem_base::files::write_atomically;

use super::error::BuildError;
use crate::corpus::ciff::{CiffHeader, CiffWriter};
use crate::corpus::{DocumentTable, ListSource, TermList, Tokenizer};
use crate::index::{Bm25, EncodedLists, Index, IndexError, IndexWriter, ListEncoder};

/// Postings that wait to be packed, at 8 bytes each.
const WAITING_POSTINGS: usize = 4 << 20;

/// Options that an exchange file does not contain.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// BM25's parameters for the stored impacts.
    pub bm25: Bm25,
    /// Tokenizer of queries: a [`Tokenizer::name`](crate::corpus::Tokenizer::name).
    pub tokenizer: String,
    /// Whether several documents may have one name.
    pub may_repeat: bool,
}

/// Writes an index of all lists and documents of `source` into folder `dir`, on all of rayon's threads. `progress`
/// receives the number of lists read. Returns the number of terms that no query can contain, because the tokenizer does
/// not produce them. Fails if the source can't be read, has no list or no document, or repeats a name, or if the index
/// can't be written. A previous index stays then.
pub fn import(
    source: &mut dyn ListSource,
    dir: &Path,
    options: &ImportOptions,
    progress: &dyn Fn(u64),
) -> Result<u64, BuildError> {
    // A stem need not be its own stem, so that only the cut into words counts.
    let words = options.tokenizer.split('+').next().unwrap_or_default();
    let tokenizer = Tokenizer::from_name(words).ok();
    let is_reachable = |term: &str| tokenizer.as_ref().is_none_or(|tokenizer| tokenizer.terms(term) == [term]);
    let mut unreachable = 0;
    if !options.may_repeat {
        source.check_names()?;
    }
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

/// Lists between two reports of progress.
const REPORT_LISTS: u64 = 4096;

/// Writes the index as a CIFF file, compressed by gzip if the name ends in `.gz`. `progress` receives the number of
/// lists written. Fails if the file system refuses.
pub fn export_ciff(index: &Index, path: &Path, progress: &dyn Fn(u64)) -> io::Result<()> {
    write_atomically(path, |out| {
        if path.extension().is_some_and(|extension| extension == "gz") {
            let packed = write_ciff(index, GzEncoder::new(out, Compression::default()), progress)?;
            packed.finish()?;
        } else {
            write_ciff(index, out, progress)?;
        }
        Ok(())
    })
}

fn write_ciff<W: Write>(index: &Index, out: W, progress: &dyn Fn(u64)) -> io::Result<W> {
    let header = CiffHeader {
        version: 1,
        num_lists: index.num_terms(),
        num_docs: index.num_docs(),
        total_lists: index.num_terms(),
        total_docs: index.num_docs(),
        total_tokens: index.num_tokens(),
        average_length: index.average_length(),
        description: CiffHeader::describe(index.tokenizer_name()),
    };
    let mut writer = CiffWriter::new(out, &header)?;
    for_each_list(index, progress, |term, docs, freqs| writer.list(term, docs, freqs))?;
    for (doc, &length) in (0..).map(DocId).zip(index.doc_lengths()) {
        writer.document(&index.external_id(doc), length)?;
    }
    Ok(writer.into_inner())
}

/// Passes every term with its documents and frequencies to `write`, in byte order of the terms.
fn for_each_list(
    index: &Index,
    progress: &dyn Fn(u64),
    mut write: impl FnMut(&str, &[u32], &[u32]) -> io::Result<()>,
) -> io::Result<()> {
    for term in (0..index.num_terms()).map(TermId) {
        let (docs, freqs): (Vec<u32>, Vec<u32>) = index.list(term).postings().unzip();
        write(&index.term_text(term), &docs, &freqs)?;
        let written = u64::from(term.0) + 1;
        if written.is_multiple_of(REPORT_LISTS) {
            progress(written);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
