//! The memory-mapped index file.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytemuck::Pod;
use memmap2::Mmap;
use tandem_base::base::ids::{DocId, TermId};
use tandem_base::base::prefetch::prefetch;
use tandem_base::files::File;
use xxhash_rust::xxh3::xxh3_64;

use super::BLOCK_LEN;
use super::bm25::{Bm25, Idf};
use super::check::{check_file, check_lists};
use super::device::ListSections;
use super::dictionary::{Dictionary, MappedBytes};
use super::directory::{BlockEntry, ListPlace, LongList, TermSlot};
use super::error::IndexError;
use super::layout::{FILE_NAME, FileHeader, Section, WHOLE_DICTIONARY_VERSION};
use super::list::{Blocks, PostingList, short_bound, short_run};
use super::packed::run::Run;
use super::writer::IndexBuilder;

/// Interval between releases of pages. Sixteen cores check 16 GB per second, so some tens of megabytes stay.
const LET_GO_EVERY: Duration = Duration::from_millis(4);

/// An open index, which reads everything from the mapped file. `Arc<Index>` shares it.
///
/// Methods panic if the index has no such term or document.
#[derive(Debug)]
pub struct Index {
    map: Arc<Mmap>,
    header: FileHeader,
    dictionary: Dictionary,
    bm25: Bm25,
    tokenizer: String,
}

