//! Cursors through a run's lists, in byte order of the terms.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use super::interner::first_eight;
use super::run::{BLOCK_BYTES, Run};
use crate::indexing::error::BuildError;
use crate::indexing::postings::take;

/// A position in a run: a term and its postings.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    run: &'a Run,
    /// Number of the run. Equal terms are ordered by it.
    number: usize,
    /// The block after the current one.
    next_block: usize,
    block: Cow<'a, [u8]>,
    at: usize,
    term: Range<usize>,
    postings: Range<usize>,
    /// The term's first bytes, which compare as the terms do.
    key: u64,
}

impl<'a> Cursor<'a> {
    /// A cursor at the first term of `run` that is at least `from`, or `None` if there is none.
    pub(crate) fn seek(run: &'a Run, number: usize, from: &[u8]) -> Result<Option<Self>, BuildError> {
        let mut cursor = Self {
            run,
            number,
            next_block: run.block_of(from),
            block: Cow::Borrowed(&[]),
            at: 0,
            term: 0..0,
            postings: 0..0,
            key: 0,
        };
        loop {
            if !cursor.advance()? {
                return Ok(None);
            }
            if cursor.term() >= from {
                return Ok(Some(cursor));
            }
        }
    }

    /// Moves to the next term. Returns false past the last one.
    pub(crate) fn advance(&mut self) -> Result<bool, BuildError> {
        if self.at == self.block.len() {
            if self.next_block == self.run.num_blocks() {
                return Ok(false);
            }
            let buffer = match std::mem::take(&mut self.block) {
                // A buffer that held a long list is dropped.
                Cow::Owned(buffer) if buffer.capacity() <= 2 * BLOCK_BYTES => buffer,
                Cow::Owned(_) | Cow::Borrowed(_) => Vec::new(),
            };
            self.block = self.run.block(self.next_block, buffer)?;
            self.next_block += 1;
            self.at = 0;
        }
        let mut rest = &self.block[self.at..];
        let whole = rest.len();
        let mut range = || -> Option<Range<usize>> {
            let len = take(&mut rest) as usize;
            let start = self.at + whole - rest.len();
            rest = rest.get(len..)?;
            Some(start..start + len)
        };
        let (Some(term), Some(postings)) = (range(), range()) else {
            return Err(self.run.damaged("a list is cut short"));
        };
        (self.at, self.term, self.postings) = (postings.end, term, postings);
        self.key = first_eight(&self.block[self.term.clone()]).swap_bytes();
        Ok(true)
    }

    pub(crate) fn term(&self) -> &[u8] {
        &self.block[self.term.clone()]
    }

    pub(crate) fn postings(&self) -> &[u8] {
        &self.block[self.postings.clone()]
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Orders by term, then by run.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let by_term = self.key.cmp(&other.key).then_with(|| self.term().cmp(other.term()));
        by_term.then(self.number.cmp(&other.number))
    }
}
