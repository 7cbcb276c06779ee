//! Ding et al., table 3: what the GPU's time goes to, for AND and OR.
//!
//! The paper's methods run with an event after every stage; shares are of the device's time between the first and the
//! last. What differs from the paper is explained by what a stage would take if memory were all that bounds it:
//! building the heap reads every score, clearing writes every accumulator.

use std::sync::Arc;

use super::lists::{GOV2_DOCS, terms};
use crate::codec::PForDelta;
use crate::ding::gpu::{HostLists, PublishedGpu, PublishedSearch, Stage};
use crate::{Context, ExperimentError, Findings};
use tandem_core::query::Mode;

/// Queries that are run.
const QUERIES: usize = 200;

/// Rows of the table: what the paper calls it, the stages that make it up, and its percent.
type Row = (&'static str, &'static [Stage], f64);
const AND: [Row; 3] = [
    ("scoring and top-k", &[Stage::Scoring, Stage::HeapBuilding, Stage::TakingOut], 8.0),
    ("intersection", &[Stage::Intersection], 45.0),
    ("decompression", &[Stage::Decompression], 47.0),
];
const OR: [Row; 4] = [
    ("initialization", &[Stage::Initialization], 9.0),
    ("decompression", &[Stage::Decompression], 30.0),
    ("scoring", &[Stage::Scoring], 48.0),
    ("top-k", &[Stage::HeapBuilding, Stage::TakingOut], 13.0),
];

const REPEATS: usize = 7;

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    // All that this table has is a GPU's: without one it says so, before an index is made.
    let gpu = PublishedGpu::open()?;
    findings.provenance("gpu", gpu.name());
    let input = context.input(GOV2_DOCS, QUERIES)?;
    findings.provenance("input", &input.name);
    let bm25 = input.index.built_with();
    let lists = HostLists::encode(&input.index, &terms(&input), bm25, PForDelta::new(1))?;
    let mut search = PublishedSearch::upload(&gpu, &Arc::new(lists))?;
    let mut steps = context.steps("queries", 2 * input.queries.len());
    for (mode, rows) in [(Mode::And, AND.as_slice()), (Mode::Or, OR.as_slice())] {
        let mut sums_us = [0.0; Stage::ALL.len()];
        let mut hits = Vec::new();
        for query in &input.queries {
            // The first run of a query brings its lists into the caches, as the run before would in a busy node.
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
            findings.compare(format!("{mode}: {}, a query", stage.name()), "us", None, mean_us);
        }
    }
    drop(steps);
    // A copy reads and writes: bytes that are only read, or only written, come at the same rate.
    let accumulators = 4.0 * f64::from(input.index.num_docs());
    let least_us = accumulators / gpu.copy_rate(REPEATS)? * 1e6;
    findings.compare("accumulators read or written once at the copy's rate", "us", None, least_us);
    findings.note(format!(
        "{} queries, k {}; device time. Taking out is one thread block's way through the heap, k times: its steps wait for \
         each other, and are hardly quicker than they were, while all else has become so by the device's width.",
        input.queries.len(),
        context.k
    ));
    Ok(findings)
}
