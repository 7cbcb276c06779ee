//! Wang et al., figure 5: modelled and measured throughput by cache size, under two limits of the response time.

use super::bench::{Bench, CACHE_SHARES, usual_policies};
use crate::findings::{Chart, Curve};
use crate::wang::data::{ExperimentData, MEMORY_SHARE, SHARE};
use crate::{Context, Findings, Result};

/// Limits of a batch's time: the paper's, and one that binds on machines of today.
const LIMITS_MS: [f64; 2] = [150.0, 5.0];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let data = ExperimentData::of(context, findings)?;
    let memory = data.share_bytes(MEMORY_SHARE);
    let bench = Bench::open(&data, findings)?;
    let mut planners = Vec::new();
    for policy in usual_policies() {
        planners.push(bench.as_ref().map(|bench| bench.planner(policy, memory)).transpose()?);
    }
    for limit_ms in LIMITS_MS {
        let (mut modelled, mut measured) = (Vec::new(), Vec::new());
        for (colour, (policy, planner)) in usual_policies().into_iter().zip(&planners).enumerate() {
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            if let (Some(bench), Some((planner, _))) = (&bench, planner) {
                for share in CACHE_SHARES {
                    let Some(division) = planner.division(memory, share, limit_ms) else { continue };
                    expected.push((100.0 * share, division.qps));
                    found.push((100.0 * share, bench.measure(planner, &division)?.qps()));
                }
            }
            let best = |points: &[(f64, f64)]| points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
            let (model, real) = (best(&expected), best(&found));
            // The paper's text gives one pair.
            let papers = (limit_ms == LIMITS_MS[0] && policy.name() == "QtfDf").then_some((89.0, 93.0));
            let name = format!("{policy}, θ {limit_ms} ms");
            let share = |best: Option<(f64, f64)>| best.map(|(share, _)| share);
            findings.compare(format!("{name}: best S_c, modelled"), "% of M", papers.map(|p| p.0), share(model));
            findings.compare(format!("{name}: best S_c, measured"), "% of M", papers.map(|p| p.1), share(real));
            let apart = share(model).zip(share(real)).map(|(a, b)| (a - b).abs());
            findings.compare(format!("{name}: apart"), "% of M", 4.0, apart);
            // The throughput at the modelled best, relative to the measured best.
            let lost = model.zip(real).and_then(|((at, _), (_, most))| {
                let there = found.iter().find(|&&(share, _)| share == at)?.1;
                Some(100.0 * (1.0 - there / most))
            });
            findings.add(format!("{name}: throughput lost at the modelled best"), "%", lost);
            findings.add(format!("{name}: throughput, modelled best"), "q/s", model.map(|best| best.1));
            findings.add(format!("{name}: throughput, measured best"), "q/s", real.map(|best| best.1));
            modelled.push(Curve::ours(policy.to_string(), colour, expected));
            measured.push(Curve::ours(policy.to_string(), colour, found));
        }
        if bench.is_some() {
            for (what, stem, curves) in [("modelled", "model", modelled), ("measured", "measured", measured)] {
                let title = format!("Throughput within {limit_ms} ms, {what} (Wang et al., figure 5)");
                let labels = ["cache (% of M)", "queries/s"];
                findings.chart(Chart::new(format!("{stem}-{limit_ms}ms"), title, labels, curves));
            }
        }
    }
    findings.note(format!(
        "M is {:.1} MB, λ {SHARE}. The model knows the training half only: c and t as in figure 4, dq from a cache learned from \
         its first half and a pass over its second. The other half of the log is measured, the fastest of up to three runs \
         within half a second. Every answer is compared with the CPU's.",
        memory as f64 / 1e6
    ));
    Ok(())
}
