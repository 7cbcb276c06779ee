//! Packing of posting lists on any number of threads.
//!
//! Each thread fills a [`ListEncoder`] with a range of the vocabulary and returns [`EncodedLists`]. An
//! [`IndexWriter`](super::IndexWriter) appends them in order of the terms. The file does not depend on the ranges,
//! because padding is added when it is written.

use std::sync::Arc;

use super::BLOCK_LEN;
use super::best::BestImpacts;
use super::bm25::Bm25;
use super::directory::{BlockEntry, ListPlace, LongList, TermSlot, impact_byte};
use super::error::IndexError;
use super::packed::{bits::BitWriter, full::encode_full, patch::Code, run::PackedRun};
use super::probe::{ProbeBuilder, has_probe};

/// Words of a row. Lists and probe forms take whole rows.
pub(crate) const ROW_WORDS: usize = 4;
pub(crate) const SHORT_LEN_BITS: u32 = 7;
pub(crate) const SHORT_HEAD_BITS: u32 = SHORT_LEN_BITS + 2 * Code::BITS + 8;

/// Packed lists of a range of the vocabulary, ready to be appended to an index.
#[derive(Debug, Default)]
pub struct EncodedLists {
    /// The terms' bytes, one after another.
    text: Vec<u8>,
    text_ends: Vec<usize>,
    /// One slot per term. Places count from the start of this chunk.
    pub(crate) slots: Vec<TermSlot>,
    pub(crate) short_lists: Vec<u8>,
    /// Payload words and blocks count from the start of this chunk.
    pub(crate) long_lists: Vec<LongList>,
    pub(crate) last_docs: Vec<u32>,
    pub(crate) blocks: Vec<BlockEntry>,
    pub(crate) payload: Vec<u32>,
    pub(crate) num_postings: u64,
}

impl EncodedLists {
    /// Number of lists in the chunk.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no list.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Approximate bytes in memory.
    pub fn bytes(&self) -> usize {
        let lists = self.slots.len() * 12 + self.short_lists.len() + self.long_lists.len() * size_of::<LongList>();
        self.text.len() + lists + self.blocks.len() * 12 + self.payload.len() * 4
    }

    pub(crate) fn term(&self, position: usize) -> &[u8] {
        let start = position.checked_sub(1).map_or(0, |before| self.text_ends[before]);
        &self.text[start..self.text_ends[position]]
    }
}

/// Packs posting lists. Each thread has an encoder of its own.
#[derive(Debug, Default)]
pub struct ListEncoder {
    norms: Arc<[f32]>,
    lists: EncodedLists,
    docs: Vec<u32>,
    freqs: Vec<u32>,
    block_impacts: Vec<f32>,
    best_impacts: BestImpacts,
    block_bytes: Vec<u8>,
    /// The probe form of the current list, if it may have one.
    probe: ProbeBuilder,
}

#[derive(Debug)]
pub(crate) struct BlockPostings {
    /// Documents in ascending order.
    pub(crate) docs: [u32; BLOCK_LEN],
    /// Frequencies of at least 1.
    pub(crate) freqs: [u32; BLOCK_LEN],
}

/// Bytes of packed blocks whose memory is kept for the next list.
const KEPT_BYTES: usize = 1 << 20;

impl ListEncoder {
    /// An encoder for the documents with these BM25 norms ([`IndexWriter::norms`](super::IndexWriter::norms)).
    pub fn new(norms: Arc<[f32]>) -> Self {
        Self { norms, ..Self::default() }
    }

    /// Adds the next term's postings: `(document, frequency)`, ascending by document, frequencies at least 1. Fails if
    /// terms or postings are out of order, or out of range.
    pub fn add(&mut self, term: &str, postings: &[(u32, u32)]) -> Result<(), IndexError> {
        let (mut docs, mut freqs) = (std::mem::take(&mut self.docs), std::mem::take(&mut self.freqs));
        docs.clear();
        freqs.clear();
        docs.extend(postings.iter().map(|p| p.0));
        freqs.extend(postings.iter().map(|p| p.1));
        let result = self.add_columns(term, &docs, &freqs);
        (self.docs, self.freqs) = (docs, freqs);
        result
    }

