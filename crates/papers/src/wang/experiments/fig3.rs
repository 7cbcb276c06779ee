//! Wang et al., figure 3: how many queries visit each part of the list that most queries name.

use super::charts::{chart, line};
use crate::wang::cache::{CACHE_BLOCK_LEN, Sizes};
use crate::wang::data::World;
use crate::{Context, ExperimentError, Findings};

/// Offsets in the list that rows are given for.
const OFFSETS: [f64; 6] = [0.0, 0.25, 0.5, 0.75, 0.9, 1.0];

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let world = World::of(context, &mut findings)?;
    let Some(list) = world.visits.most_named() else {
        return Err(ExperimentError::Input("no query of the training half names a list".into()));
    };
    let counts = world.visits.of_blocks(list);
    let named = f64::from(world.visits.named(list));
    let at = |offset: f64| f64::from(counts[((counts.len() - 1) as f64 * offset) as usize]);
    findings.compare("postings of the list", "postings", None, f64::from(world.lists.len(list)));
    findings.compare("queries that name it", "queries", None, named);
    for offset in OFFSETS {
        findings.compare(
            format!("visits at offset {offset}, of the queries that name it"),
            "%",
            None,
            100.0 * at(offset) / named,
        );
    }
    // Where half of all that is lost along the list is lost last: a sharp drop near the end lies in a short part of it.
    let drop = at(0.0) - at(1.0);
    let mid = counts.partition_point(|&count| f64::from(count) > at(1.0) + drop / 2.0);
    findings.compare(
        "offset at which half of the drop is behind",
        "of the list",
        None,
        mid as f64 / counts.len() as f64,
    );
    let tail = at(0.9) - at(1.0);
    findings.compare("of the drop, in the last tenth of the list", "%", None, 100.0 * tail / drop.max(1.0));
    let points = (0..counts.len()).map(|block| {
        let offset = if counts.len() > 1 { block as f64 / (counts.len() - 1) as f64 } else { 0.0 };
        (offset, f64::from(counts[block]))
    });
    let lines = vec![line("queries that visit", 0, points.collect())];
    let (x, y) = ("offset proportion in the list", "queries that visit");
    findings.chart(chart("visits", "Visits along the most queried list", 3, x, y, lines));
    findings.note(format!(
        "Blocks of {CACHE_BLOCK_LEN} postings. The paper's text gives no numbers for this figure: a sharp drop towards \
         the list's end, which early termination explains. A query visits a block of a list if a document behind the \
         block's first is in all of the query's shorter lists and in this one, and is reached."
    ));
    Ok(findings)
}
