//! Writing the index file as lists come in.
//!
//! The payload, by far the largest section, is streamed to a file beside the target; blocks, short lists, the directory
//! and the dictionary, which threads of its own build, wait in memory. Nothing is in place before [`IndexWriter::finish`].

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Zeroable;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::dictionary::DictionaryWriter;
use super::directory::{BlockEntry, ListPlace, LongList, TermSlot};
use super::layout::{
    BYTE_ORDER_MARK, FILE_NAME, FileHeader, HEADER_BYTES, MAGIC, PIECE_BYTES, SECTION_ALIGNMENT, Section, SectionEntry,
    VERSION,
};
use super::packed::SLACK_BYTES;
use super::pieces::PieceWriters;
use super::{Bm25, EncodedLists, Idf, IndexError};
use crate::files::{PendingFile, write_all_at};

/// Names of documents, in order of the documents, as often as they are asked for: they need not be in memory.
pub trait ExternalIds {
    /// Calls `visit` for each name.
    ///
    /// # Errors
    /// Those of `visit`, or if the names can't be read.
    fn for_each(&self, visit: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;
}

impl ExternalIds for Vec<String> {
    fn for_each(&self, visit: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.iter().try_for_each(|id| visit(id.as_bytes()))
    }
}

/// A folder that an index will be written into, and by nobody else meanwhile.
///
/// What an interrupted writer left there is removed.
#[derive(Debug)]
pub struct IndexFolder {
    path: PathBuf,
    file: PendingFile,
}

impl IndexFolder {
    /// Takes the folder `dir`, which is made if it isn't there.
    ///
    /// # Errors
    /// If the folder can't be written, or another writer has it.
    pub fn claim(dir: &Path) -> Result<Self, IndexError> {
        let path = dir.join(FILE_NAME);
        let file = PendingFile::create(&path).map_err(|source| io_error(&path, source))?;
        Ok(Self { path, file })
    }
}

/// Writes an index from chunks of lists in byte order of the terms.
pub struct IndexWriter {
    path: PathBuf,
    doc_lengths: Vec<u32>,
    external_ids: Box<dyn ExternalIds>,
    bm25: Bm25,
    tokenizer: String,
    norms: Arc<[f32]>,
    sections: SectionWriter,
    last_docs: Vec<u32>,
    blocks: Vec<BlockEntry>,
    long_lists: Vec<LongList>,
    short_lists: Vec<u8>,
    slots: Vec<TermSlot>,
    dictionary: DictionaryWriter,
    last_term: Vec<u8>,
    payload_words: u64,
    num_postings: u64,
}

impl fmt::Debug for IndexWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexWriter")
            .field("path", &self.path)
            .field("terms", &self.slots.len())
            .finish_non_exhaustive()
    }
}

impl IndexWriter {
    /// Blocks of all long lists together: no index has more.
    pub const MAX_BLOCKS: usize = TermSlot::LIMIT;

    /// Starts an index in folder `dir`, of documents with these lengths (tokens).
    ///
    /// `external_ids` is empty when documents have no ids of their own: their numbers are shown then. `tokenizer` says
    /// how text was cut into terms.
    ///
    /// # Errors
    /// If there is no document, there are 2^31 or more, the ids are not one a document, BM25's parameters are out of
    /// range, or the folder can't be written.
    pub fn create(
        dir: &Path,
        doc_lengths: Vec<u32>,
        external_ids: Vec<String>,
        bm25: Bm25,
        tokenizer: &str,
    ) -> Result<Self, IndexError> {
        if !external_ids.is_empty() && external_ids.len() != doc_lengths.len() {
            let message = format!("{} external ids for {} documents", external_ids.len(), doc_lengths.len());
            return Err(IndexError::Collection(message));
        }
        Self::create_in(IndexFolder::claim(dir)?, doc_lengths, Box::new(external_ids), bm25, tokenizer)
    }

