//! An index in parts by ranges of documents.

use std::ops::Range;
use std::sync::Arc;

use crate::ding::daat::lists::postings;
use tandem_core::base::ids::TermId;
use tandem_core::index::{Index, IndexBuilder, IndexError};
use tandem_core::search::cpu::multicore::worker::ABSENT;

/// An index cut by documents into parts, each an index of its own.
///
/// Documents keep their numbers and lengths, so that norms and results are those of the whole index.
#[derive(Debug)]
pub struct PartitionedIndex {
    pub(crate) parts: Vec<IndexPart>,
}

#[derive(Debug)]
pub(crate) struct IndexPart {
    pub(crate) index: Arc<Index>,
    /// Term of the part for each term of the whole index; [`ABSENT`] if the part lacks its list.
    pub(crate) terms: Arc<[u32]>,
}

impl PartitionedIndex {
    /// Cuts `index` into `parts` ranges of equal length, on as many threads. Only lists of terms that `is_asked`
    /// accepts are kept. With all terms the parts take as much memory as the index.
    ///
    /// # Errors
    /// Fails if there is no room for temporary files.
    pub fn build(index: &Index, parts: usize, is_asked: impl Fn(TermId) -> bool + Sync) -> Result<Self, IndexError> {
        let is_asked = &is_asked;
        let num_docs = u64::from(index.num_docs());
        let bound = |part: usize| (num_docs * part as u64 / parts as u64) as u32;
        let parts = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..parts)
                .map(|part| scope.spawn(move || IndexPart::build(index, bound(part)..bound(part + 1), is_asked)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Result<_, _>>()
        })?;
        Ok(Self { parts })
    }
}

impl IndexPart {
    /// Makes an index of the lists of some terms inside `docs`.
    fn build(index: &Index, docs: Range<u32>, is_asked: impl Fn(TermId) -> bool) -> Result<Self, IndexError> {
        let mut builder = IndexBuilder::new(index.doc_lengths().to_vec(), Vec::new(), index.built_with());
        let mut terms = vec![ABSENT; index.num_terms() as usize];
        let mut own_terms = 0;
        for (term, own) in (0..).zip(&mut terms).filter(|&(term, _)| is_asked(TermId(term))) {
            let (docs, freqs) = postings(index, TermId(term), &docs);
            let postings: Vec<(u32, u32)> = docs.into_iter().zip(freqs).collect();
            if !postings.is_empty() {
                // Hexadecimal numbers are in the byte order of the terms, and shorter than most words.
                builder.add(&format!("{term:08x}"), &postings)?;
                *own = own_terms;
                own_terms += 1;
            }
        }
        if own_terms == 0 {
            // An index needs a list; no query uses this one.
            builder.add("nothing", &[(docs.start.min(index.num_docs() - 1), 1)])?;
        }
        let dir = tempfile::tempdir().map_err(|source| IndexError::Io { path: std::env::temp_dir(), source })?;
        builder.write(dir.path())?;
        // The file stays mapped after its folder is removed.
        Ok(Self { index: Arc::new(Index::open(dir.path())?), terms: terms.into() })
    }
}
