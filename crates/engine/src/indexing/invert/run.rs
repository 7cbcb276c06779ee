//! Runs: lists sorted by term, in memory or on disk.
//!
//! ```text
//! | documents of segments ... | blocks of lists ... | contents: what is where | footer |
//! ```
//!
//! A block is about 32 KiB of whole lists in byte order of the terms. A list of that length begins a block. A list is
//! stored as the term's length, the term, the length of its postings, and the [postings](crate::indexing::postings).
//! The contents hold places and checksums of segments and blocks, and each block's first term, so that any range of the
//! vocabulary is found without reading others.
//!
//! | FOOTER | SIZE | MEANING |
//! | ---: | ---: | --- |
//! | 0 | 8 | where the contents begin |
//! | 8 | 8 | their length in bytes |
//! | 16 | 8 | their XXH3-64 |
//! | 24 | 8 | magic, `TandemR4` |

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tandem_base::files::{File, read_exact_at};
use xxhash_rust::xxh3::xxh3_64;

use crate::corpus::Skipped;
use crate::indexing::error::BuildError;
use crate::indexing::postings::put;
use crate::indexing::segment::SegmentDocuments;

const MAGIC: [u8; 8] = *b"TandemR4";
const FOOTER_BYTES: usize = 32;
/// A block is written once it has this many bytes.
pub(crate) const BLOCK_BYTES: usize = 32 << 10;

/// Visitor of terms and their encoded postings.
pub(crate) type ListVisitor<'a> = dyn FnMut(&[u8], &[u8]) -> io::Result<()> + 'a;

/// The consecutive documents of one batch in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The batch's position in the collection.
    pub(crate) number: u64,
    /// A digest, by which a changed batch is detected.
    pub(crate) digest: u64,
    /// Bytes of the collection in the batch.
    pub(crate) text_bytes: u64,
    pub(crate) skipped: Skipped,
    /// The first document's number in the run.
    pub(crate) first_doc: u32,
    pub(crate) num_docs: u32,
    /// Encoded [`SegmentDocuments`](crate::indexing::SegmentDocuments), or empty while they are on disk.
    pub(crate) documents: Vec<u8>,
}

/// Source of a run: inverted lists of some segments.
pub(crate) trait RunSource {
    /// Bytes of memory in use. The run takes no more.
    fn bytes(&self) -> usize;

    fn is_empty(&self) -> bool;

