//! Wang et al., figure 8: throughput over the memory, each policy with the division that suits it best.

use super::bench::{Bench, Planner};
use super::charts::{chart, line};
use crate::wang::cache::{AdmissionPolicy, Division, Sizes};
use crate::wang::data::{SHARES, World, policies};
use crate::wang::report::Report;
use crate::{Context, ExperimentError, Findings};

/// Memories, of what all lists take.
const MEMORIES: [f64; 7] = [0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0];
/// Divisions around the modelled best that are measured.
const TRIED: usize = 3;
/// Threads that post-process, in a row of our own.
pub(super) const MORE_THREADS: usize = 4;

/// The best that was measured of a policy in a memory.
#[derive(Debug)]
pub(super) struct Winner {
    pub(super) policy: AdmissionPolicy,
    pub(super) division: Division,
    pub(super) report: Report,
}

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let world = World::of(context, &mut findings)?;
    let bench = Bench::open(&world, &mut findings)?;
    let mut lines = vec![Vec::new(); 3];
    let (mut holds_all, mut left_out) = (false, Vec::new());
    for memory_share in MEMORIES {
        let memory = world.share_bytes(memory_share);
        let percent = 100.0 * memory_share;
        if holds_all {
            left_out.push(format!("{percent:.0} %"));
            continue;
        }
        holds_all = memory >= world.lists.all_bytes();
        let mut found = [None; 3];
        for (place, policy) in policies(1.0).into_iter().enumerate() {
            let winner = match &bench {
                Some(bench) => winner(bench, place, memory, f64::INFINITY)?,
                None => None,
            };
            found[place] = winner.as_ref().map(|winner| winner.report.qps());
            let name = winner.as_ref().map_or(policy.name().to_owned(), |winner| winner.policy.to_string());
            findings.compare(format!("M {percent:.0} %, {}: throughput", policy.name()), "q/s", None, found[place]);
            if let (Some(bench), Some(winner)) = (&bench, &winner) {
                let share = 100.0 * winner.division.cache_bytes as f64 / memory as f64;
                findings.compare(format!("M {percent:.0} %, {name}: S_c"), "% of M", None, share);
                lines[place].push((percent, winner.report.qps()));
                if let AdmissionPolicy::Vfb { .. } = policy {
                    qps_with_more_threads(bench, winner, &format!("M {percent:.0} %, {name}"), &mut findings)?;
                }
            }
        }
        for (place, most) in [(0, 30.0), (1, 140.0)] {
            let gain = found[2].zip(found[place]).map(|(vfb, other)| 100.0 * (vfb / other - 1.0));
            let name = policies(1.0)[place].name();
            findings.compare(format!("M {percent:.0} %, VFB over {name}"), "% (the paper's most)", most, gain);
        }
    }
    for (place, points) in lines.iter().enumerate() {
        let name = policies(1.0)[place].name();
        findings.compare(format!("{name}: how linear, correlation with M"), "r", None, correlation(points));
    }
    if !left_out.is_empty() {
        findings.note(format!(
            "Left out: M of {}. The memory before these holds all of the log's lists, and more of it changes nothing.",
            left_out.join(", ")
        ));
    }
    if bench.is_some() {
        let lines =
            lines.into_iter().enumerate().map(|(place, points)| line(policies(1.0)[place].name(), place, points));
        let title = "Throughput, non-interactive";
        findings.chart(chart("throughput", title, 8, "memory (% of the index)", "queries/s", lines.collect()));
    }
    findings.note(
        "Each policy with the fastest of the three divisions that the model expects most of, VFB with the fastest λ of \
         0.75 to 1; the fastest of three runs, or of as many as half a second has room for. Every answer is compared with the CPU's. A second thread that is busy all of \
         the run is what limits it: the paper's was hidden behind a slower GPU and bus.",
    );
    Ok(findings)
}

/// How busy the thread is that post-processes, and the rate of the same division with more of them, which is returned: what VFB,
/// the only policy whose queries need post-processing, may be limited by.
pub(super) fn qps_with_more_threads(
    bench: &Bench<'_>,
    winner: &Winner,
    name: &str,
    findings: &mut Findings,
) -> Result<f64, ExperimentError> {
    let busy = 100.0 * winner.report.post_seconds / winner.report.seconds;
    findings.compare(format!("{name}: the second thread is busy"), "% of the run", None, busy);
    let world = bench.world;
    let prefixes = world.admission(winner.policy)?.within(winner.division.cache_bytes, &world.lists);
    let more = bench.measure_with(prefixes, &winner.division, MORE_THREADS)?;
    let what = format!("{name}, {MORE_THREADS} threads post-process: throughput");
    findings.compare(what, "q/s", None, more.qps());
    Ok(more.qps())
}

/// The best measured division of policy number `place` in a memory, whose batches take `limit_ms` at most; `None` if none
/// does.
pub(super) fn winner(
    bench: &Bench<'_>,
    place: usize,
    memory: u64,
    limit_ms: f64,
) -> Result<Option<Winner>, ExperimentError> {
    // λ is VFB's alone.
    let tried: Vec<AdmissionPolicy> = match policies(1.0)[place] {
        AdmissionPolicy::Vfb { .. } => SHARES.iter().map(|&share| AdmissionPolicy::Vfb { share }).collect(),
        other => vec![other],
    };
    let mut candidates: Vec<(Planner<'_>, Vec<Division>)> = Vec::new();
    let (first, _) = bench.planner(tried[tried.len() / 2], memory)?;
    let model = first.model;
    for policy in tried {
        let mut planner = Planner::new(bench.world, policy)?;
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

/// Measures a division; where its batches take longer than the model expects, with a smaller buffer.
fn within(
    bench: &Bench<'_>,
    planner: &Planner<'_>,
    mut division: Division,
    limit_ms: f64,
) -> Result<Option<(Division, Report)>, ExperimentError> {
    const SHRINKS: usize = 4;
    for _ in 0..SHRINKS {
        let report = bench.measure(planner, &division)?;
        if report.batch_ms() <= limit_ms {
            return Ok(Some((division, report)));
        }
        let ratio = (limit_ms / report.batch_ms()).clamp(0.3, 0.95);
        division.buffer_bytes = (division.buffer_bytes as f64 * ratio) as u64;
        let prefixes = planner.prefixes(division.cache_bytes);
        if bench.world.walk(&prefixes, division.buffer_bytes).is_err() {
            break;
        }
    }
    Ok(None)
}

/// Pearson's; `None` of fewer than three points.
fn correlation(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| f(x - mx, y - my)).sum::<f64>();
    Some(sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt())
}
