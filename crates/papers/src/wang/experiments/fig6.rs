//! Wang et al., figure 6: time on the GPU and of post-processing, by the cache's size and the admitted share λ.

use super::bench::Bench;
use super::charts::{chart, line};
use crate::wang::cache::AdmissionPolicy;
use crate::wang::data::{MEMORY_SHARE, SHARES, World};
use crate::{Context, ExperimentError, Findings};

/// Sizes of the cache, of what all lists take.
const CACHE_SHARES: [f64; 5] = [0.05, 0.1, 0.2, 0.3, 0.4];
/// The paper's buffer, of its index: 800 of the 5600 MB that are about 40 % of it.
const BUFFER_SHARE: f64 = MEMORY_SHARE * 800.0 / 5600.0;
/// Where the paper tells the hit rate.
const TOLD_SHARE: f64 = 0.1;

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let world = World::of(context, &mut findings)?;
    let buffer = world.share_bytes(BUFFER_SHARE);
    let bench = Bench::open(&world, &mut findings)?;
    let num_queries = world.test.len() as f64;
    let (mut on_gpu, mut on_cpu, mut hit_rates) = (Vec::new(), Vec::new(), Vec::new());
    for (colour, share) in SHARES.into_iter().enumerate() {
        let admission = world.admission(AdmissionPolicy::Vfb { share })?;
        let (mut gpu_points, mut cpu_points, mut rate_points) = (Vec::new(), Vec::new(), Vec::new());
        for cache_share in CACHE_SHARES {
            let cache_bytes = world.share_bytes(cache_share);
            let prefixes = admission.within(cache_bytes, &world.lists);
            let walk = world.walk(&prefixes, buffer)?;
            let report = match &bench {
                Some(bench) => Some(bench.run(prefixes, cache_bytes, buffer, 0)?),
                None => None,
            };
            let percent = 100.0 * cache_share;
            let name = format!("λ {share}, cache {percent:.0} % of the index");
            let gpu_us = report.as_ref().map(|report| 1e3 * report.gpu_ms() / num_queries);
            let cpu_us = report.as_ref().map(|report| 1e6 * report.post_seconds / num_queries);
            findings.compare(format!("{name}: on the GPU"), "us a query", None, gpu_us);
            findings.compare(format!("{name}: post-processing"), "us a query", None, cpu_us);
            let post = report.as_ref().map(|report| 100.0 * report.post_processed as f64 / num_queries);
            findings.compare(format!("{name}: queries post-processed"), "%", None, post);
            let papers = (cache_share == TOLD_SHARE && share == 1.0).then_some(30.0);
            findings.compare(format!("{name}: hit rate"), "%", papers, 100.0 * walk.hit_rate());
            gpu_points.extend(gpu_us.map(|us| (percent, us)));
            cpu_points.extend(cpu_us.map(|us| (percent, us)));
            rate_points.push((percent, 100.0 * walk.hit_rate()));
        }
        on_gpu.push(line(format!("λ {share}"), colour, gpu_points));
        on_cpu.push(line(format!("λ {share}"), colour, cpu_points));
        hit_rates.push(line(format!("λ {share}"), colour, rate_points));
    }
    let at =
        |line: usize| hit_rates[line].points.iter().find(|point| point.0 == 100.0 * TOLD_SHARE).map(|point| point.1);
    let spread = at(0).zip(at(SHARES.len() - 1)).map(|(most, least)| most - least);
    findings.compare("hit rate, λ 0.75 over λ 1, cache 10 % of the index", "points", 5.0, spread);
    let x = "cache (% of the index)";
    if bench.is_some() {
        findings.chart(chart("gpu", "Time on the GPU", 6, x, "us a query", on_gpu));
        findings.chart(chart("cpu", "Post-processing", 6, x, "us a query", on_cpu));
    }
    findings.chart(chart("hits", "Lists found in the cache", 6, x, "hit rate (%)", hit_rates));
    findings.note(format!(
        "VFB, a buffer of {:.1} MB; one thread does everything, one thing after another. Time on the GPU is that of the \
         batches: making, copying, the kernel.",
        buffer as f64 / 1e6
    ));
    Ok(findings)
}
