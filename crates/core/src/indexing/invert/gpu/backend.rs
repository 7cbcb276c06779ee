//! What inverting on a GPU asks of its device.

use std::fmt;

use crate::corpus::Words;
use crate::search::device::GpuError;

/// The term of a word that is none: a stop word.
pub(super) const STOP: u32 = u32::MAX;

/// What a device has room for.
#[derive(Clone, Copy, Debug)]
pub(in crate::indexing::invert) struct Room {
    /// Bytes of a piece, text and what is behind it.
    pub(super) piece_bytes: usize,
    /// Documents of a piece.
    pub(super) piece_docs: usize,
    /// Of a run: bytes of text, documents, tokens, distinct words.
    pub(super) text_bytes: usize,
    pub(super) docs: usize,
    pub(super) tokens: usize,
    pub(super) words: usize,
}

/// What a piece of so many bytes has at most: tokens.
pub(super) const fn most_tokens(bytes: usize) -> usize {
    bytes / 2 + 1
}

/// What a piece of so many bytes has at most: distinct words. With the byte between them, those of more than two bytes take
/// four at least; of others there are 36 of one byte, 1296 of two, and 1920 letters of two.
pub(super) const fn most_words(bytes: usize) -> usize {
    bytes / 4 + 36 + 1_296 + 1_920
}

/// What was counted on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::indexing::invert) struct Counts {
    pub(super) tokens: usize,
    pub(super) words: usize,
}

/// The distinct words of a run, lower-cased, in any order.
#[derive(Debug, Default)]
pub(in crate::indexing::invert) struct DistinctWords {
    pub(super) text: Vec<u8>,
    pub(super) places: Vec<WordPlace>,
}

/// Where a word stands in the text of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct WordPlace {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl DistinctWords {
    /// Each word.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| &self.text[place.start as usize..][..place.len as usize])
    }
}

/// A run, inverted.
#[derive(Debug, Default)]
pub(in crate::indexing::invert) struct InvertedRun {
    /// The encoded lists, by term.
    pub(super) lists: Vec<u8>,
    /// Where the list of each term begins.
    pub(super) starts: Vec<u32>,
    /// Tokens of each document that are no stop words.
    pub(super) doc_lengths: Vec<u32>,
}

/// A device that inverts text, or a stream of one.
///
/// Pieces of simplified text ([`Tokenizer::simplify`](crate::corpus::Tokenizer::simplify)) go in one after another, and are cut
/// into words there; distinct words come back; and once each has its term, the lists.
pub(in crate::indexing::invert) trait Backend: fmt::Debug + Send {
    /// What it has room for.
    fn room(&self) -> Room;

    /// Memory for the next piece, of [`Room::piece_bytes`]. Waits until it has been read, if a piece was written there before.
    fn piece(&mut self) -> Result<&mut [u8], GpuError>;

    /// Sends the first `len` bytes of the piece, in which documents end at `doc_ends`: there stands a blank before, and the run
    /// has room for it. Does not wait.
    fn send(&mut self, len: usize, doc_ends: &[u32], words: Words) -> Result<(), GpuError>;

    /// What all of the run's pieces have but the last.
    fn counts(&mut self) -> Result<Counts, GpuError>;

    /// Fetches the distinct words of all pieces of the run.
    fn distinct_words(&mut self, words: &mut DistinctWords) -> Result<(), GpuError>;

    /// Inverts the run: `terms` has the term of each distinct word, below `num_terms`, or [`STOP`]; every term has a word. The
    /// next piece begins a new run.
    fn invert(&mut self, terms: &[u32], num_terms: u32, run: &mut InvertedRun) -> Result<(), GpuError>;
}