    /// Passes each term and its encoded postings to `visit`, in byte order of the terms.
    fn for_each_list(&self, visit: &mut ListVisitor<'_>) -> io::Result<()>;

    /// Returns the segments, and drops everything else.
    fn take_segments(&mut self) -> Vec<Segment>;
}

/// Lists of some segments of the collection.
#[derive(Debug)]
pub(crate) struct Run {
    data: Data,
    contents: Contents,
}

#[derive(Debug)]
enum Data {
    Memory(Vec<u8>),
    File(RunFile),
}

/// A run's file, open as long as few runs are: a build of many must not need a file handle for each.
#[derive(Debug)]
struct RunFile {
    path: PathBuf,
    open: Option<File>,
}

/// Runs whose files are open.
static OPEN_RUNS: AtomicUsize = AtomicUsize::new(0);

/// A quarter of the files that the process may open; those of further runs are opened for each read.
fn most_open() -> usize {
    #[cfg(unix)]
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let most = Some(512);
    most.map_or(usize::MAX, |most| (most / 4) as usize)
}

impl RunFile {
    fn new(file: File, path: &Path) -> Self {
        let is_kept = OPEN_RUNS.fetch_add(1, Ordering::Relaxed) < most_open();
        if !is_kept {
            OPEN_RUNS.fetch_sub(1, Ordering::Relaxed);
        }
        Self { path: path.to_owned(), open: is_kept.then_some(file) }
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match &self.open {
            Some(file) => read_exact_at(file, buffer, offset),
            None => read_exact_at(&File::open(&self.path)?, buffer, offset),
        }
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        if self.open.is_some() {
            OPEN_RUNS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PiecePlace {
    offset: u64,
    len: u64,
    checksum: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Contents {
    segments: Vec<Segment>,
    documents: Vec<PiecePlace>,
    blocks: Vec<PiecePlace>,
    first_terms: Vec<u8>,
    first_term_ends: Vec<u64>,
}

impl Run {
    /// Takes the lists of `source` into memory.
    pub(crate) fn in_memory(source: &mut dyn RunSource) -> io::Result<Self> {
        let mut sealer = Sealer::new(Vec::new());
        sealer.seal(source)?;
        Ok(Self { data: Data::Memory(sealer.out), contents: sealer.contents })
    }

    /// Takes the lists of `source` into a new file at `path`, which is on disk when this returns.
    pub(crate) fn on_disk(source: &mut dyn RunSource, path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        let mut sealer = Sealer::new(BufWriter::with_capacity(1 << 20, file));
        sealer.seal(source)?;
        let Sealer { mut out, offset, contents, .. } = sealer;
        let bytes = contents.encode();
        out.write_all(&bytes)?;
        for number in [offset, bytes.len() as u64, xxh3_64(&bytes)] {
            out.write_all(&number.to_le_bytes())?;
        }
        out.write_all(&MAGIC)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(Self { data: Data::File(RunFile::new(file, path)), contents })
    }

    /// Opens a file that [`on_disk`](Self::on_disk) wrote, or returns `None` if it is damaged.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let len = file.metadata().ok()?.len();
        let mut footer = [0; FOOTER_BYTES];
        let footer_at = len.checked_sub(FOOTER_BYTES as u64)?;
        read_exact_at(&file, &mut footer, footer_at).ok()?;
        let [offset, contents_len, checksum] =
            [0, 8, 16].map(|at| u64::from_le_bytes(*footer[at..].first_chunk().expect("inside the footer")));
        if footer[24..] != MAGIC || offset.checked_add(contents_len)? != footer_at {
            return None;
        }
        let mut bytes = vec![0; contents_len as usize];
        read_exact_at(&file, &mut bytes, offset).ok()?;
        if xxh3_64(&bytes) != checksum {
            return None;
        }
        let contents = Contents::decode(&bytes)?;
        Some(Self { data: Data::File(RunFile::new(file, path)), contents })
    }

    /// The segments, in order of the collection.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.contents.segments
    }

    pub(crate) fn documents(&self, position: usize) -> Result<SegmentDocuments, BuildError> {
        let mut buffer = Vec::new();
        let bytes = self.read(self.contents.documents[position], &mut buffer)?;
        SegmentDocuments::decode(bytes).ok_or_else(|| self.damaged("its documents are cut short"))
    }

    pub(crate) fn bytes_in_memory(&self) -> usize {
        match &self.data {
            Data::Memory(bytes) => bytes.len(),
            Data::File(..) => 0,
        }
    }

    /// Bytes of memory that data and contents take.
    pub(crate) fn bytes(&self) -> u64 {
        let Contents { segments, documents, blocks, first_terms, first_term_ends } = &self.contents;
        let a_segment = segments.len() * size_of::<Segment>() + documents.len() * size_of::<PiecePlace>();
        let a_block =
            blocks.len() * size_of::<PiecePlace>() + first_term_ends.len() * size_of::<u64>() + first_terms.len();
        (self.bytes_in_memory() + a_segment + a_block) as u64
    }

    pub(crate) fn is_on_disk(&self) -> bool {
        matches!(self.data, Data::File(..))
    }

    /// The first term and the length of each block.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (&[u8], u64)> {
        (0..self.num_blocks()).map(|block| (self.first_term(block), self.contents.blocks[block].len))
    }

    pub(crate) fn num_blocks(&self) -> usize {
        self.contents.blocks.len()
    }

    pub(crate) fn block_of(&self, term: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.num_blocks());
        while low < high {
            let middle = low.midpoint(high);
            if self.first_term(middle) <= term { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    /// The bytes of a block, in `buffer` if they are read from disk.
    pub(crate) fn block<'a>(&'a self, block: usize, buffer: Vec<u8>) -> Result<Cow<'a, [u8]>, BuildError> {
        let place = self.contents.blocks[block];
        if let Data::Memory(_) = &self.data {
            return Ok(Cow::Borrowed(self.read(place, &mut Vec::new()).map(|_| self.in_place(place))?));
        }
        let mut buffer = buffer;
        self.read(place, &mut buffer)?;
        Ok(Cow::Owned(buffer))
    }

    pub(crate) fn damaged(&self, what: &str) -> BuildError {
        let path = match &self.data {
            Data::Memory(_) => PathBuf::from("memory"),
            Data::File(file) => file.path.clone(),
        };
        let folder = path.parent().map(Path::display);
        let way_out = folder.map_or_else(String::new, |folder| format!(" (delete {folder} to start again)"));
        BuildError::Run { message: format!("damaged: {what}{way_out}"), path }
    }

    fn first_term(&self, block: usize) -> &[u8] {
        let ends = &self.contents.first_term_ends;
        let start = block.checked_sub(1).map_or(0, |before| ends[before]);
        &self.contents.first_terms[start as usize..ends[block] as usize]
    }

    fn in_place(&self, place: PiecePlace) -> &[u8] {
        match &self.data {
            Data::Memory(bytes) => &bytes[place.offset as usize..][..place.len as usize],
            Data::File(..) => &[],
        }
    }

    /// Reads and checks a piece, into `buffer` unless it is in memory.
    fn read<'a>(&'a self, place: PiecePlace, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], BuildError> {
        let Data::File(file) = &self.data else {
            return Ok(self.in_place(place));
        };
        buffer.resize(place.len as usize, 0);
        file.read(buffer, place.offset)
            .map_err(|e| BuildError::Run { path: file.path.clone(), message: format!("cannot read: {e}") })?;
        if xxh3_64(buffer) != place.checksum {
            return Err(self.damaged("a checksum does not match"));
        }
        Ok(buffer)
    }
}

/// Writes the data of a run, and collects its contents.
struct Sealer<W> {
    out: W,
    offset: u64,
    block: Vec<u8>,
    contents: Contents,
}

impl<W: Write> Sealer<W> {
    fn new(out: W) -> Self {
        Self { out, offset: 0, block: Vec::with_capacity(2 * BLOCK_BYTES), contents: Contents::default() }
    }