    /// Adds the next term's postings as two columns of equal length.
    pub fn add_columns(&mut self, term: &str, docs: &[u32], freqs: &[u32]) -> Result<(), IndexError> {
        self.check(term, docs, freqs)?;
        let place = match (docs, freqs) {
            (&[doc], &[1]) => ListPlace::Single(doc),
            _ if docs.len() < BLOCK_LEN => self.add_short(docs, freqs)?,
            _ => self.add_long(docs, freqs)?,
        };
        self.end_list(term, place, docs.len());
        Ok(())
    }

    /// Adds the next term's postings block by block, so that they need not be in memory at once. `fill` writes the next
    /// block and returns its length, which is below [`BLOCK_LEN`] only at the end. `most` bounds the number of
    /// postings.
    pub(crate) fn add_blocks(
        &mut self,
        term: &str,
        most: usize,
        mut fill: impl FnMut(&mut BlockPostings) -> usize,
    ) -> Result<(), IndexError> {
        let mut block = BlockPostings { docs: [0; BLOCK_LEN], freqs: [0; BLOCK_LEN] };
        let mut len = fill(&mut block);
        if len < BLOCK_LEN {
            return self.add_columns(term, &block.docs[..len], &block.freqs[..len]);
        }
        self.check_term(term)?;
        let start = self.begin_long(most)?;
        let (mut last_doc, mut doc_freq) = (None, 0);
        while len > 0 {
            let (docs, freqs) = (&block.docs[..len], &block.freqs[..len]);
            self.check_postings(term, last_doc, docs, freqs)?;
            self.push_block(start, last_doc, docs, freqs)?;
            last_doc = docs.last().copied();
            doc_freq += len;
            len = if len < BLOCK_LEN { 0 } else { fill(&mut block) };
        }
        let place = self.end_long(start, doc_freq)?;
        self.end_list(term, place, doc_freq);
        Ok(())
    }

    fn end_list(&mut self, term: &str, place: ListPlace, doc_freq: usize) {
        let lists = &mut self.lists;
        lists.slots.push(TermSlot::new(place));
        lists.num_postings += doc_freq as u64;
        lists.text.extend_from_slice(term.as_bytes());
        lists.text_ends.push(lists.text.len());
    }

    fn add_short(&mut self, docs: &[u32], freqs: &[u32]) -> Result<ListPlace, IndexError> {
        let out = &mut self.lists.short_lists;
        let place = ListPlace::Short(below_limit(out.len(), "bytes of short lists")?);
        let norms = docs.iter().map(|&doc| self.norms[doc as usize]);
        let max_impact = Bm25::max_impact(freqs.iter().copied().zip(norms));
        pack_short(docs, freqs, impact_byte(max_impact, Bm25::LARGEST_IMPACT), out);
        Ok(place)
    }

    fn add_long(&mut self, docs: &[u32], freqs: &[u32]) -> Result<ListPlace, IndexError> {
        let start = self.begin_long(docs.len())?;
        let mut last_doc = None;
        for (docs, freqs) in docs.chunks(BLOCK_LEN).zip(freqs.chunks(BLOCK_LEN)) {
            self.push_block(start, last_doc, docs, freqs)?;
            last_doc = docs.last().copied();
        }
        self.end_long(start, docs.len())
    }

    /// Begins a list of up to `most` postings.
    fn begin_long(&mut self, most: usize) -> Result<LongStart, IndexError> {
        self.block_impacts.clear();
        self.best_impacts.clear();
        self.block_bytes.clear();
        let collects_probe = has_probe(self.norms.len(), most);
        if collects_probe {
            self.probe.begin(self.norms.len());
        }
        Ok(LongStart { first_block: below_limit(self.lists.blocks.len(), "blocks")?, collects_probe })
    }

