//! An index in parts, by ranges of documents.

use std::ops::Range;
use std::sync::Arc;

use tandem_core::base::ids::TermId;
use tandem_core::index::{BLOCK_LEN, Index, IndexBuilder, IndexError, PostingList};
use tandem_core::search::cpu::multicore::worker::ABSENT;

/// An index cut by documents into parts, each an index of its own.
///
/// Documents keep their numbers and lengths, so that norms and results are those of the whole.
#[derive(Debug)]
pub struct PartitionedIndex {
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) index: Arc<Index>,
    /// Its terms, by those of the whole; [`ABSENT`] where it has no such list.
    pub(crate) terms: Arc<[u32]>,
}

impl PartitionedIndex {
    /// Cuts `index` into `parts` ranges of equal length, on as many threads: the lists of terms that `is_asked` takes,
    /// and no others, which count as empty. With all of them it takes as much memory again as the index.
    ///
    /// # Errors
    /// If there is no room for temporary files.
    pub fn build(index: &Index, parts: usize, is_asked: impl Fn(TermId) -> bool + Sync) -> Result<Self, IndexError> {
        let is_asked = &is_asked;
        let num_docs = u64::from(index.num_docs());
        let bound = |part: usize| (num_docs * part as u64 / parts as u64) as u32;
        let parts = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..parts)
                .map(|part| scope.spawn(move || Part::build(index, bound(part)..bound(part + 1), is_asked)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Result<_, _>>()
        })?;
        Ok(Self { parts })
    }
}

impl Part {
    /// The lists of some terms, as far as they are inside of `docs`.
    fn build(index: &Index, docs: Range<u32>, is_asked: impl Fn(TermId) -> bool) -> Result<Self, IndexError> {
        let mut builder = IndexBuilder::new(index.doc_lengths().to_vec(), Vec::new(), index.built_with());
        let mut terms = vec![ABSENT; index.num_terms() as usize];
        let (mut own_terms, mut postings) = (0, Vec::new());
        for (term, own) in (0..).zip(&mut terms).filter(|&(term, _)| is_asked(TermId(term))) {
            postings.clear();
            read_range(index.list(TermId(term)), &docs, &mut postings);
            if !postings.is_empty() {
                // A number's digits: in byte order as the terms are, and shorter than most words.
                builder.add(&format!("{term:08x}"), &postings)?;
                *own = own_terms;
                own_terms += 1;
            }
        }
        if own_terms == 0 {
            // An index needs a list; this one is never asked for.
            builder.add("nothing", &[(docs.start.min(index.num_docs() - 1), 1)])?;
        }
        let dir = tempfile::tempdir().map_err(|source| IndexError::Io { path: std::env::temp_dir(), source })?;
        builder.write(dir.path())?;
        // The file stays mapped after its folder is gone.
        Ok(Self { index: Arc::new(Index::open(dir.path())?), terms: terms.into() })
    }
}

/// Appends the postings of `list` inside of `range`.
fn read_range(list: PostingList<'_>, range: &Range<u32>, postings: &mut Vec<(u32, u32)>) {
    let (mut docs, mut freqs) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
    let first = list.last_docs().partition_point(|&last| last < range.start);
    for block in first..list.num_blocks() {
        let len = list.decode_docs(block, &mut docs);
        if docs[0] >= range.end {
            return;
        }
        list.decode_freqs(block, &mut freqs);
        let pairs = docs[..len].iter().zip(&freqs).filter(|(doc, _)| range.contains(*doc));
        postings.extend(pairs.map(|(&doc, &freq)| (doc, freq)));
    }
}
