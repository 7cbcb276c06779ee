//! Wang et al., figure 8: throughput by memory size, each policy with its best division.

use super::bench::{Bench, Planner};
use crate::findings::{Chart, Curve};
use crate::wang::cache::admission::AdmissionPolicy;
use crate::wang::cache::model::Division;
use crate::wang::cache::sizes::Sizes;
use crate::wang::data::{ExperimentData, SHARES, policies};
use crate::wang::report::Report;
use crate::{Context, Findings, Result};

const MEMORIES: [f64; 7] = [0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0];
/// Measured divisions of those that the model rates best.
const TRIED: usize = 3;
/// Threads that post-process in additional rows.
pub(crate) const MORE_THREADS: usize = 4;

/// The best measurement of a policy in a memory.
#[derive(Debug)]
pub(crate) struct Winner {
    pub(crate) policy: AdmissionPolicy,
    pub(crate) division: Division,
    pub(crate) report: Report,
}

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let data = ExperimentData::of(context, findings)?;
    let bench = Bench::open(&data, findings)?;
    let mut curves = vec![Vec::new(); 3];
    let (mut holds_all, mut left_out) = (false, Vec::new());
    for memory_share in MEMORIES {
        let memory = data.share_bytes(memory_share);
        let percent = 100.0 * memory_share;
        if holds_all {
            left_out.push(format!("{percent:.0} %"));
            continue;
        }
        holds_all = memory >= data.lists.all_bytes();
        let mut found = [None; 3];
        for (place, policy) in policies(1.0).into_iter().enumerate() {
            let winner = match &bench {
                Some(bench) => winner(bench, place, memory, f64::INFINITY)?,
                None => None,
            };
            found[place] = winner.as_ref().map(|winner| winner.report.qps());
            let name = winner.as_ref().map_or(policy.name().to_owned(), |winner| winner.policy.to_string());
            findings.add(format!("M {percent:.0} %, {}: throughput", policy.name()), "q/s", found[place]);
            if let (Some(bench), Some(winner)) = (&bench, &winner) {
                let share = 100.0 * winner.division.cache_bytes as f64 / memory as f64;
                findings.add(format!("M {percent:.0} %, {name}: S_c"), "% of M", share);
                curves[place].push((percent, winner.report.qps()));
                if let AdmissionPolicy::Vfb { .. } = policy {
                    qps_with_more_threads(bench, winner, &format!("M {percent:.0} %, {name}"), findings)?;
                }
            }
        }
        for (place, most) in [(0, 30.0), (1, 140.0)] {
            let gain = found[2].zip(found[place]).map(|(vfb, other)| 100.0 * (vfb / other - 1.0));
            let name = policies(1.0)[place].name();
            findings.compare(format!("M {percent:.0} %, VFB over {name}"), "% (the paper's most)", most, gain);
        }
    }
    for (policy, points) in policies(1.0).into_iter().zip(&curves) {
        findings.add(format!("{}: how linear, correlation with M", policy.name()), "r", correlation(points));
    }
    if !left_out.is_empty() {
        findings.note(format!(
            "Left out: M of {}. The previous size holds all of the log's lists, and more memory changes nothing.",
            left_out.join(", ")
        ));
    }
    if bench.is_some() {
        let curves = policies(1.0).into_iter().zip(curves).enumerate();
        let curves = curves.map(|(colour, (policy, points))| Curve::ours(policy.name(), colour, points));
        let title = "Throughput, non-interactive (Wang et al., figure 8)";
        findings.chart(Chart::new("throughput", title, ["memory (% of the index)", "queries/s"], curves));
    }
    findings.note(
        "Each policy runs with the fastest of the three divisions that the model rates best, VFB with the fastest λ of 0.75 to \
         1; the fastest of up to three runs within half a second counts. Every answer is compared with the CPU's.",
    );
    Ok(())
}

/// Adds the utilisation of the thread that post-processes, and the rate of the same division with more such threads.
///
/// Post-processing can limit VFB, the only policy whose queries need it. Returns the rate with more threads.
pub(crate) fn qps_with_more_threads(
    bench: &Bench<'_>,
    winner: &Winner,
    name: &str,
    findings: &mut Findings,
) -> Result<f64> {
    let busy = 100.0 * winner.report.post_seconds / winner.report.seconds;
    findings.add(format!("{name}: the second thread is busy"), "% of the run", busy);
    let data = bench.data;
    let prefixes = data.admission(winner.policy)?.within(winner.division.cache_bytes, &data.lists);
    let more = bench.measure_with(prefixes, &winner.division, MORE_THREADS)?;
    findings.add(format!("{name}, {MORE_THREADS} threads post-process: throughput"), "q/s", more.qps());
    Ok(more.qps())
}

/// Returns the best measured division of policy number `place` with batches of at most `limit_ms`; `None` if there is none.
pub(crate) fn winner(bench: &Bench<'_>, place: usize, memory: u64, limit_ms: f64) -> Result<Option<Winner>> {
    // Only VFB has a share λ.
    let tried: Vec<AdmissionPolicy> = match policies(1.0)[place] {
        AdmissionPolicy::Vfb { .. } => SHARES.iter().map(|&share| AdmissionPolicy::Vfb { share }).collect(),
        other => vec![other],
    };
    let mut candidates: Vec<(Planner<'_>, Vec<Division>)> = Vec::new();
    let (first, _) = bench.planner(tried[tried.len() / 2], memory)?;
    let model = first.model;
    for policy in tried {
        let mut planner = Planner::new(bench.data, policy)?;
        planner.model = model;
        let mut divisions = planner.best(memory, limit_ms);
        divisions.truncate(TRIED);
        candidates.push((planner, divisions));
    }
    let mut best: Option<Winner> = None;
    for (planner, divisions) in &candidates {
        for division in divisions {
            let Some((division, report)) = within(bench, planner, *division, limit_ms)? else { continue };
            if best.as_ref().is_none_or(|best| report.qps() > best.report.qps()) {
                best = Some(Winner { policy: planner.policy, division, report });
            }
        }
    }
    Ok(best)
}

/// Measures a division. If its batches take longer than the limit, the buffer shrinks a few times.
fn within(
    bench: &Bench<'_>,
    planner: &Planner<'_>,
    mut division: Division,
    limit_ms: f64,
) -> Result<Option<(Division, Report)>> {
    const SHRINKS: usize = 4;
    for _ in 0..SHRINKS {
        let report = bench.measure(planner, &division)?;
        if report.batch_ms() <= limit_ms {
            return Ok(Some((division, report)));
        }
        let ratio = (limit_ms / report.batch_ms()).clamp(0.3, 0.95);
        division.buffer_bytes = (division.buffer_bytes as f64 * ratio) as u64;
        let prefixes = planner.prefixes(division.cache_bytes);
        if bench.data.trace(&prefixes, division.buffer_bytes).is_err() {
            break;
        }
    }
    Ok(None)
}

/// Returns Pearson's correlation; `None` for fewer than three points.
fn correlation(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| f(x - mx, y - my)).sum::<f64>();
    Some(sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt())
}