    /// Packs the list's next block, after document `last_doc`.
    fn push_block(
        &mut self,
        LongStart { collects_probe, .. }: LongStart,
        last_doc: Option<u32>,
        docs: &[u32],
        freqs: &[u32],
    ) -> Result<(), IndexError> {
        self.score_block(docs, freqs);
        let Self { lists, block_bytes: bytes, .. } = self;
        if u32::try_from(bytes.len()).is_err() {
            return Err(IndexError::Collection("a list takes 4 GiB at most (split the collection)".to_owned()));
        }
        lists.blocks.push(pack_block(last_doc.unwrap_or(u32::MAX), docs, freqs, bytes));
        lists.last_docs.push(docs[docs.len() - 1]);
        if collects_probe {
            self.probe.push(docs, freqs);
        }
        Ok(())
    }

    fn end_long(&mut self, start: LongStart, doc_freq: usize) -> Result<ListPlace, IndexError> {
        let place = ListPlace::Long(below_limit(self.lists.long_lists.len(), "long lists")?);
        let LongStart { first_block, collects_probe } = start;
        let max_impact = self.block_impacts.iter().copied().fold(0.0, f32::max);
        let lists = &mut self.lists;
        for (entry, &impact) in lists.blocks[first_block as usize..].iter_mut().zip(&self.block_impacts) {
            *entry = entry.with_impact(impact_byte(impact, max_impact));
        }
        let payload_start = lists.payload.len();
        append_bytes(&self.block_bytes, &mut lists.payload);
        self.block_bytes.clear();
        self.block_bytes.shrink_to(KEPT_BYTES);
        let rows_of = |payload: &[u32]| ((payload.len() - payload_start) / ROW_WORDS) as u32;
        let mut probe_row = 0;
        if collects_probe && has_probe(self.norms.len(), doc_freq) {
            probe_row = rows_of(&lists.payload);
            self.probe.append(&mut lists.payload);
            self.probe.release(KEPT_BYTES);
        }
        lists.long_lists.push(LongList {
            payload_word: payload_start as u64,
            first_block,
            doc_freq: doc_freq as u32,
            max_impact,
            kth_impacts: self.best_impacts.kth_impacts().map(|impact| impact * Bm25::LOWER_BOUND),
            probe_row,
            rows: rows_of(&lists.payload),
        });
        Ok(place)
    }

    /// Computes a block's impacts: the largest, and candidates for the list's best.
    fn score_block(&mut self, docs: &[u32], freqs: &[u32]) {
        let mut impacts = [0.0; BLOCK_LEN];
        let impacts = &mut impacts[..docs.len()];
        for (impact, &doc) in impacts.iter_mut().zip(docs) {
            *impact = self.norms[doc as usize];
        }
        for (impact, &freq) in impacts.iter_mut().zip(freqs) {
            *impact = Bm25::score(1.0, freq, *impact);
        }
        let largest = impacts.iter().copied().fold(0.0, f32::max);
        self.best_impacts.offer(impacts, largest);
        self.block_impacts.push(largest * Bm25::LARGEST_IMPACT);
    }

    /// The number of packed bytes. Callers [`take`](Self::take) them when there are enough.
    pub fn bytes(&self) -> usize {
        self.lists.bytes()
    }

    /// Returns the lists packed so far. The next term starts a new chunk.
    pub fn take(&mut self) -> EncodedLists {
        std::mem::take(&mut self.lists)
    }

    fn check(&self, term: &str, docs: &[u32], freqs: &[u32]) -> Result<(), IndexError> {
        self.check_term(term)?;
        if docs.is_empty() || docs.len() != freqs.len() {
            return refuse(term, format!("{} documents and {} frequencies", docs.len(), freqs.len()));
        }
        self.check_postings(term, None, docs, freqs)
    }

