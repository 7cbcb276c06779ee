//! Wang et al., figure 9: throughput and response time under a limit θ of the response time.

use super::bench::Bench;
use super::fig8::{MORE_THREADS, qps_with_more_threads, winner};
use crate::findings::{Chart, Curve};
use crate::wang::cache::admission::AdmissionPolicy;
use crate::wang::data::{ExperimentData, MEMORY_SHARE, policies};
use crate::{Context, Findings, Result};

/// Limits of a batch's time. The last one is the paper's; machines of today need shorter ones.
const LIMITS_MS: [f64; 6] = [1.0, 2.0, 5.0, 10.0, 30.0, 150.0];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let data = ExperimentData::of(context, findings)?;
    let memory = data.share_bytes(MEMORY_SHARE);
    let bench = Bench::open(&data, findings)?;
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
            findings.add(format!("{name}: throughput"), "q/s", found[place]);
            findings.add(format!("{name}: response time, mean"), "ms", batch_ms);
            rates[place].extend(found[place].map(|qps| (limit_ms, qps)));
            times[place].extend(batch_ms.map(|ms| (limit_ms, ms)));
            if let (AdmissionPolicy::Vfb { .. }, Some(bench), Some(winner)) = (policy, &bench, &winner) {
                with_more = Some(qps_with_more_threads(bench, winner, &name, findings)?);
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
        for (stem, title, y_label, points) in
            [("throughput", "Throughput, interactive", "queries/s", rates), ("response", "Response time", "ms", times)]
        {
            let curves = policies(1.0).into_iter().zip(points).enumerate();
            let curves = curves.map(|(colour, (policy, points))| Curve::ours(policy.name(), colour, points));
            let title = format!("{title} (Wang et al., figure 9)");
            findings.chart(Chart::new(stem, title, ["limit θ (ms)", y_label], curves).log_x());
        }
    }
    findings.note(format!(
        "M is {:.1} MB. The response time of a query is that of its whole batch: made, moved, computed; post-processing follows \
         for queries that need it. Divisions are those that the model rates best within θ, measured; their buffers shrink if \
         batches take longer. λ is the best of 0.75 to 1. As in the paper, one thread post-processes. Rows with {MORE_THREADS} threads use \
         the same division.",
        memory as f64 / 1e6
    ));
    Ok(())
}
