//! Ding et al., table 3: GPU time of AND and OR by stage.
//!
//! The paper's methods run with an event after every stage. Shares are of the device time from the first event to the last.
//! As a reference for bounds by memory, one row gives the time to read or write all accumulators once: building the heap
//! reads every score, and clearing writes every accumulator.

use std::sync::Arc;

use tandem_model::traffic::Mode;

use crate::codec::PForDelta;
use crate::context::{GOV2_DOCS, terms_of};
use crate::ding::gpu::PublishedGpu;
use crate::ding::gpu::lists::HostLists;
use crate::ding::gpu::search::PublishedSearch;
use crate::ding::gpu::stages::Stage;
use crate::{Context, Findings, Result};

const QUERIES: usize = 200;
const REPEATS: usize = 7;

/// A row of the table: the paper's name, its stages and the paper's percent.
type StageRow = (&'static str, &'static [Stage], f64);
const AND: [StageRow; 3] = [
    ("scoring and top-k", &[Stage::Scoring, Stage::HeapBuilding, Stage::TakingOut], 8.0),
    ("intersection", &[Stage::Intersection], 45.0),
    ("decompression", &[Stage::Decompression], 47.0),
];
const OR: [StageRow; 4] = [
    ("initialization", &[Stage::Initialization], 9.0),
    ("decompression", &[Stage::Decompression], 30.0),
    ("scoring", &[Stage::Scoring], 48.0),
    ("top-k", &[Stage::HeapBuilding, Stage::TakingOut], 13.0),
];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    // The table needs a GPU. Opening it first reports its absence before an index is made.
    let gpu = PublishedGpu::open()?;
    findings.provenance("gpu", gpu.name());
    let input = context.input(GOV2_DOCS, QUERIES, findings)?;
    let bm25 = input.index.built_with();
    let lists = HostLists::encode(&input.index, &terms_of(&input.queries), bm25, PForDelta::new(1))?;
    let mut search = PublishedSearch::upload(&gpu, &Arc::new(lists))?;
    let mut steps = context.steps("queries", 2 * input.queries.len());
    for (mode, rows) in [(Mode::And, AND.as_slice()), (Mode::Or, OR.as_slice())] {
        let mut sums_us = [0.0; Stage::ALL.len()];
        let mut hits = Vec::new();
        for query in &input.queries {
            // The first run loads the lists of the query into the caches, as in a busy node.
            search.search(query, mode, context.k, false, &mut hits)?;
            let stages_us = search.search(query, mode, context.k, true, &mut hits)?;
            sums_us.iter_mut().zip(stages_us).for_each(|(sum, us)| *sum += us);
            steps.done();
        }
        let total_us: f64 = sums_us.iter().sum();
        for (name, stages, papers) in rows {
            let of_stages: f64 = stages.iter().map(|&stage| sums_us[stage as usize]).sum();
            findings.compare(format!("{mode}: {name}"), "%", *papers, 100.0 * of_stages / total_us);
        }
        for stage in Stage::ALL {
            let mean_us = sums_us[stage as usize] / input.queries.len() as f64;
            findings.add(format!("{mode}: {}, a query", stage.name()), "us", mean_us);
        }
    }
    drop(steps);
    // A copy reads and writes. Bytes that are only read or only written move at the same rate.
    let accumulators = 4.0 * f64::from(input.index.num_docs());
    let least_us = accumulators / gpu.copy_rate(REPEATS)? * 1e6;
    findings.add("accumulators read or written once at the copy's rate", "us", least_us);
    findings.note(format!(
        "{} queries, k {}; device time. Taking out is the way of one thread block through the heap, k times. Its steps depend \
         on each other.",
        input.queries.len(),
        context.k
    ));
    Ok(())
}
