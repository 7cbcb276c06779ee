//! The dictionary, a map from terms to their ranks and back.
//!
//! One automaton takes one or two million terms per second, in order. The dictionary therefore consists of many, one
//! per [`PART_TERMS`] terms, which threads build while lists arrive. Parts depend on the terms alone.
//!
//! | SIZE | MEANING |
//! | ---: | --- |
//! | 8 for each part | where it ends, from the section's beginning |
//! | | the parts: each an `fst` map from its terms to how many terms of the part come before |
//!
//! In files of format 2 the section is one map of all terms.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use fst::Streamer;
use memmap2::Mmap;
use rayon::prelude::*;

use super::column::SpillingColumn;

/// Terms of a part. The last part may have fewer.
const PART_TERMS: usize = 1 << 16;
/// Threads that build parts. They take terms faster than sixteen cores merge lists.
const THREADS: usize = 4;
const ROW_BYTES: usize = size_of::<u64>();

/// A range of the mapped file that shares ownership of the mapping.
#[derive(Clone, Debug)]
pub(crate) struct MappedBytes {
    pub(crate) map: Arc<Mmap>,
    pub(crate) range: Range<usize>,
}

impl AsRef<[u8]> for MappedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.map[self.range.clone()]
    }
}

#[derive(Debug)]
pub(crate) struct Dictionary {
    /// At least one part.
    parts: Vec<DictionaryPart>,
    num_terms: u32,
}

struct DictionaryPart {
    first_term: Vec<u8>,
    first_rank: u32,
    ranks: fst::Map<MappedBytes>,
}

impl fmt::Debug for DictionaryPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DictionaryPart").field("first_rank", &self.first_rank).finish_non_exhaustive()
    }
}

impl Dictionary {
    /// Opens the dictionary of `num_terms` terms in this section; the error says what is damaged.
    pub(crate) fn open(section: &MappedBytes, num_terms: u32) -> Result<Self, String> {
        let num_parts = (num_terms as usize).div_ceil(PART_TERMS);
        let table = section.as_ref().get(..num_parts * ROW_BYTES).ok_or("the table of parts is cut short")?;
        let mut start = table.len();
        let mut parts = Vec::with_capacity(num_parts);
        for row in table.as_chunks().0 {
            let end = u64::from_le_bytes(*row);
            if end < start as u64 || end > section.range.len() as u64 {
                return Err("a part is out of place".into());
            }
            parts.push(start..end as usize);
            start = end as usize;
        }
        if start != section.range.len() {
            return Err("bytes after the last part".into());
        }
        Self::of_parts(section, &parts, num_terms)
    }

    /// Opens a dictionary of format 2, which is one map.
    pub(crate) fn open_whole(section: &MappedBytes, num_terms: u32) -> Result<Self, String> {
        Self::of_parts(section, std::slice::from_ref(&(0..section.range.len())), num_terms)
    }

    fn of_parts(section: &MappedBytes, places: &[Range<usize>], num_terms: u32) -> Result<Self, String> {
        let open = |place: &Range<usize>| {
            let range = section.range.start + place.start..section.range.start + place.end;
            let ranks = fst::Map::new(MappedBytes { map: Arc::clone(&section.map), range })?;
            // The map has a checksum of its own, so walking it is safe.
            ranks.as_fst().verify()?;
            let first_term = ranks.stream().next().map(|(term, _)| term.to_vec()).unwrap_or_default();
            Ok(DictionaryPart { first_term, first_rank: 0, ranks })
        };
        let parts: Result<Vec<DictionaryPart>, fst::Error> = places.par_iter().map(open).collect();
        let mut parts = parts.map_err(|e| e.to_string())?;
        let mut next = 0;
        for (number, part) in parts.iter_mut().enumerate() {
            let is_last = number + 1 == places.len();
            if !is_last && part.ranks.len() != PART_TERMS {
                return Err("a part holds another number of terms than it should".into());
            }
            part.first_rank = next as u32;
            next += part.ranks.len();
        }
        if next != num_terms as usize {
            return Err("its size differs from the number of terms".into());
        }
        Ok(Self { parts, num_terms })
    }

    pub(crate) fn rank(&self, term: &str) -> Option<u32> {
        let after = self.parts.partition_point(|part| part.first_term.as_slice() <= term.as_bytes());
        let part = &self.parts[after.checked_sub(1)?];
        let rank = part.ranks.get(term)?.checked_add(part.first_rank.into())?;
        (rank < self.num_terms.into()).then_some(rank as u32)
    }

