//! Tatikonda et al., section 6: a hybrid that shares a query among cores or not, by load.
//!
//! "We considered a hybrid strategy that switches between intra-query and inter-query approaches according to query traffic. Our
//! preliminary results did not show much improvement". The hybrid here is Tandem's adaptive sharing. It is compared with both of its
//! parts, on the same engine and at the same arrivals.

use super::bench::{Bench, Method, PAPERS_THRESHOLD, Way};
use crate::findings::Curve;
use crate::tatikonda::experiments::fig5::delay_chart;
use crate::{Context, Findings, Result};

/// Rates in percent of INTER's throughput.
const PERCENTS: [u32; 6] = [10, 25, 50, 75, 90, 105];
const WAYS: [(&str, Method); 3] =
    [("INTER", Method::Inter), ("FGQP(γ=5)", Method::Fgqp(PAPERS_THRESHOLD)), ("hybrid", Method::Adaptive)];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open(context, findings)?;
    let load = bench.whole_load()?;
    let workers = bench.eight();
    let full_qps = bench.saturate(Way::tandem(Method::Inter), workers, &load)?.throughput_qps;
    let mut curves = WAYS.map(|(name, _)| (name, Vec::new()));
    let mut steps = context.steps("arrival rates", PERCENTS.len() * WAYS.len());
    for percent in PERCENTS {
        let rate_qps = full_qps * f64::from(percent) / 100.0;
        for ((name, method), (_, points)) in WAYS.into_iter().zip(&mut curves) {
            let delay_ms = bench.at_rate(Way::tandem(method), workers, &load, rate_qps)?.delay_ms;
            findings.add(format!("{percent} % of INTER's rate: {name}"), "ms", delay_ms);
            points.push((rate_qps, delay_ms));
            steps.done();
        }
    }
    drop(steps);
    let curves = curves.into_iter().enumerate().map(|(colour, (name, points))| Curve::ours(name, colour, points));
    let title = format!("Delay of a hybrid by arrival rate, {workers} workers (Tatikonda et al., section 6)");
    findings.chart(delay_chart("", title, curves.collect()));
    Ok(())
}
