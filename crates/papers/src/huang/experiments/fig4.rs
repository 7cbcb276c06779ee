//! Huang et al., figure 4: what share of queries is how long, in blocks of 64.
//!
//! The paper's collection has 25.2 million documents. Lists grow with the collection, so each of its lengths is also asked
//! for in proportion to ours.

use crate::huang::experiments::{GOV2_DOCS, QUERIES};
use crate::huang::ranges::index::num_blocks;
use crate::{Chart, Context, ExperimentError, Findings, Line};

/// Lengths that are asked for, in blocks; of 50,000 the paper tells the share.
const LENGTHS: [(u64, Option<f64>); 6] =
    [(10_000, None), (20_000, None), (30_000, None), (50_000, Some(81.0)), (100_000, None), (200_000, None)];

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let input = context.input(GOV2_DOCS, 20 * QUERIES)?;
    let mut findings = Findings::default();
    findings.provenance("input", &input.name);
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
        findings.compare(
            format!("below {scaled:.0} blocks: {length} in a collection of this size"),
            "%",
            papers,
            share_below(scaled),
        );
    }
    let quantile = |share: f64| blocks[((blocks.len() - 1) as f64 * share) as usize] as f64;
    for share in [50, 90, 99, 100] {
        findings.compare(
            format!("blocks that {share} % of the queries do not exceed"),
            "blocks",
            None,
            quantile(f64::from(share) / 100.0),
        );
    }
    let points = (0..=100).map(|percent| (quantile(f64::from(percent) / 100.0), f64::from(percent)));
    findings.chart(Chart {
        stem: "share".to_owned(),
        title: String::from("Queries by length (Huang et al., figure 4)"),
        x_label: String::from("blocks of 64 in a query's lists"),
        y_label: String::from("% of the queries, at most"),
        is_x_log: true,
        is_y_log: false,
        lines: vec![
            Line { name: String::from("queries"), is_papers: false, colour: 0, points: points.collect() },
            Line { name: String::from("below 50,000"), is_papers: true, colour: 1, points: vec![(50_000.0, 81.0)] },
        ],
    });
    findings.note(format!("{} queries. Needs no GPU.", blocks.len()));
    Ok(findings)
}
