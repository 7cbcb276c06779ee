//! What of a part of an index near a GPU is worth: counted, not timed, from the lists and queries alone.
//!
//! The reads that a query is expected to do ([`query_reads`]) are near or far under three orders of blocks: one learned from
//! a log beforehand, one that follows the queries ([`cache::Residency`](crate::cache::Residency), by the executor's own rules), and one learned from the very
//! queries that are counted, which nobody has beforehand.

use std::sync::Arc;

use crate::cache::{AtOnce, Followed, ListSize, OnlineOptions, OnlineTier, ReadRates, Reads, Residency as Played};
use crate::exec::{DeviceRows, block_reads, learned_reads, query_reads};
use crate::index::Index;
use crate::query::Query;

/// What is far with such a share of pages near.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residency {
    /// The share of all pages that is near.
    pub near_share: f64,
    /// Of the reads of all queries, those that are far: learned from the log,
    pub learned: f64,
    /// following the queries, over all of them,
    pub online: f64,
    /// and over the last quarter of them, from a batch's beginning on,
    pub online_last: f64,
    /// and learned from the queries themselves.
    pub told: f64,
    /// Of the last quarter's reads, those that are far, learned from the log.
    pub learned_last: f64,
    /// Pages that came,
    pub moved_pages: u64,
    /// in so many epochs,
    pub epochs: u64,
    /// which took so long to decide, in milliseconds each.
    pub decide_ms: f64,
}

/// Counts `queries`, learned from `log`, with such shares of all pages near; `rates` tell what they read. They come in batches of so many, each of which sees one
/// map; what an epoch asks for is [done by the next batch](AtOnce).
///
/// # Panics
/// If batches are to have no queries.
#[must_use]
pub fn count_residency(
    index: &Index,
    (rows, rates): (&DeviceRows, &ReadRates),
    log: &[Query],
    queries: &[Query],
    near_shares: &[f64],
    options: OnlineOptions,
    batch_queries: usize,
) -> Vec<Residency> {
    let sizes = rows.list_sizes(index);
    let order_of = |log| learned_reads(log, rates).order(&sizes);
    let (learned, told) = (order_of(log), order_of(queries));
    let (order_learned, order_told) = (ListOrder::new(&learned, &sizes), ListOrder::new(&told, &sizes));
    let reads = block_reads(log, rates);
    let pages = Arc::new(rows.pages(index, &learned, options.page_rows));
    let tier_of = |near_share: f64| {
        let num_frames = (f64::from(pages.num_pages()) * near_share) as u32;
        let mut tier = OnlineTier::new(Arc::clone(&pages), sizes.len(), num_frames, options);
        reads.iter().for_each(|(list, reads)| tier.record(list, reads));
        tier
    };
    let last_from = queries.len() - queries.len() / 4;
    let count = |&near_share: &f64| {
        let far = |order: &ListOrder, queries: &[Query]| order.far_share(queries, rates, near_share);
        let mut following = Played::new(tier_of(near_share));
        let (mut before_last, mut decide_ms) = (Reads::default(), 0.0);
        for (number, batch) in queries.chunks(batch_queries).enumerate() {
            let batch: Vec<&Query> = batch.iter().collect();
            if number * batch_queries <= last_from {
                before_last = following.followed().reads;
            }
            let (epochs, began) = (following.followed().epochs, std::time::Instant::now());
            let map = following.start(&batch, |query| query_reads(query, rates), &mut AtOnce);
            decide_ms += if following.followed().epochs > epochs { began.elapsed().as_secs_f64() * 1e3 } else { 0.0 };
            following.leave(map);
        }
        let Followed { reads, epochs, pages } = following.followed();
        let last = Reads { far: reads.far - before_last.far, all: reads.all - before_last.all };
        Residency {
            near_share,
            learned: far(&order_learned, queries),
            online: reads.far_share(),
            online_last: last.far_share(),
            told: far(&order_told, queries),
            learned_last: far(&order_learned, &queries[last_from..]),
            moved_pages: pages,
            epochs,
            decide_ms: decide_ms / epochs.max(1) as f64,
        }
    };
    near_shares.iter().map(count).collect()
}

/// Lists, those first whose rows are expected to be read most: what stays near where nothing follows the queries.
struct ListOrder {
    /// By list: where its rows begin, and how many there are.
    rows: Vec<(u64, u64)>,
    num_rows: u64,
}

impl ListOrder {
    fn new(order: &[u32], sizes: &[ListSize]) -> Self {
        let (mut placed, mut num_rows) = (vec![(0, 0); sizes.len()], 0);
        for &list in order {
            let ListSize { rows, .. } = sizes[list as usize];
            placed[list as usize] = (num_rows, rows);
            num_rows += rows;
        }
        Self { rows: placed, num_rows }
    }

    /// What share of the reads of queries is far with such a share of all rows near.
    fn far_share(&self, queries: &[Query], rates: &ReadRates, near_share: f64) -> f64 {
        let border = self.num_rows as f64 * near_share;
        let mut sum = Reads::default();
        for read in queries.iter().flat_map(|query| query_reads(query, rates)) {
            let (from, rows) = self.rows[read.list as usize];
            let near = ((border - from as f64) / rows.max(1) as f64).clamp(0.0, 1.0);
            sum += Reads { far: read.reads * (1.0 - near), all: read.reads };
        }
        sum.far_share()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::QueryId;

    #[test]
    fn reads_come_near_when_queries_turn_to_other_lists() {
        let list = |from: u32| (from..60_000).step_by(2).map(|doc| (doc, 1 + doc % 5)).collect();
        let lists: [(&str, Vec<(u32, u32)>); 4] = [("a", list(0)), ("b", list(1)), ("c", list(2)), ("d", list(3))];
        let index = Index::from_lists(&lists).unwrap();
        let rows = DeviceRows::new(&index);
        // Documents two apart take 8 bits, frequencies up to 5 three: 8 rows, a byte each 8, 3 more.
        assert_eq!(rows.rows(0), 8 + 8 + 3);
        let log = |terms: &[&str]| vec![Query::prepare(QueryId(0), "q", terms, &index).unwrap(); 64];
        let options = OnlineOptions { page_rows: 128, half_life_queries: 16, ..OnlineOptions::of_epochs(8) };
        let [found] = count_residency(
            &index,
            (&rows, &ReadRates::default()),
            &log(&["a", "b"]),
            &log(&["c", "d"]),
            &[0.5],
            options,
            1,
        )[..] else {
            panic!("one share was asked for");
        };
        // Half of the pages hold two of four lists: none of those that are asked for now, but for the page at the border.
        assert!(found.learned > 0.95 && found.told < 0.05, "{found:?}");
        assert!(found.online_last < 0.05 && found.online < 0.75 && found.moved_pages > 0, "{found:?}");
        assert_eq!(found.epochs, 8);
    }
}