impl Index {
    /// The sections that hold lists.
    pub fn list_sections(&self) -> ListSections<'_> {
        ListSections {
            payload: self.payload(),
            last_docs: self.last_docs(),
            blocks: self.blocks(),
            long_lists: self.long_lists(),
            short_lists: self.short_lists(),
            slots: self.items(Section::Terms),
            num_docs: self.num_docs(),
        }
    }

    /// Opens the index in folder `dir` and checks magic number, version, lengths and checksums.
    ///
    /// All threads read the whole file once, about as fast as the disk or memory allows. Fails if it is missing,
    /// truncated, damaged or of another version. The message contains the remedy.
    pub fn open(dir: &Path) -> Result<Self, IndexError> {
        let path = dir.join(FILE_NAME);
        let map = map_file(&path)?;
        Self::from_map(map)
            .map_err(|what| IndexError::Damaged { path, message: format!("{what} (rebuild it: `tandem index build`)") })
    }

    /// Opens an index that was just written, to verify it. Checked pages are released at once, so that a build within a
    /// memory budget does not appear to take as much memory as its index.
    pub fn read_back(dir: &Path) -> Result<Self, IndexError> {
        let path = dir.join(FILE_NAME);
        let map = map_file(&path)?;
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let_go(&map);
                    std::thread::sleep(LET_GO_EVERY);
                }
            });
            let index = Self::from_map(Arc::clone(&map));
            is_done.store(true, Ordering::Relaxed);
            index
        })
        .map_err(|message| IndexError::Damaged { path, message })
    }

    /// Makes an index of these lists in a temporary folder with default BM25 parameters, for tests and examples.
    ///
    /// Terms may come in any order. A document's length is the sum of its frequencies. The largest document number
    /// determines how many documents there are.
    pub fn from_lists<S: AsRef<str>>(lists: &[(S, Vec<(u32, u32)>)]) -> Result<Self, IndexError> {
        let num_docs = lists.iter().flat_map(|(_, list)| list).map(|&(doc, _)| doc as usize + 1).max().unwrap_or(0);
        let mut doc_lengths = vec![0_u32; num_docs];
        for &(doc, freq) in lists.iter().flat_map(|(_, list)| list) {
            let length = &mut doc_lengths[doc as usize];
            *length = length.saturating_add(freq);
        }
        let mut sorted: Vec<_> = lists.iter().map(|(term, list)| (term.as_ref(), list)).collect();
        sorted.sort_by_key(|&(term, _)| term);
        let mut builder = IndexBuilder::new(doc_lengths, Vec::new(), Bm25::default());
        for (term, list) in sorted {
            builder.add(term, list)?;
        }
        let dir = tempfile::tempdir().map_err(|source| IndexError::Io { path: std::env::temp_dir(), source })?;
        builder.write(dir.path())?;
        Self::open(dir.path())
    }

    fn from_map(map: Arc<Mmap>) -> Result<Self, String> {
        let header = check_file(&map)?;
        let idf = match header.idf {
            0 => Idf::Plus,
            1 => Idf::Papers,
            2 => Idf::Impacts,
            other => return Err(format!("damaged: idf form {other}, expected 0, 1 or 2")),
        };
        let section = MappedBytes { map: Arc::clone(&map), range: range_of(&header, Section::Dictionary) };
        let dictionary = match header.version {
            WHOLE_DICTIONARY_VERSION => Dictionary::open_whole(&section, header.num_terms),
            _ => Dictionary::open(&section, header.num_terms),
        };
        let dictionary = dictionary.map_err(|e| format!("damaged: the dictionary: {e}"))?;
        let tokenizer = std::str::from_utf8(&map[range_of(&header, Section::Tokenizer)])
            .map_err(|_| "damaged: the tokenizer's name is not UTF-8")?
            .to_owned();
        let bm25 = Bm25 { k1: header.k1, b: header.b, idf };
        let index = Self { map, header, dictionary, bm25, tokenizer };
        index.bm25.check().map_err(|what| format!("damaged: {what}"))?;
        index.check_documents()?;
        check_lists(&header, index.list_sections())?;
        Ok(index)
    }

    fn check_documents(&self) -> Result<(), String> {
        let lengths = self.doc_lengths();
        if lengths.len() != self.header.num_docs as usize || lengths.len() >= 1 << 31 {
            return Err("damaged: the number of documents differs from the header's".into());
        }
        let ends: &[u64] = self.items(Section::ExternalIdEnds);
        let text = self.bytes(Section::ExternalIds);
        let in_range = ends.is_sorted() && ends.last().is_none_or(|&end| end == text.len() as u64);
        if !in_range || !(ends.is_empty() || ends.len() == lengths.len()) {
            return Err("damaged: the external ids are out of place".into());
        }
        Ok(())
    }

    /// Size of a section in bytes.
    pub fn section_bytes(&self, section: Section) -> u64 {
        self.header.section(section).len
    }

    /// Number of documents.
    pub fn num_docs(&self) -> u32 {
        self.header.num_docs
    }

    /// Number of distinct terms.
    pub fn num_terms(&self) -> u32 {
        self.header.num_terms
    }

    /// Number of postings in all lists.
    pub fn num_postings(&self) -> u64 {
        self.header.num_postings
    }

    /// Number of tokens in all documents.
    pub fn num_tokens(&self) -> u64 {
        self.header.num_tokens
    }

    /// Mean number of tokens per document.
    pub fn average_length(&self) -> f64 {
        self.num_tokens() as f64 / f64::from(self.num_docs())
    }

    /// Number of tokens of each document.
    pub fn doc_lengths(&self) -> &[u32] {
        self.items(Section::DocLengths)
    }

    /// The BM25 parameters of the stored impacts.
    pub fn built_with(&self) -> Bm25 {
        self.bm25
    }

    /// Whether frequencies are impacts: see [`quantise`](crate::indexing::quantise()).
    pub fn is_quantised(&self) -> bool {
        self.bm25.is_impacts()
    }

    /// Name of the tokenizer that cut the documents. Queries must be cut alike.
    pub fn tokenizer_name(&self) -> &str {
        &self.tokenizer
    }

    /// The term's number, if it is in the vocabulary.
    pub fn term(&self, term: &str) -> Option<TermId> {
        self.dictionary.rank(term).map(TermId)
    }

    /// The term's text.
    pub fn term_text(&self, term: TermId) -> String {
        assert!(term.0 < self.num_terms(), "term {term} of {}", self.num_terms());
        String::from_utf8_lossy(&self.dictionary.term(term.0)).into_owned()
    }

    /// The document's id in its collection, or its number if the collection has no ids.
    pub fn external_id(&self, doc: DocId) -> Cow<'_, str> {
        assert!(doc.0 < self.num_docs(), "document {doc} of {}", self.num_docs());
        let ends: &[u64] = self.items(Section::ExternalIdEnds);
        if ends.is_empty() {
            return Cow::Owned(doc.to_string());
        }
        let start = doc.index().checked_sub(1).map_or(0, |before| ends[before] as usize);
        String::from_utf8_lossy(&self.bytes(Section::ExternalIds)[start..ends[doc.index()] as usize])
    }

    /// The term's postings.
    pub fn list(&self, term: TermId) -> PostingList<'_> {
        match self.place(term) {
            ListPlace::Single(doc) => {
                let norm = self.bm25.norm(self.doc_lengths()[doc as usize], self.average_length());
                PostingList::short(Run::single(doc), Bm25::max_impact([(1, norm)]))
            }
            ListPlace::Short(byte) => short_run(self.bytes(Section::ShortLists), byte)
                .map_or(PostingList::EMPTY, |run| {
                    PostingList::short(run, short_bound(&run).min(self.bm25.largest_impact()))
                }),
            ListPlace::Long(number) => self.long_posting_list(&self.long_lists()[number as usize]),
        }
    }

    /// Prefetches the term's slot, for a call of [`Index::list`] that follows.
    #[inline]
    pub fn prefetch(&self, term: TermId) {
        let slots = self.items::<TermSlot>(Section::Terms);
        prefetch(slots.get(term.index()..).unwrap_or_default(), size_of::<TermSlot>());
    }

    /// Prefetches the term's row in the table of long lists, if there is one, for a call of [`Index::list`] that
    /// follows.
    #[inline]
    pub fn prefetch_row(&self, term: TermId) {
        if let ListPlace::Long(number) = self.place(term) {
            prefetch(self.long_lists().get(number as usize..).unwrap_or_default(), size_of::<LongList>());
        }
    }

    #[inline]
    fn long_posting_list<'a>(&'a self, list: &'a LongList) -> PostingList<'a> {
        let start = list.first_block as usize;
        let range = start..start + (list.doc_freq as usize).div_ceil(BLOCK_LEN);
        let payload = bytemuck::cast_slice(&self.payload()[list.payload_word as usize..]);
        let blocks = Blocks { list, entries: &self.blocks()[range.clone()], payload, num_docs: self.num_docs() };
        PostingList::long(blocks, &self.last_docs()[range])
    }

    /// Visits all terms with their lists in byte order of the terms, up to the first error of `visit`.
    pub fn for_each_list<E>(&self, mut visit: impl FnMut(&str, PostingList<'_>) -> Result<(), E>) -> Result<(), E> {
        self.dictionary.for_each(|term, rank| visit(&String::from_utf8_lossy(term), self.list(TermId(rank))))
    }

    /// Hash of the section checksums and the BM25 parameters. Equal indexes have equal hashes.
    pub fn fingerprint(&self) -> u64 {
        let mut bytes: Vec<u8> = self.header.sections.iter().flat_map(|s| s.checksum.to_le_bytes()).collect();
        bytes.extend([self.header.k1, self.header.b].iter().flat_map(|value| value.to_le_bytes()));
        bytes.extend(self.header.idf.to_le_bytes());
        xxh3_64(&bytes)
    }

    #[inline]
    fn place(&self, term: TermId) -> ListPlace {
        self.items::<TermSlot>(Section::Terms)[term.index()].place()
    }

    /// The row of the term's list, if it has at least [`BLOCK_LEN`] postings.
    pub fn long_list(&self, term: TermId) -> Option<&LongList> {
        self.long_list_number(term).map(|number| &self.long_lists()[number as usize])
    }

    /// The number of the term's list among the [`long_lists`](Self::long_lists), if it is one of them.
    #[inline]
    pub fn long_list_number(&self, term: TermId) -> Option<u32> {
        match self.place(term) {
            ListPlace::Long(number) => Some(number),
            ListPlace::Single(_) | ListPlace::Short(_) => None,
        }
    }

    /// All long lists with their postings, in the order of [`long_lists`](Self::long_lists).
    pub fn long_posting_lists(&self) -> impl Iterator<Item = PostingList<'_>> {
        self.long_lists().iter().map(|list| self.long_posting_list(list))
    }

    /// All long lists, in order of their terms.
    pub fn long_lists(&self) -> &[LongList] {
        self.items(Section::LongLists)
    }

    /// Bits of all short lists, padded to whole words.
    pub fn short_lists(&self) -> &[u32] {
        self.items(Section::ShortLists)
    }

    /// The last documents of all blocks of long lists.
    pub fn last_docs(&self) -> &[u32] {
        self.items(Section::LastDocs)
    }

    /// All blocks of long lists.
    pub fn blocks(&self) -> &[BlockEntry] {
        self.items(Section::Blocks)
    }

    /// Packed blocks and probe forms of all long lists.
    pub fn payload(&self) -> &[u32] {
        self.items(Section::Payload)
    }

    fn bytes(&self, section: Section) -> &[u8] {
        &self.map[range_of(&self.header, section)]
    }

    #[inline]
    pub(crate) fn items<T: Pod>(&self, section: Section) -> &[T] {
        bytemuck::cast_slice(self.bytes(section))
    }
}

