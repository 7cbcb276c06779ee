//! Planning data of each term, in one table.
//!
//! A plan needs the location, length, bound and best scores of a list. The index has them in several places, and a
//! short list must be decoded for some. This table has 32 bytes per term, which is one prefetchable memory read.

use rayon::prelude::*;
use tandem_base::base::ids::TermId;
use tandem_base::base::prefetch::{prefetch_line, use_large_pages};

use super::arguments::TermEntry;
use crate::index::{BLOCK_LEN, BlockBuffer, Bm25, Index, PostingList};
use crate::query::QueryTerm;
use crate::search::placement::list_rows::directory_scale;

/// Ranks with known impacts: those that the index stores.
const RANKS: [usize; 3] = [10, 100, 1000];
/// The most terms of nearly every question.
const USUAL_TERMS: usize = 12;
/// Factor that covers more than three roundings of a short list's impact.
const ROUNDING: f32 = 1.0 - 1.0 / (1 << 20) as f32;

#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
struct TermRecord {
    first_block: u32,
    doc_freq: u32,
    scale: u32,
    /// The weight for a query that has the term once.
    weight: f32,
    max_impact: f32,
    /// Lower bounds of the impacts at [`RANKS`], 0 if unknown.
    kth_impacts: [f32; RANKS.len()],
}

/// Planning data of each term of an index, for one set of BM25 parameters.
#[derive(Debug)]
pub(crate) struct TermTable {
    records: Vec<TermRecord>,
    pub(crate) num_docs: u32,
    bm25: Bm25,
}

impl TermTable {
    /// The data for directories of `directory_stride` entries per block.
    pub(crate) fn new(index: &Index, bm25: Bm25, directory_stride: u32) -> Self {
        let num_terms = index.list_sections().slots.len() as u32;
        let record = |term| TermRecord::new(index, bm25, directory_stride, TermId(term));
        let mut records = Vec::with_capacity(num_terms as usize);
        use_large_pages(records.spare_capacity_mut());
        (0..num_terms).into_par_iter().with_min_len(1024).map(record).collect_into_vec(&mut records);
        Self { records, num_docs: index.num_docs(), bm25 }
    }

    /// A term in the kernels' form, and a score that documents up to `rank` reach by this term alone (0 if unknown).
    /// `rest` holds its own bound. Panics if the index lacks the term.
    #[inline]
    pub(crate) fn entry_and_seed(&self, term: &QueryTerm, rank: Option<Rank>) -> (TermEntry, f32) {
        let record = &self.records[term.term.index()];
        // Doubling is exact, and fast for the quarter of natural questions that have a term twice.
        let weight = match term.qtf {
            1 | 2 => record.weight * term.qtf as f32,
            qtf => self.bm25.weight(self.num_docs, record.doc_freq, qtf),
        };
        let entry = TermEntry {
            first_block: record.first_block,
            doc_freq: record.doc_freq,
            scale: record.scale,
            weight,
            rest: weight * record.max_impact,
        };
        (entry, rank.map_or(0.0, |Rank(at)| weight * record.kth_impacts[at]))
    }

    /// Prefetches the planning data of `terms`. A few terms repeat the last one, since the end of a loop of varying
    /// length would often be predicted wrong.
    #[inline]
    pub(crate) fn prefetch(&self, terms: &[QueryTerm]) {
        let Some(last) = terms.last() else { return };
        let prefetch = |term: &QueryTerm| prefetch_line(self.records.as_ptr().wrapping_add(term.term.index()));
        (0..USUAL_TERMS).for_each(|number| prefetch(terms.get(number).unwrap_or(last)));
        terms.iter().skip(USUAL_TERMS).for_each(prefetch);
    }
}

/// A rank with known scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank(usize);

impl Rank {
    /// The smallest rank of at least `k`.
    pub(crate) fn for_k(k: usize) -> Option<Self> {
        RANKS.iter().position(|&rank| k <= rank).map(Self)
    }
}

impl TermRecord {
    fn new(index: &Index, bm25: Bm25, directory_stride: u32, term: TermId) -> Self {
        // Stored impacts hold for the parameters that the index was built with.
        let has_impacts = bm25 == index.built_with();
        let num_docs = index.num_docs();
        let mut record = match index.long_list(term) {
            Some(list) => Self {
                first_block: list.first_block,
                doc_freq: list.doc_freq,
                scale: directory_scale(num_docs, list.doc_freq, directory_stride),
                max_impact: list.max_impact,
                kth_impacts: RANKS.map(|rank| if has_impacts { index.list(term).kth_impact(rank) } else { 0.0 }),
                weight: 0.0,
            },
            None => {
                let list = index.list(term);
                let (lengths, average) = (index.doc_lengths(), index.average_length());
                Self {
                    first_block: index.blocks().len() as u32 + term.0,
                    doc_freq: list.doc_freq(),
                    scale: 0,
                    max_impact: list.max_impact(),
                    kth_impacts: kth_impacts_of_block(&list, |doc| bm25.norm(lengths[doc as usize], average)),
                    weight: 0.0,
                }
            }
        };
        if !has_impacts {
            record.max_impact = bm25.largest_impact();
        }
        record.weight = bm25.weight(num_docs, record.doc_freq, 1);
        record
    }
}

/// Lower bounds of the impacts at [`RANKS`] of a list of one block.
fn kth_impacts_of_block(list: &PostingList<'_>, norm: impl Fn(u32) -> f32) -> [f32; RANKS.len()] {
    let mut kths = [0.0; RANKS.len()];
    if (list.doc_freq() as usize) < RANKS[0] {
        return kths;
    }
    let mut buffer = BlockBuffer::default();
    let len = list.decode_docs(0, &mut buffer.docs);
    list.decode_freqs(0, &mut buffer.freqs);
    let mut impacts = [0.0_f32; BLOCK_LEN];
    for ((impact, &doc), &freq) in impacts.iter_mut().zip(&buffer.docs[..len]).zip(&buffer.freqs) {
        *impact = Bm25::score(1.0, freq, norm(doc));
    }
    for (kth, rank) in kths.iter_mut().zip(RANKS) {
        if rank <= len {
            *kth = *impacts[..len].select_nth_unstable_by(rank - 1, |a, b| b.total_cmp(a)).1 * ROUNDING;
        }
    }
    kths
}
