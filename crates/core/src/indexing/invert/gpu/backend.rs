//! The interface of devices that invert text.

use std::fmt;

use crate::corpus::Words;
use crate::search::device::GpuError;

pub(crate) const STOP: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// Bytes of a piece, including padding.
    pub(crate) piece_bytes: usize,
    pub(crate) piece_docs: usize,
    /// Bytes of text of a run, followed by its documents, tokens and distinct words.
    pub(crate) text_bytes: usize,
    pub(crate) docs: usize,
    pub(crate) tokens: usize,
    pub(crate) words: usize,
}

/// Maximum tokens of a piece of this many bytes.
pub(crate) const fn most_tokens(bytes: usize) -> usize {
    bytes / 2 + 1
}

/// Maximum distinct words of a piece of this many bytes. With a separator, words of more than two bytes take at least
/// four. There are 36 words of one byte, 1296 of two ASCII bytes, and 1920 letters of two bytes.
pub(crate) const fn most_words(bytes: usize) -> usize {
    bytes / 4 + 36 + 1_296 + 1_920
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) tokens: usize,
    pub(crate) words: usize,
}

/// The distinct words of a run, lower-cased, in any order.
#[derive(Debug, Default)]
pub(crate) struct DistinctWords {
    pub(crate) text: Vec<u8>,
    pub(crate) places: Vec<WordPlace>,
}

/// Place of a word in the text of all words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct WordPlace {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl DistinctWords {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| &self.text[place.start as usize..][..place.len as usize])
    }
}

#[derive(Debug, Default)]
pub(crate) struct InvertedRun {
    pub(crate) lists: Vec<u8>,
    pub(crate) starts: Vec<u32>,
    /// Tokens of each document without stop words.
    pub(crate) doc_lengths: Vec<u32>,
}

/// A device that inverts text, or a stream of one.
///
/// It receives pieces of simplified text ([`Tokenizer::simplify`](crate::corpus::Tokenizer::simplify)) and cuts them
/// into words. It returns distinct words and, once each has its term, the lists.
pub(crate) trait Backend: fmt::Debug + Send {
    fn room(&self) -> Room;

    /// Memory for the next piece, of [`Room::piece_bytes`]. Waits until a previous piece in it has been read.
    fn piece(&mut self) -> Result<&mut [u8], GpuError>;

    /// Sends the first `len` bytes of the piece, whose documents end at `doc_ends`, after blanks. The run must have
    /// room for them. Does not wait.
    fn send(&mut self, len: usize, doc_ends: &[u32], words: Words) -> Result<(), GpuError>;

    /// Counts of all pieces of the run except the last.
    fn counts(&mut self) -> Result<Counts, GpuError>;

    /// Fetches the distinct words of all pieces of the run.
    fn distinct_words(&mut self, words: &mut DistinctWords) -> Result<(), GpuError>;

    /// Inverts the run. `terms` has the term of each distinct word, below `num_terms`, or [`STOP`]; every term has a
    /// word. The next piece begins a new run.
    fn invert(&mut self, terms: &[u32], num_terms: u32, run: &mut InvertedRun) -> Result<(), GpuError>;
}
