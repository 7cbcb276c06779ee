//! Wang et al., figure 5: throughput over the cache's size, modelled and measured, under two limits of the response time.

use super::bench::{Bench, CACHE_SHARES, usual_policies};
use super::charts::{chart, line};
use crate::wang::data::{MEMORY_SHARE, SHARE, World};
use crate::{Context, ExperimentError, Findings};

/// Limits of a batch's time: the paper's, and one that binds on today's machine.
const LIMITS_MS: [(f64, &str, &str); 2] =
    [(150.0, "model-150ms", "measured-150ms"), (5.0, "model-5ms", "measured-5ms")];

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let world = World::of(context, &mut findings)?;
    let memory = world.share_bytes(MEMORY_SHARE);
    let bench = Bench::open(&world, &mut findings)?;
    let mut planners = Vec::new();
    for policy in usual_policies() {
        planners.push(match &bench {
            Some(bench) => Some(bench.planner(policy, memory)?.0),
            None => None,
        });
    }
    for (limit_ms, model_stem, measured_stem) in LIMITS_MS {
        let (mut modelled, mut measured) = (Vec::new(), Vec::new());
        for (colour, (policy, planner)) in usual_policies().into_iter().zip(&planners).enumerate() {
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            if let (Some(bench), Some(planner)) = (&bench, planner) {
                for share in CACHE_SHARES {
                    let Some(division) = planner.division(memory, share, limit_ms) else { continue };
                    expected.push((100.0 * share, division.qps));
                    found.push((100.0 * share, bench.measure(planner, &division)?.qps()));
                }
            }
            let best = |points: &[(f64, f64)]| points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
            let (model, real) = (best(&expected), best(&found));
            // The paper's text tells one pair.
            let papers = (limit_ms == LIMITS_MS[0].0 && policy.name() == "QtfDf").then_some((89.0, 93.0));
            let name = format!("{policy}, θ {limit_ms} ms");
            let share = |best: Option<(f64, f64)>| best.map(|(share, _)| share);
            findings.compare(format!("{name}: best S_c, modelled"), "% of M", papers.map(|p| p.0), share(model));
            findings.compare(format!("{name}: best S_c, measured"), "% of M", papers.map(|p| p.1), share(real));
            let apart = share(model).zip(share(real)).map(|(a, b)| (a - b).abs());
            findings.compare(format!("{name}: apart"), "% of M", 4.0, apart);
            // What trusting the model loses.
            let lost = model.zip(real).and_then(|((at, _), (_, most))| {
                let there = found.iter().find(|&&(share, _)| share == at)?.1;
                Some(100.0 * (1.0 - there / most))
            });
            findings.compare(format!("{name}: throughput lost at the modelled best"), "%", None, lost);
            findings.compare(format!("{name}: throughput, modelled best"), "q/s", None, model.map(|best| best.1));
            findings.compare(format!("{name}: throughput, measured best"), "q/s", None, real.map(|best| best.1));
            modelled.push(line(policy.to_string(), colour, expected));
            measured.push(line(policy.to_string(), colour, found));
        }
        if bench.is_some() {
            let x = "cache (% of M)";
            let title = format!("Throughput within {limit_ms} ms");
            findings.chart(chart(model_stem, &format!("{title}, modelled"), 5, x, "queries/s", modelled));
            findings.chart(chart(measured_stem, &format!("{title}, measured"), 5, x, "queries/s", measured));
        }
    }
    findings.note(format!(
        "M is {:.1} MB, λ {SHARE}. The model knows the training half alone: c and t as figure 4 has them, dq from a cache \
         learned from its first half and walked through with its second. Measured is the other half of the log, the \
         fastest of three runs, or of as many as half a second has room for; every answer is compared with the CPU's.",
        memory as f64 / 1e6
    ));
    Ok(findings)
}
