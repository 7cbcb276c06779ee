//! Ding et al., table 3: what the GPU's time goes to, for AND and OR.
//!
//! The paper's methods run with an event after every stage; shares are of the device's time between
//! the first and the last.

use super::gpu::open_gpu;
use super::lists::{GOV2_DOCS, terms};
use crate::papers::codec::PForDelta;
use crate::papers::ding_gpu::{PublishedSearch, Stage};
use crate::papers::{Context, ExperimentError, Findings};
use crate::query::Mode;

/// Queries that are run.
const QUERIES: usize = 200;

/// Rows of the table: what the paper calls it, the stages that make it up, and its percent.
type Row = (&'static str, &'static [Stage], f64);
const AND: [Row; 3] = [
    ("scoring and top-k", &[Stage::Scoring, Stage::TopK], 8.0),
    ("intersection", &[Stage::Intersection], 45.0),
    ("decompression", &[Stage::Decompression], 47.0),
];
const OR: [Row; 4] = [
    ("initialization", &[Stage::Initialization], 9.0),
    ("decompression", &[Stage::Decompression], 30.0),
    ("scoring", &[Stage::Scoring], 48.0),
    ("top-k", &[Stage::TopK], 13.0),
];

pub(in crate::papers) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let input = context.input(GOV2_DOCS, QUERIES)?;
    let mut findings = Findings::default();
    findings.provenance("input", &input.name);
    let gpu = open_gpu(&mut findings)?;
    let mut search = match &gpu {
        Some(gpu) => {
            let bm25 = input.index.built_with();
            Some(PublishedSearch::upload(gpu, &input.index, &terms(&input), bm25, PForDelta::new(1))?)
        }
        None => None,
    };
    for (mode, rows) in [(Mode::And, AND.as_slice()), (Mode::Or, OR.as_slice())] {
        let mut times_us = None;
        if let Some(search) = &mut search {
            let mut sums_us = [0.0; Stage::ALL.len()];
            let mut hits = Vec::new();
            for query in &input.queries {
                // The first run of a query brings its lists into the caches, as the run before would in a busy node.
                search.search(query, mode, context.k, false, &mut hits)?;
                let stages_us = search.search(query, mode, context.k, true, &mut hits)?;
                sums_us.iter_mut().zip(stages_us).for_each(|(sum, us)| *sum += us);
            }
            times_us = Some(sums_us);
        }
        let total_us: Option<f64> = times_us.map(|us: [f64; Stage::ALL.len()]| us.iter().sum());
        for (name, stages, papers) in rows {
            let share = times_us
                .zip(total_us)
                .map(|(us, total)| 100.0 * stages.iter().map(|&stage| us[stage as usize]).sum::<f64>() / total);
            findings.compare(format!("{mode}: {name}"), "%", *papers, share);
        }
        for stage in Stage::ALL {
            let mean_us = times_us.map(|us| us[stage as usize] / input.queries.len() as f64);
            findings.compare(format!("{mode}: {}, a query", stage.name()), "us", None, mean_us);
        }
    }
    findings.note(format!("{} queries, k {}; device time.", input.queries.len(), context.k));
    Ok(findings)
}
