//! Posting lists and their blocks.

use tandem_base::base::ids::DocId;
use tandem_base::base::prefetch::prefetch;

use super::BLOCK_LEN;
use super::bm25::Bm25;
use super::directory::{BlockEntry, LongList, STORED_RANKS, impact_bound};
use super::encode::{ROW_WORDS, SHORT_HEAD_BITS, SHORT_LEN_BITS};
use super::packed::{bits::read_bits, full::FullBlock, patch::Code, run::Run};
use super::probe::{Probe, ProbeShape};

/// A term's postings, borrowed from an index.
///
/// A list of fewer than [`BLOCK_LEN`] postings is one block whose last document is not stored. A number above every
/// document stands for it. A search inside the block may therefore find nothing, and must then continue to the end of the list.
///
/// Methods panic if the list has no such block or posting.
#[derive(Clone, Copy, Debug)]
pub struct PostingList<'a> {
    doc_freq: u32,
    max_impact: f32,
    last_docs: &'a [u32],
    form: Form<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    /// A list shorter than a block.
    Short(Run<'a>),
    /// Blocks, all full but the last.
    Long(Blocks<'a>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks<'a> {
    pub(crate) list: &'a LongList,
    pub(crate) entries: &'a [BlockEntry],
    /// The payload from the list's first byte on.
    pub(crate) payload: &'a [u8],
    pub(crate) num_docs: u32,
}

/// Stands for the last document of a short list, above every document.
const ANY_DOC: [u32; 1] = [DocId::END.0 - 1];

/// Bytes that are prefetched of a block: most packed blocks, and the line in which they begin.
const BLOCK_BYTES: usize = 192;
const LINE_BYTES: usize = 64;

/// Sizes of the parts of a list in the file, in bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListBits {
    /// Documents: gaps, bitsets, exceptions.
    pub docs: u64,
    /// Frequencies with their exceptions.
    pub freqs: u64,
    /// Data read before a block is decoded: last documents, offsets, codes and bounds.
    pub skips: u64,
    /// The list's row in the table of long lists.
    pub directory: u64,
    /// The probe form.
    pub probe: u64,
}

impl std::iter::Sum for ListBits {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            docs: a.docs + b.docs,
            freqs: a.freqs + b.freqs,
            skips: a.skips + b.skips,
            directory: a.directory + b.directory,
            probe: a.probe + b.probe,
        })
    }
}

/// Decoded postings of one block, valid up to the block's length.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct BlockBuffer {
    /// Document ids, ascending.
    pub docs: [u32; BLOCK_LEN],
    /// Frequencies, at least 1.
    pub freqs: [u32; BLOCK_LEN],
}

impl Default for BlockBuffer {
    fn default() -> Self {
        Self { docs: [0; BLOCK_LEN], freqs: [0; BLOCK_LEN] }
    }
}

impl<'a> PostingList<'a> {
    /// The empty list.
    pub const EMPTY: Self = Self { doc_freq: 0, max_impact: 0.0, last_docs: &[], form: Form::Short(Run::EMPTY) };

    pub(crate) fn short(run: Run<'a>, max_impact: f32) -> Self {
        Self { doc_freq: run.len as u32, max_impact, last_docs: &ANY_DOC, form: Form::Short(run) }
    }

    pub(crate) fn long(blocks: Blocks<'a>, last_docs: &'a [u32]) -> Self {
        let LongList { doc_freq, max_impact, .. } = *blocks.list;
        Self { doc_freq, max_impact, last_docs, form: Form::Long(blocks) }
    }

    /// Number of documents that contain the term.
    #[inline]
    pub fn doc_freq(&self) -> u32 {
        self.doc_freq
    }

    /// Upper bound of `tf / (tf + norm(document))` over the list, for the BM25 parameters of the index. A posting's
    /// score is at most this times the term's weight.
    #[inline]
    pub fn max_impact(&self) -> f32 {
        self.max_impact
    }

    /// Number of blocks. All but the last have [`BLOCK_LEN`] postings.
    #[inline]
    pub fn num_blocks(&self) -> usize {
        self.last_docs.len()
    }

    /// Postings in block `block`.
    #[inline]
    pub fn block_len(&self, block: usize) -> usize {
        (self.doc_freq as usize - block * BLOCK_LEN).min(BLOCK_LEN)
    }

    /// The last document of block `block`, or, in a list of fewer than [`BLOCK_LEN`] postings, a number above it.
    #[inline]
    pub fn last_doc(&self, block: usize) -> u32 {
        self.last_docs[block]
    }

