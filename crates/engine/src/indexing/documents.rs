//! Documents of all batches: their lengths and ids for the index, and their lines for errors.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use tandem_base::files::InputError;
use xxhash_rust::xxh3::xxh3_64;

use super::error::BuildError;
use super::indexer::Inverted;
use crate::corpus::LineBase;
use crate::index::{DocumentSource, VisitDocument};

/// The length of each document of `inverted`, whatever their ids.
pub(crate) fn lengths(inverted: &dyn Inverted) -> Result<Vec<u32>, BuildError> {
    let mut lengths = Vec::with_capacity(inverted.num_docs() as usize);
    inverted.for_each_segment(&mut |documents| {
        lengths.extend_from_slice(&documents.lengths);
        Ok(())
    })?;
    Ok(lengths)
}

/// The length of each document of `inverted`, whose files are `paths`. Digests of ids take at most `digests_bytes`.
pub(crate) fn check(inverted: &dyn Inverted, paths: &[PathBuf], digests_bytes: u64) -> Result<Vec<u32>, BuildError> {
    let num_docs = inverted.num_docs();
    let passes = Passes { of: (num_docs * size_of::<u64>() as u64).div_ceil(digests_bytes.max(1)).max(1) };
    let mut lengths = Vec::with_capacity(num_docs as usize);
    let mut first: Option<Repeated> = None;
    for pass in 0..passes.of {
        let mut digests: Vec<u64> = Vec::with_capacity((num_docs / passes.of) as usize);
        inverted.for_each_segment(&mut |documents| {
            digests.extend(documents.ids().map(xxh3_64).filter(|&digest| passes.has(pass, digest)));
            if pass == 0 {
                lengths.extend_from_slice(&documents.lengths);
            }
            Ok(())
        })?;
        digests.par_sort_unstable();
        keep_repeated(&mut digests);
        if !digests.is_empty() {
            let found = first_repeated(inverted, &digests)?;
            first = first.into_iter().chain(found).min_by_key(|repeated| repeated.number);
        }
    }
    match first {
        None => Ok(lengths),
        Some(Repeated { id, first, second, .. }) => {
            Err(repeated_id(paths, &String::from_utf8_lossy(&id), first, second).into())
        }
    }
}

/// Passes over all digests, each pass over a range of their highest bits.
#[derive(Clone, Copy, Debug)]
struct Passes {
    of: u64,
}

impl Passes {
    fn has(self, pass: u64, digest: u64) -> bool {
        self.of == 1 || (u128::from(digest) * u128::from(self.of)) >> 64 == u128::from(pass)
    }
}

/// Keeps each of the sorted digests that occurs more than once, once.
fn keep_repeated(digests: &mut Vec<u64>) {
    let (mut kept, mut start) = (0, 0);
    while start < digests.len() {
        let digest = digests[start];
        let end = start + digests[start..].iter().take_while(|&&other| other == digest).count();
        if end - start > 1 {
            digests[kept] = digest;
            kept += 1;
        }
        start = end;
    }
    digests.truncate(kept);
}

type DocumentPlace = (u32, Option<(LineBase, u64)>);

#[derive(Debug)]
struct Repeated {
    id: Vec<u8>,
    first: DocumentPlace,
    second: DocumentPlace,
    /// Number of documents before the second.
    number: u64,
}

/// The first document that repeats the id of a previous one, among ids with one of these digests.
fn first_repeated(inverted: &dyn Inverted, digests: &[u64]) -> Result<Option<Repeated>, BuildError> {
    let mut is_seen = vec![false; digests.len()];
    let (mut found, mut number) = (None, 0);
    inverted.for_each_segment(&mut |documents| {
        for (position, id) in documents.ids().enumerate() {
            if found.is_some() {
                return Ok(());
            }
            let digest = xxh3_64(id);
            if let Ok(at) = digests.binary_search(&digest)
                && std::mem::replace(&mut is_seen[at], true)
                // Different ids rarely have equal digests.
                && let Some(first) = place_of(inverted, id, digest, number)?
            {
                let second = (documents.file, documents.line(position));
                found = Some(Repeated { id: id.to_vec(), first, second, number });
            }
            number += 1;
        }
        Ok(())
    })?;
    Ok(found)
}

/// The place of the document with this id among the first `most` documents.
fn place_of(inverted: &dyn Inverted, id: &[u8], digest: u64, most: u64) -> Result<Option<DocumentPlace>, BuildError> {
    let (mut place, mut number) = (None, 0);
    inverted.for_each_segment(&mut |documents| {
        if place.is_none() && number < most {
            let before = documents.ids().take((most - number) as usize);
            let position = before.enumerate().find(|(_, other)| xxh3_64(other) == digest && *other == id);
            place = position.map(|(position, _)| (documents.file, documents.line(position)));
        }
        number += documents.lengths.len() as u64;
        Ok(())
    })?;
    Ok(place)
}

fn repeated_id(paths: &[PathBuf], id: &str, first: DocumentPlace, second: DocumentPlace) -> InputError {
    let path = |file: u32| paths.get(file as usize).map_or(Path::new(""), PathBuf::as_path);
    let elsewhere = if first.0 == second.0 { String::new() } else { format!(" of {}", path(first.0).display()) };
    // Lines are counted only now if the base is an offset.
    let line = |(file, line): DocumentPlace| line.and_then(|(base, line)| base.number(path(file), line));
    let is_byte = |place: DocumentPlace| matches!(place.1, Some((LineBase::Byte(_), _)));
    let unit = if is_byte(first) { "byte" } else { "line" };
    let message = match line(first) {
        Some(first) => format!("id {id:?} is already that of {unit} {first}{elsewhere}, expected one document an id"),
        None => format!("two documents have the id {id:?}"),
    };
    match line(second) {
        Some(byte) if is_byte(second) => InputError::byte(path(second.0), byte, message),
        Some(line) => InputError::line(path(second.0), line, message),
        None => InputError::file(path(second.0), message),
    }
}

