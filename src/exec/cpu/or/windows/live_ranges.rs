//! Live ranges: Block-Max MaxScore that looks at the most promising windows first.
//!
//! The sooner the threshold is high, the more is skipped. The windows with the greatest sums of bounds are the likeliest
//! to hold the best documents; a few of them are scored first, then the others in the order of documents, which
//! keeps a block that spans several windows decoded. Windows scored once are not scored again; those that the threshold
//! has passed are skipped.
//!
//! Documents are then not offered in ascending order, so that one with a score equal to the k-th best must still be
//! offered: it may be the smaller of the two (see `Threshold::new`).
//!
//! Source: Mallia, Siedlaczek and Suel, "Fast Disjunctive Candidate Generation Using Live Block Filtering", WSDM 2021;
//! Mackenzie, Petri and Moffat, "Anytime Ranking on Document-Ordered Indexes", TOIS 2021 (ranges by descending bound).

use super::max_score::WindowSearch;
use super::table::WindowTable;

/// So many windows are scored before the sweep.
const FIRST_WINDOWS: usize = 4;

/// Offers every document that can enter.
pub(crate) fn search(search: &mut WindowSearch<'_>, table: &mut WindowTable) {
    let Some(last) = search.run_leads() else { return };
    table.fill(search.terms, last.first_term, search.docs.clone(), last.window_docs);
    let mut first = [usize::MAX; FIRST_WINDOWS];
    if table.len() > 2 * FIRST_WINDOWS {
        most_promising(table, &mut first);
        for &window in &first {
            search.score(&table.window(window));
        }
    }
    for window in 0..table.len() {
        if table.sum(window) > search.threshold.pruning() && !first.contains(&window) {
            search.score(&table.window(window));
        }
    }
}

/// The windows with the greatest sums, greatest first; there must be as many.
fn most_promising(table: &WindowTable, first: &mut [usize; FIRST_WINDOWS]) {
    let mut sums = [f32::NEG_INFINITY; FIRST_WINDOWS];
    for window in 0..table.len() {
        let sum = table.sum(window);
        if sum > sums[FIRST_WINDOWS - 1] {
            let place = sums.partition_point(|&other| other >= sum);
            sums[place..].rotate_right(1);
            first[place..].rotate_right(1);
            sums[place] = sum;
            first[place] = window;
        }
    }
}
