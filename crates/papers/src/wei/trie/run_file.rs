//! Run files: the lists of a run, their places, and its documents.
//!
//! | part | contents |
//! | --- | --- |
//! | the location table | term (4 bytes) and length (4) of each list, slot by slot |
//! | documents | a piece a batch: length (4 bytes) and [documents](tandem_engine::indexing::SegmentDocuments) |
//! | lists | gaps and frequencies in variable bytes ([postings](tandem_engine::indexing::postings)), in the table's order |
//!
//! The paper's location table has a place for every term of the dictionary. This one has the terms of the run only, so
//! that it grows with the run rather than with the dictionary. The places of slots stay in memory.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tandem_engine::indexing::{BuildError, SegmentDocuments};
use tandem_model::files::{File, read_exact_at};

use super::sections::{Entry, Section, Sections};

const ENTRY_BYTES: usize = 8;

#[derive(Debug)]
pub(crate) struct RunFile {
    file: File,
    pub(crate) path: PathBuf,
    /// Sections in the order of slots.
    sections: Vec<SectionPlace>,
    documents_at: u64,
    documents_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct SectionPlace {
    slot: u16,
    lists: u32,
    entries_at: u64,
    bytes_at: u64,
}

impl RunFile {
    pub(crate) fn write(path: &Path, parts: &[&Sections], segments: &[SegmentDocuments]) -> io::Result<Self> {
        let (mut table, mut sections, mut bytes_at) = (Vec::new(), Vec::new(), 0);
        for part in parts {
            let mut entries = part.entries.iter();
            for &Section { slot, lists, bytes } in &part.sections {
                sections.push(SectionPlace { slot, lists, entries_at: table.len() as u64, bytes_at });
                for Entry { term, len } in entries.by_ref().take(lists as usize) {
                    table.extend_from_slice(&term.to_le_bytes());
                    table.extend_from_slice(&len.to_le_bytes());
                }
                bytes_at += bytes;
            }
        }
        let documents_at = table.len();
        for segment in segments {
            let documents = segment.encode();
            table.extend_from_slice(&(documents.len() as u32).to_le_bytes());
            table.extend_from_slice(&documents);
        }
        sections.iter_mut().for_each(|place| place.bytes_at += table.len() as u64);
        sections.sort_by_key(|place| place.slot);
        let mut file = File::create(path)?;
        file.write_all(&table)?;
        parts.iter().try_for_each(|part| file.write_all(&part.bytes))?;
        file.sync_data()?;
        let (documents_at, documents_bytes) = (documents_at as u64, table.len() - documents_at);
        Ok(Self { file: File::open(path)?, path: path.to_owned(), sections, documents_at, documents_bytes })
    }

    pub(crate) fn segments(&self) -> Result<Vec<SegmentDocuments>, BuildError> {
        let mut bytes = vec![0; self.documents_bytes];
        self.read(&mut bytes, self.documents_at)?;
        let mut segments = Vec::new();
        let mut rest = bytes.as_slice();
        while let Some((len, after)) = rest.split_first_chunk() {
            let piece = after.split_at_checked(u32::from_le_bytes(*len) as usize);
            let (piece, after) = piece.ok_or_else(|| self.damaged())?;
            segments.push(SegmentDocuments::decode(piece).ok_or_else(|| self.damaged())?);
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
        let folder = self.path.parent().unwrap_or(&self.path).display();
        let message = format!("damaged (delete {folder} to start again)");
        BuildError::Run { path: self.path.clone(), message }
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

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_engine::corpus::LineBase;

    /// Writes a run `run` into a folder. Returns the folder and the documents.
    #[test]
    fn lists_and_documents_of_a_run_come_back() {
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
        let run = RunFile::write(&dir.path().join("run"), &parts.each_ref(), &segments).unwrap();
        assert_eq!(run.segments().unwrap(), segments);
        let mut slots = Vec::new();
        run.for_each_section(|slot, entries| slots.push((slot, entries.len()))).unwrap();
        assert_eq!(slots, [(11, 1), (40, 3), (17_612, 1)]);
        let mut lists = Vec::new();
        run.for_each_list(40, |term| term != 3, |term, bytes| lists.push((term, bytes.to_vec()))).unwrap();
        assert_eq!(lists, [(7, vec![7; 7]), (5, vec![5; 5])]);
        run.for_each_list(12, |_| true, |_, _| panic!("no such slot")).unwrap();
    }
}
