//! Words that are collected in order to be counted together.
//!
//! Counting a word reads three places in memory that are seldom cached: its slot among all words, its list's head, and
//! the list's end. One word after another would wait for each. Therefore the slots of many words are read first, then
//! all heads, so that the processor waits for many at once.

use std::hint::black_box;

use super::interner::{Hashed, Interner};
use crate::indexing::postings::Postings;

const WORDS: usize = 64;

#[derive(Debug)]
pub(crate) struct Pending {
    text: Vec<u8>,
    words: Vec<Word>,
    lists: Vec<u32>,
}

/// End of a word in the text, and its hash.
#[derive(Clone, Copy, Debug)]
struct Word {
    end: u32,
    hashed: Hashed,
}

impl Default for Pending {
    fn default() -> Self {
        Self { text: Vec::new(), words: Vec::with_capacity(WORDS), lists: Vec::with_capacity(WORDS) }
    }
}

impl Pending {
    /// Adds a word. Returns whether it is time to count.
    #[inline]
    pub(crate) fn push(&mut self, word: &[u8]) -> bool {
        self.text.extend_from_slice(word);
        self.words.push(Word { end: self.text.len() as u32, hashed: Hashed::of(word) });
        self.words.len() == WORDS
    }

    /// Counts all words in `doc` and removes them. Returns how many were counted. `list_of` gives the list of a word by
    /// the word and its number, or `None` if it has none.
    #[inline]
    pub(crate) fn count(
        &mut self,
        interner: &mut Interner,
        postings: &mut Postings,
        doc: u32,
        mut list_of: impl FnMut(&[u8], u32) -> Option<u32>,
    ) -> u32 {
        black_box(self.words.iter().fold(0, |seen, word| seen ^ interner.touch(word.hashed)));
        let mut start = 0;
        self.lists.clear();
        for word in &self.words {
            let bytes = &self.text[start..word.end as usize];
            start = word.end as usize;
            let number = interner.intern_hashed(bytes, word.hashed);
            self.lists.extend(list_of(bytes, number));
        }
        black_box(self.lists.iter().fold(0, |seen, &list| seen ^ postings.touch(list)));
        self.lists.iter().for_each(|&list| postings.count(list, doc));
        self.text.clear();
        self.words.clear();
        self.lists.len() as u32
    }
}