    /// The term of this rank, or nothing if there is none.
    pub(crate) fn term(&self, rank: u32) -> Vec<u8> {
        let after = self.parts.partition_point(|part| part.first_rank <= rank);
        let part = &self.parts[after.saturating_sub(1)];
        // Ranks ascend with the terms, as finding a key by its value requires.
        part.ranks.as_fst().get_key((rank - part.first_rank).into()).unwrap_or_default()
    }

    /// Visits all terms with their ranks in order, up to the first error of `visit`.
    pub(crate) fn for_each<E>(&self, mut visit: impl FnMut(&[u8], u32) -> Result<(), E>) -> Result<(), E> {
        for part in &self.parts {
            let mut terms = part.ranks.stream();
            while let Some((term, rank)) = terms.next() {
                visit(term, part.first_rank + rank as u32)?;
            }
        }
        Ok(())
    }
}

/// Terms of a part that is being collected.
#[derive(Debug, Default)]
struct Terms {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Terms {
    fn build(&self) -> Result<Vec<u8>, fst::Error> {
        let mut builder = fst::MapBuilder::memory();
        let mut start = 0;
        for (rank, &end) in (0..).zip(&self.ends) {
            builder.insert(&self.text[start..end], rank)?;
            start = end;
        }
        builder.into_inner()
    }
}

#[derive(Debug)]
pub(crate) struct DictionaryWriter {
    terms: Terms,
    /// Number of full parts, which threads build.
    num_parts: usize,
    /// Threads that start with the first full part.
    builders: Option<Builders>,
    built: SpillingColumn,
    ends: Vec<u64>,
    /// Parts that were built before one of their predecessors.
    early: BTreeMap<usize, Vec<u8>>,
}

impl DictionaryWriter {
    /// A writer whose parts wait in `folder` beyond the memory limit.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            terms: Terms::default(),
            num_parts: 0,
            builders: None,
            built: SpillingColumn::new(folder, usize::MAX),
            ends: Vec::new(),
            early: BTreeMap::new(),
        }
    }

    pub(crate) fn limit(&mut self, most_bytes: usize) {
        self.built.limit(most_bytes);
    }

    pub(crate) fn push(&mut self, term: &[u8]) -> io::Result<()> {
        if self.terms.ends.len() == PART_TERMS {
            self.build()?;
        }
        self.terms.text.extend_from_slice(term);
        self.terms.ends.push(self.terms.text.len());
        Ok(())
    }

    /// Sends the current part to a thread, and collects built parts.
    #[cold]
    fn build(&mut self) -> io::Result<()> {
        let builders = match &self.builders {
            Some(builders) => builders,
            None => self.builders.insert(Builders::start()?),
        };
        let sent = builders.to_threads.send((self.num_parts, std::mem::take(&mut self.terms)));
        self.num_parts += 1;
        let built: Vec<BuiltPart> = builders.from_threads.try_iter().collect();
        built.into_iter().try_for_each(|part| self.take(part))?;
        sent.map_err(|_| io::Error::other("the threads that build the dictionary have ended"))
    }

    fn take(&mut self, (number, part): BuiltPart) -> io::Result<()> {
        self.early.insert(number, part.map_err(io::Error::other)?);
        while let Some(part) = self.early.remove(&self.ends.len()) {
            self.built.extend(&part)?;
            self.ends.push(self.built.len());
        }
        Ok(())
    }

    /// Waits for all parts and passes the section to `visit`, piece by piece.
    pub(crate) fn finish(mut self, mut visit: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let last = (self.num_parts, self.terms.build());
        if let Some(Builders { to_threads, from_threads, threads }) = self.builders.take() {
            drop(to_threads);
            from_threads.iter().try_for_each(|part| self.take(part))?;
            for thread in threads {
                thread.join().map_err(|_| io::Error::other("a thread that builds the dictionary has panicked"))?;
            }
        }
        self.take(last)?;
        let table_bytes = (self.ends.len() * ROW_BYTES) as u64;
        self.ends.iter().try_for_each(|end| visit(&(table_bytes + end).to_le_bytes()))?;
        self.built.read(visit)
    }
}

type BuiltPart = (usize, Result<Vec<u8>, fst::Error>);

