//! Ding et al., end of section 8.4: time per query by number of terms and by size, on CPU and GPU.
//!
//! "While query processing costs grow with the number of terms in the query, the relative performance of GPU and CPU remain about
//! the same"; for OR, "the CPU is faster for small queries and the GPU for large queries". Both sides run the methods of table 2.
//! With a GPU, the times are written as workloads, on which `ding-fig7` plays the paper's schedulers.

use std::collections::BTreeMap;
use std::sync::Arc;

use tandem_engine::query::Query;
use tandem_engine::search::Executor;
use tandem_model::base::ids::QueryId;
use tandem_model::base::machine::PerClass;
use tandem_model::cost::{Measured, Workload, WorkloadRow};
use tandem_model::files::Provenance;
use tandem_model::traffic::Mode;

use super::common::open_gpu;
use crate::codec::{PForDelta, Pfor};
use crate::context::terms_of;
use crate::ding::daat::executor::DaatExecutor;
use crate::ding::daat::lists::CodedLists;
use crate::ding::gpu::PublishedGpu;
use crate::ding::gpu::lists::HostLists;
use crate::ding::gpu::search::PublishedSearch;
use crate::measure::fastest_us;
use crate::{Context, ExperimentError, Findings, Input, Result};

const DOCS: u32 = 2_000_000;
const QUERIES: usize = 4000;
const REAL_QUERIES: usize = 4000;
/// Queries with more terms count as this many.
const MOST_TERMS: usize = 5;
/// Runs of a query, of which the fastest counts.
const REPEATS: usize = 3;

/// Times of a query in milliseconds.
struct Timed<'a> {
    query: &'a Query,
    cpu_ms: f64,
    gpu_ms: Option<f64>,
}

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let gpu = open_gpu(findings)?;
    context.on_both((DOCS, QUERIES), REAL_QUERIES, findings, |input, section, findings| {
        compare(context, input, section, gpu.as_ref(), findings)
    })
}

fn compare(
    context: &Context<'_>,
    input: &Input,
    section: &str,
    gpu: Option<&Arc<PublishedGpu>>,
    findings: &mut Findings,
) -> Result<()> {
    let (index, terms) = (&input.index, terms_of(&input.queries));
    let coded = CodedLists::encode(index, &terms, Box::new(Pfor::<128>), 0..index.num_docs())?;
    let mut daat = DaatExecutor::new(Arc::new(coded));
    let lists = gpu.map(|_| HostLists::encode(index, &terms, index.built_with(), PForDelta::new(1))).transpose()?;
    let mut published =
        gpu.zip(lists).map(|(gpu, lists)| PublishedSearch::upload(gpu, &Arc::new(lists))).transpose()?;
    let (mut hits, mut rows) = (Vec::new(), Vec::new());
    for mode in [Mode::And, Mode::Or] {
        let mut timed = Vec::new();
        for query in &input.queries {
            let cpu_us = fastest_us(REPEATS, || Ok(daat.search(query, mode, context.k, &mut hits).map(drop)?))?;
            let gpu_us = published
                .as_mut()
                .map(|gpu| {
                    fastest_us(REPEATS, || Ok(gpu.search(query, mode, context.k, false, &mut hits).map(drop)?))
                })
                .transpose()?;
            rows.push(row(input, query, mode, rows.len(), [Some(cpu_us), gpu_us], hits.len()));
            timed.push(Timed { query, cpu_ms: cpu_us / 1e3, gpu_ms: gpu_us.map(|us| us / 1e3) });
        }
        add_means(mode, "terms", &timed, |query| query.terms.len().min(MOST_TERMS) as u64, findings);
        add_means(mode, "postings", &timed, power_of_four, findings);
    }
    findings.section("");
    if let Some(gpu) = gpu {
        let is_synthetic = section.is_empty() && !context.is_source_real;
        let lists = if is_synthetic { "synthetic" } else { "real" };
        let path = context.scratch.join(format!("ding-published-{lists}.workload.csv"));
        let provenance = Provenance::new().with_command_and_machine().with("gpu", gpu.name());
        let workload = Workload { provenance: provenance.with("docs", index.num_docs()), rows, ..Workload::default() };
        workload.write(&path).map_err(|e| ExperimentError::Input(format!("{}: {e}", path.display())))?;
        findings.note(format!("Costs of the published methods, for ding-fig7: {}.", path.display()));
    }
    Ok(())
}

/// A row of a workload of the published methods; times are those of CPU and GPU in microseconds.
fn row(input: &Input, query: &Query, mode: Mode, id: usize, us: [Option<f64>; 2], results: usize) -> WorkloadRow {
    let time = |us: f64| Measured { median_us: us, spread_us: 0.0, device_us: None };
    let [cpu, gpu] = us.map(|us| us.map(time));
    WorkloadRow {
        query_id: QueryId(id as u32),
        log_id: query.id.0,
        mode,
        features: query.features(&input.index),
        index_features: None,
        predicted_us: None,
        measured: PerClass::two(cpu, gpu),
        results: results as u32,
    }
}

/// Returns the largest power of four that the postings of all lists reach.
fn power_of_four(query: &Query) -> u64 {
    let postings: u64 = query.terms.iter().map(|term| u64::from(term.doc_freq)).sum();
    4_u64.pow(postings.max(1).ilog2() / 2)
}

/// Adds the mean times of queries of each size.
fn add_means(mode: Mode, unit: &str, timed: &[Timed<'_>], size: fn(&Query) -> u64, findings: &mut Findings) {
    let mut sizes: BTreeMap<u64, Vec<&Timed<'_>>> = BTreeMap::new();
    for one in timed {
        sizes.entry(size(one.query)).or_default().push(one);
    }
    for (size, of_size) in sizes {
        let mean = |sum: f64| sum / of_size.len() as f64;
        let name = format!("{mode} of {size} {unit}");
        findings.add(format!("{name}: queries"), "", of_size.len() as f64);
        findings.add(format!("{name}: CPU"), "ms", mean(of_size.iter().map(|one| one.cpu_ms).sum()));
        let gpu_ms: Option<f64> = of_size.iter().map(|one| one.gpu_ms).sum();
        findings.add(format!("{name}: GPU"), "ms", gpu_ms.map(mean));
    }
}
