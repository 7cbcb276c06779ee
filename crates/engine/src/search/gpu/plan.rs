//! Planning of a query on the host: bounds, initial threshold, and driving lists.

use tandem_base::traffic::Mode;

use super::arguments::{MAX_K, MAX_TERMS, QueryEntry, SCORE_BINS, SLACK_PARTS, TermEntry};
use super::terms::{Rank, TermTable};
use crate::index::BLOCK_LEN;
use crate::query::Query;
use crate::search::{self, ExecError};

/// Factor of a bound before comparisons, `BOUND_SLACK` in tandem.cuh.
const BOUND_SLACK: f32 = 1.0 + 1.0 / SLACK_PARTS as f32;
/// The cost of a look-up in postings of `score_tiles`.
const POSTINGS_A_LOOKUP: f32 = 2.0;
/// The documents of a tile that cost as much as one posting, for clearing and reading.
const DOCS_A_POSTING: f32 = 8.0;

/// Checks a query and its `k` against the limits of the kernels. Fails with [`ExecError::BeyondGpu`] if only a CPU can
/// take it, else the errors of [`search::check`].
pub fn check(query: &Query, k: usize) -> Result<(), ExecError> {
    search::check(query, k)?;
    let within = |what, count, most, cpu_most| {
        if count <= most { Ok(()) } else { Err(ExecError::BeyondGpu { what, count, most, cpu_most }) }
    };
    within("k is", k, MAX_K, search::MAX_K)?;
    within("the number of the query's terms is", query.terms.len(), MAX_TERMS, Query::MAX_TERMS)
}

/// The pruning rules in use, all by default. Measurements switch some off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruning {
    /// Thresholds start from a score that `k` documents reach, instead of from 0.
    pub seeds: bool,
    /// Postings, blocks and tiles are skipped if their bounds do not reach the threshold. Otherwise a union scores
    /// every posting, and an intersection looks up its whole shortest list, where the bounds of single blocks still
    /// apply in the last look-up.
    pub bounds: bool,
}

impl Default for Pruning {
    fn default() -> Self {
        Self { seeds: true, bounds: true }
    }
}

/// A bound that excludes nothing: any sum with it exceeds every score.
const NO_BOUND: f32 = 1e30;

/// A query in the kernels' form. Its terms are stored elsewhere, in the order of addition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) query: QueryEntry,
    /// The number of driving terms for OR, which are the first ones.
    num_drivers: u32,
    /// The number of driving terms for OR of which every posting may need a look-up, since later terms alone can reach
    /// the threshold. They are the first ones too.
    num_dense: u32,
    /// Blocks of the driving lists of the union, or for AND of the first list.
    pub(crate) num_blocks: u64,
    pub(crate) mode: Mode,
    /// Whether scanning all lists is cheaper than the look-ups.
    pub(crate) by_tiles: bool,
    /// Whether no tile is skipped.
    pub(crate) scores_all: bool,
}

impl Plan {
    /// Plans a query and appends its terms to `terms`. The plan of a query without terms must not run.
    #[inline]
    pub(crate) fn new(
        table: &TermTable,
        query: &Query,
        mode: Mode,
        k: usize,
        pruning: Pruning,
        terms: &mut Vec<TermEntry>,
    ) -> Self {
        let first = terms.len();
        // Scores of single terms say nothing about documents with all of several terms.
        let holds = pruning.seeds && (mode != Mode::And || query.terms.len() == 1);
        let rank = if holds { Rank::for_k(k) } else { None };
        let mut seed = 0.0_f32;
        terms.extend(query.terms.iter().map(|term| {
            let (entry, reached) = table.entry_and_seed(term, rank);
            seed = if reached > seed { reached } else { seed };
            entry
        }));
        let terms = &mut terms[first..];
        let plan = Self::of_terms(terms, seed, table.num_docs, mode, k);
        if pruning.bounds { plan } else { plan.without_bounds(terms) }
    }

    /// Removes all bounds. A union then scores all of its lists by tiles.
    fn without_bounds(mut self, terms: &mut [TermEntry]) -> Self {
        match self.mode {
            Mode::And => terms.iter_mut().for_each(|term| term.rest = NO_BOUND),
            Mode::Or | Mode::AndOr => (self.by_tiles, self.scores_all) = (true, true),
        }
        self
    }

