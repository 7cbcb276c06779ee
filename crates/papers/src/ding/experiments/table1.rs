//! Ding et al., table 1: decode rates of Rice and PForDelta on CPU and GPU.
//!
//! All documents of the queries' lists are decoded, list after list as in the paper. On a GPU a list takes a few launches,
//! which take longer than most lists do today. A second row therefore decodes all lists with the launches of one. GPU
//! times are the device's own. The paper's CPU decoders produced gaps; here both sides produce docIDs.
//!
//! A shared core can be slow for seconds. The CPU decoders therefore take turns, and the fastest time of each list counts.
//! The paper's CPU ran PForDelta with one width per block. The form with one width per list is decoded on both sides.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tandem_engine::search::device::GpuError;
use tandem_model::base::quantile::median;

use super::common::{decode_on_cpu, open_gpu};
use crate::codec::{Codec, Column, PForDelta, Pfor, Rice};
use crate::context::{GOV2_DOCS, terms_of};
use crate::ding::gpu::{PforBatch, PublishedGpu, RiceBatch};
use crate::{Context, ExperimentError, Findings, Input, Result};

const QUERIES: usize = 50;
/// Queries of a real log, whose lists are shorter.
const REAL_QUERIES: usize = 1000;
const CPU_ROUNDS: usize = 7;
const GPU_REPEATS: usize = 7;
/// Unit of the paper: millions of integers per second.
const UNIT: &str = "M ints/s";

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let gpu = open_gpu(findings)?;
    context.on_both((GOV2_DOCS, QUERIES), REAL_QUERIES, findings, |input, _, findings| {
        compare(context, input, gpu.as_ref(), findings)
    })?;
    let copy = gpu.as_ref().map(|gpu| gpu.copy_rate(GPU_REPEATS)).transpose()?;
    findings.add("device copy, read and written", "GB/s", copy.map(|rate| rate / 1e9));
    if gpu.is_some() {
        findings.note("The first launch of PForDelta decodes exceptions only, and its second launch waits for it.");
    }
    Ok(())
}

/// Adds the decode rates of the lists of an input.
fn compare(
    context: &Context<'_>,
    input: &Input,
    gpu: Option<&Arc<PublishedGpu>>,
    findings: &mut Findings,
) -> Result<()> {
    let terms = terms_of(&input.queries);
    let lists: Vec<Vec<u32>> = terms.iter().map(|&term| input.index.list(term).docs()).collect();
    let postings: usize = lists.iter().map(Vec::len).sum();
    let rate = |us: f64| postings as f64 / us;

    let (pfor_delta, pfor) = (PForDelta::new(1), Pfor::<128>);
    let codecs: [(&dyn Codec, &str, f64, Option<f64>); 3] = [
        (&Rice, "Rice", 310.63, Some(305.27)),
        (&pfor, "PForDelta", 1165.13, None),
        (&pfor_delta, "PForDelta, one width a list", 1165.13, Some(1237.57)),
    ];
    let encode = |codec: &dyn Codec| -> Result<Vec<Vec<u32>>, _> {
        lists.iter().map(|docs| codec.encode_list(Column::Docs, docs)).collect()
    };
    let encoded = codecs.iter().map(|&(codec, ..)| encode(codec)).collect::<Result<Vec<_>, _>>()?;
    let decoders: Vec<(&dyn Codec, &Vec<Vec<u32>>)> =
        codecs.iter().zip(&encoded).map(|(&(codec, ..), encoded)| (codec, encoded)).collect();
    let cpu_times = cpu_times_us(context, &decoders, lists.len())?;
    for ((codec, name, papers_cpu, papers_gpu), (encoded, cpu_us)) in
        codecs.into_iter().zip(encoded.iter().zip(cpu_times))
    {
        findings.compare(format!("{name}, CPU"), UNIT, papers_cpu, rate(cpu_us));
        if papers_gpu.is_none() {
            continue;
        }
        let times = gpu.map(|gpu| GpuTimes::measure(gpu, codec.name() == Rice.name(), encoded, &lists)).transpose()?;
        let times = times.as_ref();
        findings.compare(format!("{name}, GPU, list by list"), UNIT, papers_gpu, times.map(|t| rate(t.each_us)));
        findings.add(format!("{name}, GPU, all at once"), UNIT, times.map(|t| rate(t.at_once_us)));
        if let Some(gaps_us) = times.and_then(|t| t.gaps_us) {
            findings.add(format!("{name}, GPU, all at once, gaps only"), UNIT, rate(gaps_us));
        }
        if let Some(times) = times {
            let launches = times.launches as f64;
            findings.add(format!("{name}, GPU: launches a list"), "", launches / lists.len() as f64);
            findings.add(format!("{name}, GPU, list by list: a launch"), "us", times.each_us / launches);
        }
    }
    findings.add("lists", "", lists.len() as f64);
    findings.add("docIDs in them", "", postings as f64);
    Ok(())
}

