//! Ding et al., table 2: time per query of AND, OR and AND+OR on CPU and GPU.
//!
//! Both columns run the paper's methods. The CPU searches exhaustively, document at a time, in lists packed by PForDelta in
//! blocks of 128 (`daat/`). The GPU searches step by step (`gpu/`). A time is from the
//! call to the results on the host, with the lists in the memory of the processor, as in the paper. Both must find the same
//! documents with the same scores.
//!
//! Rows below the table show the hits of a cache that does not hold all lists (`caching.rs`).

use std::sync::Arc;
use std::time::Instant;

use tandem_engine::query::Query;
use tandem_engine::search::{ExecError, Executor, Hit};
use tandem_model::traffic::Mode;

use super::caching;
use super::common::open_gpu;
use crate::codec::{PForDelta, Pfor};
use crate::context::{GOV2_DOCS, terms_of};
use crate::ding::daat::executor::DaatExecutor;
use crate::ding::daat::lists::CodedLists;
use crate::ding::gpu::PublishedGpu;
use crate::ding::gpu::lists::HostLists;
use crate::ding::gpu::search::PublishedSearch;
use crate::measure::are_equal;
use crate::{Context, ExperimentError, Findings, Input, RealLog, Result};

const QUERIES: usize = 1000;
/// Queries of a real log, whose lists are shorter.
const REAL_QUERIES: usize = 20_000;
/// The table runs one query of this many, because one core scores all postings for every OR.
const TABLE_PART: usize = 5;
/// Runs of a query, of which the fastest counts.
const REPEATS: usize = 3;
/// The paper's milliseconds on CPU and GPU.
const PAPERS: [(Mode, f64, f64); 3] = [(Mode::And, 8.71, 7.66), (Mode::Or, 212.72, 29.31), (Mode::AndOr, 23.85, 9.98)];

type Search<'a> = Box<dyn FnMut(&Query, Mode, usize, &mut Vec<Hit>) -> Result<(), ExecError> + 'a>;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let input = context.input(GOV2_DOCS, QUERIES, findings)?;
    let gpu = open_gpu(findings)?;
    table(context, &input, gpu.as_ref(), findings)?;
    caching::measure(&input, ("lists cached", "caching"), findings)?;
    if let Some(real) = context.real_input(RealLog::Web, REAL_QUERIES, findings)? {
        caching::measure(&real, ("real lists cached", "caching-real"), findings)?;
    }
    findings.note(
        "Lists cached: the first half of the queries fills the cache, the second half counts. The list with the fewest \
         requests is evicted, which moves few bytes rather than few lists. Synthetic queries name most of their lists once, \
         so that hits are better read from a real log. The paper's words are \"around 50% to 80%\" hits in the GPU's memory, \
         \"90% or more\" in a main memory for 20 % of the index.",
    );
    Ok(())
}

fn table(context: &Context<'_>, input: &Input, gpu: Option<&Arc<PublishedGpu>>, findings: &mut Findings) -> Result<()> {
    let queries = &input.queries[..input.queries.len().div_ceil(TABLE_PART)];
    let (index, bm25, terms) = (&input.index, input.index.built_with(), terms_of(queries));
    let coded = CodedLists::encode(index, &terms, Box::new(Pfor::<128>), 0..index.num_docs())?;
    let mut daat = DaatExecutor::new(Arc::new(coded));
    let mut published = match gpu {
        Some(gpu) => {
            let lists = HostLists::encode(index, &terms, bm25, PForDelta::new(1))?;
            findings.note(format!("The table's lists take {:.0} MB of device memory.", lists.bytes() as f64 / 1e6));
            Some(PublishedSearch::upload(gpu, &Arc::new(lists))?)
        }
        None => None,
    };
    let mut names = vec![daat.device()];
    let mut searches: Vec<Search<'_>> =
        vec![Box::new(move |query, mode, k, hits| daat.search(query, mode, k, hits).map(drop))];
    if let Some(published) = &mut published {
        names.push("the paper's methods on this GPU".to_owned());
        searches.push(Box::new(|query, mode, k, hits| published.search(query, mode, k, false, hits).map(drop)));
    }
    for (mode, papers_cpu, papers_gpu) in PAPERS.into_iter().filter(|&(mode, ..)| context.mode(mode) == mode) {
        let (times_ms, full) = measure(context, queries, mode, &mut searches)?;
        if mode == Mode::And {
            // AND+OR continues with OR for the others.
            findings.add("and: queries with k results", "%", 100.0 * full as f64 / queries.len() as f64);
        }
        for (place, (name, papers)) in [("CPU", papers_cpu), ("GPU", papers_gpu)].into_iter().enumerate() {
            findings.compare(format!("{mode}: {name}"), "ms", papers, times_ms.get(place).copied());
        }
        if let (Some(cpu_ms), Some(gpu_ms)) = (times_ms.first(), times_ms.get(1)) {
            findings.compare(format!("{mode}: CPU over GPU"), "x", papers_cpu / papers_gpu, cpu_ms / gpu_ms);
        }
    }
    findings.note(format!(
        "The table: mean of the first {} queries, fastest of {REPEATS} runs each, k {}. \"CPU\" and \"GPU\" are the paper's \
         methods. Same documents and scores from: {}.",
        queries.len(),
        context.k,
        names.join("; ")
    ));
    Ok(())
}

/// Returns mean milliseconds per query of each of `searches`, which must give equal answers, and the number of queries with k results.
fn measure(
    context: &Context<'_>,
    queries: &[Query],
    mode: Mode,
    searches: &mut [Search<'_>],
) -> Result<(Vec<f64>, usize)> {
    let mut steps = context.steps(mode.name(), queries.len());
    let mut sums_ms = vec![0.0; searches.len()];
    let (mut expected, mut found, mut full) = (Vec::new(), Vec::new(), 0);
    for query in queries {
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
                let label = &query.label;
                return Err(ExperimentError::Wrong(format!(
                    "query {label} gets other results from executor {place}, {mode}"
                )));
            }
        }
        full += usize::from(expected.len() >= context.k);
        steps.done();
    }
    Ok((sums_ms.into_iter().map(|sum| sum / queries.len() as f64).collect(), full))
}
