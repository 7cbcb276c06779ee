//! Merging runs, a range of the vocabulary a task.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rayon::prelude::*;

use super::Progress;
use super::run::Run;
use crate::index::{EncodedLists, IndexError, IndexWriter, ListEncoder};

/// Posting bytes between two samples of the vocabulary, from which ranges of about equal work are cut.
const SAMPLE_BYTES: usize = 16 << 10;

/// Ranges a thread: enough that a long list in one of them keeps nobody waiting for long.
const RANGES_PER_THREAD: usize = 16;

/// Merges the runs' lists by term and appends them to `writer`; runs are in order of their documents.
pub(super) fn merge(
    runs: &[Run],
    threads: usize,
    writer: &mut IndexWriter,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(), IndexError> {
    let mut next_doc = 0;
    let runs: Vec<(u32, &Run)> = runs
        .iter()
        .map(|run| {
            let first_doc = next_doc;
            next_doc += run.doc_lengths.len() as u32;
            (first_doc, run)
        })
        .collect();
    let ranges = cut(&runs, threads * RANGES_PER_THREAD);
    let norms = writer.norms();
    let mut done = 0;
    // A few ranges a thread at a time: they wait in memory until those before them are written.
    for group in ranges.chunks(threads * 2) {
        let packed: Vec<EncodedLists> = group
            .par_iter()
            .map(|&(from, to)| merge_range(&runs, from, to, Arc::clone(&norms)))
            .collect::<Result<_, _>>()?;
        packed.iter().try_for_each(|lists| writer.append(lists))?;
        done += group.len();
        progress(Progress::Writing { done, of: ranges.len() });
    }
    Ok(())
}

/// Cuts the vocabulary into at most `count` ranges: from one term to below another (or the end).
fn cut<'a>(runs: &[(u32, &'a Run)], count: usize) -> Vec<(&'a str, Option<&'a str>)> {
    let mut samples: Vec<&str> = runs
        .par_iter()
        .flat_map_iter(|&(_, run)| {
            let mut bytes = 0;
            (0..run.num_terms()).filter_map(move |position| {
                bytes += run.posting_bytes(position);
                let is_sample = bytes >= SAMPLE_BYTES;
                bytes %= SAMPLE_BYTES;
                is_sample.then(|| run.term(position))
            })
        })
        .collect();
    samples.par_sort_unstable();
    let step = samples.len().div_ceil(count).max(1);
    let mut bounds: Vec<&str> = std::iter::once("").chain(samples.into_iter().skip(step).step_by(step)).collect();
    bounds.dedup();
    (0..bounds.len()).map(|i| (bounds[i], bounds.get(i + 1).copied())).collect()
}

fn merge_range(
    runs: &[(u32, &Run)],
    from: &str,
    to: Option<&str>,
    norms: Arc<[f32]>,
) -> Result<EncodedLists, IndexError> {
    let mut encoder = ListEncoder::new(norms);
    // Where each run stands: its term, which run, the position there, and where its range ends.
    let mut heads: BinaryHeap<Reverse<(&str, usize, usize)>> = BinaryHeap::new();
    let ends: Vec<usize> =
        runs.iter().map(|(_, run)| to.map_or(run.num_terms(), |bound| run.first_from(bound))).collect();
    for (number, (_, run)) in runs.iter().enumerate() {
        let position = run.first_from(from);
        if position < ends[number] {
            heads.push(Reverse((run.term(position), number, position)));
        }
    }
    let (mut docs, mut freqs) = (Vec::new(), Vec::new());
    while let Some(&Reverse((term, ..))) = heads.peek() {
        docs.clear();
        freqs.clear();
        // Equal terms come in order of the runs, so documents ascend.
        while let Some(mut head) = heads.peek_mut().filter(|head| head.0.0 == term) {
            let Reverse((_, number, position)) = *head;
            let (first_doc, run) = runs[number];
            run.append_postings(position, first_doc, &mut docs, &mut freqs);
            if position + 1 < ends[number] {
                *head = Reverse((run.term(position + 1), number, position + 1));
            } else {
                std::collections::binary_heap::PeekMut::pop(head);
            }
        }
        encoder.add_columns(term, &docs, &freqs)?;
    }
    Ok(encoder.take())
}
