//! Tokens of a collection in the order of its documents, for experiments on one CPU indexer.

use tandem_engine::corpus::Cutter;
use tandem_engine::indexing::postings::Postings;

use super::bench::Bench;
use crate::Result;
use crate::wei::trie::buffer::{Buffer, for_each_term};
use crate::wei::trie::dictionary::Dictionary;

/// Runs, of which the fastest counts.
const REPEATS: usize = 3;

/// Terms of tokens, one behind another, with the document of each.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    text: Vec<u8>,
    /// Document, and end in `text`, of each token.
    ends: Vec<(u32, u32)>,
    docs: u32,
}

/// A collection as a parser leaves it, and as a parser that does not regroup leaves it.
pub(super) struct Parsed {
    pub(super) buffer: Buffer,
    pub(super) tokens: Tokens,
    /// Time of parsing with regrouping and without.
    pub(super) seconds: [f64; 2],
}

impl Tokens {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn num_docs(&self) -> u32 {
        self.docs
    }

    pub(super) fn push(&mut self, doc: u32, term: &[u8]) {
        self.text.extend_from_slice(term);
        self.ends.push((doc, self.text.len() as u32));
    }

    /// Calls `visit` with the document and the term of each token.
    pub(super) fn for_each(&self, mut visit: impl FnMut(u32, &[u8])) {
        let mut begin = 0;
        for &(doc, end) in &self.ends {
            visit(doc, &self.text[begin..end as usize]);
            begin = end as usize;
        }
    }
}

impl Parsed {
    /// Parses the whole collection on this thread, both ways, the fastest of some runs each.
    pub(super) fn of(bench: &Bench<'_>) -> Result<Self> {
        let mut parsed = Self { buffer: Buffer::default(), tokens: Tokens::default(), seconds: [f64::INFINITY; 2] };
        for _ in 0..REPEATS {
            let (mut buffer, mut tokens, mut seconds) = (Buffer::default(), Tokens::default(), [0.0; 2]);
            let mut cutter = Cutter::default();
            bench.for_each_batch(|batch, tokenizer| {
                let began = std::time::Instant::now();
                buffer.parse(batch, tokenizer, &mut cutter)?;
                seconds[0] += began.elapsed().as_secs_f64();
                let began = std::time::Instant::now();
                let mut doc = tokens.docs;
                batch.for_each(|document| {
                    for text in [&document.title, &document.text] {
                        for_each_term(tokenizer, text, &mut cutter, |term| tokens.push(doc, term));
                    }
                    doc += 1;
                })?;
                tokens.docs = doc;
                seconds[1] += began.elapsed().as_secs_f64();
                Ok(())
            })?;
            for (fastest, seconds) in parsed.seconds.iter_mut().zip(seconds) {
                *fastest = fastest.min(seconds);
            }
            (parsed.buffer, parsed.tokens) = (buffer, tokens);
        }
        Ok(parsed)
    }
}

/// A serial indexer: a dictionary with a list of documents per term.
#[derive(Debug, Default)]
pub(super) struct SerialIndexer {
    dictionary: Dictionary,
    postings: Postings,
}

impl SerialIndexer {
    /// Returns the trees.
    pub(super) fn into_dictionary(self) -> Dictionary {
        self.dictionary
    }

    #[inline]
    pub(super) fn add(&mut self, slot: u16, bytes: &[u8], doc: u32) {
        let term = self.dictionary.insert(slot, bytes);
        self.postings.count(term, doc);
    }
}

/// Returns nanoseconds per token of the fastest of some runs of `index`, each with an indexer of its own.
pub(super) fn ns_per_token(tokens: usize, mut index: impl FnMut()) -> f64 {
    let seconds = (0..REPEATS).map(|_| {
        let began = std::time::Instant::now();
        index();
        began.elapsed().as_secs_f64()
    });
    1e9 * seconds.fold(f64::INFINITY, f64::min) / tokens.max(1) as f64
}
