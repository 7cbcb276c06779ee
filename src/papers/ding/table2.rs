//! Ding et al., table 2: time a query of AND, OR and AND+OR, on CPU and GPU.
//!
//! Both columns run the paper's methods: the CPU's exhaustively, a document at a time, on lists packed by PForDelta in
//! blocks of 128 (`daat/`), the GPU's step by step (`ding_gpu/`). Tandem's own executors stand beside them. A time is
//! from the call to the results on the host, the lists being in the memory of the processor that searches, as in the
//! paper. All must find the same documents with the same scores.

use std::sync::Arc;
use std::time::Instant;

use super::gpu::open_gpu;
use super::lists::{GOV2_DOCS, terms};
use crate::exec::cpu::CpuExecutor;
use crate::exec::gpu::GpuExecutor;
use crate::exec::{ExecError, Executor, Hit};
use crate::papers::codec::{PForDelta, Pfor};
use crate::papers::daat::{CodedLists, DaatExecutor};
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

    let all_docs = 0..input.index.num_docs();
    let coded = CodedLists::encode(&input.index, &terms(&input), Box::new(Pfor::<128>), all_docs)?;
    let mut daat = DaatExecutor::new(Arc::new(coded));
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
    let mut names = vec![daat.device(), "Tandem's CPU executor, one core".to_owned()];
    let mut searches: Vec<Search<'_>> = vec![
        Box::new(move |query, mode, k, hits| daat.search(query, mode, k, hits).map(drop)),
        Box::new(move |query, mode, k, hits| cpu.search(query, mode, k, hits).map(drop)),
    ];
    if let Some(published) = &mut published {
        names.push("the paper's methods on this GPU".to_owned());
        searches.push(Box::new(|query, mode, k, hits| published.search(query, mode, k, false, hits).map(drop)));
    }
    if let Some(own) = &mut own {
        names.push("Tandem's GPU executor".to_owned());
        searches.push(Box::new(|query, mode, k, hits| own.search(query, mode, k, hits).map(drop)));
    }

    let mode_named = |mode| context.mode(mode) == mode;
    for (mode, papers_cpu, papers_gpu) in PAPERS.into_iter().filter(|&(mode, ..)| mode_named(mode)) {
        let times_ms = measure(context, &input, mode, &mut searches)?;
        let rows = [
            ("CPU", Some(papers_cpu)),
            ("CPU, Tandem's own", None),
            ("GPU", Some(papers_gpu)),
            ("GPU, Tandem's own", None),
        ];
        for (place, (name, papers)) in rows.into_iter().enumerate() {
            findings.compare(format!("{mode}: {name}"), "ms", papers, times_ms.get(place).copied());
        }
        if let (Some(cpu_ms), Some(gpu_ms)) = (times_ms.first(), times_ms.get(2)) {
            findings.compare(format!("{mode}: CPU over GPU"), "x", papers_cpu / papers_gpu, cpu_ms / gpu_ms);
        }
    }
    findings.note(format!(
        "Mean of {} queries, the fastest of {REPEATS} runs each, k {}. \"CPU\" and \"GPU\" are the paper's methods. Same \
         documents and scores from: {}.",
        input.queries.len(),
        context.k,
        names.join("; ")
    ));
    Ok(findings)
}

/// Mean milliseconds a query of each of `searches`, which must find the same.
fn measure(
    context: &Context<'_>,
    input: &Input,
    mode: Mode,
    searches: &mut [Search<'_>],
) -> Result<Vec<f64>, ExperimentError> {
    let mut steps = context.steps(mode.name(), input.queries.len());
    let mut sums_ms = vec![0.0; searches.len()];
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    for query in &input.queries {
        for (place, search) in searches.iter_mut().enumerate() {
            let hits = if place == 0 { &mut expected } else { &mut found };
            let mut fastest_ms = f64::INFINITY;
            for _ in 0..REPEATS {
                let began = Instant::now();
                search(query, mode, context.k, hits)?;
                fastest_ms = fastest_ms.min(began.elapsed().as_secs_f64() * 1e3);
            }
            sums_ms[place] += fastest_ms;
            if place > 0 && !are_equal(&expected, &found) {
                return Err(ExperimentError::Wrong(format!(
                    "query {} gets other results from executor {place}, {mode}",
                    query.label
                )));
            }
        }
        steps.done();
    }
    Ok(sums_ms.into_iter().map(|sum| sum / input.queries.len() as f64).collect())
}

/// Whether documents and the bits of scores are the same.
fn are_equal(a: &[Hit], b: &[Hit]) -> bool {
    let same = |(a, b): (&Hit, &Hit)| a.doc == b.doc && a.score.to_bits() == b.score.to_bits();
    a.len() == b.len() && a.iter().zip(b).all(same)
}
