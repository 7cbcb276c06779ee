//! The kernels' twin on the host, which makes the same lists by other means.

use std::collections::{BTreeMap, HashMap};

use super::backend::{Backend, Counts, DistinctWords, InvertedRun, Room, STOP, WordPlace, most_tokens, most_words};
use crate::corpus::{Tokenizer, Words};
use crate::indexing::postings::put;
use crate::search::device::GpuError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Sending(usize),
    Counting(usize),
    Fetching(usize),
    Inverting(usize),
}

/// A simulated device.
#[derive(Debug, Default)]
pub(crate) struct Twin {
    room: Room,
    memory: Vec<u8>,
    words: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
    /// Word and document of each token.
    tokens: Vec<(u32, u32)>,
    num_docs: u32,
    /// Counts before the last piece.
    counts: Counts,
    fault: Option<Fault>,
    calls: [usize; 4],
}

impl Twin {
    pub(crate) fn new(piece_bytes: usize, fault: Option<Fault>) -> Self {
        let room = Room {
            piece_bytes,
            piece_docs: piece_bytes / 16,
            text_bytes: 5 * piece_bytes,
            docs: piece_bytes,
            tokens: most_tokens(4 * piece_bytes),
            words: 3 * most_words(piece_bytes),
        };
        Self { room, memory: vec![0; piece_bytes], fault, ..Self::default() }
    }

    fn call(&mut self, kind: usize, fault: fn(usize) -> Fault) -> Result<(), GpuError> {
        let number = self.calls[kind];
        self.calls[kind] += 1;
        if self.fault == Some(fault(number)) {
            return Err(GpuError::Failed { doing: "a test".to_owned(), message: format!("call {number} fails") });
        }
        Ok(())
    }
}

impl Backend for Twin {
    fn room(&self) -> Room {
        self.room
    }

    fn piece(&mut self) -> Result<&mut [u8], GpuError> {
        Ok(&mut self.memory)
    }

    fn send(&mut self, len: usize, doc_ends: &[u32], words: Words) -> Result<(), GpuError> {
        self.call(0, Fault::Sending)?;
        self.counts = Counts { tokens: self.tokens.len(), words: self.words.len() };
        let mut start = 0;
        for &end in doc_ends {
            let text = &self.memory[start..end as usize];
            Tokenizer::for_each_simple_word(words, text, |word| {
                let next = self.numbers.len() as u32;
                let number = *self.numbers.entry(word.to_vec()).or_insert(next);
                if number == next {
                    self.words.push(word.to_vec());
                }
                self.tokens.push((number, self.num_docs));
            });
            self.num_docs += 1;
            start = end as usize;
        }
        assert_eq!(start, len);
        assert!(self.tokens.len() <= self.room.tokens && self.words.len() <= self.room.words);
        assert!(self.num_docs as usize <= self.room.docs);
        Ok(())
    }

    fn counts(&mut self) -> Result<Counts, GpuError> {
        self.call(1, Fault::Counting)?;
        Ok(self.counts)
    }

    fn distinct_words(&mut self, words: &mut DistinctWords) -> Result<(), GpuError> {
        self.call(2, Fault::Fetching)?;
        words.text.clear();
        words.places.clear();
        for word in &self.words {
            words.places.push(WordPlace { start: words.text.len() as u32, len: word.len() as u32 });
            words.text.extend_from_slice(word);
        }
        Ok(())
    }

    fn invert(&mut self, terms: &[u32], num_terms: u32, run: &mut InvertedRun) -> Result<(), GpuError> {
        self.call(3, Fault::Inverting)?;
        let mut postings: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        run.doc_lengths = vec![0; self.num_docs as usize];
        for &(word, doc) in self.tokens.iter().filter(|(word, _)| terms[*word as usize] != STOP) {
            *postings.entry((terms[word as usize], doc)).or_default() += 1;
            run.doc_lengths[doc as usize] += 1;
        }
        run.lists.clear();
        run.starts.clear();
        let mut next = 0;
        for ((term, doc), freq) in postings {
            if term as usize == run.starts.len() {
                run.starts.push(run.lists.len() as u32);
                next = 0;
            }
            put(&mut run.lists, (doc - next) << 1 | u32::from(freq > 1));
            if freq > 1 {
                put(&mut run.lists, freq);
            }
            next = doc + 1;
        }
        assert_eq!(run.starts.len(), num_terms as usize);
        let room = self.room;
        *self = Self { calls: self.calls, ..Self::new(room.piece_bytes, self.fault) };
        Ok(())
    }
}