/// Lengths and ids of documents, read again from inverted text.
#[derive(Debug)]
pub(crate) struct OfInverted(pub(crate) Arc<dyn Inverted>);

impl DocumentSource for OfInverted {
    fn for_each(&self, visit: &mut VisitDocument<'_>) -> io::Result<()> {
        let mut failed = None;
        let read = self.0.for_each_segment(&mut |documents| {
            if failed.is_none() {
                let mut documents = documents.lengths.iter().zip(documents.ids());
                failed = documents.try_for_each(|(&length, id)| visit(length, Some(id))).err();
            }
            Ok(())
        });
        read.map_err(io::Error::other)?;
        failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::IndexWriter;
    use crate::indexing::segment::SegmentDocuments;
    use crate::indexing::{BuildOptions, BuildSummary, Progress};

    #[test]
    fn documents_come_back_and_damaged_bytes_do_not() {
        for base in [Some(LineBase::First(7)), Some(LineBase::Offset(1 << 40)), Some(LineBase::Byte(1 << 40)), None] {
            let lines = base.map(LineBase::first);
            let mut documents = SegmentDocuments::new(3, base);
            for (place, id) in ["a", "", "long-id"].into_iter().enumerate() {
                documents.push(id, lines.map(|line| line + 3 * place as u64), 5 * place as u32);
            }
            let bytes = documents.encode();
            let again = SegmentDocuments::decode(&bytes).unwrap();
            assert_eq!(again.ids().collect::<Vec<_>>(), [&b"a"[..], b"", b"long-id"]);
            assert_eq!((&again, again.lengths.as_slice()), (&documents, &[0, 5, 10][..]));
            assert_eq!(again.line(2), base.map(|base| (base, base.first() + 6)));
            for len in 0..bytes.len() {
                assert!(SegmentDocuments::decode(&bytes[..len]).is_none(), "{len}");
            }
        }
    }

    /// Documents in batches, which can be read repeatedly.
    #[derive(Debug)]
    struct Batches(Vec<SegmentDocuments>);

    impl Batches {
        fn of(ids: &[String], batch: usize) -> Self {
            let lines = (0_u64..).zip(ids).collect::<Vec<_>>();
            let batches = lines.chunks(batch).map(|lines| {
                let mut documents = SegmentDocuments::new(0, Some(LineBase::First(1)));
                lines.iter().for_each(|(line, id)| documents.push(id, Some(line + 1), *line as u32));
                documents
            });
            Self(batches.collect())
        }
    }

    impl Inverted for Batches {
        fn summary(&self) -> BuildSummary {
            BuildSummary::default()
        }

        fn for_each_segment(
            &self,
            visit: &mut dyn FnMut(&SegmentDocuments) -> Result<(), BuildError>,
        ) -> Result<(), BuildError> {
            self.0.iter().try_for_each(visit)
        }

        fn num_docs(&self) -> u64 {
            self.0.iter().map(|documents| documents.lengths.len() as u64).sum()
        }

        fn bytes(&self) -> u64 {
            0
        }

        fn merge_into(
            &self,
            _: &mut IndexWriter,
            _: &BuildOptions,
            _: &(dyn Fn(Progress) + Sync),
        ) -> Result<(), BuildError> {
            Ok(())
        }
    }

    #[test]
    fn the_first_id_that_comes_again_is_found_in_any_memory() {
        let ids: Vec<String> = (0..3_000).map(|number| format!("d{number}")).collect();
        let paths = [PathBuf::from("c.jsonl")];
        for digests_bytes in [u64::MAX, 24_000, 9_000, 1_000, 8] {
            let lengths = check(&Batches::of(&ids, 700), &paths, digests_bytes).unwrap();
            assert!(lengths.into_iter().eq(0..3_000), "{digests_bytes} bytes");
            let mut repeated = ids.clone();
            // The pair whose second document comes first is reported.
            for (first, second) in [(5, 2_900), (1_200, 1_900), (0, 2_000)] {
                repeated[second] = ids[first].clone();
            }
            let message = check(&Batches::of(&repeated, 700), &paths, digests_bytes).unwrap_err().to_string();
            let expected = "c.jsonl:1901: id \"d1200\" is already that of line 1201, expected one document an id";
            assert_eq!(message, expected, "{digests_bytes} bytes");
        }
    }

    #[test]
    fn an_equal_digest_of_another_id_is_no_false_alarm() {
        let ids = ["a", "b", "a"].map(str::to_owned);
        let batches = Batches::of(&ids, 2);
        // The place is asked for as if "a" and "b" had the same digest.
        assert_eq!(place_of(&batches, b"b", xxh3_64(b"b"), 1).unwrap(), None);
        assert_eq!(place_of(&batches, b"b", xxh3_64(b"a"), 3).unwrap(), None);
        assert_eq!(place_of(&batches, b"a", xxh3_64(b"a"), 2).unwrap(), Some((0, Some((LineBase::First(1), 1)))));
    }
}
