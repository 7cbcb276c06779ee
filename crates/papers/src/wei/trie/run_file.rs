//! Run files: the documents of a run, its lists, and their places.
//!
//! | offset | size | meaning |
//! | ---: | ---: | --- |
//! | 0 | 8 | magic, `TandemT1` |
//! | 8 | 8 | sections: slots that have lists |
//! | 16 | 8 | lists |
//! | 24 | 8 | bytes of documents |
//! | 32 | 8 | bytes of lists |
//! | 40 | 8 | XXH3-64 of what stands between this header and the lists |
//! | 48 | 8 | XXH3-64 of the lists |
//! | 56 | 16 a section | slot (4 bytes), number of lists (4), their bytes (8) |
//! | | 8 a list | the location table: term (4 bytes), length (4), slot by slot |
//! | | | documents, a piece a batch: length (4 bytes) and [documents](tandem_core::indexing::SegmentDocuments) |
//! | | | lists, one after another: gaps and frequencies in variable bytes ([postings](tandem_core::indexing::postings)) |
//!
//! The paper's location table has a place for every term of the dictionary. This one has the terms of the run only, so
//! that it grows with the run rather than with the dictionary.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::sections::{Entry, Section, Sections};
use tandem_core::files::{File, read_exact_at};
use tandem_core::indexing::{BuildError, SegmentDocuments};

const MAGIC: [u8; 8] = *b"TandemT1";
const HEADER_BYTES: usize = 56;
const SECTION_BYTES: usize = 16;
const ENTRY_BYTES: usize = 8;

#[derive(Debug)]
pub(crate) struct RunFile {
    file: File,
    path: PathBuf,
    /// Sections in the order of slots.
    sections: Vec<SectionPlace>,
    documents_at: u64,
    documents_bytes: u64,
    lists_at: u64,
}

#[derive(Clone, Copy, Debug)]
struct SectionPlace {
    slot: u16,
    lists: u32,
    entries_at: u64,
    bytes_at: u64,
}

impl RunFile {
    pub(crate) fn write(path: &Path, parts: &[Sections], segments: &[SegmentDocuments]) -> io::Result<()> {
        let sum = |of: fn(&Sections) -> usize| parts.iter().map(of).sum::<usize>();
        let (sections, lists) = (sum(|part| part.sections.len()), sum(|part| part.entries.len()));
        let mut table = Vec::with_capacity(sections * SECTION_BYTES + lists * ENTRY_BYTES);
        for Section { slot, lists, bytes } in parts.iter().flat_map(|part| &part.sections) {
            table.extend_from_slice(&u32::from(*slot).to_le_bytes());
            table.extend_from_slice(&lists.to_le_bytes());
            table.extend_from_slice(&bytes.to_le_bytes());
        }
        for Entry { term, len } in parts.iter().flat_map(|part| &part.entries) {
            table.extend_from_slice(&term.to_le_bytes());
            table.extend_from_slice(&len.to_le_bytes());
        }
        let documents_at = table.len();
        for segment in segments {
            let documents = segment.encode();
            table.extend_from_slice(&(documents.len() as u32).to_le_bytes());
            table.extend_from_slice(&documents);
        }
        let mut checksum = Xxh3::new();
        parts.iter().for_each(|part| checksum.update(&part.bytes));
        let numbers = [
            sections as u64,
            lists as u64,
            (table.len() - documents_at) as u64,
            sum(|part| part.bytes.len()) as u64,
            xxh3_64(&table),
            checksum.digest(),
        ];
        let mut file = File::create(path)?;
        file.write_all(&MAGIC)?;
        file.write_all(&numbers.map(u64::to_le_bytes).concat())?;
        file.write_all(&table)?;
        parts.iter().try_for_each(|part| file.write_all(&part.bytes))?;
        file.sync_data()
    }

