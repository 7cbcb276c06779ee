//! Wang et al., figure 3: queries that visit each part of the most queried list.

use crate::findings::{Chart, Curve};
use crate::wang::cache::sizes::Sizes;
use crate::wang::cache::visits::CACHE_BLOCK_LEN;
use crate::wang::data::ExperimentData;
use crate::{Context, ExperimentError, Findings, PageRank, Result};

/// Offsets in the list with a row each.
const OFFSETS: [f64; 6] = [0.0, 0.25, 0.5, 0.75, 0.9, 1.0];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let data = ExperimentData::of(context, findings)?;
    let mut curves = vec![Curve::ours("queries that visit", 0, visits_along(&data, findings)?)];
    if context.page_rank == PageRank::Drawn {
        // The law of PageRank decides where queries end, and the paper does not give it.
        findings.section("uniform PageRank");
        let uniform = ExperimentData::make_with(context, PageRank::Uniform)?;
        curves.push(Curve::ours("uniform PageRank", 1, visits_along(&uniform, findings)?));
        findings.section("");
    }
    let title = "Visits along the most queried list (Wang et al., figure 3)";
    findings.chart(Chart::new("visits", title, ["offset proportion in the list", "queries that visit"], curves));
    findings.note(format!(
        "Blocks of {CACHE_BLOCK_LEN} postings. A query visits a block of a list if it reaches a document behind the block's first \
         that is in this list and in all of its shorter ones."
    ));
    Ok(())
}

/// Adds rows about the most queried list; returns the visits of each block by its offset.
fn visits_along(data: &ExperimentData, findings: &mut Findings) -> Result<Vec<(f64, f64)>> {
    let Some(list) = data.visits.most_named() else {
        return Err(ExperimentError::Input("no query of the training half names a list".into()));
    };
    let counts = data.visits.of_blocks(list);
    let named = f64::from(data.visits.named(list));
    let at = |offset: f64| f64::from(counts[((counts.len() - 1) as f64 * offset) as usize]);
    findings.add("postings of the list", "postings", f64::from(data.lists.len(list)));
    findings.add("queries that name it", "queries", named);
    for offset in OFFSETS {
        let name = format!("visits at offset {offset}, of the queries that name it");
        findings.add(name, "%", 100.0 * at(offset) / named);
    }
    // A sharp drop near the end puts the second half of all losses into a short part of the list.
    let drop = at(0.0) - at(1.0);
    let mid = counts.partition_point(|&count| f64::from(count) > at(1.0) + drop / 2.0);
    let share = mid as f64 / counts.len() as f64;
    findings.add("offset at which half of the drop is behind", "of the list", share);
    let tail = at(0.9) - at(1.0);
    findings.add("of the drop, in the last tenth of the list", "%", 100.0 * tail / drop.max(1.0));
    let points = (0..counts.len()).map(|block| {
        let offset = if counts.len() > 1 { block as f64 / (counts.len() - 1) as f64 } else { 0.0 };
        (offset, f64::from(counts[block]))
    });
    Ok(points.collect())
}
