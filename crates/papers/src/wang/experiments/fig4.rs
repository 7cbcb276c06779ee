//! Wang et al., figure 4: the three parts of the throughput model, measured: c(n), t(S_b), dq(S_c).

use super::bench::{Bench, usual_policies};
use super::charts::{chart, line};
use crate::wang::cache::{AdmissionPolicy, ThroughputModel};
use crate::wang::data::{MEMORY_SHARE, World};
use crate::{Chart, Context, ExperimentError, Findings};

/// Shares of the memory that are cache.
const SIZES: [f64; 7] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95];

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let world = World::of(context, &mut findings)?;
    let memory = world.share_bytes(MEMORY_SHARE);
    let bench = Bench::open(&world, &mut findings)?;
    let (mut calculation, mut transfer, mut moved) = (Vec::new(), Vec::new(), Vec::new());
    for (colour, policy) in usual_policies().into_iter().enumerate() {
        let fitted = bench.as_ref().map(|bench| bench.planner(policy, memory)).transpose()?;
        let (model, batches) = fitted.map_or((None, Vec::new()), |(planner, batches)| (Some(planner.model), batches));
        tell_model(policy, model.as_ref(), &mut findings);
        let points = batches.iter().map(|b| (b.queries, b.calculation_us / b.queries)).collect();
        calculation.push(line(policy.to_string(), colour, points));
        let points = batches.iter().filter(|b| b.mb > 0.0).map(|b| (b.mb, b.transfer_us / b.mb)).collect();
        transfer.push(line(policy.to_string(), colour, points));
        if let Some(model) = model {
            let points = batches.iter().map(|b| (b.queries, model.calculation.at(b.queries))).collect();
            calculation.push(line(format!("{policy}, fitted"), colour + 3, points));
            let points = batches.iter().map(|b| (b.mb, model.transfer.at(b.mb))).collect();
            transfer.push(line(format!("{policy}, fitted"), colour + 3, points));
        }
        moved.push(line(policy.to_string(), colour, moved_kb(&world, policy, memory, &mut findings)?));
    }
    let log = |chart: Chart| Chart { is_x_log: true, ..chart };
    if bench.is_some() {
        findings.chart(log(chart("c", "Calculation a query", 4, "queries a batch", "us", calculation)));
        findings.chart(log(chart("t", "Transfer a megabyte", 4, "megabytes a batch", "us", transfer)));
    }
    findings.chart(chart("dq", "Moved a query", 4, "cache (% of M)", "kB", moved));
    findings.note(format!(
        "M is {:.1} MB. c(n) is fitted as constant + inverse / n to batches of 64 to all queries of the training half \
         with half of M as cache, t(S_b) as constant + inverse / megabytes; c has all that is no copy: making the batch, \
         the kernel, reading the answers. dq is counted over the measured half; a list that several queries of a batch \
         lack is moved once. The paper gives curves without numbers.",
        memory as f64 / 1e6
    ));
    Ok(findings)
}

/// The model's two fits, where there is one.
fn tell_model(policy: AdmissionPolicy, model: Option<&ThroughputModel>, findings: &mut Findings) {
    let calculation = model.map(|model| &model.calculation);
    let transfer = model.map(|model| &model.transfer);
    for (what, each, fit) in
        [("c(n)", "a query of a large batch", calculation), ("t(S_b)", "a megabyte of a large batch", transfer)]
    {
        findings.compare(format!("{policy}: {what}, {each}"), "us", None, fit.map(|fit| fit.constant));
        findings.compare(format!("{policy}: {what}, a batch"), "us", None, fit.map(|fit| fit.inverse));
        let residual = fit.map(|fit| 100.0 * fit.relative_residual);
        findings.compare(format!("{policy}: {what}, residual of the fit"), "%", None, residual);
    }
}

/// Kilobytes moved a query, by the share of the memory that is cache, in percent.
fn moved_kb(
    world: &World,
    policy: AdmissionPolicy,
    memory: u64,
    findings: &mut Findings,
) -> Result<Vec<(f64, f64)>, ExperimentError> {
    let admission = world.admission(policy)?;
    let mut points = Vec::new();
    for share in SIZES {
        let cache_bytes = (memory as f64 * share) as u64;
        let walk = world.walk(&admission.within(cache_bytes, &world.lists), memory - cache_bytes)?;
        let (percent, kb) = (100.0 * share, 1e3 * walk.mb_a_query());
        findings.compare(format!("{policy}: dq(S_c), S_c {percent:.0} % of M"), "kB a query", None, kb);
        points.push((percent, kb));
    }
    Ok(points)
}
