//! Where lists begin, and how good they can be, in every window of documents.
//!
//! One pass over the blocks of each list, reading their last documents and bounds but no posting, fills a table with a
//! row a window and a column a term:
//!
//! ```text
//! window      0 ..4095       4096 ..8191    8192 ..
//! rare     |  3.1 @0       |  3.1 @0      |  2.6 @1       one block spans many windows
//! common   |  0.9 @0       |  1.2 @3      |  0.7 @7       many blocks in one: the best of their bounds
//! sum      |  4.0          |  4.3         |  3.3          no document of the window scores more
//! ```
//!
//! Source: the range maxima of Dimopoulos, Nepomnyachiy and Suel, "A Candidate Filtering Mechanism for Fast Top-k Query
//! Processing on Modern CPUs", SIGIR 2013 (live blocks), computed here from the blocks' maxima at query time.

use std::ops::Range;

use super::window::Window;
use crate::exec::cpu::blocks::Term;

/// A bound and a first block for every window and term, kept from query to query.
#[derive(Debug, Default)]
pub(crate) struct WindowTable {
    docs: Range<u32>,
    /// A window's documents are two to this power.
    window_bits: u32,
    num_terms: usize,
    first_term: usize,
    /// One a window and term, window by window.
    bounds: Vec<f32>,
    first_blocks: Vec<u32>,
    /// One a window.
    sums: Vec<f32>,
}

impl WindowTable {
    /// Fills the table for the documents of `docs`, not empty, in windows of `window_docs`, a power of two. Terms
    /// before `first_term` are left out.
    pub(crate) fn fill(&mut self, terms: &[Term<'_>], first_term: usize, docs: Range<u32>, window_docs: usize) {
        let num_windows = docs.len().div_ceil(window_docs);
        self.window_bits = window_docs.trailing_zeros();
        self.num_terms = terms.len();
        self.first_term = first_term;
        self.docs = docs;
        self.bounds.clear();
        self.bounds.resize(num_windows * terms.len(), 0.0);
        self.first_blocks.clear();
        self.first_blocks.resize(num_windows * terms.len(), 0);
        for (column, term) in terms.iter().enumerate().skip(first_term) {
            self.fill_column(column, term);
        }
        self.sums.clear();
        self.sums.extend(self.bounds.chunks_exact(terms.len()).map(|row| row.iter().sum::<f32>()));
    }

    fn fill_column(&mut self, column: usize, term: &Term<'_>) {
        let num_windows = self.bounds.len() / self.num_terms;
        let window_of = |doc: u32| ((doc - self.docs.start) >> self.window_bits) as usize;
        let last_docs = term.list.last_docs();
        let first = last_docs.partition_point(|&last_doc| last_doc < self.docs.start);
        let mut bounds = self.bounds[column..].iter_mut().step_by(self.num_terms);
        let mut first_blocks = self.first_blocks[column..].iter_mut().step_by(self.num_terms);
        // The window that is open, the first that isn't filled.
        let mut current = bounds.next().zip(first_blocks.next());
        let mut window = 0;
        if let Some((_, first_block)) = &mut current {
            **first_block = first as u32;
        }
        for (block, &last_doc) in last_docs.iter().enumerate().skip(first) {
            let bound = term.block_bound(block);
            let last_window = window_of(last_doc.min(self.docs.end - 1));
            loop {
                let Some((best, _)) = &mut current else { return };
                **best = best.max(bound);
                if window >= last_window {
                    break;
                }
                window += 1;
                current = bounds.next().zip(first_blocks.next());
                if let Some((_, first_block)) = &mut current {
                    **first_block = block as u32;
                }
            }
            // A block that ends where its window ends leaves nothing to the next one.
            let is_last = last_doc < self.docs.end && window_of(last_doc + 1) > last_window;
            if is_last || last_doc >= self.docs.end {
                window += 1;
                if window >= num_windows {
                    return;
                }
                current = bounds.next().zip(first_blocks.next());
                if let Some((_, first_block)) = &mut current {
                    **first_block = block as u32 + 1;
                }
            }
        }
        // Windows past the list's end keep a bound of 0; nobody looks for their first block.
    }

    /// How many windows there are.
    pub(crate) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Upper bound of the score of any document in window `window`.
    #[inline]
    pub(crate) fn sum(&self, window: usize) -> f32 {
        self.sums[window]
    }

    /// Window `window`.
    #[inline]
    pub(crate) fn window(&self, window: usize) -> Window<'_> {
        let row = window * self.num_terms..(window + 1) * self.num_terms;
        let start = self.docs.start + ((window as u32) << self.window_bits);
        Window {
            start,
            end: start.saturating_add(1 << self.window_bits).min(self.docs.end),
            bounds: &self.bounds[row.clone()],
            first_blocks: &self.first_blocks[row],
            first_term: self.first_term,
            end_of_essential: self.num_terms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::cpu::blocks::ImpactBounds;
    use crate::index::Index;

    #[test]
    fn every_window_knows_its_first_block_and_bounds_its_postings() {
        for (step, len) in [(1, 20_000), (3, 5000), (32, 129), (32, 1000), (97, 300), (4096, 5), (7, 100), (1, 4096)] {
            let lists =
                [("a", (0..len).map(|i| (i * step + 5, 1 + i % 9)).collect::<Vec<_>>()), ("b", vec![(33_000, 1)])];
            let index = Index::from_lists(&lists).unwrap();
            let bounds = ImpactBounds::new(&index, index.built_with());
            let list = index.list(index.term("a").unwrap());
            let term = Term::new(list, 2.0, bounds);
            let ranges = [0..33_001, 100..9000, 4096..8192, 8191..8193];
            for (docs, window_docs) in ranges.into_iter().flat_map(|docs| [(docs.clone(), 4096), (docs, 16_384)]) {
                let mut table = WindowTable::default();
                table.fill(&[term, term], 0, docs.clone(), window_docs);
                assert_eq!(table.len(), docs.len().div_ceil(window_docs));
                for number in 0..table.len() {
                    let window = table.window(number);
                    let first = list.last_docs().partition_point(|&last| last < window.start);
                    let inside = list.postings().filter(|(doc, _)| (window.start..window.end).contains(doc)).count();
                    let bound = window.bounds[1];
                    if inside > 0 {
                        assert_eq!(window.first_blocks[1] as usize, first, "{step} {len} {docs:?} {number}");
                        let mut best = 0.0_f32;
                        for block in first..list.num_blocks() {
                            best = best.max(term.block_bound(block));
                            if list.last_doc(block) >= window.end - 1 {
                                break;
                            }
                        }
                        assert_eq!(bound, best, "{step} {len} {docs:?} {number}");
                        assert_eq!(table.sum(number), 2.0 * bound);
                    } else {
                        assert!(bound <= term.bound);
                    }
                }
            }
        }
    }
}
