//! Decoding rates of the GPU codecs of Ding et al., on the lists of the queries.

use std::collections::BTreeSet;

use rayon::prelude::*;
use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_engine::search::device::DeviceLimits;
use tandem_model::base::ids::TermId;
use tandem_model::base::quantile::median;

use super::{REPEATS, Row, share_of_copy_rate};
use crate::failure::Failure;
use tandem_papers::codec::{Codec, Column, PForDelta, Rice};
use tandem_papers::ding::gpu::{PforBatch, PublishedGpu, RiceBatch};

/// Number of postings that are decoded in one launch.
const POSTINGS: usize = 100_000_000;

fn encode(codec: &(dyn Codec + Sync), lists: &[Vec<u32>]) -> Result<Vec<Vec<u32>>, Failure> {
    Ok(lists.par_iter().map(|docs| codec.encode_list(Column::Docs, docs)).collect::<Result<_, _>>()?)
}

/// Adds a row for each codec.
pub(super) fn measure(
    limits: &DeviceLimits,
    index: &Index,
    queries: &[Query],
    rows: &mut Vec<Row>,
) -> Result<(), Failure> {
    let mut taken = 0;
    let terms: BTreeSet<TermId> = queries
        .iter()
        .flat_map(|query| &query.terms)
        .take_while(|term| {
            taken += term.doc_freq as usize;
            taken - (term.doc_freq as usize) < POSTINGS
        })
        .map(|term| term.term)
        .collect();
    let terms: Vec<TermId> = terms.into_iter().collect();
    let lists: Vec<Vec<u32>> = terms.par_iter().map(|&term| index.list(term).docs()).collect();
    let postings: usize = lists.iter().map(Vec::len).sum();
    let gpu = PublishedGpu::open()?;
    let row = |name: &str, us: f64, bytes: usize| {
        let what = format!("{name}, {} lists of {postings} postings", lists.len());
        let share = share_of_copy_rate(limits, bytes, us);
        Row::new(what, "G ints/s", postings as f64 / us / 1e3).of(share, "copy rate")
    };

    let encoded = encode(&PForDelta::new(1), &lists)?;
    let bytes = |encoded: &[Vec<u32>]| 4 * (postings + encoded.iter().map(Vec::len).sum::<usize>());
    let batch = PforBatch::upload(&gpu, Column::Docs, encoded.iter().map(Vec::as_slice))?;
    let us = median(gpu.time_us(REPEATS, || batch.decode(true))?);
    rows.push(row("PForDelta as published", us, bytes(&encoded)).with_target(250.0, 500.0));
    drop(batch);

    let encoded = encode(&Rice, &lists)?;
    let batch = RiceBatch::upload(&gpu, encoded.iter().map(Vec::as_slice))?;
    let us = median(gpu.time_us(REPEATS, || batch.decode())?);
    rows.push(row("Rice as published", us, bytes(&encoded)).with_target(60.0, 150.0));
    drop(batch);
    Ok(())
}
