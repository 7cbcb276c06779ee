//! Wang et al., figure 7: megabytes that batches move under each cache policy, and hit rates. Both are counted without a GPU.

use crate::findings::{Chart, Curve};
use crate::wang::data::{ExperimentData, MEMORY_SHARE, SHARE, policies};
use crate::{Context, Findings, Result};

const CACHE_SHARES: [f64; 6] = [0.1, 0.3, 0.5, 0.7, 0.9, 0.95];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let data = ExperimentData::of(context, findings)?;
    let memory = data.share_bytes(MEMORY_SHARE);
    let (mut moved, mut rates) = (Vec::new(), Vec::new());
    for (colour, policy) in policies(SHARE).into_iter().enumerate() {
        let admission = data.admission(policy)?;
        let (mut moved_points, mut rate_points) = (Vec::new(), Vec::new());
        for share in CACHE_SHARES {
            let cache_bytes = (memory as f64 * share) as u64;
            let trace = data.trace(&admission.within(cache_bytes, &data.lists), memory - cache_bytes)?;
            let (mb, rate) = (trace.list_bytes as f64 / 1e6, 100.0 * trace.hit_rate());
            findings.add(format!("{policy}, cache {:.0} % of M: moved", 100.0 * share), "MB", mb);
            findings.add(format!("{policy}, cache {:.0} % of M: hit rate", 100.0 * share), "%", rate);
            moved_points.push((100.0 * share, mb));
            rate_points.push((100.0 * share, rate));
        }
        moved.push(Curve::ours(policy.to_string(), colour, moved_points));
        rates.push(Curve::ours(policy.to_string(), colour, rate_points));
    }
    // In the paper VFB moves the least.
    let total = |policy: usize| moved[policy].points.iter().map(|&(_, mb)| mb).sum::<f64>();
    findings.add("VFB: moved, over Qtf, mean over the sizes", "x", total(2) / total(0));
    findings.add("VFB: moved, over QtfDf, mean over the sizes", "x", total(2) / total(1));
    let x = "cache (% of M)";
    let title = "Megabytes moved for the measured half (Wang et al., figure 7)";
    findings.chart(Chart::new("moved", title, [x, "MB"], moved));
    let title = "Lists found in the cache (Wang et al., figure 7)";
    findings.chart(Chart::new("hits", title, [x, "hit rate (%)"], rates));
    findings.note(format!(
        "M is {:.1} MB, {:.0} % of all lists. A list is a hit if the cache holds a beginning of it; a CPU looks up the rest.",
        memory as f64 / 1e6,
        100.0 * MEMORY_SHARE
    ));
    Ok(())
}
