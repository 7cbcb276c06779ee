//! Ding et al., table 2: time a query of AND, OR and AND+OR, on CPU and GPU.
//!
//! The GPU column runs the paper's methods; Tandem's own executors stand beside it. A time is from the call to the
//! results on the host, the lists being in the memory of the processor that searches, as in the paper. All three must
//! find the same documents with the same scores.

use std::time::Instant;

use super::gpu::open_gpu;
use super::lists::{GOV2_DOCS, terms};
use crate::exec::cpu::CpuExecutor;
use crate::exec::gpu::GpuExecutor;
use crate::exec::{ExecError, Executor, Hit};
use crate::papers::codec::PForDelta;
use crate::papers::ding_gpu::PublishedSearch;
use crate::papers::{Context, ExperimentError, Findings, Input};
use crate::query::{Mode, Query};

/// Queries that are run.
const QUERIES: usize = 200;
/// Runs of a query, of which the fastest counts.
const REPEATS: usize = 3;
/// Milliseconds on the paper's CPU and GPU.
const PAPERS: [(Mode, f64, f64); 3] = [(Mode::And, 8.71, 7.66), (Mode::Or, 212.72, 29.31), (Mode::AndOr, 23.85, 9.98)];

/// Answers a query.
type Search<'a> = Box<dyn FnMut(&Query, Mode, usize, &mut Vec<Hit>) -> Result<(), ExecError> + 'a>;

pub(in crate::papers) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let input = context.input(GOV2_DOCS, QUERIES)?;
    let mut findings = Findings::default();
    findings.provenance("input", &input.name);
    let gpu = open_gpu(&mut findings)?;
    let bm25 = input.index.built_with();

    let mut cpu = CpuExecutor::new(input.index.clone(), bm25);
    let mut own = gpu.as_ref().map(|_| GpuExecutor::new(&input.index, bm25)).transpose()?;
    let mut published = match &gpu {
        Some(gpu) => Some(PublishedSearch::upload(gpu, &input.index, &terms(&input), bm25, PForDelta::new(1))?),
        None => None,
    };
    if let Some(published) = &published {
        let megabytes = published.list_bytes() as f64 / 1e6;
        findings.note(format!("The paper's lists take {megabytes:.0} MB of device memory."));
    }
    let mut names = vec!["Tandem's CPU executor, one core"];
    let mut searches: Vec<Search<'_>> =
        vec![Box::new(move |query, mode, k, hits| cpu.search(query, mode, k, hits).map(drop))];
    if let Some(published) = &mut published {
        names.push("the paper's methods on this GPU");
        searches.push(Box::new(|query, mode, k, hits| published.search(query, mode, k, false, hits).map(drop)));
    }
    if let Some(own) = &mut own {
        names.push("Tandem's GPU executor");
        searches.push(Box::new(|query, mode, k, hits| own.search(query, mode, k, hits).map(drop)));
    }

    let mode_named = |mode| context.mode(mode) == mode;
    for (mode, papers_cpu, papers_gpu) in PAPERS.into_iter().filter(|&(mode, ..)| mode_named(mode)) {
        let times_ms = measure(&input, mode, context.k, &mut searches)?;
        for (place, papers) in [(0, Some(papers_cpu)), (1, Some(papers_gpu)), (2, None)] {
            let name =
                ["CPU (ours: Tandem's, one core)", "GPU (ours: the paper's methods)", "GPU, Tandem's own"][place];
            findings.compare(format!("{mode}: {name}"), "ms", papers, times_ms.get(place).copied());
        }
    }
    findings.note(format!(
        "Mean of {} queries, the fastest of {REPEATS} runs each, k {}. Same documents and scores from: {}.",
        input.queries.len(),
        context.k,
        names.join("; ")
    ));
    Ok(findings)
}

/// Mean milliseconds a query of each of `searches`, which must find the same.
fn measure(input: &Input, mode: Mode, k: usize, searches: &mut [Search<'_>]) -> Result<Vec<f64>, ExperimentError> {
    let mut sums_ms = vec![0.0; searches.len()];
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    for query in &input.queries {
        for (place, search) in searches.iter_mut().enumerate() {
            let hits = if place == 0 { &mut expected } else { &mut found };
            let mut fastest_ms = f64::INFINITY;
            for _ in 0..REPEATS {
                let began = Instant::now();
                search(query, mode, k, hits)?;
                fastest_ms = fastest_ms.min(began.elapsed().as_secs_f64() * 1e3);
            }
            sums_ms[place] += fastest_ms;
            if place > 0 && !are_equal(&expected, &found) {
                return Err(ExperimentError::Wrong(format!(
                    "query {} gets other results on the GPU, {mode}",
                    query.label
                )));
            }
        }
    }
    Ok(sums_ms.into_iter().map(|sum| sum / input.queries.len() as f64).collect())
}

/// Whether documents and the bits of scores are the same.
fn are_equal(a: &[Hit], b: &[Hit]) -> bool {
    let same = |(a, b): (&Hit, &Hit)| a.doc == b.doc && a.score.to_bits() == b.score.to_bits();
    a.len() == b.len() && a.iter().zip(b).all(same)
}