    /// Opens a run and checks all of it. Fails if the file cannot be read, or if [`write`](Self::write) did not write
    /// it.
    pub(crate) fn open(path: &Path) -> Result<Self, BuildError> {
        let cannot = |e: io::Error| BuildError::of(path, "cannot read", &e);
        let damaged = || damaged(path);
        let file = File::open(path).map_err(cannot)?;
        let len = file.metadata().map_err(cannot)?.len();
        let mut header = [0; HEADER_BYTES];
        if len < HEADER_BYTES as u64 {
            return Err(damaged());
        }
        read_exact_at(&file, &mut header, 0).map_err(cannot)?;
        let number = |at: usize| u64::from_le_bytes(*header[at..].first_chunk().expect("inside the header"));
        let [sections, lists, documents_bytes, lists_bytes] = [8, 16, 24, 32].map(number);
        let table_bytes = sections
            .checked_mul(SECTION_BYTES as u64)
            .zip(lists.checked_mul(ENTRY_BYTES as u64))
            .and_then(|(sections, lists)| sections.checked_add(lists)?.checked_add(documents_bytes));
        let lists_at = table_bytes.and_then(|bytes| bytes.checked_add(HEADER_BYTES as u64));
        let end = lists_at.and_then(|at| at.checked_add(lists_bytes));
        let (Some(table_bytes), Some(lists_at), true) = (table_bytes, lists_at, end == Some(len)) else {
            return Err(damaged());
        };
        let mut table = vec![0; table_bytes as usize];
        read_exact_at(&file, &mut table, HEADER_BYTES as u64).map_err(cannot)?;
        if header[..8] != MAGIC || xxh3_64(&table) != number(40) {
            return Err(damaged());
        }
        let mut places = Vec::with_capacity(sections as usize);
        let mut entries_at = HEADER_BYTES as u64 + sections * SECTION_BYTES as u64;
        let mut bytes_at = lists_at;
        for section in table[..sections as usize * SECTION_BYTES].as_chunks::<SECTION_BYTES>().0 {
            let [slot, lists, low, high] =
                [0, 4, 8, 12].map(|at| u32::from_le_bytes(*section[at..].first_chunk().expect("inside a section")));
            places.push(SectionPlace { slot: slot as u16, lists, entries_at, bytes_at });
            entries_at += u64::from(lists) * ENTRY_BYTES as u64;
            bytes_at += u64::from(low) | u64::from(high) << 32;
        }
        places.sort_by_key(|place| place.slot);
        let documents_at = lists_at - documents_bytes;
        let run = Self { file, path: path.to_owned(), sections: places, documents_at, documents_bytes, lists_at };
        run.check_lists(len, number(48))?;
        Ok(run)
    }

    fn check_lists(&self, end: u64, expected: u64) -> Result<(), BuildError> {
        let mut checksum = Xxh3::new();
        let mut buffer = vec![0; 1 << 20];
        let mut at = self.lists_at;
        while at < end {
            let bytes = &mut buffer[..(end - at).min(1 << 20) as usize];
            self.read(bytes, at)?;
            checksum.update(bytes);
            at += bytes.len() as u64;
        }
        if checksum.digest() == expected { Ok(()) } else { Err(damaged(&self.path)) }
    }

    pub(crate) fn segments(&self) -> Result<Vec<SegmentDocuments>, BuildError> {
        let mut bytes = vec![0; self.documents_bytes as usize];
        self.read(&mut bytes, self.documents_at)?;
        let mut segments = Vec::new();
        let mut rest = bytes.as_slice();
        while let Some((len, after)) = rest.split_first_chunk() {
            let piece = after.split_at_checked(u32::from_le_bytes(*len) as usize);
            let (piece, after) = piece.ok_or_else(|| damaged(&self.path))?;
            segments.push(SegmentDocuments::decode(piece).ok_or_else(|| damaged(&self.path))?);
            rest = after;
        }
        Ok(segments)
    }

    /// Calls `visit` with each slot that has lists, and its entries.
    pub(crate) fn for_each_section(&self, mut visit: impl FnMut(u16, &[Entry])) -> Result<(), BuildError> {
        let mut entries = Vec::new();
        for place in &self.sections {
            self.entries(*place, &mut entries)?;
            visit(place.slot, &entries);
        }
        Ok(())
    }

