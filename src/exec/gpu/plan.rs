//! What is decided about a query before the GPU sees it: its bounds, the threshold it starts with, and which lists
//! drive.

use super::accepted::check;
use super::arguments::{DriverEntry, LoneArgument, QueryEntry, SCORE_BINS, SLACK_PARTS, TermEntry};
use super::lists::DeviceLists;
use crate::exec::ExecError;
use crate::index::BLOCK_LEN;
use crate::query::{Mode, Query};

/// As `BOUND_SLACK` in tandem.cuh: what a bound is multiplied by before it is compared.
const BOUND_SLACK: f32 = 1.0 + 1.0 / SLACK_PARTS as f32;
/// Looking a document up costs about as much as two postings cost `score_union`, ...
const POSTINGS_A_LOOKUP: f64 = 2.0;
/// ... and so many documents of a tile, which is cleared and looked through, about as much as one.
const DOCS_A_POSTING: f64 = 8.0;
/// Blocks that a warp goes through at most: where most of their postings are looked up elsewhere, and where few are.
const DENSE_BLOCKS: u32 = 4;
const SPARSE_BLOCKS: u32 = 16;
/// Four warps share a block as long as so many times the warps that the machine holds are enough for it.
const SHARED_WAVES: u32 = 2;

/// A query, ready for the kernels.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) query: QueryEntry,
    /// In the order in which scores are added.
    pub(super) terms: Vec<TermEntry>,
    /// How many of the terms drive for OR: the first ones.
    num_drivers: usize,
    pub(super) mode: Mode,
    /// Whether so many documents would be looked up that going through all lists is cheaper.
    pub(super) by_tiles: bool,
}

impl Plan {
    /// Prepares a query. What is planned for one without terms must not be run.
    pub(super) fn new(lists: &DeviceLists, query: &Query, mode: Mode, k: usize) -> Result<Self, ExecError> {
        check(query, k)?;
        let mut seed = 0.0_f32;
        let mut terms = Vec::with_capacity(query.terms.len());
        for term in &query.terms {
            let entry = lists.term(term);
            if (mode != Mode::And || query.terms.len() == 1) && entry.doc_freq as usize >= k && entry.rest > seed {
                seed = seed.max(lists.kth_score(term, entry.weight, k));
            }
            terms.push(entry);
        }
        Ok(Self::of_terms(terms, seed, lists.host.num_docs(), mode, k))
    }

    /// A plan for terms that hold their own bounds, and a score that `k` documents are known to reach.
    fn of_terms(mut terms: Vec<TermEntry>, seed: f32, num_docs: u32, mode: Mode, k: usize) -> Self {
        // One list alone: its union is its intersection.
        let mode = if terms.len() == 1 { Mode::Or } else { mode };
        let bounds: Vec<f32> = terms.iter().map(|term| term.rest).collect();
        for t in (0..terms.len().saturating_sub(1)).rev() {
            terms[t].rest += terms[t + 1].rest;
        }
        let total = terms.first().map_or(0.0, |term| term.rest);
        let bins =
            |from: f32| SCORE_BINS as f32 / (total * BOUND_SLACK - from).max(total * 1e-3).max(f32::MIN_POSITIVE);
        let query = QueryEntry {
            first_term: 0,
            num_terms: terms.len() as u32,
            k: k as u32,
            seed,
            bins_per_score: bins(seed),
            bins_per_bound: bins(0.0),
        };
        let num_drivers = terms.iter().take_while(|term| term.rest * BOUND_SLACK >= seed).count();
        let mut plan = Self { query, terms, num_drivers, mode, by_tiles: false };
        plan.by_tiles = mode != Mode::And && plan.lookups(&bounds) * POSTINGS_A_LOOKUP > plan.tile_work(num_docs);
        plan
    }

    /// About how often a document is looked up in a list.
    fn lookups(&self, bounds: &[f32]) -> f64 {
        let others = |t: usize| (self.terms.len() - 1 - t) as f64;
        let lookups = |t: usize| f64::from(self.terms[t].doc_freq) * f64::from(self.share(t, bounds[t])) * others(t);
        (0..self.num_drivers).map(lookups).sum()
    }

    /// About which share of a driver's postings is looked up: all, if what comes after it alone can reach the
    /// threshold.
    fn share(&self, t: usize, bound: f32) -> f32 {
        ((self.terms[t].rest - self.query.seed) / bound.max(f32::MIN_POSITIVE)).clamp(0.0, 1.0)
    }