fn range_of(header: &FileHeader, section: Section) -> Range<usize> {
    let entry = header.section(section);
    entry.offset as usize..(entry.offset + entry.len) as usize
}

pub(crate) fn map_file(path: &Path) -> Result<Arc<Mmap>, IndexError> {
    let cannot = |source| IndexError::Io { path: PathBuf::from(path), source };
    let file = File::open(path).map_err(|e| {
        if let (io::ErrorKind::NotADirectory, Some(dir)) = (e.kind(), path.parent()) {
            let source = io::Error::new(e.kind(), "is a file, expected the folder of an index");
            return IndexError::Io { path: dir.to_owned(), source };
        }
        let hint = match e.kind() {
            io::ErrorKind::NotFound => {
                "there is no index here (make one: `tandem index build` or `tandem index synth`)"
            }
            _ => "cannot open",
        };
        cannot(io::Error::new(e.kind(), format!("{hint}: {e}")))
    })?;
    if file.metadata().map_err(cannot)?.len() == 0 {
        let message = "truncated: the file is empty (rebuild it: `tandem index build`)".to_owned();
        return Err(IndexError::Damaged { path: path.to_owned(), message });
    }
    // SAFETY: the mapping is read-only, and this program never changes an index in place: it renames a new
    // file over the old one, whose pages live on. Another program that truncates or edits the file while it
    // is mapped breaks this.
    unsafe { Mmap::map(file.system()) }.map(Arc::new).map_err(cannot)
}

/// Releases the pages of a mapped file from this process. The system keeps them in its cache while there is room.
fn let_go(map: &Mmap) {
    // SAFETY: this mapping of a file is never written to, so a released page reads the same again.
    #[cfg(unix)]
    let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
}

#[cfg(test)]
mod tests;
