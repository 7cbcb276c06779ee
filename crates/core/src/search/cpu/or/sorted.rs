//! WAND and Block-Max WAND for queries of more than 64 terms, with cursors sorted by their documents.
//!
//! Comparing all terms with all (`pivot.rs`) takes quadratic time. With hundreds of terms sorting is cheaper, as in the
//! original algorithms. Bounds are added in sorted order until they exceed the threshold; the document reached is the
//! pivot.
//!
//! ```text
//! sorted by document   a 12   f 12   c 47   b 90   e 90   d 150         threshold 6.0
//! sums of bounds       1.9    2.2    5.3    9.3                         pivot 90; members: a, f, c, b, e
//! ```
//!
//! Only the pivot is settled: its members move to it in the query's order until the shares found and the remaining
//! bounds cannot exceed the threshold. Moved terms are sorted again.
//!
//! Sources: see `wand.rs` and `block_max_wand.rs`.

use super::block_max_wand::ShallowBlock;
use crate::search::TopK;
use crate::search::cpu::blocks::cursor::{Cursor, END};
use crate::search::cpu::blocks::term::{SearchScope, Term};
use crate::search::cpu::scoring::threshold::{Slack, Threshold};

/// Offers every document of the scope that can enter, in ascending order. `with_blocks` adds the bounds of blocks. Each
/// term has a cursor before its list.
pub(crate) fn search(
    SearchScope { terms, start, end, norms }: SearchScope<'_>,
    with_blocks: bool,
    cursors: &mut [Cursor],
    threshold: &mut Threshold,
    best: &mut TopK,
) {
    let slack = Slack::of(terms.len());
    let mut blocks = vec![ShallowBlock::default(); if with_blocks { terms.len() } else { 0 }];
    // Lower bounds of the terms' next documents, and the terms sorted by them.
    let mut next_docs = vec![start; terms.len()];
    let mut order: Vec<u16> = (0..terms.len() as u16).collect();
    let mut members = Vec::with_capacity(terms.len());
    let mut shares = vec![0.0; terms.len()];
    loop {
        let Some(num_members) = find_members(&order, &next_docs, terms, slack, threshold) else { return };
        let pivot = next_docs[usize::from(order[num_members - 1])];
        if pivot >= end {
            return;
        }
        members.clear();
        members.extend(order[..num_members].iter().map(|&t| usize::from(t)));
        members.sort_unstable();
        let mut sum = 0.0;
        for &t in &members {
            shares[t] = if with_blocks { blocks[t].bound_at(&terms[t], pivot) } else { terms[t].bound };
            sum += shares[t];
        }
        let mut bound = slack.bound_of_sum(sum);
        if with_blocks && bound <= threshold.pruning() {
            // No document before the first end of these blocks can enter, nor before the next document of another term.
            let others = order.get(num_members).map_or(END, |&t| next_docs[usize::from(t)]);
            let limit = members.iter().fold(others, |limit, &t| limit.min(blocks[t].next_doc));
            members.iter().for_each(|&t| next_docs[t] = limit);
        } else {
            for &t in &members {
                let mut at = cursors[t].seek(&terms[t], pivot);
                let mut share = 0.0;
                if at == pivot {
                    share = cursors[t].share(&terms[t], norms);
                    at = cursors[t].step();
                }
                next_docs[t] = at;
                bound += share - shares[t];
                shares[t] = share;
                if bound <= threshold.pruning() {
                    break;
                }
            }
            if bound > threshold.pruning() {
                let score = members.iter().fold(0.0, |score, &t| score + shares[t]);
                threshold.offer(pivot, score, best);
            }
        }
        // Unmoved terms are still a sorted run, which a merge sort exploits.
        order.sort_by_key(|&t| next_docs[usize::from(t)]);
    }
}

/// The number of terms, in sorted order, that may have the pivot. `None` if there is no pivot.
fn find_members(
    order: &[u16],
    next_docs: &[u32],
    terms: &[Term<'_>],
    slack: Slack,
    threshold: &Threshold,
) -> Option<usize> {
    let mut sum = 0.0;
    let reached = order.iter().position(|&t| {
        sum += terms[usize::from(t)].bound;
        slack.bound_of_sum(sum) > threshold.pruning()
    })?;
    let pivot = next_docs[usize::from(order[reached])];
    Some(reached + order[reached..].partition_point(|&t| next_docs[usize::from(t)] <= pivot))
}
