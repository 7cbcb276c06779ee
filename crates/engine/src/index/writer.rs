//! Writing the index file as lists come in.
//!
//! The payload, by far the largest section, is streamed to a temporary file next to the target. Later sections wait in
//! [columns](super::column), and threads build the dictionary. Documents are read again at the end. The index appears
//! with [`IndexWriter::finish`].

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Zeroable;
use tandem_base::files::PendingFile;

use super::bm25::{Bm25, Idf};
use super::column::SpillingColumn;
use super::dictionary::DictionaryWriter;
use super::directory::{BlockEntry, ListPlace, LongList, TermSlot};
use super::encode::{EncodedLists, ListEncoder};
use super::error::IndexError;
use super::layout::{BYTE_ORDER_MARK, FILE_NAME, FileHeader, MAGIC, Section, VERSION};
use super::packed::SLACK_BYTES;
use super::sections::SectionWriter;

/// Visitor of documents. Its arguments are a document's length in tokens and its name.
pub type VisitDocument<'a> = dyn FnMut(u32, Option<&[u8]>) -> io::Result<()> + 'a;

/// A source of documents' lengths and names. It can be read repeatedly, so that documents need not be in memory.
pub trait DocumentSource {
    /// Passes the documents to `visit` in order. Either all documents have names or none has. Fails with the first
    /// error of `visit` or of reading.
    fn for_each(&self, visit: &mut VisitDocument<'_>) -> io::Result<()>;
}

#[derive(Debug)]
pub(crate) struct InMemory {
    pub(crate) lengths: Vec<u32>,
    /// One name per document, or none at all.
    pub(crate) ids: Vec<String>,
}

impl DocumentSource for InMemory {
    fn for_each(&self, visit: &mut VisitDocument<'_>) -> io::Result<()> {
        let mut ids = self.ids.iter();
        self.lengths.iter().try_for_each(|&length| visit(length, ids.next().map(String::as_bytes)))
    }
}

/// A folder that is reserved for one index writer. Files of an interrupted writer are removed.
#[derive(Debug)]
pub struct IndexFolder {
    path: PathBuf,
    file: PendingFile,
}

impl IndexFolder {
    /// Reserves the folder `dir`, which is created if necessary. Fails if the folder can't be written, or another
    /// writer has reserved it.
    pub fn claim(dir: &Path) -> Result<Self, IndexError> {
        let path = dir.join(FILE_NAME);
        let file = PendingFile::create(&path).map_err(|source| io_error(&path, source))?;
        Ok(Self { path, file })
    }
}

/// Writes an index from chunks of lists in byte order of the terms.
pub struct IndexWriter {
    path: PathBuf,
    documents: Box<dyn DocumentSource>,
    num_docs: u32,
    num_tokens: u64,
    bm25: Bm25,
    tokenizer: String,
    norms: Arc<[f32]>,
    sections: SectionWriter,
    columns: Columns,
    dictionary: DictionaryWriter,
    last_term: Vec<u8>,
    payload_words: u64,
    num_postings: u64,
}

struct Norms {
    num_docs: u32,
    num_tokens: u64,
    norms: Arc<[f32]>,
}

impl Norms {
    fn of(doc_lengths: &[u32], bm25: Bm25) -> Result<Self, IndexError> {
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
        let average = num_tokens as f64 / num_docs as f64;
        let norms = doc_lengths.iter().map(|&length| bm25.norm(length, average)).collect();
        Ok(Self { num_docs: num_docs as u32, num_tokens, norms })
    }
}

/// Sections that are collected while lists arrive.
#[derive(Debug)]
struct Columns {
    last_docs: SpillingColumn,
    blocks: SpillingColumn,
    long_lists: SpillingColumn,
    short_lists: SpillingColumn,
    slots: SpillingColumn,
}

impl Columns {
    fn new(folder: &Path) -> Self {
        let new = || SpillingColumn::new(folder, usize::MAX);
        Self { last_docs: new(), blocks: new(), long_lists: new(), short_lists: new(), slots: new() }
    }

    fn all(&mut self) -> [&mut SpillingColumn; 5] {
        let Self { last_docs, blocks, long_lists, short_lists, slots } = self;
        [last_docs, blocks, long_lists, short_lists, slots]
    }

