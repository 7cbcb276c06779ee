//! Wang et al., figure 7: megabytes that batches move under each cache policy, and hit rates. No device is needed to know.

use super::charts::{chart, line};
use crate::wang::data::{MEMORY_SHARE, SHARE, World, policies};
use crate::{Context, ExperimentError, Findings};

/// Shares of the memory that are cache.
const CACHE_SHARES: [f64; 6] = [0.1, 0.3, 0.5, 0.7, 0.9, 0.95];

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let world = World::of(context, &mut findings)?;
    let memory = world.share_bytes(MEMORY_SHARE);
    let (mut moved, mut rates) = (Vec::new(), Vec::new());
    for (colour, policy) in policies(SHARE).into_iter().enumerate() {
        let admission = world.admission(policy)?;
        let (mut moved_points, mut rate_points) = (Vec::new(), Vec::new());
        for share in CACHE_SHARES {
            let cache_bytes = (memory as f64 * share) as u64;
            let walk = world.walk(&admission.within(cache_bytes, &world.lists), memory - cache_bytes)?;
            let (mb, rate) = (walk.list_bytes as f64 / 1e6, 100.0 * walk.hit_rate());
            findings.compare(format!("{policy}, cache {:.0} % of M: moved", 100.0 * share), "MB", None, mb);
            findings.compare(format!("{policy}, cache {:.0} % of M: hit rate", 100.0 * share), "%", None, rate);
            moved_points.push((100.0 * share, mb));
            rate_points.push((100.0 * share, rate));
        }
        moved.push(line(policy.to_string(), colour, moved_points));
        rates.push(line(policy.to_string(), colour, rate_points));
    }
    // The paper's order: what VFB moves, least, over what the others do.
    let total = |line: usize| moved[line].points.iter().map(|&(_, mb)| mb).sum::<f64>();
    findings.compare("VFB: moved, over Qtf, mean over the sizes", "x", None, total(2) / total(0));
    findings.compare("VFB: moved, over QtfDf, mean over the sizes", "x", None, total(2) / total(1));
    let x = "cache (% of M)";
    findings.chart(chart("moved", "Megabytes moved for the measured half", 7, x, "MB", moved));
    findings.chart(chart("hits", "Lists found in the cache", 7, x, "hit rate (%)", rates));
    findings.note(format!(
        "M is {:.1} MB, {:.0} % of what all lists take. A list of which the cache has a beginning is a hit: what is \
         behind it a CPU looks up. The paper's text tells the order: VFB moves least at a hit rate like Qtf's, QtfDf has \
         most hits and moves much.",
        memory as f64 / 1e6,
        100.0 * MEMORY_SHARE
    ));
    Ok(findings)
}