    /// [`last_doc`](Self::last_doc) of all blocks, ascending.
    #[inline]
    pub fn last_docs(&self) -> &'a [u32] {
        self.last_docs
    }

    /// Upper bound of `tf / (tf + norm(document))` over block `block`. It is at most [`max_impact`](Self::max_impact).
    #[inline]
    pub fn block_max_impact(&self, block: usize) -> f32 {
        match &self.form {
            Form::Short(_) => self.max_impact,
            Form::Long(blocks) => impact_bound(blocks.entries[block].impact(), self.max_impact),
        }
    }

    /// Lower bound of the `k`-th best impact in the list, or 0 if none is known. It seeds a threshold.
    ///
    /// At least `k` documents score the term's weight times this or more, with every step rounded as in
    /// [`Bm25::score`].
    #[inline]
    pub fn kth_impact(&self, k: usize) -> f32 {
        match &self.form {
            Form::Short(_) => 0.0,
            Form::Long(blocks) => {
                STORED_RANKS.iter().position(|&rank| k <= rank).map_or(0.0, |at| blocks.list.kth_impacts[at])
            }
        }
    }

    /// The list's probe form, if it has one.
    #[inline]
    pub fn probe(&self) -> Option<Probe<'a>> {
        match &self.form {
            Form::Long(blocks) if blocks.list.probe_row != 0 => {
                let rows = blocks.list.probe_row as usize..blocks.list.rows as usize;
                let words = bytemuck::cast_slice(&blocks.payload[rows.start * ROW_WORDS * 4..rows.end * ROW_WORDS * 4]);
                let shape = ProbeShape::read(blocks.num_docs as usize, self.doc_freq as usize, words)?;
                Some(Probe::new(shape, words))
            }
            _ => None,
        }
    }

    /// Prefetches what opening the list reads first.
    #[inline]
    pub fn prefetch_head(&self) {
        match &self.form {
            Form::Short(run) => prefetch(run.bytes, 2 * LINE_BYTES),
            Form::Long(blocks) => {
                prefetch(self.last_docs, 2 * LINE_BYTES);
                prefetch(blocks.entries, 2 * LINE_BYTES);
                prefetch(blocks.payload, BLOCK_BYTES);
            }
        }
    }

    /// Prefetches the entry of block `block`, which has the block's bound and place.
    #[inline]
    pub fn prefetch_bound(&self, block: usize) {
        if let Form::Long(blocks) = &self.form {
            prefetch(blocks.entries.get(block..).unwrap_or_default(), size_of::<BlockEntry>());
        }
    }

    /// All documents of the list in ascending order, for code that works on whole lists.
    pub fn docs(&self) -> Vec<u32> {
        let mut docs = Vec::with_capacity(self.doc_freq() as usize);
        let mut block_docs = [0; BLOCK_LEN];
        for block in 0..self.num_blocks() {
            let len = self.decode_docs(block, &mut block_docs);
            docs.extend_from_slice(&block_docs[..len]);
        }
        docs
    }

    /// Decodes the documents of block `block` into `docs` and returns how many there are.
    #[inline]
    pub fn decode_docs(&self, block: usize, docs: &mut [u32; BLOCK_LEN]) -> usize {
        let Some(full) = self.full_block(block) else { return self.decode_run_docs(block, docs) };
        full.decode_docs(docs);
        BLOCK_LEN
    }

    /// Decodes the frequencies of block `block` into `freqs` and returns how many there are.
    #[inline]
    pub fn decode_freqs(&self, block: usize, freqs: &mut [u32; BLOCK_LEN]) -> usize {
        let Some(full) = self.full_block(block) else { return self.decode_run_freqs(block, freqs) };
        full.decode_freqs(freqs);
        BLOCK_LEN
    }

    // A list has at most one partial block. Inlined, its code would take registers from the loop over full blocks.
    #[inline(never)]
    fn decode_run_docs(&self, block: usize, docs: &mut [u32; BLOCK_LEN]) -> usize {
        let Block::Run(run) = self.block(block) else { return 0 };
        run.decode_docs(docs);
        run.len
    }

    #[inline(never)]
    fn decode_run_freqs(&self, block: usize, freqs: &mut [u32; BLOCK_LEN]) -> usize {
        let Block::Run(run) = self.block(block) else { return 0 };
        run.decode_freqs(freqs);
        run.len
    }

    /// The frequency of posting `position` of block `block`, without decoding the others.
    #[inline]
    pub fn freq_at(&self, block: usize, position: usize) -> u32 {
        match self.block(block) {
            Block::Full(full) => full.freq_at(position),
            Block::Run(run) => run.freq_at(position),
        }
    }

    /// Prefetches the bytes of block `block`.
    #[inline]
    pub fn prefetch(&self, block: usize) {
        if let Form::Long(blocks) = &self.form
            && let Some(entry) = blocks.entries.get(block)
        {
            prefetch(&blocks.payload[entry.byte as usize..], BLOCK_BYTES);
        }
    }

    /// All postings as `(document, frequency)`, for tests and tools. Searches decode block by block.
    pub fn postings(&self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let list = *self;
        let mut buffer = BlockBuffer::default();
        (0..list.num_blocks()).flat_map(move |block| {
            let len = list.decode_docs(block, &mut buffer.docs);
            list.decode_freqs(block, &mut buffer.freqs);
            (0..len).map(|i| (buffer.docs[i], buffer.freqs[i])).collect::<Vec<_>>()
        })
    }

    /// Sizes of the list's parts in the file, without its slot and padding.
    pub fn bits(&self) -> ListBits {
        let mut bits = ListBits::default();
        for block in 0..self.num_blocks() {
            let (docs, freqs) = match self.block(block) {
                Block::Full(full) => {
                    let (docs, freqs) = full.part_bytes();
                    (8 * docs, 8 * freqs)
                }
                Block::Run(run) => run.part_bits(),
            };
            bits.docs += docs as u64;
            bits.freqs += freqs as u64;
        }
        match &self.form {
            Form::Short(run) => bits.skips = run.bit as u64,
            Form::Long(blocks) => {
                bits.skips = 8 * (blocks.entries.len() * (size_of::<BlockEntry>() + size_of::<u32>())) as u64;
                bits.directory = 8 * size_of::<LongList>() as u64;
                if blocks.list.probe_row != 0 {
                    bits.probe = 128 * u64::from(blocks.list.rows - blocks.list.probe_row);
                }
            }
        }
        bits
    }

    #[inline]
    fn full_block(&self, block: usize) -> Option<FullBlock<'a>> {
        match &self.form {
            Form::Long(blocks) if (block + 1) * BLOCK_LEN <= self.doc_freq as usize => {
                Some(blocks.full_block(block, self.base(block), self.last_docs[block]))
            }
            _ => None,
        }
    }

    /// The last document before block `block` of a long list.
    #[inline]
    fn base(&self, block: usize) -> u32 {
        if block == 0 { u32::MAX } else { self.last_docs[block - 1] }
    }

    #[inline]
    pub(crate) fn block(&self, block: usize) -> Block<'a> {
        match &self.form {
            Form::Short(run) => Block::Run(*run),
            Form::Long(blocks) => blocks.block(block, self.base(block), self.last_docs[block]),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Block<'a> {
    Full(FullBlock<'a>),
    Run(Run<'a>),
}

impl<'a> Blocks<'a> {
    #[inline]
    pub(crate) fn block(&self, block: usize, base: u32, last_doc: u32) -> Block<'a> {
        let len = (self.list.doc_freq as usize - block * BLOCK_LEN).min(BLOCK_LEN);
        if len == BLOCK_LEN {
            return Block::Full(self.full_block(block, base, last_doc));
        }
        let entry = self.entries[block];
        let (doc_code, freq_code) = entry.run_codes();
        let bytes = &self.payload[entry.byte as usize..];
        Block::Run(Run { base, len, doc_code, freq_code, bytes, bit: 0 })
    }

    #[inline]
    fn full_block(&self, block: usize, base: u32, last_doc: u32) -> FullBlock<'a> {
        let entry = self.entries[block];
        let (doc_code, freq_code) = entry.column_codes();
        let bytes = &self.payload[entry.byte as usize..];
        FullBlock { base, last_doc, doc_code, freq_code, bytes, freqs_at: entry.freqs_at() }
    }
}

/// The short list that begins at this byte, or `None` if its header is not inside `bytes`.
#[inline]
pub(crate) fn short_run(bytes: &[u8], byte: u32) -> Option<Run<'_>> {
    let bytes = bytes.get(byte as usize..).filter(|rest| rest.len() * 8 >= SHORT_HEAD_BITS as usize)?;
    let head = read_bits(bytes, 0, SHORT_HEAD_BITS);
    let doc_code = Code::from_stored(head >> SHORT_LEN_BITS);
    let freq_code = Code::from_stored(head >> (SHORT_LEN_BITS + Code::BITS));
    let len = (head & ((1 << SHORT_LEN_BITS) - 1)) as usize;
    Some(Run { base: u32::MAX, len, doc_code, freq_code, bytes, bit: SHORT_HEAD_BITS as usize })
}

/// The bound of a short list's impacts, from the last byte of its header.
#[inline]
pub(crate) fn short_bound(run: &Run<'_>) -> f32 {
    impact_bound(read_bits(run.bytes, SHORT_HEAD_BITS as usize - 8, 8) as u8, Bm25::LARGEST_IMPACT)
}