#[derive(Debug)]
struct Builders {
    to_threads: Sender<(usize, Terms)>,
    from_threads: Receiver<BuiltPart>,
    threads: Vec<JoinHandle<()>>,
}

impl Builders {
    fn start() -> io::Result<Self> {
        let (to_threads, from_writer) = bounded::<(usize, Terms)>(THREADS);
        let (to_writer, from_threads) = unbounded();
        let start = |number| {
            let (from_writer, to_writer) = (from_writer.clone(), to_writer.clone());
            let work = move || {
                for (number, terms) in from_writer {
                    // The receiver is gone if the writer has failed.
                    if to_writer.send((number, terms.build())).is_err() {
                        return;
                    }
                }
            };
            std::thread::Builder::new().name(format!("dictionary-{number}")).spawn(work)
        };
        let threads = (0..THREADS).map(start).collect::<io::Result<_>>()?;
        Ok(Self { to_threads, from_threads, threads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::file::map_file;

    fn mapped(bytes: &[u8]) -> MappedBytes {
        let file = tempfile::NamedTempFile::new().unwrap();
        // A section need not begin at the start of its file.
        std::fs::write(file.path(), [b"before", bytes].concat()).unwrap();
        let map = map_file(file.path()).unwrap();
        MappedBytes { range: 6..map.len(), map }
    }

    fn section(num_terms: usize, most_bytes: usize) -> Vec<u8> {
        let mut writer = DictionaryWriter::new(&std::env::temp_dir());
        writer.limit(most_bytes);
        (0..num_terms).for_each(|rank| writer.push(term(rank).as_bytes()).unwrap());
        let mut bytes = Vec::new();
        let finished = writer.finish(|piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        finished.unwrap();
        bytes
    }

    fn term(rank: usize) -> String {
        format!("{rank:07}x")
    }

    #[test]
    fn terms_are_found_in_one_part_and_in_many_and_by_their_ranks() {
        for num_terms in [1, 2, PART_TERMS - 1, PART_TERMS, PART_TERMS + 1, 3 * PART_TERMS + 7] {
            let bytes = section(num_terms, usize::MAX);
            assert!(section(num_terms, 1000) == bytes, "{num_terms} terms on disk");
            let section = mapped(&bytes);
            let dictionary = Dictionary::open(&section, num_terms as u32).unwrap();
            assert_eq!(dictionary.parts.len(), num_terms.div_ceil(PART_TERMS));
            let near_borders = (0..=num_terms / PART_TERMS).flat_map(|part| {
                let border = part * PART_TERMS;
                border.saturating_sub(2)..(border + 2).min(num_terms)
            });
            for rank in near_borders.chain((0..num_terms).step_by(997)) {
                assert_eq!(dictionary.rank(&term(rank)), Some(rank as u32));
                assert_eq!(dictionary.term(rank as u32), term(rank).as_bytes());
                assert_eq!(dictionary.rank(&term(rank)[..7]), None);
                assert_eq!(dictionary.rank(&(term(rank) + "y")), None);
            }
            assert_eq!((dictionary.rank(""), dictionary.rank("a")), (None, None));
            let mut next = 0;
            let visited = dictionary.for_each(|seen, rank| {
                assert_eq!((seen, rank), (term(next).as_bytes(), next as u32));
                next += 1;
                Ok::<_, ()>(())
            });
            assert_eq!((visited, next), (Ok(()), num_terms));

            for other in [num_terms - 1, num_terms + 1, num_terms + PART_TERMS] {
                assert!(Dictionary::open(&section, other as u32).is_err(), "{num_terms} as {other}");
            }
            for len in [0, 7, bytes.len() - 1] {
                assert!(Dictionary::open(&mapped(&bytes[..len]), num_terms as u32).is_err(), "cut to {len} bytes");
            }
        }
    }

    #[test]
    fn parts_that_are_out_of_place_are_refused() {
        let num_terms = 2 * PART_TERMS + 1;
        let good = section(num_terms, usize::MAX);
        for (row, end) in [(0, 0), (0, u64::MAX), (1, 30), (2, 1 << 40), (2, good.len() as u64 - 1)] {
            let mut bytes = good.clone();
            bytes[row * ROW_BYTES..][..ROW_BYTES].copy_from_slice(&end.to_le_bytes());
            assert!(Dictionary::open(&mapped(&bytes), num_terms as u32).is_err(), "row {row}, {end}");
        }
    }
}