    /// What `score_union` would do, in postings.
    fn tile_work(&self, num_docs: u32) -> f64 {
        let postings: f64 = self.terms.iter().map(|term| f64::from(term.doc_freq)).sum();
        postings + f64::from(num_docs) / DOCS_A_POSTING
    }

    /// How many lists drive.
    pub(super) fn num_drivers(&self, needs_all: bool) -> usize {
        if needs_all { 1 } else { self.num_drivers }
    }

    /// The blocks of all lists that may drive.
    pub(super) fn driven_blocks(&self) -> u64 {
        let most = self.num_drivers(false).max(self.num_drivers(true)).min(self.terms.len());
        (0..most).map(|t| u64::from(self.num_blocks(t))).sum()
    }

    /// The blocks of term `t`.
    pub(super) fn num_blocks(&self, t: usize) -> u32 {
        self.terms[t].doc_freq.div_ceil(BLOCK_LEN as u32)
    }

    /// Whether every posting of term `t` may have to be looked up: what comes after it can reach the threshold alone.
    fn all_enter(&self, t: usize, needs_all: bool) -> bool {
        needs_all || self.terms.get(t + 1).map_or(0.0, |next| next.rest) >= self.query.seed
    }

    /// The query, of at most `TERMS` terms, as it is passed alone, for `warps` that the machine holds; and the items in
    /// it.
    pub(super) fn alone<const TERMS: usize>(&self, needs_all: bool, warps: u32) -> (LoneArgument<TERMS>, u32) {
        let mut lone = LoneArgument { query: self.query, ..LoneArgument::default() };
        lone.terms[..self.terms.len()].copy_from_slice(&self.terms);
        let drivers = 0..self.num_drivers(needs_all);
        let sizes = ItemSizes::new(std::slice::from_ref(self), needs_all, warps);
        let mut num_items = 0;
        for (t, driver) in lone.drivers[..drivers.end].iter_mut().enumerate() {
            let blocks_an_item = sizes.of(self, t, needs_all);
            *driver = DriverEntry { query: 0, term: t as u32, first_item: num_items, blocks_an_item };
            num_items += num_items_of(self.num_blocks(t), blocks_an_item);
        }
        (lone, num_items)
    }
}

/// How many blocks a warp goes through, in the lists of a launch: as few as keep all warps of the machine busy. A
/// warp scores 32 postings at a time, so that most of the time of a launch of few blocks would be that of the warp
/// with most postings.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemSizes {
    /// So many first terms of each query have blocks that four warps share: those whose postings are likely to be
    /// scored.
    shared_terms: usize,
    /// For other terms: where every posting may be looked up, ...
    dense: u32,
    /// ... and where most are dismissed by their impact.
    sparse: u32,
}

impl ItemSizes {
    /// Sizes for a launch of these queries on a machine that holds `warps` at once.
    pub(super) fn new(plans: &[Plan], needs_all: bool, warps: u32) -> Self {
        let num_terms = plans.iter().map(|plan| plan.num_drivers(needs_all)).max().unwrap_or(0);
        let mut left = u64::from(SHARED_WAVES * warps / 4);
        let mut shared_terms = 0;
        let mut blocks = [0_u64; 2];
        for t in 0..num_terms {
            let mut blocks_of_term = [0_u64; 2];
            for plan in plans.iter().filter(|plan| t < plan.num_drivers(needs_all)) {
                blocks_of_term[usize::from(plan.all_enter(t, needs_all))] += u64::from(plan.num_blocks(t));
            }
            let sum = blocks_of_term[0] + blocks_of_term[1];
            if shared_terms == t && sum <= left {
                shared_terms += 1;
                left -= sum;
            } else {
                blocks[0] += blocks_of_term[0];
                blocks[1] += blocks_of_term[1];
            }
        }
        let a_warp = |blocks: u64, most: u32| blocks.div_ceil(u64::from(warps)).clamp(1, u64::from(most)) as u32;
        Self { shared_terms, dense: a_warp(blocks[1], DENSE_BLOCKS), sparse: a_warp(blocks[0], SPARSE_BLOCKS) }
    }

