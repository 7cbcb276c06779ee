//! One core on a range of the documents.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tandem_engine::index::Bm25;
use tandem_engine::query::{Query, QueryTerm};
use tandem_engine::search::{ExecError, Execution, Executor, Hit, TopK, check};
use tandem_model::base::machine::Class;
use tandem_model::traffic::Mode;

use crate::ding::daat::cursor::{Advance, Cursor};
use crate::ding::daat::lists::CodedLists;
use crate::ding::daat::small_adaptive::intersect;

/// Intersects lists on the caller's core; answers AND only, as in the paper.
#[derive(Debug)]
pub(crate) struct Core {
    lists: Arc<CodedLists>,
    docs: Range<u32>,
    best: TopK,
}

impl Core {
    /// Makes a core for `docs`, which decodes block after block: "the next skip block is decompressed" (section 3.2.4).
    pub(crate) fn new(lists: Arc<CodedLists>, docs: Range<u32>) -> Self {
        Self { lists, docs, best: TopK::default() }
    }

    /// Makes a core for all documents.
    pub(crate) fn whole(lists: &Arc<CodedLists>) -> Self {
        Self::new(Arc::clone(lists), 0..lists.num_docs())
    }

    pub(crate) fn time_us(&mut self, terms: &[QueryTerm], k: usize) -> f64 {
        let mut hits = Vec::new();
        let began = Instant::now();
        self.intersect(terms, k, &mut hits);
        began.elapsed().as_secs_f64() * 1e6
    }

    /// Finds the best `k` documents of the core's range that have all terms.
    pub(crate) fn intersect(&mut self, terms: &[QueryTerm], k: usize, hits: &mut Vec<Hit>) {
        let lists = &*self.lists;
        let mut cursors: Vec<Cursor<'_>> = terms.iter().map(|term| lists.cursor(term.term)).collect();
        let weights: Vec<f32> = terms.iter().map(|term| lists.weight(term)).collect();
        if self.docs.start > 0 {
            for cursor in &mut cursors {
                let block = cursor.find_block(self.docs.start);
                cursor.start_at(block);
            }
        }
        let best = &mut self.best;
        best.reset(k);
        intersect(&mut cursors, self.docs.start, self.docs.end, Advance::BlockByBlock, |doc, cursors| {
            let norm = lists.norm(doc);
            let shares = cursors.iter_mut().zip(&weights).map(|(cursor, &weight)| {
                let place = cursor.place();
                Bm25::score(weight, cursor.freq(place), norm)
            });
            best.offer(doc, shares.reduce(|score, share| score + share).unwrap_or(0.0));
        });
        best.drain_into(hits);
    }
}

impl Executor for Core {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        format!("one core, Small Adaptive, lists in {}", self.lists.codec())
    }

    fn search(&mut self, query: &Query, _: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        check(query, k)?;
        self.intersect(&query.terms, k, hits);
        Ok(Execution::default())
    }
}
