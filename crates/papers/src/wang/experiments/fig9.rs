//! Wang et al., figure 9: throughput and response time where a query may take no longer than θ.

use super::bench::Bench;
use super::charts::{chart, line};
use super::fig8::{MORE_THREADS, qps_with_more_threads, winner};
use crate::wang::cache::AdmissionPolicy;
use crate::wang::data::{MEMORY_SHARE, World, policies};
use crate::{Context, ExperimentError, Findings};

/// Limits of a batch's time: the paper's is the last; today's machine has to be asked for less.
const LIMITS_MS: [f64; 6] = [1.0, 2.0, 5.0, 10.0, 30.0, 150.0];

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let world = World::of(context, &mut findings)?;
    let memory = world.share_bytes(MEMORY_SHARE);
    let bench = Bench::open(&world, &mut findings)?;
    let (mut rates, mut times) = (vec![Vec::new(); 3], vec![Vec::new(); 3]);
    let (mut is_best, mut is_best_with_more) = (Vec::new(), Vec::new());
    for limit_ms in LIMITS_MS {
        let (mut found, mut with_more) = ([None; 3], None);
        for (place, policy) in policies(1.0).into_iter().enumerate() {
            let winner = match &bench {
                Some(bench) => winner(bench, place, memory, limit_ms)?,
                None => None,
            };
            let name = format!("θ {limit_ms} ms, {}", policy.name());
            found[place] = winner.as_ref().map(|winner| winner.report.qps());
            let batch_ms = winner.as_ref().map(|winner| winner.report.batch_ms());
            findings.compare(format!("{name}: throughput"), "q/s", None, found[place]);
            findings.compare(format!("{name}: response time, mean"), "ms", None, batch_ms);
            rates[place].extend(found[place].map(|qps| (limit_ms, qps)));
            times[place].extend(batch_ms.map(|ms| (limit_ms, ms)));
            if let (AdmissionPolicy::Vfb { .. }, Some(bench), Some(winner)) = (policy, &bench, &winner) {
                with_more = Some(qps_with_more_threads(bench, winner, &name, &mut findings)?);
            }
        }
        if let [Some(qtf), Some(qtf_df), Some(vfb)] = found {
            is_best.push(vfb >= qtf.max(qtf_df));
            is_best_with_more.extend(with_more.map(|vfb| vfb >= qtf.max(qtf_df)));
        }
    }
    for (threads, is_best) in [("one thread post-processes", is_best), ("more threads do", is_best_with_more)] {
        let count = is_best.iter().filter(|is_best| **is_best).count() as f64;
        let share = (!is_best.is_empty()).then(|| 100.0 * count / is_best.len() as f64);
        findings.compare(format!("limits under which VFB is best, {threads}"), "%", 100.0, share);
    }
    if bench.is_some() {
        let by_policy = |(place, points): (usize, Vec<(f64, f64)>)| line(policies(1.0)[place].name(), place, points);
        for (stem, title, y, points) in
            [("throughput", "Throughput, interactive", "queries/s", rates), ("response", "Response time", "ms", times)]
        {
            let mut drawn =
                chart(stem, title, 9, "limit θ (ms)", y, points.into_iter().enumerate().map(by_policy).collect());
            drawn.is_x_log = true;
            findings.chart(drawn);
        }
    }
    findings.note(format!(
        "M is {:.1} MB. A response is a query's whole batch: made, moved, computed; post-processing comes after for those \
         that need it. Divisions are those that the model expects most of within θ, measured, their buffers shrunk where \
         batches took longer; λ is the best of 0.75 to 1. The paper has one thread that post-processes, and so have these rows: \
         where it is busy all of the run it, and not the GPU, is VFB's limit, the only policy of which queries need it. With \
         {MORE_THREADS} threads the same division is told beside.",
        memory as f64 / 1e6
    ));
    Ok(findings)
}
