//! Huang et al., figure 4: distribution of query lengths, in blocks of 64.
//!
//! The paper's collection has 25.2 million documents, and lists grow with the collection. The paper's lengths are therefore
//! also scaled to the size of ours.

use super::bench::QUERIES;
use crate::context::GOV2_DOCS;
use crate::findings::{Chart, Curve};
use crate::huang::ranges::index::num_blocks;
use crate::{Context, Findings, Result};

/// Lengths in blocks, with the paper's shares.
const LENGTHS: [(u64, Option<f64>); 6] =
    [(10_000, None), (20_000, None), (30_000, None), (50_000, Some(81.0)), (100_000, None), (200_000, None)];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let input = context.input(GOV2_DOCS, 20 * QUERIES, findings)?;
    let mut blocks: Vec<u64> = input.queries.iter().map(num_blocks).collect();
    blocks.sort_unstable();
    let share_below =
        |length: f64| 100.0 * blocks.partition_point(|&b| (b as f64) < length) as f64 / blocks.len() as f64;
    let size = f64::from(input.index.num_docs()) / f64::from(GOV2_DOCS);
    for (length, papers) in LENGTHS {
        findings.compare(format!("below {length} blocks"), "%", papers, share_below(length as f64));
    }
    for (length, papers) in LENGTHS {
        let scaled = length as f64 * size;
        let name = format!("below {scaled:.0} blocks: {length} in a collection of this size");
        findings.compare(name, "%", papers, share_below(scaled));
    }
    let quantile = |share: f64| blocks[((blocks.len() - 1) as f64 * share) as usize] as f64;
    for share in [50, 90, 99, 100] {
        let name = format!("blocks that {share} % of the queries do not exceed");
        findings.add(name, "blocks", quantile(f64::from(share) / 100.0));
    }
    let points = (0..=100).map(|percent| (quantile(f64::from(percent) / 100.0), f64::from(percent)));
    let curves =
        [Curve::ours("queries", 0, points.collect()), Curve::papers("below 50,000", 1, vec![(50_000.0, 81.0)])];
    let labels = ["blocks of 64 in a query's lists", "% of the queries, at most"];
    findings.chart(Chart::new("share", "Queries by length (Huang et al., figure 4)", labels, curves).log_x());
    findings.note(format!("{} queries. Needs no GPU.", blocks.len()));
    Ok(())
}