/// Returns the time of each codec for all lists on one core: the sum of the fastest times of the lists.
fn cpu_times_us(context: &Context<'_>, codecs: &[(&dyn Codec, &Vec<Vec<u32>>)], num_lists: usize) -> Result<Vec<f64>> {
    let mut decoded = Vec::new();
    let mut fastest = vec![vec![Duration::MAX; num_lists]; codecs.len()];
    let mut steps = context.steps("decoding on one core", CPU_ROUNDS);
    for _ in 0..CPU_ROUNDS {
        for (&(codec, encoded), fastest) in codecs.iter().zip(&mut fastest) {
            for (list, fastest) in fastest.iter_mut().enumerate() {
                let began = Instant::now();
                decode_on_cpu(codec, &encoded[list..=list], &mut decoded)?;
                *fastest = began.elapsed().min(*fastest);
            }
        }
        steps.done();
    }
    Ok(fastest.iter().map(|times| times.iter().sum::<Duration>().as_secs_f64() * 1e6).collect())
}

struct GpuTimes {
    each_us: f64,
    at_once_us: f64,
    gaps_us: Option<f64>,
    /// Kernels launched list by list.
    launches: usize,
}

impl GpuTimes {
    /// Decodes the lists one by one and all at once, and checks the documents.
    fn measure(gpu: &Arc<PublishedGpu>, is_rice: bool, encoded: &[Vec<u32>], lists: &[Vec<u32>]) -> Result<Self> {
        let all = || encoded.iter().map(Vec::as_slice);
        let median_us = |work: &dyn Fn() -> Result<(), GpuError>| gpu.time_us(GPU_REPEATS, work).map(median);
        if is_rice {
            let batch = RiceBatch::upload(gpu, all())?;
            let at_once_us = median_us(&|| batch.decode())?;
            check(lists, |list| batch.docs(list))?;
            drop(batch);
            let single = all().map(|list| RiceBatch::upload(gpu, [list])).collect::<Result<Vec<_>, _>>()?;
            let each_us = median_us(&|| single.iter().try_for_each(RiceBatch::decode))?;
            return Ok(Self { each_us, at_once_us, gaps_us: None, launches: RiceBatch::LAUNCHES * single.len() });
        }
        let batch = PforBatch::upload(gpu, Column::Docs, all())?;
        let gaps_us = Some(median_us(&|| batch.decode(false))?);
        let at_once_us = median_us(&|| batch.decode(true))?;
        check(lists, |list| batch.values(list))?;
        drop(batch);
        let single = all().map(|list| PforBatch::upload(gpu, Column::Docs, [list])).collect::<Result<Vec<_>, _>>()?;
        let each_us = median_us(&|| single.iter().try_for_each(|list| list.decode(true)))?;
        Ok(Self { each_us, at_once_us, gaps_us, launches: single.iter().map(PforBatch::launches).sum() })
    }
}

/// Checks that the GPU decoded the encoded documents.
fn check(lists: &[Vec<u32>], decoded: impl Fn(usize) -> Result<Vec<u32>, GpuError>) -> Result<()> {
    for (number, docs) in lists.iter().enumerate() {
        if decoded(number)? != *docs {
            let len = docs.len();
            return Err(ExperimentError::Wrong(format!("the GPU decoded list {number} of {len} docIDs wrongly")));
        }
    }
    Ok(())
}
