//! Wang et al., section 5: a dynamic cache against the static ones of figure 7, counted without a GPU.
//!
//! Both halves of the log pass through the dynamic caches; the second half counts, as for the static ones. A dynamic cache of blocks moves
//! the blocks that a query visits, which VFB, whose batches move whole lists, cannot know; a cache of whole lists is given as well. As in
//! figure 7, a batch moves a list once.

use super::bench::usual_policies;
use crate::findings::{Chart, Curve};
use crate::wang::cache::dynamic::{DynamicCache, Replayed};
use crate::wang::cache::visits::CACHE_BLOCK_LEN;
use crate::wang::data::{ExperimentData, MEMORY_SHARE, depths};
use crate::wang::train_test_split::RankedQuery;
use crate::{Context, Findings, Result};

const CACHE_SHARES: [f64; 6] = [0.1, 0.3, 0.5, 0.7, 0.9, 0.95];
/// Dynamic caches with the postings of their blocks.
const DYNAMIC: [(&str, u32); 2] = [("dynamic blocks", CACHE_BLOCK_LEN), ("dynamic lists", u32::MAX)];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let data = ExperimentData::of(context, findings)?;
    let memory = data.share_bytes(MEMORY_SHARE);
    let halves = [&data.train, &data.test].map(|half| depths(&data.ranker(), &data.lists, half, data.k));
    let mut curves = Vec::new();
    for policy in usual_policies() {
        let admission = data.admission(policy)?;
        let mut points = Vec::new();
        for share in CACHE_SHARES {
            let cache_bytes = (memory as f64 * share) as u64;
            let trace = data.trace(&admission.within(cache_bytes, &data.lists), memory - cache_bytes)?;
            let found = (trace.list_bytes, trace.hit_rate());
            points.push(add(&policy.to_string(), share, found, findings));
        }
        curves.push(Curve::ours(policy.to_string(), curves.len(), points));
    }
    for (name, block_len) in DYNAMIC {
        let mut points = Vec::new();
        for share in CACHE_SHARES {
            let cache_bytes = (memory as f64 * share) as u64;
            let counts = replay(&data, &halves, (cache_bytes, memory - cache_bytes), block_len);
            let rate = counts.hits as f64 / counts.requests.max(1) as f64;
            points.push(add(name, share, (counts.moved_bytes, rate), findings));
        }
        curves.push(Curve::ours(name, curves.len(), points));
    }
    let title = "Megabytes moved, static and dynamic (Wang et al., section 5)";
    findings.chart(Chart::new("moved", title, ["cache (% of M)", "MB"], curves));
    Ok(())
}

/// Adds both numbers of a cache; returns a point of its curve.
fn add(name: &str, share: f64, (bytes, hit_rate): (u64, f64), findings: &mut Findings) -> (f64, f64) {
    let (percent, mb) = (100.0 * share, bytes as f64 / 1e6);
    findings.add(format!("{name}, cache {percent:.0} % of M: moved"), "MB", mb);
    findings.add(format!("{name}, cache {percent:.0} % of M: hit rate"), "%", 100.0 * hit_rate);
    (percent, mb)
}

/// Counts the second half of a log, after the first has filled the cache.
fn replay(
    data: &ExperimentData,
    halves: &[Vec<Vec<u32>>; 2],
    (cache_bytes, buffer_bytes): (u64, u64),
    block_len: u32,
) -> Replayed {
    let mut cache = DynamicCache::new(&data.lists, cache_bytes, buffer_bytes, block_len);
    let mut counts = Replayed::default();
    let logs: [&[RankedQuery]; 2] = [&data.train, &data.test];
    for (log, depths) in logs.into_iter().zip(halves) {
        counts = Replayed::default();
        for (query, depths) in log.iter().zip(depths) {
            for (&list, &depth) in query.lists.iter().zip(depths) {
                cache.read(list, depth.max(1), &mut counts);
            }
        }
    }
    counts
}
