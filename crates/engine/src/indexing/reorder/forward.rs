//! The terms of each document, as bisection reads them.

use tandem_base::base::ids::TermId;

use crate::index::{BLOCK_LEN, Index};

/// Some documents with their terms, row by row.
///
/// Terms are renumbered for these documents, the most frequent of the collection first, so that a few thousand numbers
/// are most of what is read.
/// numbers make up most of what is read.
#[derive(Debug)]
pub(crate) struct Forward {
    /// The documents, ascending.
    pub(crate) docs: Vec<u32>,
    /// Start of each row in `terms`, and the end of the last.
    starts: Vec<usize>,
    terms: Vec<u32>,
    pub(crate) num_terms: usize,
}

impl Forward {
    /// All documents of `index`, with the terms that occur in `min_freq` to `max_freq` documents.
    pub(crate) fn new(index: &Index, min_freq: u32, max_freq: u32) -> Self {
        let mut chosen: Vec<(u32, TermId)> = (0..index.num_terms())
            .map(|term| (index.list(TermId(term)).doc_freq(), TermId(term)))
            .filter(|(doc_freq, _)| (min_freq..=max_freq).contains(doc_freq))
            .collect();
        chosen.sort_unstable_by_key(|&(doc_freq, term)| (std::cmp::Reverse(doc_freq), term));
        let num_docs = index.num_docs() as usize;
        let mut starts = vec![0_usize; num_docs + 1];
        for_each_posting(index, &chosen, |_, doc| starts[doc as usize + 1] += 1);
        for doc in 0..num_docs {
            starts[doc + 1] += starts[doc];
        }
        let mut terms = vec![0; starts[num_docs]];
        let mut ends = starts.clone();
        for_each_posting(index, &chosen, |term, doc| {
            let end = &mut ends[doc as usize];
            terms[*end] = term;
            *end += 1;
        });
        Self { docs: (0..num_docs as u32).collect(), starts, terms, num_terms: chosen.len() }
    }

    /// The terms of the row at `row`, ascending.
    #[inline]
    pub(crate) fn row(&self, row: u32) -> &[u32] {
        &self.terms[self.starts[row as usize]..self.starts[row as usize + 1]]
    }

    /// Some of the rows, with the terms that at least two of them contain. Other terms say nothing about the order
    /// within. `doc_freqs` counts the rows that contain each term.
    pub(crate) fn part(&self, rows: &[u32], doc_freqs: &[u32]) -> Self {
        const LEFT_OUT: u32 = u32::MAX;
        let mut num_terms = 0;
        let mut num_postings = 0;
        let renumbered: Vec<u32> = doc_freqs
            .iter()
            .map(|&doc_freq| {
                if doc_freq < 2 {
                    return LEFT_OUT;
                }
                num_postings += doc_freq as usize;
                num_terms += 1;
                num_terms - 1
            })
            .collect();
        let mut starts = Vec::with_capacity(rows.len() + 1);
        let mut terms = Vec::with_capacity(num_postings);
        starts.push(0);
        for &row in rows {
            terms.extend(self.row(row).iter().map(|&term| renumbered[term as usize]).filter(|&term| term != LEFT_OUT));
            starts.push(terms.len());
        }
        let docs = rows.iter().map(|&row| self.docs[row as usize]).collect();
        Self { docs, starts, terms, num_terms: num_terms as usize }
    }
}

/// Passes each term's position in `chosen` and each of its documents to `visit`.
fn for_each_posting(index: &Index, chosen: &[(u32, TermId)], mut visit: impl FnMut(u32, u32)) {
    let mut docs = [0; BLOCK_LEN];
    for (number, &(_, term)) in (0..).zip(chosen) {
        let list = index.list(term);
        for block in 0..list.num_blocks() {
            let len = list.decode_docs(block, &mut docs);
            docs[..len].iter().for_each(|&doc| visit(number, doc));
        }
    }
}