    /// A plan for terms with their own bounds in `rest`, which become suffix sums. `k` documents reach `seed`.
    fn of_terms(terms: &mut [TermEntry], seed: f32, num_docs: u32, mode: Mode, k: usize) -> Self {
        // The union and intersection of one list are equal.
        let mode = if terms.len() == 1 { Mode::Or } else { mode };
        let (mut total, mut num_drivers, mut num_dense, mut blocks) = (0.0, 0, 0, 0);
        let (mut lookups, mut postings) = (0.0, 0.0);
        for (later, term) in terms.iter_mut().rev().enumerate() {
            let own = term.rest.max(f32::MIN_POSITIVE);
            num_dense += u32::from(total >= seed);
            total += term.rest;
            term.rest = total;
            let doc_freq = term.doc_freq as f32;
            postings += doc_freq;
            // If a list drives, all earlier ones do: their bounds are larger.
            if total * BOUND_SLACK >= seed {
                num_drivers += 1;
                blocks += u64::from(num_blocks(term));
                lookups += doc_freq * ((total - seed) / own).clamp(0.0, 1.0) * later as f32;
            }
        }
        if num_drivers == 0 || mode == Mode::And {
            blocks = terms.first().map_or(0, |term| u64::from(num_blocks(term)));
        }
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
        let tile_work = postings + num_docs as f32 / DOCS_A_POSTING;
        let by_tiles = mode != Mode::And && terms.len() > 1 && lookups * POSTINGS_A_LOOKUP > tile_work;
        let num_drivers = num_drivers.max(u32::from(!terms.is_empty()));
        Self { query, num_drivers, num_dense, num_blocks: blocks, mode, by_tiles, scores_all: false }
    }

    /// Two shares of a driver's impact range: that of postings to look up in the next list, and that of postings that
    /// may reach the threshold even if the next list lacks them. Either is 1 if the terms behind suffice alone.
    #[inline]
    pub(crate) fn shares(&self, terms: &[TermEntry], t: usize, needs_all: bool) -> [f32; 2] {
        if needs_all {
            return [1.0, 0.0];
        }
        let rest = |t: usize| terms.get(t).map_or(0.0, |term| term.rest);
        let own = (rest(t) - rest(t + 1)).max(f32::MIN_POSITIVE);
        [rest(t + 1), rest(t + 2)].map(|others| ((own + others - self.query.seed) / own).clamp(0.0, 1.0))
    }

    #[inline]
    pub(crate) fn num_drivers(&self, needs_all: bool) -> usize {
        if needs_all { 1 } else { self.num_drivers as usize }
    }

    /// The number of driving terms of which every posting may need a look-up.
    #[inline]
    pub(crate) fn num_dense(&self, needs_all: bool) -> usize {
        if needs_all { 1 } else { self.num_dense as usize }
    }
}

#[inline]
pub(crate) fn num_blocks(term: &TermEntry) -> u32 {
    term.doc_freq.div_ceil(BLOCK_LEN as u32)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan(lists: &[(u32, f32)], seed: f32, mode: Mode) -> (Plan, Vec<TermEntry>) {
        let entry = |&(doc_freq, rest): &(u32, f32)| TermEntry { doc_freq, rest, ..TermEntry::default() };
        let mut terms: Vec<_> = lists.iter().map(entry).collect();
        let plan = Plan::of_terms(&mut terms, seed, 1_000_000, mode, 10);
        (plan, terms)
    }

    #[test]
    fn gpu_plan_drives_by_lists_that_can_reach_the_seed() {
        let lists = [(1000, 6.0), (50_000, 4.0), (300_000, 1.5), (400_000, 1.0)];
        for (seed, drivers) in [(0.0, 4), (0.9, 4), (1.1, 3), (2.4, 3), (2.6, 2), (6.4, 2), (6.6, 1)] {
            let (plan, terms) = plan(&lists, seed, Mode::Or);
            assert_eq!((plan.num_drivers(false), plan.num_drivers(true)), (drivers, 1), "seed {seed}");
            assert_eq!(terms[0].rest, 12.5);
            // The last bin holds the highest possible score.
            assert!((12.5 - seed) * plan.query.bins_per_score <= SCORE_BINS as f32);
        }
    }

    #[test]
    fn gpu_plan_of_one_term_is_a_union_in_any_mode() {
        for mode in Mode::ALL {
            let (plan, _) = plan(&[(500, 2.0)], 1.0, mode);
            assert_eq!((plan.mode, plan.num_drivers(false), plan.by_tiles), (Mode::Or, 1, false));
        }
    }

    #[test]
    fn gpu_plan_goes_through_all_lists_where_all_would_be_looked_up() {
        let alike = [(400_000, 1.0); 12];
        assert!(plan(&alike, 1.0, Mode::Or).0.by_tiles);
        assert!(!plan(&alike, 1.0, Mode::And).0.by_tiles);
        assert!(!plan(&alike[..2], 1.8, Mode::Or).0.by_tiles);
    }
}
