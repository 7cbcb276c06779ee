//! Wang et al., figure 4: the three parts of the throughput model, c(n), t(S_b) and dq(S_c), measured.

use super::bench::{Bench, usual_policies};
use crate::findings::{Chart, Curve};
use crate::wang::cache::admission::AdmissionPolicy;
use crate::wang::cache::model::ThroughputModel;
use crate::wang::data::{ExperimentData, MEMORY_SHARE};
use crate::{Context, Findings, Result};

const SIZES: [f64; 7] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let data = ExperimentData::of(context, findings)?;
    let memory = data.share_bytes(MEMORY_SHARE);
    let bench = Bench::open(&data, findings)?;
    let (mut calculation, mut transfer, mut moved) = (Vec::new(), Vec::new(), Vec::new());
    for (colour, policy) in usual_policies().into_iter().enumerate() {
        let fitted = bench.as_ref().map(|bench| bench.planner(policy, memory)).transpose()?;
        let (model, batches) = fitted.map_or((None, Vec::new()), |(planner, batches)| (Some(planner.model), batches));
        add_model(policy, model.as_ref(), findings);
        let points = batches.iter().map(|b| (b.queries, b.calculation_us / b.queries)).collect();
        calculation.push(Curve::ours(policy.to_string(), colour, points));
        let points = batches.iter().filter(|b| b.mb > 0.0).map(|b| (b.mb, b.transfer_us / b.mb)).collect();
        transfer.push(Curve::ours(policy.to_string(), colour, points));
        if let Some(model) = model {
            let points = batches.iter().map(|b| (b.queries, model.calculation.at(b.queries))).collect();
            calculation.push(Curve::ours(format!("{policy}, fitted"), colour + 3, points));
            let points = batches.iter().map(|b| (b.mb, model.transfer.at(b.mb))).collect();
            transfer.push(Curve::ours(format!("{policy}, fitted"), colour + 3, points));
        }
        moved.push(Curve::ours(policy.to_string(), colour, moved_kb(&data, policy, memory, findings)?));
    }
    if bench.is_some() {
        let title = "Calculation a query (Wang et al., figure 4)";
        findings.chart(Chart::new("c", title, ["queries a batch", "us"], calculation).log_x());
        let title = "Transfer a megabyte (Wang et al., figure 4)";
        findings.chart(Chart::new("t", title, ["megabytes a batch", "us"], transfer).log_x());
    }
    findings.chart(Chart::new("dq", "Moved a query (Wang et al., figure 4)", ["cache (% of M)", "kB"], moved));
    findings.note(format!(
        "M is {:.1} MB. c(n) is fitted as constant + inverse / n to batches of 64 to all queries of the training half with \
         half of M as cache, and t(S_b) as constant + inverse / megabytes. c includes all work but copies: making the batch, \
         the kernel, reading the answers. dq is counted over the measured half. A list that several queries of a batch miss \
         is moved once. The paper gives curves without numbers.",
        memory as f64 / 1e6
    ));
    Ok(())
}

/// Adds both fits of the model, if there is one.
fn add_model(policy: AdmissionPolicy, model: Option<&ThroughputModel>, findings: &mut Findings) {
    let calculation = model.map(|model| &model.calculation);
    let transfer = model.map(|model| &model.transfer);
    for (what, each, fit) in
        [("c(n)", "a query of a large batch", calculation), ("t(S_b)", "a megabyte of a large batch", transfer)]
    {
        findings.add(format!("{policy}: {what}, {each}"), "us", fit.map(|fit| fit.constant));
        findings.add(format!("{policy}: {what}, a batch"), "us", fit.map(|fit| fit.inverse));
        let residual = fit.map(|fit| 100.0 * fit.relative_residual);
        findings.add(format!("{policy}: {what}, residual of the fit"), "%", residual);
    }
}

/// Returns kilobytes moved per query, by the share of the cache in the memory in percent.
fn moved_kb(
    data: &ExperimentData,
    policy: AdmissionPolicy,
    memory: u64,
    findings: &mut Findings,
) -> Result<Vec<(f64, f64)>> {
    let admission = data.admission(policy)?;
    let mut points = Vec::new();
    for share in SIZES {
        let cache_bytes = (memory as f64 * share) as u64;
        let trace = data.trace(&admission.within(cache_bytes, &data.lists), memory - cache_bytes)?;
        let (percent, kb) = (100.0 * share, 1e3 * trace.mb_per_query());
        findings.add(format!("{policy}: dq(S_c), S_c {percent:.0} % of M"), "kB a query", kb);
        points.push((percent, kb));
    }
    Ok(points)
}