    /// As [`create`](Self::create), in a folder that was claimed before. `external_ids` has as many names as there are
    /// documents, or none.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_in(
        folder: IndexFolder,
        doc_lengths: Vec<u32>,
        external_ids: Box<dyn ExternalIds>,
        bm25: Bm25,
        tokenizer: &str,
    ) -> Result<Self, IndexError> {
        let num_docs = doc_lengths.len();
        if num_docs == 0 {
            return Err(IndexError::Collection("the collection is empty: there is no document to index".into()));
        }
        if num_docs >= 1 << 31 {
            let message = format!("{num_docs} documents, an index holds fewer than 2147483648 (split the collection)");
            return Err(IndexError::Collection(message));
        }
        bm25.check().map_err(IndexError::Collection)?;
        let num_tokens: u64 = doc_lengths.iter().map(|&length| u64::from(length)).sum();
        let norms = bm25.norms(&doc_lengths, num_tokens as f64 / num_docs as f64).into();
        let IndexFolder { path, file } = folder;
        let sections = SectionWriter::start(file).map_err(|source| io_error(&path, source))?;
        Ok(Self {
            path,
            doc_lengths,
            external_ids,
            bm25,
            tokenizer: tokenizer.to_owned(),
            norms,
            sections,
            last_docs: Vec::new(),
            blocks: Vec::new(),
            long_lists: Vec::new(),
            short_lists: Vec::new(),
            slots: Vec::new(),
            dictionary: DictionaryWriter::default(),
            last_term: Vec::new(),
            payload_words: 0,
            num_postings: 0,
        })
    }

    /// The documents' BM25 norms, for [`ListEncoder`](super::ListEncoder)s.
    #[must_use]
    pub fn norms(&self) -> Arc<[f32]> {
        Arc::clone(&self.norms)
    }

    /// Appends the next range of the vocabulary. A list is copied and written as it is: gigabytes a second.
    ///
    /// # Errors
    /// If a term is not above all terms before, the file system refuses, or the format's limits are reached.
    pub fn append(&mut self, lists: &EncodedLists) -> Result<(), IndexError> {
        self.check_limits(lists)?;
        for position in 0..lists.len() {
            let term = lists.term(position);
            let last = if position > 0 { lists.term(position - 1) } else { &self.last_term };
            if !self.slots.is_empty() && last >= term {
                let (term, last) = (String::from_utf8_lossy(term), String::from_utf8_lossy(last));
                let message = format!("term {term:?} comes after {last:?}, expected ascending byte order");
                return Err(IndexError::Collection(message));
            }
            self.dictionary.push(term).map_err(|source| io_error(&self.path, source))?;
            self.slots.push(TermSlot::new(match lists.slots[position].place() {
                ListPlace::Single(doc) => ListPlace::Single(doc),
                ListPlace::Short(byte) => ListPlace::Short(self.short_lists.len() as u32 + byte),
                ListPlace::Long(number) => ListPlace::Long(self.long_lists.len() as u32 + number),
            }));
        }
        if let Some(last) = lists.len().checked_sub(1) {
            lists.term(last).clone_into(&mut self.last_term);
        }
        self.long_lists.extend(lists.long_lists.iter().map(|list| LongList {
            payload_word: self.payload_words + list.payload_word,
            first_block: self.blocks.len() as u32 + list.first_block,
            ..*list
        }));
        self.short_lists.extend_from_slice(&lists.short_lists);
        self.last_docs.extend_from_slice(&lists.last_docs);
        self.blocks.extend_from_slice(&lists.blocks);
        self.num_postings += lists.num_postings;
        self.payload_words += lists.payload.len() as u64;
        self.sections.write(bytemuck::cast_slice(&lists.payload)).map_err(|source| io_error(&self.path, source))
    }

    /// Whether `lists` fit in.
    fn check_limits(&self, lists: &EncodedLists) -> Result<(), IndexError> {
        let counts = [
            (self.slots.len() + lists.len(), "terms"),
            (self.short_lists.len() + lists.short_lists.len(), "bytes of short lists"),
            (self.long_lists.len() + lists.long_lists.len(), "long lists"),
            (self.blocks.len() + lists.blocks.len(), "blocks"),
        ];
        match counts.iter().find(|(count, _)| *count > TermSlot::LIMIT) {
            Some((_, what)) => {
                let message = format!("an index holds {} {what} at most (split the collection)", TermSlot::LIMIT);
                Err(IndexError::Collection(message))
            }
            None => Ok(()),
        }
    }

    /// Writes the other sections and the header, and puts the index in place of what was there.
    ///
    /// # Errors
    /// If no list was appended, or the file system refuses; an index that was there stays.
    pub fn finish(self) -> Result<(), IndexError> {
        if self.slots.is_empty() {
            let message = "the collection has no terms: all of its documents are empty once cut into terms";
            return Err(IndexError::Collection(message.into()));
        }
        let dictionary = self.dictionary.finish().map_err(|source| io_error(&self.path, source))?;
        let mut ends: Vec<u64> = Vec::new();
        let mut end = 0;
        let mut measure = |id: &[u8]| {
            end += id.len() as u64;
            ends.push(end);
            Ok(())
        };
        self.external_ids
            .for_each(&mut measure)
            .map_err(|source| IndexError::Io { path: self.path.clone(), source })?;
        if !ends.is_empty() && ends.len() != self.doc_lengths.len() {
            let message = format!("{} external ids for {} documents", ends.len(), self.doc_lengths.len());
            return Err(IndexError::Collection(message));
        }
        let mut header = FileHeader::zeroed();
        header.magic = MAGIC;
        header.version = VERSION;
        header.byte_order_mark = BYTE_ORDER_MARK;
        header.num_postings = self.num_postings;
        header.num_tokens = self.doc_lengths.iter().map(|&length| u64::from(length)).sum();
        header.num_docs = self.doc_lengths.len() as u32;
        header.num_terms = self.slots.len() as u32;
        (header.k1, header.b) = (self.bm25.k1, self.bm25.b);
        header.idf = match self.bm25.idf {
            Idf::Plus => 0,
            Idf::Papers => 1,
            Idf::Impacts => 2,
        };
        let mut sections = self.sections;
        let mut write = || -> io::Result<()> {
            for section in Section::ALL {
                match section {
                    // The lists are there: they were written as they came.
                    Section::Payload => sections.write(&[0; SLACK_BYTES])?,
                    Section::LastDocs => sections.write(bytemuck::cast_slice(&self.last_docs))?,
                    Section::Blocks => sections.write(bytemuck::cast_slice(&self.blocks))?,
                    Section::LongLists => sections.write(bytemuck::cast_slice(&self.long_lists))?,
                    Section::ShortLists => {
                        sections.write(&self.short_lists)?;
                        let end = self.short_lists.len();
                        sections.write(&[0; 4][..end.next_multiple_of(4) - end])?;
                    }
                    Section::Terms => sections.write(bytemuck::cast_slice(&self.slots))?,
                    Section::Dictionary => dictionary.iter().try_for_each(|part| sections.write(part))?,
                    Section::DocLengths => sections.write(bytemuck::cast_slice(&self.doc_lengths))?,
                    Section::ExternalIdEnds => sections.write(bytemuck::cast_slice(&ends))?,
                    Section::ExternalIds => {
                        self.external_ids.for_each(&mut |id| sections.write(id))?;
                    }
                    Section::Tokenizer => sections.write(self.tokenizer.as_bytes())?,
                }
                sections.end()?;
            }
            Ok(())
        };
        write().and_then(|()| sections.commit(header)).map_err(|source| io_error(&self.path, source))
    }
}

