//! Ding et al., table 2: time a query of AND, OR and AND+OR, on CPU and GPU.
//!
//! Both columns run the paper's methods: the CPU's exhaustively, a document at a time, on lists packed by PForDelta in
//! blocks of 128 (`daat/`), the GPU's step by step (`gpu/`). Tandem's own executors stand beside them. A time is
//! from the call to the results on the host, the lists being in the memory of the processor that searches, as in the
//! paper. All must find the same documents with the same scores.
//!
//! What it takes if only a part of the lists is in the GPU's memory, and others are copied there, stands below the table
//! (`caching.rs`).

use std::sync::Arc;
use std::time::Instant;

use super::caching;
use super::lists::{GOV2_DOCS, terms};
use crate::codec::{PForDelta, Pfor};
use crate::ding::daat::{CodedLists, DaatExecutor};
use crate::ding::experiments::measured::open_gpu;
use crate::ding::gpu::{HostLists, PublishedGpu, PublishedSearch};
use crate::{Context, ExperimentError, Findings, Input, RealLog};
use tandem_core::query::{Mode, Query};
use tandem_core::search::cpu::CpuExecutor;
use tandem_core::search::gpu::GpuExecutor;
use tandem_core::search::{ExecError, Executor, Hit};

/// Queries whose lists are cached.
const QUERIES: usize = 1000;
/// Of a real log, whose lists are shorter.
const REAL_QUERIES: usize = 20_000;
/// A part of the queries makes the table: every OR is a pass over all of its postings by one core.
const TABLE_PART: usize = 5;
/// Runs of a query, of which the fastest counts.
const REPEATS: usize = 3;
/// Milliseconds on the paper's CPU and GPU.
const PAPERS: [(Mode, f64, f64); 3] = [(Mode::And, 8.71, 7.66), (Mode::Or, 212.72, 29.31), (Mode::AndOr, 23.85, 9.98)];

/// Answers a query.
type Search<'a> = Box<dyn FnMut(&Query, Mode, usize, &mut Vec<Hit>) -> Result<(), ExecError> + 'a>;

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let input = context.input(GOV2_DOCS, QUERIES)?;
    let mut findings = Findings::default();
    findings.provenance("input", &input.name);
    let gpu = open_gpu(&mut findings)?;
    table(context, &input, gpu.as_ref(), &mut findings)?;
    let modes: Vec<Mode> = [Mode::And, Mode::Or].into_iter().filter(|&mode| context.mode(mode) == mode).collect();
    let about = ("lists cached", "caching");
    caching::measure(context, &input, gpu.as_ref(), about, &modes, &mut findings)?;
    if let Some(real) = context.real_input(RealLog::Web, REAL_QUERIES, &mut findings)? {
        let about = ("real lists cached", "caching-real");
        caching::measure(context, &real, None, about, &modes, &mut findings)?;
    }
    findings.note(
        "Lists cached: the first half of the queries fills the cache, the second counts; what was asked for least goes, so \
         that few bytes are moved rather than few lists. Synthetic queries name most of their lists once; a real log tells of \
         hits. The paper's words are \"around 50% to 80%\" hits in the GPU's memory, \"90% or more\" in a main memory for 20 % of \
         the index, transfers of \"a few GB/s\", \"performed while processing other queries\"; it has no measurement of them. \
         Copies hidden: while a query is worked on, the lists of the next are copied by a stream of their own. Answers are \
         those from resident lists, bit for bit.",
    );
    Ok(findings)
}

/// The table.
fn table(
    context: &Context<'_>,
    input: &Input,
    gpu: Option<&Arc<PublishedGpu>>,
    findings: &mut Findings,
) -> Result<(), ExperimentError> {
    let queries = input.queries[..input.queries.len().div_ceil(TABLE_PART)].to_vec();
    let input = &Input { index: Arc::clone(&input.index), queries, name: input.name.clone() };
    let bm25 = input.index.built_with();

    let all_docs = 0..input.index.num_docs();
    let coded = CodedLists::encode(&input.index, &terms(input), Box::new(Pfor::<128>), all_docs)?;
    let mut daat = DaatExecutor::new(Arc::new(coded));
    let mut cpu = CpuExecutor::new(input.index.clone(), bm25);
    let mut own = gpu.map(|_| GpuExecutor::new(&input.index, bm25)).transpose()?;
    let mut published = match gpu {
        Some(gpu) => {
            let lists = HostLists::encode(&input.index, &terms(input), bm25, PForDelta::new(1))?;
            findings.note(format!("The table's lists take {:.0} MB of device memory.", lists.bytes() as f64 / 1e6));
            Some(PublishedSearch::upload(gpu, &Arc::new(lists))?)
        }
        None => None,
    };
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
        let times_ms = measure(context, input, mode, &mut searches)?;
        tell(mode, &times_ms, (papers_cpu, papers_gpu), findings);
    }
    findings.note(format!(
        "The table: mean of the first {} queries, the fastest of {REPEATS} runs each, k {}. \"CPU\" and \"GPU\" are the paper's methods. Same \
         documents and scores from: {}.",
        input.queries.len(),
        context.k,
        names.join("; ")
    ));
    Ok(())
}

/// A row of the table: times of the searches, the GPU's if there is one, beside the paper's.
fn tell(mode: Mode, times_ms: &[f64], (papers_cpu, papers_gpu): (f64, f64), findings: &mut Findings) {
    let columns = [
        ("CPU", Some(papers_cpu)),
        ("CPU, Tandem's own", None),
        ("GPU", Some(papers_gpu)),
        ("GPU, Tandem's own", None),
    ];
    for (place, (name, papers)) in columns.into_iter().enumerate() {
        findings.compare(format!("{mode}: {name}"), "ms", papers, times_ms.get(place).copied());
    }
    if let (Some(cpu_ms), Some(gpu_ms)) = (times_ms.first(), times_ms.get(2)) {
        findings.compare(format!("{mode}: CPU over GPU"), "x", papers_cpu / papers_gpu, cpu_ms / gpu_ms);
    }
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
pub(super) fn are_equal(a: &[Hit], b: &[Hit]) -> bool {
    let same = |(a, b): (&Hit, &Hit)| a.doc == b.doc && a.score.to_bits() == b.score.to_bits();
    a.len() == b.len() && a.iter().zip(b).all(same)
}