    fn check_term(&self, term: &str) -> Result<(), IndexError> {
        if let Some(last) = self.lists.len().checked_sub(1)
            && self.lists.term(last) >= term.as_bytes()
        {
            let last = String::from_utf8_lossy(self.lists.term(last));
            return refuse(term, format!("comes after {last:?}, expected ascending byte order"));
        }
        Ok(())
    }

    /// Checks that these postings, at least one, may follow document `last_doc`.
    fn check_postings(&self, term: &str, last_doc: Option<u32>, docs: &[u32], freqs: &[u32]) -> Result<(), IndexError> {
        let out_of_order =
            |doc: u32, last: u32| refuse(term, format!("document {doc} after {last}, expected ascending documents"));
        if let Some(last) = last_doc.filter(|&last| last >= docs[0]) {
            return out_of_order(docs[0], last);
        }
        if let Some(at) = docs.windows(2).position(|pair| pair[0] >= pair[1]) {
            return out_of_order(docs[at + 1], docs[at]);
        }
        let last_doc = docs[docs.len() - 1];
        if last_doc as usize >= self.norms.len() {
            return refuse(term, format!("document {last_doc} of {}", self.norms.len()));
        }
        if let Some(at) = freqs.iter().position(|&freq| freq == 0) {
            return refuse(term, format!("document {} has frequency 0, expected at least 1", docs[at]));
        }
        Ok(())
    }
}

/// Appends the block after document `base` to a list's packed blocks. The bound of its impacts is not set yet.
pub(crate) fn pack_block(base: u32, docs: &[u32], freqs: &[u32], bytes: &mut Vec<u8>) -> BlockEntry {
    let byte = bytes.len() as u32;
    if let (Ok(docs), Ok(freqs)) = (docs.try_into(), freqs.try_into()) {
        let (doc_code, freq_code, freqs_at) = encode_full(base, docs, freqs, bytes);
        return BlockEntry::full(byte, (doc_code, freq_code), freqs_at);
    }
    let run = PackedRun::new(base, docs, freqs);
    let mut writer = BitWriter::new(bytes);
    run.write(&mut writer);
    writer.finish();
    BlockEntry::run(byte, (run.doc_code, run.freq_code))
}

/// Appends a short list with its header, in which `impact` is the bound of the impacts.
pub(crate) fn pack_short(docs: &[u32], freqs: &[u32], impact: u8, bytes: &mut Vec<u8>) {
    let run = PackedRun::new(u32::MAX, docs, freqs);
    let mut writer = BitWriter::new(bytes);
    writer.write(docs.len() as u32, SHORT_LEN_BITS);
    writer.write(run.doc_code.stored(), Code::BITS);
    writer.write(run.freq_code.stored(), Code::BITS);
    writer.write(u32::from(impact), SHORT_HEAD_BITS - SHORT_LEN_BITS - 2 * Code::BITS);
    run.write(&mut writer);
    writer.finish();
}

#[derive(Clone, Copy, Debug)]
struct LongStart {
    first_block: u32,
    /// Whether the list may have enough postings for a probe form.
    collects_probe: bool,
}

fn refuse(term: &str, what: String) -> Result<(), IndexError> {
    Err(IndexError::Collection(format!("list of term {term:?}: {what}")))
}

/// Converts `number` to its stored form, if it fits.
fn below_limit(number: usize, what: &str) -> Result<u32, IndexError> {
    if number < TermSlot::LIMIT {
        return Ok(number as u32);
    }
    Err(IndexError::Collection(format!("an index holds fewer than {} {what} (split the collection)", TermSlot::LIMIT)))
}

/// Appends bytes as words and fills the last row with zeros.
fn append_bytes(bytes: &[u8], payload: &mut Vec<u32>) {
    let (words, rest) = bytes.as_chunks::<4>();
    payload.extend(words.iter().map(|&word| u32::from_le_bytes(word)));
    if !rest.is_empty() {
        let mut word = [0; 4];
        word[..rest.len()].copy_from_slice(rest);
        payload.push(u32::from_le_bytes(word));
    }
    payload.resize(payload.len().next_multiple_of(ROW_WORDS), 0);
}