fn io_error(path: &Path, source: io::Error) -> IndexError {
    IndexError::Io { path: path.to_owned(), source: io::Error::new(source.kind(), format!("cannot write: {source}")) }
}

/// Writes sections one after another, each piece hashed as it goes out.
struct SectionWriter {
    file: PendingFile,
    /// Started with the first whole piece.
    writers: Option<PieceWriters>,
    /// The piece at hand.
    piece: Vec<u8>,
    /// Where it goes.
    piece_offset: u64,
    /// Of the section at hand: the hash of its pieces' hashes, and its length.
    hash: Xxh3,
    len: u64,
    /// Where the section at hand began.
    offset: u64,
    done: Vec<SectionEntry>,
}

impl SectionWriter {
    fn start(mut file: PendingFile) -> io::Result<Self> {
        file.file().write_all(&[0; HEADER_BYTES])?;
        let offset = HEADER_BYTES as u64;
        Ok(Self {
            file,
            writers: None,
            piece: Vec::with_capacity(PIECE_BYTES),
            piece_offset: offset,
            hash: Xxh3::new(),
            len: 0,
            offset,
            done: Vec::new(),
        })
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.len += bytes.len() as u64;
        while self.piece.len() + bytes.len() >= PIECE_BYTES {
            let (now, later) = bytes.split_at(PIECE_BYTES - self.piece.len());
            self.piece.extend_from_slice(now);
            self.write_whole_piece()?;
            bytes = later;
        }
        self.piece.extend_from_slice(bytes);
        Ok(())
    }

    fn write_whole_piece(&mut self) -> io::Result<()> {
        self.hash.update(&xxh3_64(&self.piece).to_le_bytes());
        let writers = match &mut self.writers {
            Some(writers) => writers,
            None => self.writers.insert(PieceWriters::start(self.file.file())?),
        };
        match writers.write(self.piece_offset, std::mem::take(&mut self.piece)) {
            Ok(memory) => self.piece = memory,
            // What one of them met says more.
            Err(ended) => return Err(self.writers.take().and_then(|writers| writers.finish().err()).unwrap_or(ended)),
        }
        self.piece.reserve_exact(PIECE_BYTES);
        self.piece_offset += PIECE_BYTES as u64;
        Ok(())
    }

    /// Ends the section at hand and pads the file for the next.
    fn end(&mut self) -> io::Result<()> {
        if !self.piece.is_empty() {
            self.hash.update(&xxh3_64(&self.piece).to_le_bytes());
        }
        let kind = Section::ALL[self.done.len()].kind();
        self.done.push(SectionEntry { kind, offset: self.offset, len: self.len, checksum: self.hash.digest() });
        let end = self.offset + self.len;
        self.offset = end.next_multiple_of(SECTION_ALIGNMENT);
        self.piece.resize(self.piece.len() + (self.offset - end) as usize, 0);
        write_all_at(self.file.file(), &self.piece, self.piece_offset)?;
        self.piece.clear();
        self.piece_offset = self.offset;
        self.len = 0;
        self.hash.reset();
        Ok(())
    }

    fn commit(mut self, mut header: FileHeader) -> io::Result<()> {
        if let Some(writers) = self.writers.take() {
            writers.finish()?;
        }
        header.file_len = self.offset;
        header.sections.copy_from_slice(&self.done);
        header.checksum = header.compute_checksum();
        write_all_at(self.file.file(), bytemuck::bytes_of(&header), 0)?;
        self.file.commit()
    }
}