    fn num_terms(&self) -> usize {
        self.slots.len() as usize / size_of::<TermSlot>()
    }

    fn num_blocks(&self) -> usize {
        self.blocks.len() as usize / size_of::<BlockEntry>()
    }

    fn num_long_lists(&self) -> usize {
        self.long_lists.len() as usize / size_of::<LongList>()
    }
}

impl fmt::Debug for IndexWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexWriter")
            .field("path", &self.path)
            .field("terms", &self.columns.num_terms())
            .finish_non_exhaustive()
    }
}

impl IndexWriter {
    /// Maximum number of blocks of an index.
    pub const MAX_BLOCKS: usize = TermSlot::LIMIT;

    /// Bytes that a writer takes besides columns and norms: queued pieces, and parts of the dictionary.
    pub(crate) const BYTES: u64 = 48 << 20;

    /// Starts an index in folder `dir`, of documents with these lengths (tokens).
    ///
    /// `external_ids` is empty if documents have no ids; their numbers are shown then. `tokenizer` names how text was
    /// cut into terms. Fails if there is no document, there are 2^31 or more, the ids are not one a document, BM25's
    /// parameters are out of range, or the folder can't be written.
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
        let norms = Norms::of(&doc_lengths, bm25)?;
        let documents = InMemory { lengths: doc_lengths, ids: external_ids };
        Self::start(IndexFolder::claim(dir)?, norms, Box::new(documents), bm25, tokenizer)
    }

    /// Starts an index in a reserved folder. `documents` has the same lengths as `doc_lengths`, and names.
    pub fn create_in(
        folder: IndexFolder,
        doc_lengths: Vec<u32>,
        documents: Box<dyn DocumentSource>,
        bm25: Bm25,
        tokenizer: &str,
    ) -> Result<Self, IndexError> {
        let norms = Norms::of(&doc_lengths, bm25)?;
        drop(doc_lengths);
        Self::start(folder, norms, documents, bm25, tokenizer)
    }

    fn start(
        folder: IndexFolder,
        Norms { num_docs, num_tokens, norms }: Norms,
        documents: Box<dyn DocumentSource>,
        bm25: Bm25,
        tokenizer: &str,
    ) -> Result<Self, IndexError> {
        let IndexFolder { path, file } = folder;
        let sections = SectionWriter::start(file).map_err(|source| io_error(&path, source))?;
        let columns_in = path.parent().unwrap_or(&path).to_owned();
        Ok(Self {
            path,
            documents,
            num_docs,
            num_tokens,
            bm25,
            tokenizer: tokenizer.to_owned(),
            norms,
            sections,
            columns: Columns::new(&columns_in),
            dictionary: DictionaryWriter::new(&columns_in),
            last_term: Vec::new(),
            payload_words: 0,
            num_postings: 0,
        })
    }

    /// Limits the memory of the collected sections. The rest waits on disk.
    pub fn limit_memory(&mut self, bytes: u64) {
        let columns = self.columns.all();
        let share = usize::try_from(bytes / (columns.len() as u64 + 1)).unwrap_or(usize::MAX);
        columns.into_iter().for_each(|column| column.limit(share));
        self.dictionary.limit(share);
    }

    /// The documents' BM25 norms, for [`ListEncoder`]s.
    pub fn norms(&self) -> Arc<[f32]> {
        Arc::clone(&self.norms)
    }

    /// Appends the next range of the vocabulary. Lists are copied unchanged, at gigabytes per second. Fails if a term
    /// does not follow all previous terms, the file system fails, or a limit of the format is reached.
    pub fn append(&mut self, lists: &EncodedLists) -> Result<(), IndexError> {
        self.check_limits(lists)?;
        self.check_order(lists)?;
        self.append_columns(lists).map_err(|source| io_error(&self.path, source))
    }

    fn check_order(&self, lists: &EncodedLists) -> Result<(), IndexError> {
        let is_first = self.columns.num_terms() == 0;
        for position in 0..lists.len() {
            let term = lists.term(position);
            let last = if position > 0 { lists.term(position - 1) } else { &self.last_term };
            if !(is_first && position == 0) && last >= term {
                let (term, last) = (String::from_utf8_lossy(term), String::from_utf8_lossy(last));
                let message = format!("term {term:?} comes after {last:?}, expected ascending byte order");
                return Err(IndexError::Collection(message));
            }
        }
        Ok(())
    }

    fn append_columns(&mut self, lists: &EncodedLists) -> io::Result<()> {
        let columns = &mut self.columns;
        let (short_bytes, num_long) = (columns.short_lists.len() as u32, columns.num_long_lists() as u32);
        let num_blocks = columns.num_blocks() as u32;
        for (position, slot) in lists.slots.iter().enumerate() {
            self.dictionary.push(lists.term(position))?;
            columns.slots.extend(&[TermSlot::new(match slot.place() {
                ListPlace::Single(doc) => ListPlace::Single(doc),
                ListPlace::Short(byte) => ListPlace::Short(short_bytes + byte),
                ListPlace::Long(number) => ListPlace::Long(num_long + number),
            })])?;
        }
        if let Some(last) = lists.len().checked_sub(1) {
            lists.term(last).clone_into(&mut self.last_term);
        }
        for list in &lists.long_lists {
            columns.long_lists.extend(&[LongList {
                payload_word: self.payload_words + list.payload_word,
                first_block: num_blocks + list.first_block,
                ..*list
            }])?;
        }
        columns.short_lists.extend(&lists.short_lists)?;
        columns.last_docs.extend(&lists.last_docs)?;
        columns.blocks.extend(&lists.blocks)?;
        self.num_postings += lists.num_postings;
        self.payload_words += lists.payload.len() as u64;
        self.sections.write(bytemuck::cast_slice(&lists.payload))
    }

    fn check_limits(&self, lists: &EncodedLists) -> Result<(), IndexError> {
        let columns = &self.columns;
        let counts = [
            (columns.num_terms() + lists.len(), "terms"),
            (columns.short_lists.len() as usize + lists.short_lists.len(), "bytes of short lists"),
            (columns.num_long_lists() + lists.long_lists.len(), "long lists"),
            (columns.num_blocks() + lists.blocks.len(), "blocks"),
        ];
        match counts.iter().find(|(count, _)| *count > TermSlot::LIMIT) {
            Some((_, what)) => {
                let message = format!("an index holds {} {what} at most (split the collection)", TermSlot::LIMIT);
                Err(IndexError::Collection(message))
            }
            None => Ok(()),
        }
    }

    /// Writes the remaining sections and the header, and replaces the previous index. Fails if no list was appended, or
    /// the file system fails. A previous index stays then.
    pub fn finish(self) -> Result<(), IndexError> {
        if self.columns.num_terms() == 0 {
            let message = "the collection has no terms: all of its documents are empty once cut into terms";
            return Err(IndexError::Collection(message.into()));
        }
        let header = self.header();
        let Self { path, documents, tokenizer, columns, dictionary, num_docs, mut sections, norms, .. } = self;
        drop(norms);
        let mut id_ends = SpillingColumn::new(path.parent().unwrap_or(&path), columns.slots.most_bytes());
        let Columns { last_docs, blocks, long_lists, short_lists, slots } = columns;
        let write_lists = |sections: &mut SectionWriter| -> io::Result<()> {
            let odd_bytes = (short_lists.len().next_multiple_of(4) - short_lists.len()) as usize;
            // The lists of the payload are already written.
            sections.section(Section::Payload, |out| out.write(&[0; SLACK_BYTES]))?;
            sections.section(Section::LastDocs, |out| last_docs.read(|bytes| out.write(bytes)))?;
            sections.section(Section::Blocks, |out| blocks.read(|bytes| out.write(bytes)))?;
            sections.section(Section::LongLists, |out| long_lists.read(|bytes| out.write(bytes)))?;
            sections.section(Section::ShortLists, |out| {
                short_lists.read(|bytes| out.write(bytes))?;
                out.write(&[0; 4][..odd_bytes])
            })?;
            sections.section(Section::Terms, |out| slots.read(|bytes| out.write(bytes)))?;
            sections.section(Section::Dictionary, |out| dictionary.finish(|bytes| out.write(bytes)))
        };
        write_lists(&mut sections).map_err(|source| io_error(&path, source))?;

        let (mut seen, mut end) = (0, 0_u64);
        let lengths = sections.section(Section::DocLengths, |out| {
            documents.for_each(&mut |length, id| {
                seen += 1;
                if let Some(id) = id {
                    end += id.len() as u64;
                    id_ends.extend(&[end]).map_err(cannot_write)?;
                }
                out.write(&length.to_ne_bytes()).map_err(cannot_write)
            })
        });
        lengths.map_err(|source| IndexError::Io { path: path.clone(), source })?;
        let num_ids = id_ends.len() / size_of::<u64>() as u64;
        if seen != num_docs || (num_ids > 0 && num_ids != u64::from(num_docs)) {
            let message = format!("{num_ids} external ids and {seen} lengths for {num_docs} documents");
            return Err(IndexError::Collection(message));
        }
        let write_ids = |sections: &mut SectionWriter| -> io::Result<()> {
            sections.section(Section::ExternalIdEnds, |out| id_ends.read(|bytes| out.write(bytes)))?;
            sections.section(Section::ExternalIds, |out| match num_ids {
                0 => Ok(()),
                _ => documents.for_each(&mut |_, id| out.write(id.unwrap_or_default())),
            })?;
            sections.section(Section::Tokenizer, |out| out.write(tokenizer.as_bytes()))
        };
        write_ids(&mut sections).and_then(|()| sections.commit(header)).map_err(|source| io_error(&path, source))
    }

    /// The header without the section table.
    fn header(&self) -> FileHeader {
        let mut header = FileHeader::zeroed();
        header.magic = MAGIC;
        header.version = VERSION;
        header.byte_order_mark = BYTE_ORDER_MARK;
        header.num_postings = self.num_postings;
        header.num_tokens = self.num_tokens;
        header.num_docs = self.num_docs;
        header.num_terms = self.columns.num_terms() as u32;
        (header.k1, header.b) = (self.bm25.k1, self.bm25.b);
        header.idf = match self.bm25.idf {
            Idf::Plus => 0,
            Idf::Papers => 1,
            Idf::Impacts => 2,
        };
        header
    }
}

