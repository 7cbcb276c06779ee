//! Huang et al., table 3: one GPU against four, by threads per query.
//!
//! One GPU answers the queries in batches as large as it takes. For several GPUs they are cut into one batch per GPU of the paper. All GPUs of the machine are measured. If these are
//! fewer than four, the time of four is computed by dealing the batches with their durations on one GPU.

use std::time::Instant;

use tandem_engine::search::ExecError;
use tandem_engine::search::device::{GpuError, list_gpus};

use super::bench::{Bench, OnCpu, check};
use crate::huang::ranges::batch::Limits;
use crate::huang::ranges::deal::{deal, makespan_of};
use crate::huang::ranges::gpu::executor::{RangesGpu, Settings};
use crate::huang::ranges::strategy::Strategy;
use crate::{Context, Findings, Result};

const THREADS: [u32; 3] = [64, 128, 256];
const PAPERS_GPUS: usize = 4;
/// The paper's milliseconds by strategy: one GPU and four for each number of threads.
const PAPERS: [(Strategy, [(f64, f64); 3]); 4] = [
    (Strategy::And, [(5.81, 1.51), (6.08, 1.38), (7.56, 1.65)]),
    (Strategy::Or, [(30.32, 5.67), (29.53, 5.38), (34.42, 6.50)]),
    (Strategy::Wand, [(7.45, 1.75), (7.86, 1.63), (8.97, 1.98)]),
    (Strategy::Bmw, [(4.47, 0.94), (4.47, 0.93), (6.51, 1.12)]),
];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open_for_gpu(context, findings)?;
    let mut gpus = open_all(&bench, findings)?;
    for (strategy, papers) in PAPERS {
        let expected = bench.on_cpu(bench.all(), strategy, context.k)?;
        for (threads, (papers_one, papers_four)) in THREADS.into_iter().zip(papers) {
            let name = format!("{}, P {threads}", strategy.name());
            let settings = Settings::published(strategy, threads, context.k);
            let times = DealtTimes::measure(&bench, &mut gpus, &expected, settings)?;
            findings.compare(format!("{name}: one GPU"), "ms", papers_one, times.one_ms);
            let saved = |one: f64, several: f64| 100.0 * (1.0 - several / one);
            let four_ms = match times.all_ms {
                Some(all_ms) if gpus.len() == PAPERS_GPUS => all_ms,
                _ => times.four_computed_ms,
            };
            let how = if gpus.len() == PAPERS_GPUS { "four GPUs" } else { "four GPUs, computed from one's batches" };
            findings.compare(format!("{name}: {how}"), "ms", papers_four, four_ms);
            let papers_saved = saved(papers_one, papers_four);
            findings.compare(format!("{name}: {how}, saved"), "%", papers_saved, saved(times.one_ms, four_ms));
            if let Some(all_ms) = times.all_ms {
                let name = format!("{name}: {} GPUs", gpus.len());
                findings.add(format!("{name}, measured"), "ms", all_ms);
                findings.add(format!("{name}, times one"), "times", times.one_ms / all_ms);
                findings.add(format!("{name}, computed"), "ms", times.all_computed_ms);
            }
        }
    }
    findings.note(format!(
        "{} queries in {PAPERS_GPUS} batches, one GPU in batches as large as it takes, k {}; GPUs here: {}. Four GPUs gain more than fourfold in the paper's OR (5.3 times \
         at P 64), which dealing batches alone cannot explain.",
        bench.queries.len(),
        context.k,
        gpus.len(),
    ));
    Ok(())
}

/// Opens up to four GPUs of this machine, each with its lists.
fn open_all(bench: &Bench, findings: &mut Findings) -> Result<Vec<RangesGpu>> {
    let mut gpus = vec![bench.needed_gpu(findings)?];
    let here = list_gpus()?.len().min(PAPERS_GPUS);
    for ordinal in 1..here as u32 {
        match bench.gpu(ordinal) {
            Err(GpuError::NoGpu(_)) => {}
            gpu => gpus.push(gpu?),
        }
    }
    // A batch takes different times on GPUs of different models.
    if gpus.iter().any(|gpu| gpu.name() != gpus[0].name()) {
        findings.note("The GPUs of this machine are of several models; only the first one is used.");
        gpus.truncate(1);
    }
    Ok(gpus)
}

/// Milliseconds per query.
pub(crate) struct DealtTimes {
    one_ms: f64,
    /// Measured on all GPUs of this machine, if there are several.
    all_ms: Option<f64>,
    pub(crate) four_computed_ms: f64,
    all_computed_ms: f64,
}

impl DealtTimes {
    /// Deals all queries to `gpus`, and to the first GPU alone.
    pub(crate) fn measure(bench: &Bench, gpus: &mut [RangesGpu], expected: &OnCpu, settings: Settings) -> Result<Self> {
        let queries = &bench.queries;
        let limits = Limits { queries: queries.len().div_ceil(PAPERS_GPUS), ..Limits::default() };
        let batches = gpus[0].cut(queries, limits);
        let run = |gpus: &mut [RangesGpu], batch_ms: &mut Vec<f64>| -> Result<f64> {
            let began = Instant::now();
            let workers = gpus.iter_mut().map(|gpu| {
                |batch: usize| -> Result<_, ExecError> {
                    let began = Instant::now();
                    let outcome = gpu.run(&queries[batches[batch].clone()], settings)?;
                    Ok((outcome.answers, began.elapsed().as_secs_f64() * 1e3))
                }
            });
            let dealt = deal(workers.collect(), batches.len())?;
            let ms = began.elapsed().as_secs_f64() * 1e3;
            batch_ms.clear();
            for ((answers, took_ms), batch) in dealt.iter().zip(&batches) {
                let expected = &expected.hits[batch.clone()];
                check(settings.strategy, settings.k, queries[batch.clone()].iter().zip(expected), answers)?;
                batch_ms.push(*took_ms);
            }
            Ok(ms)
        };
        let each = queries.len() as f64;
        let mut batch_ms = Vec::new();
        let all_ms = if gpus.len() > 1 { Some(bench.median_ms(|| run(gpus, &mut batch_ms))? / each) } else { None };
        let dealt_ms = bench.median_ms(|| run(&mut gpus[..1], &mut batch_ms))? / each;
        // The best run of one GPU counts: smaller batches leave multiprocessors idle.
        let whole_ms = bench.median_ms(|| bench.on_gpu(&mut gpus[0], queries, &expected.hits, settings))? / each;
        let one_ms = dealt_ms.min(whole_ms);
        Ok(Self {
            one_ms,
            all_ms,
            four_computed_ms: makespan_of(&batch_ms, PAPERS_GPUS) / each,
            all_computed_ms: makespan_of(&batch_ms, gpus.len()) / each,
        })
    }
}