    fn seal(&mut self, source: &mut dyn RunSource) -> io::Result<()> {
        source.for_each_list(&mut |term, postings| self.list(term, postings))?;
        self.end_block()?;
        for mut segment in source.take_segments() {
            let documents = self.piece(&std::mem::take(&mut segment.documents))?;
            self.contents.documents.push(documents);
            self.contents.segments.push(segment);
        }
        Ok(())
    }

    fn list(&mut self, term: &[u8], postings: &[u8]) -> io::Result<()> {
        // The first term of a block is therefore the one whose list makes it long.
        if postings.len() >= BLOCK_BYTES {
            self.end_block()?;
        }
        if self.block.is_empty() {
            self.contents.first_terms.extend_from_slice(term);
            self.contents.first_term_ends.push(self.contents.first_terms.len() as u64);
        }
        put(&mut self.block, term.len() as u32);
        self.block.extend_from_slice(term);
        put(&mut self.block, postings.len() as u32);
        self.block.extend_from_slice(postings);
        if self.block.len() >= BLOCK_BYTES {
            self.end_block()?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        if !self.block.is_empty() {
            let block = std::mem::take(&mut self.block);
            let place = self.piece(&block)?;
            self.contents.blocks.push(place);
            self.block = block;
            self.block.clear();
        }
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<PiecePlace> {
        self.out.write_all(bytes)?;
        let place = PiecePlace { offset: self.offset, len: bytes.len() as u64, checksum: xxh3_64(bytes) };
        self.offset += place.len;
        Ok(place)
    }
}

impl Contents {
    /// Encodes, in this order: numbers of segments and blocks, each segment and its documents, each block and the end
    /// of its first term, first terms.
    fn encode(&self) -> Vec<u8> {
        let mut numbers = vec![self.segments.len() as u64, self.blocks.len() as u64];
        for (segment, PiecePlace { offset, len, checksum }) in self.segments.iter().zip(&self.documents) {
            let Segment { number, digest, text_bytes, skipped, first_doc, num_docs, .. } = segment;
            numbers.extend([number, digest, text_bytes, offset, len, checksum]);
            numbers.push(skipped.counts().len() as u64);
            numbers.extend(skipped.counts().flatten());
            numbers.extend([u64::from(*first_doc), u64::from(*num_docs)]);
        }
        for (PiecePlace { offset, len, checksum }, end) in self.blocks.iter().zip(&self.first_term_ends) {
            numbers.extend([offset, len, checksum, end]);
        }
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend_from_slice(&self.first_terms);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut next = || {
            let (number, after) = rest.split_first_chunk()?;
            rest = after;
            Some(u64::from_le_bytes(*number))
        };
        let (num_segments, num_blocks) = (next()?, next()?);
        let mut contents = Self::default();
        for _ in 0..num_segments {
            let [number, digest, text_bytes] = [next()?, next()?, next()?];
            let place = PiecePlace { offset: next()?, len: next()?, checksum: next()? };
            let num_reasons = next()?;
            let counts: Option<Vec<_>> = (0..num_reasons).map(|_| Some([next()?, next()?])).collect();
            let skipped = Skipped::of_counts(counts?);
            let (first_doc, num_docs) = (u32::try_from(next()?).ok()?, u32::try_from(next()?).ok()?);
            contents.documents.push(place);
            let documents = Vec::new();
            contents.segments.push(Segment { number, digest, text_bytes, skipped, first_doc, num_docs, documents });
        }
        for _ in 0..num_blocks {
            contents.blocks.push(PiecePlace { offset: next()?, len: next()?, checksum: next()? });
            contents.first_term_ends.push(next()?);
        }
        contents.first_terms = rest.to_vec();
        let ends = &contents.first_term_ends;
        (ends.is_sorted() && ends.last().is_none_or(|&end| end as usize == rest.len())).then_some(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::super::accumulator::Accumulator;
    use super::*;

    #[test]
    fn contents_come_back_and_what_is_cut_short_does_not() {
        let place = |offset| PiecePlace { offset, len: offset + 1, checksum: offset + 2 };
        let contents = Contents {
            segments: vec![Segment { number: 3, digest: 4, num_docs: 5, ..Segment::default() }],
            documents: vec![place(10)],
            blocks: vec![place(20), place(30)],
            first_terms: b"abc".to_vec(),
            first_term_ends: vec![1, 3],
        };
        let bytes = contents.encode();
        assert_eq!(Contents::decode(&bytes).unwrap(), contents);
        for len in 0..bytes.len() {
            assert!(Contents::decode(&bytes[..len]).is_none(), "{len}");
        }
    }

    #[test]
    fn a_file_with_any_changed_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let mut accumulator = Accumulator::of_lines(&["red fox", "a fox"]);
        Run::on_disk(&mut accumulator, &path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        assert!(Run::open(&path).is_some_and(|run| run.block(0, Vec::new()).is_ok() && run.documents(0).is_ok()));
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 4;
            std::fs::write(&path, bytes).unwrap();
            let is_read =
                Run::open(&path).is_some_and(|run| run.block(0, Vec::new()).is_ok() && run.documents(0).is_ok());
            assert!(!is_read, "byte {place}");
        }
    }
}
