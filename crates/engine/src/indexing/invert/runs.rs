//! All runs of a collection together, which give the documents' numbers.

use super::run::Run;
use crate::indexing::error::BuildError;
use crate::indexing::indexer::BuildSummary;

/// Runs that hold every batch of a collection once.
#[derive(Debug)]
pub(crate) struct Runs {
    pub(super) runs: Vec<Run>,
    /// For each run, what to add to its documents' numbers, by segment.
    pub(super) places: Vec<Vec<SegmentPlace>>,
    /// Run and position of each segment, in order of the collection.
    pub(super) order: Vec<(usize, usize)>,
    pub(super) num_docs: u64,
    pub(super) summary: BuildSummary,
}

/// Documents of a run below `end` have `shift` added to their numbers, wrapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentPlace {
    pub(crate) end: u32,
    pub(crate) shift: u32,
}

impl Runs {
    /// Numbers the documents of `num_batches` batches. `summary` is the summary of the build without them.
    pub(crate) fn new(runs: Vec<Run>, num_batches: u64, summary: BuildSummary) -> Result<Self, BuildError> {
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
        let mut summary = summary;
        let (mut next, mut num_docs) = (0_u32, 0);
        for &(run, at) in &order {
            let segment = &runs[run].segments()[at];
            let end = segment.first_doc.wrapping_add(segment.num_docs);
            places[run][at] = SegmentPlace { end, shift: next.wrapping_sub(segment.first_doc) };
            next = next.saturating_add(segment.num_docs);
            num_docs += u64::from(segment.num_docs);
            summary.bytes += segment.text_bytes;
            summary.skipped += segment.skipped.clone();
        }
        Ok(Self { runs, places, order, num_docs, summary })
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// For each segment of a run, what to add to its documents' numbers.
    pub(crate) fn places(&self, run: usize) -> &[SegmentPlace] {
        &self.places[run]
    }
}