/// Collects lists in memory, in byte order of the terms, and writes the index. Larger collections use [`ListEncoder`]s
/// and an [`IndexWriter`] directly.
#[derive(Debug)]
pub struct IndexBuilder {
    doc_lengths: Vec<u32>,
    external_ids: Vec<String>,
    bm25: Bm25,
    tokenizer: String,
    encoder: ListEncoder,
}

impl IndexBuilder {
    /// Starts an index of documents with these lengths (tokens) and external ids, in order of
    /// [`DocId`](tandem_base::base::ids::DocId).
    ///
    /// `external_ids` may be empty. Documents are then named by their numbers.
    pub fn new(doc_lengths: Vec<u32>, external_ids: Vec<String>, bm25: Bm25) -> Self {
        let tokens: u64 = doc_lengths.iter().map(|&length| u64::from(length)).sum();
        let norms = bm25.norms(&doc_lengths, tokens as f64 / doc_lengths.len().max(1) as f64);
        let encoder = ListEncoder::new(norms.into());
        Self { doc_lengths, external_ids, bm25, tokenizer: "ascii".to_owned(), encoder }
    }

    /// Sets the tokenizer's name, which is `ascii` by default.
    #[must_use]
    pub fn tokenizer(mut self, name: &str) -> Self {
        name.clone_into(&mut self.tokenizer);
        self
    }

    /// Adds the next term's postings: `(document, frequency)`, ascending by document, frequencies at least 1. Fails if
    /// terms or postings are out of order, or out of range.
    pub fn add(&mut self, term: &str, postings: &[(u32, u32)]) -> Result<(), IndexError> {
        self.encoder.add(term, postings)
    }

    /// Writes the index into the folder `dir` atomically. Fails if no list was added, or the file system fails.
    pub fn write(mut self, dir: &Path) -> Result<(), IndexError> {
        let mut writer = IndexWriter::create(dir, self.doc_lengths, self.external_ids, self.bm25, &self.tokenizer)?;
        writer.append(&self.encoder.take())?;
        writer.finish()
    }
}

fn io_error(path: &Path, source: io::Error) -> IndexError {
    IndexError::Io { path: path.to_owned(), source: cannot_write(source) }
}

fn cannot_write(source: io::Error) -> io::Error {
    io::Error::new(source.kind(), format!("cannot write: {source}"))
}