    /// How many blocks of term `t` of a query a warp goes through; 0 where four warps share a block.
    pub(super) fn of(self, plan: &Plan, t: usize, needs_all: bool) -> u32 {
        match t {
            t if t < self.shared_terms => 0,
            t if plan.all_enter(t, needs_all) => self.dense,
            _ => self.sparse,
        }
    }
}

/// The items that blocks are shared out to.
pub(super) fn num_items_of(num_blocks: u32, blocks_an_item: u32) -> u32 {
    if blocks_an_item == 0 { 4 * num_blocks } else { num_blocks.div_ceil(blocks_an_item) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::arguments::FEW_TERMS;
    use super::*;

    /// A plan for lists of these lengths and bounds.
    pub(in crate::exec::gpu) fn plan(lists: &[(u32, f32)], seed: f32, mode: Mode) -> Plan {
        let entry = |&(doc_freq, rest): &(u32, f32)| TermEntry { doc_freq, rest, ..TermEntry::default() };
        Plan::of_terms(lists.iter().map(entry).collect(), seed, 1_000_000, mode, 10)
    }

    #[test]
    fn gpu_plan_drives_by_the_lists_that_can_reach_the_seed_with_those_after_them() {
        let lists = [(1000, 6.0), (50_000, 4.0), (300_000, 1.5), (400_000, 1.0)];
        for (seed, drivers) in [(0.0, 4), (0.9, 4), (1.1, 3), (2.4, 3), (2.6, 2), (6.4, 2), (6.6, 1)] {
            let plan = plan(&lists, seed, Mode::Or);
            assert_eq!((plan.num_drivers(false), plan.num_drivers(true)), (drivers, 1), "seed {seed}");
            assert_eq!(plan.terms[0].rest, 12.5);
            // The last bin holds the best score that there can be.
            assert!((12.5 - seed) * plan.query.bins_per_score <= SCORE_BINS as f32);
        }
    }

    #[test]
    fn gpu_plan_of_one_term_is_a_union_in_any_mode() {
        for mode in Mode::ALL {
            let plan = plan(&[(500, 2.0)], 1.0, mode);
            assert_eq!((plan.mode, plan.num_drivers(false), plan.by_tiles), (Mode::Or, 1, false));
        }
    }

    #[test]
    fn gpu_plan_counts_the_blocks_that_drive() {
        // The second list may drive for OR, the first one always does for AND; a query of no list has none.
        assert_eq!(plan(&[(500, 2.0), (1000, 1.0)], 0.5, Mode::AndOr).driven_blocks(), 4 + 8);
        assert_eq!(plan(&[(500, 2.0), (1000, 1.0)], 1.5, Mode::AndOr).driven_blocks(), 4);
        assert_eq!(plan(&[(500, 2.0), (1000, 1.0)], 9.0, Mode::And).driven_blocks(), 4);
        assert_eq!(plan(&[], 0.0, Mode::Or).driven_blocks(), 0);
    }

    #[test]
    fn gpu_plan_goes_through_all_lists_where_all_would_be_looked_up() {
        let alike = [(400_000, 1.0); 12];
        assert!(plan(&alike, 1.0, Mode::Or).by_tiles);
        assert!(!plan(&alike, 1.0, Mode::And).by_tiles);
        assert!(!plan(&alike[..2], 1.8, Mode::Or).by_tiles);
    }

    #[test]
    fn gpu_plan_shares_all_blocks_out() {
        let lists = [(1000, 6.0), (50_001, 4.0), (300_000, 1.5)];
        for warps in [1, 10, 100, 10_000] {
            for (seed, needs_all) in [(0.0, false), (2.0, false), (7.0, false), (0.0, true)] {
                let plan = plan(&lists, seed, Mode::AndOr);
                let (lone, num_items) = plan.alone::<FEW_TERMS>(needs_all, warps);
                let drivers = &lone.drivers[..plan.num_drivers(needs_all)];
                let ends = drivers.iter().skip(1).map(|driver| driver.first_item).chain([num_items]);
                for (t, (driver, end)) in drivers.iter().zip(ends).enumerate() {
                    assert_eq!(driver.term as usize, t);
                    let items = end - driver.first_item;
                    let blocks = lists[t].0.div_ceil(BLOCK_LEN as u32);
                    match driver.blocks_an_item {
                        0 => assert_eq!(items, 4 * blocks),
                        each => assert!(items * each >= blocks && (items - 1) * each < blocks),
                    }
                }
            }
        }
    }
}