    /// Calls `visit` with the lists of a slot whose terms are `wanted`.
    pub(crate) fn for_each_list(
        &self,
        slot: u16,
        wanted: impl Fn(u32) -> bool,
        mut visit: impl FnMut(u32, &[u8]),
    ) -> Result<(), BuildError> {
        let Ok(at) = self.sections.binary_search_by_key(&slot, |place| place.slot) else { return Ok(()) };
        let place = self.sections[at];
        let mut entries = Vec::new();
        self.entries(place, &mut entries)?;
        // Neighbouring wanted lists are read together.
        let mut buffer = Vec::new();
        let mut at = place.bytes_at;
        for group in entries.chunk_by(|a, b| wanted(a.term) == wanted(b.term)) {
            let len: u64 = group.iter().map(|entry| u64::from(entry.len)).sum();
            if wanted(group[0].term) {
                buffer.resize(len as usize, 0);
                self.read(&mut buffer, at)?;
                let mut rest = buffer.as_slice();
                for entry in group {
                    let (list, after) = rest.split_at(entry.len as usize);
                    visit(entry.term, list);
                    rest = after;
                }
            }
            at += len;
        }
        Ok(())
    }

    pub(crate) fn damaged(&self) -> BuildError {
        damaged(&self.path)
    }

    fn entries(&self, place: SectionPlace, entries: &mut Vec<Entry>) -> Result<(), BuildError> {
        let mut bytes = vec![0; place.lists as usize * ENTRY_BYTES];
        self.read(&mut bytes, place.entries_at)?;
        let (words, _) = bytes.as_chunks::<4>();
        entries.clear();
        let entry =
            |[term, len]: &[[u8; 4]; 2]| Entry { term: u32::from_le_bytes(*term), len: u32::from_le_bytes(*len) };
        entries.extend(words.as_chunks::<2>().0.iter().map(entry));
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> Result<(), BuildError> {
        read_exact_at(&self.file, bytes, at).map_err(|e| BuildError::of(&self.path, "cannot read", &e))
    }
}

fn damaged(path: &Path) -> BuildError {
    let folder = path.parent().unwrap_or(path).display();
    let message = format!("damaged: a checksum does not match (delete {folder} to start again)");
    BuildError::Run { path: path.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_core::corpus::LineBase;

    /// Writes a run `run` into a folder. Returns the folder and the documents.
    fn written() -> (tempfile::TempDir, Vec<SegmentDocuments>) {
        let mut parts = [Sections::default(), Sections::default()];
        parts[0].begin(40);
        for term in [7, 3, 5] {
            parts[0].list(term, |bytes| bytes.extend(vec![term as u8; term as usize]));
        }
        parts[1].begin(11);
        parts[1].list(3, |bytes| bytes.push(9));
        parts[1].begin(17_612);
        parts[1].list(0, |bytes| bytes.push(8));
        let mut documents = SegmentDocuments::new(2, Some(LineBase::First(1)));
        documents.push("x", Some(3), 5);
        let segments = vec![documents, SegmentDocuments::default()];
        let dir = tempfile::tempdir().unwrap();
        RunFile::write(&dir.path().join("run"), &parts, &segments).unwrap();
        (dir, segments)
    }

    #[test]
    fn lists_and_documents_of_a_run_come_back() {
        let (dir, segments) = written();
        let path = dir.path().join("run");
        let run = RunFile::open(&path).unwrap();
        assert_eq!(run.segments().unwrap(), segments);
        let mut slots = Vec::new();
        run.for_each_section(|slot, entries| slots.push((slot, entries.len()))).unwrap();
        assert_eq!(slots, [(11, 1), (40, 3), (17_612, 1)]);
        let mut lists = Vec::new();
        run.for_each_list(40, |term| term != 3, |term, bytes| lists.push((term, bytes.to_vec()))).unwrap();
        assert_eq!(lists, [(7, vec![7; 7]), (5, vec![5; 5])]);
        run.for_each_list(12, |_| true, |_, _| panic!("no such slot")).unwrap();
    }

    #[test]
    fn a_run_with_any_changed_or_missing_byte_is_refused() {
        let (dir, _) = written();
        let path = dir.path().join("run");
        let whole = std::fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 4;
            std::fs::write(&path, &bytes).unwrap();
            assert!(RunFile::open(&path).is_err(), "byte {place}");
            std::fs::write(&path, &whole[..place]).unwrap();
            assert!(RunFile::open(&path).is_err(), "cut at {place}");
        }
    }
}
