//! Wang et al., figure 6: time on the GPU and of post-processing, by cache size and admitted share λ.

use super::bench::Bench;
use crate::findings::{Chart, Curve};
use crate::wang::cache::admission::AdmissionPolicy;
use crate::wang::data::{ExperimentData, MEMORY_SHARE, SHARES};
use crate::{Context, Findings, Result};

/// Sizes of the cache as shares of all lists.
const CACHE_SHARES: [f64; 5] = [0.05, 0.1, 0.2, 0.3, 0.4];
/// The paper's buffer as a share of its index: 800 of the 5600 MB that are about 40 % of it.
const BUFFER_SHARE: f64 = MEMORY_SHARE * 800.0 / 5600.0;
/// Cache size for which the paper gives the hit rate.
const PAPERS_SHARE: f64 = 0.1;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let data = ExperimentData::of(context, findings)?;
    let buffer = data.share_bytes(BUFFER_SHARE);
    let bench = Bench::open(&data, findings)?;
    let num_queries = data.test.len() as f64;
    let (mut on_gpu, mut on_cpu, mut hit_rates) = (Vec::new(), Vec::new(), Vec::new());
    for (colour, share) in SHARES.into_iter().enumerate() {
        let admission = data.admission(AdmissionPolicy::Vfb { share })?;
        let (mut gpu_points, mut cpu_points, mut rate_points) = (Vec::new(), Vec::new(), Vec::new());
        for cache_share in CACHE_SHARES {
            let cache_bytes = data.share_bytes(cache_share);
            let prefixes = admission.within(cache_bytes, &data.lists);
            let hit_rate = 100.0 * data.trace(&prefixes, buffer)?.hit_rate();
            let report = bench.as_ref().map(|bench| bench.run(prefixes, cache_bytes, buffer, 0)).transpose()?;
            let percent = 100.0 * cache_share;
            let name = format!("λ {share}, cache {percent:.0} % of the index");
            let gpu_us = report.as_ref().map(|report| 1e3 * report.gpu_ms() / num_queries);
            let cpu_us = report.as_ref().map(|report| 1e6 * report.post_seconds / num_queries);
            findings.add(format!("{name}: on the GPU"), "us a query", gpu_us);
            findings.add(format!("{name}: post-processing"), "us a query", cpu_us);
            let post = report.as_ref().map(|report| 100.0 * report.post_processed as f64 / num_queries);
            findings.add(format!("{name}: queries post-processed"), "%", post);
            let papers = (cache_share == PAPERS_SHARE && share == 1.0).then_some(30.0);
            findings.compare(format!("{name}: hit rate"), "%", papers, hit_rate);
            gpu_points.extend(gpu_us.map(|us| (percent, us)));
            cpu_points.extend(cpu_us.map(|us| (percent, us)));
            rate_points.push((percent, hit_rate));
        }
        for (curves, points) in [(&mut on_gpu, gpu_points), (&mut on_cpu, cpu_points), (&mut hit_rates, rate_points)] {
            curves.push(Curve::ours(format!("λ {share}"), colour, points));
        }
    }
    let at = |curve: &Curve| curve.points.iter().find(|point| point.0 == 100.0 * PAPERS_SHARE).map(|point| point.1);
    let spread = at(&hit_rates[0]).zip(at(&hit_rates[SHARES.len() - 1])).map(|(most, least)| most - least);
    findings.compare("hit rate, λ 0.75 over λ 1, cache 10 % of the index", "points", 5.0, spread);
    let x = "cache (% of the index)";
    if bench.is_some() {
        findings.chart(Chart::new("gpu", "Time on the GPU (Wang et al., figure 6)", [x, "us a query"], on_gpu));
        findings.chart(Chart::new("cpu", "Post-processing (Wang et al., figure 6)", [x, "us a query"], on_cpu));
    }
    let title = "Lists found in the cache (Wang et al., figure 6)";
    findings.chart(Chart::new("hits", title, [x, "hit rate (%)"], hit_rates));
    findings.note(format!(
        "VFB, a buffer of {:.1} MB; one thread does all steps one after another. Time on the GPU is that of the batches: \
         making, copying, the kernel.",
        buffer as f64 / 1e6
    ));
    Ok(())
}
