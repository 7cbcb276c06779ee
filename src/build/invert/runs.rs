//! All runs of a collection together: which document has which number.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::documents::repeated_id;
use super::run::Run;
use crate::build::BuildError;
use crate::index::ExternalIds;

/// Runs that hold every batch of a collection once.
#[derive(Debug)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// Of each run, what to add to its documents' numbers, segment by segment.
    places: Vec<Vec<SegmentPlace>>,
    /// All segments in order of the collection: run, position in it.
    order: Vec<(usize, usize)>,
}

/// Documents of a run up to `end` have `shift` added to their numbers (wrapping).
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentPlace {
    pub(super) end: u32,
    pub(super) shift: u32,
}

/// What the segments hold together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) text_bytes: u64,
    pub(super) skipped_files: u64,
}

impl Runs {
    /// Numbers the documents. `num_batches` is how many batches the collection has.
    pub(super) fn new(runs: Vec<Run>, num_batches: u64) -> Result<Self, BuildError> {
        let mut order: Vec<(usize, usize)> = runs
            .iter()
            .enumerate()
            .flat_map(|(run, held)| (0..held.segments().len()).map(move |at| (run, at)))
            .collect();
        let segment = |&(run, at): &(usize, usize)| &runs[run].segments()[at];
        order.sort_by_key(|place| segment(place).number);
        let is_whole =
            order.len() as u64 == num_batches && order.iter().map(|at| segment(at).number).eq(0..num_batches);
        if let (false, Some(run)) = (is_whole, runs.first()) {
            return Err(run.damaged("the runs do not hold each batch once"));
        }
        let mut places: Vec<Vec<SegmentPlace>> =
            runs.iter().map(|run| vec![SegmentPlace { end: 0, shift: 0 }; run.segments().len()]).collect();
        let mut next = 0_u32;
        for &(run, at) in &order {
            let segment = &runs[run].segments()[at];
            let end = segment.first_doc.wrapping_add(segment.num_docs);
            places[run][at] = SegmentPlace { end, shift: next.wrapping_sub(segment.first_doc) };
            next = next.saturating_add(segment.num_docs);
        }
        Ok(Self { runs, places, order })
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Of each segment of a run, what to add to its documents' numbers.
    pub(super) fn places(&self, run: usize) -> &[SegmentPlace] {
        &self.places[run]
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for segment in self.runs.iter().flat_map(Run::segments) {
            totals.text_bytes += segment.text_bytes;
            totals.skipped_files += segment.skipped_files;
        }
        totals
    }

    /// The length of each document.
    ///
    /// # Errors
    /// If a run can't be read, or two documents have one id: `path` is where the documents come from.
    pub(super) fn check_documents(&self, path: &Path) -> Result<Vec<u32>, BuildError> {
        let mut lengths = Vec::new();
        let mut hashes: Vec<u64> = Vec::new();
        for &(run, at) in &self.order {
            let documents = self.runs[run].documents(at)?;
            hashes.extend(documents.ids().map(xxh3_64));
            lengths.extend_from_slice(&documents.lengths);
        }
        hashes.par_sort_unstable();
        let mut repeated: Vec<u64> = hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        drop(hashes);
        repeated.dedup();
        if !repeated.is_empty() {
            self.check_ids(path, &repeated)?;
        }
        Ok(lengths)
    }

    /// Compares the ids that have one of these hashes.
    fn check_ids(&self, path: &Path, repeated: &[u64]) -> Result<(), BuildError> {
        let mut seen: HashMap<Vec<u8>, Option<u64>> = HashMap::new();
        for &(run, at) in &self.order {
            let documents = self.runs[run].documents(at)?;
            let first_line = self.runs[run].segments()[at].first_line;
            for (position, id) in documents.ids().enumerate() {
                if repeated.binary_search(&xxh3_64(id)).is_err() {
                    continue;
                }
                let line = documents.line(first_line, position);
                if let Some(first) = seen.insert(id.to_vec(), line) {
                    return Err(repeated_id(path, &String::from_utf8_lossy(id), first, line).into());
                }
            }
        }
        Ok(())
    }
}

/// The documents' ids, read again from the runs.
#[derive(Debug)]
pub(super) struct RunIds(pub(super) Arc<Runs>);

impl ExternalIds for RunIds {
    fn for_each(&self, visit: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        for &(run, at) in &self.0.order {
            let documents = self.0.runs[run].documents(at).map_err(io::Error::other)?;
            documents.ids().try_for_each(&mut *visit)?;
        }
        Ok(())
    }
}
