//! Sharing out the lists that drive to warps: items of work, as few blocks each as keep all warps of the machine busy.
//!
//! A warp scores 32 postings at a time, so that most of the time of a launch of few blocks would be that of the warp
//! with most postings. Of queries' first lists, where postings are likely to be scored, four warps share a block as
//! long as there are warps for that; other lists' blocks go to a warp by several, by more where few of their postings
//! are looked up elsewhere.

use super::arguments::{BatchEntry, DriverEntry, LoneArgument, LoneStage, TermEntry};
use super::plan::{Plan, num_blocks};
use crate::query::Query;

/// Blocks of a lone query that a warp goes through at most: where most of their postings are looked up elsewhere, and
/// where few are.
const DENSE_BLOCKS: u32 = 4;
const SPARSE_BLOCKS: u32 = 16;
/// Four warps share a block as long as so many times the warps that the machine holds are enough for it.
const SHARED_WAVES: u32 = 2;
/// What a block costs that is only looked at, in rounds: in each, a warp scores 32 postings.
const ROUNDS_A_BLOCK: f32 = 0.05;
/// What a block costs at most, all of whose postings are scored.
const MOST_ROUNDS_A_BLOCK: f32 = 4.0 + ROUNDS_A_BLOCK;
/// Rounds of an item at most, ...
const MOST_ROUNDS: f32 = 8.0;
/// ... and items that a warp of the machine gets at least, on average, where they are of more than one round.
const ITEMS_A_WARP: f32 = 3.0;
/// Blocks of an item at most: those that a warp looks at together.
const MOST_BLOCKS: f32 = 32.0;
/// Items that one hint is for: a warp looks at so many drivers at once.
const HINTED_ITEMS: u32 = 32;

fn env(name: &str, default: f32) -> f32 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

static OLD: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| std::env::var_os("T_OLD").is_some());
/// Tunables.
#[derive(Debug, Clone, Copy)]
struct Tune {
    block: f32,
    most: f32,
    waves: f32,
    blocks: f32,
    power: f32,
    quarter: f32,
    least: f32,
}
static TUNE: std::sync::LazyLock<Tune> = std::sync::LazyLock::new(|| Tune {
    block: env("T_BLOCK", ROUNDS_A_BLOCK),
    most: env("T_MOST", MOST_ROUNDS),
    waves: env("T_WAVES", ITEMS_A_WARP),
    blocks: env("T_BLOCKS", MOST_BLOCKS),
    power: env("T_POWER", 3.0),
    quarter: env("T_QUARTER", 0.5),
    least: env("T_LEAST", 1.0),
});

/// The rounds that a block of a list takes, of whose postings about this share is scored.
#[inline]
fn rounds_of(share: f32) -> f32 {
    let share = match TUNE.power as u32 {
        1 => share,
        2 => share * share,
        3 => share * share * share,
        _ => share * share * share * share,
    };
    4.0 * share + TUNE.block
}

/// How many blocks a warp goes through, in the lists of a launch.
#[derive(Clone, Copy, Debug)]
struct ItemSizes {
    /// Rounds of an item.
    rounds: f32,
}

impl ItemSizes {
    /// Sizes for a launch of so many rounds in all on a machine that holds `warps` at once.
    fn new(rounds: f32, warps: u32) -> Self {
        Self { rounds: (rounds / (TUNE.waves * warps as f32)).clamp(TUNE.least, TUNE.most) }
    }

    /// How many blocks of a list a warp goes through, of so many rounds each; 0 where four warps share a block.
    #[inline]
    fn of(self, rounds_a_block: f32) -> u32 {
        let blocks = self.rounds / rounds_a_block;
        if blocks < TUNE.quarter { 0 } else { blocks.clamp(1.0, TUNE.blocks) as u32 }
    }
}

/// The blocks of all lists that drive, by their term's number in its query; and of these, those where every posting may
/// be looked up (dense) apart from the others.
#[derive(Clone, Copy, Debug)]
struct BlockCounts {
    sparse_and_dense: [[u64; 2]; Query::MAX_TERMS],
    num_terms: usize,
}

impl Default for BlockCounts {
    fn default() -> Self {
        Self { sparse_and_dense: [[0; 2]; Query::MAX_TERMS], num_terms: 0 }
    }
}

impl BlockCounts {
    #[inline]
    fn add(&mut self, term: usize, is_dense: bool, blocks: u32) {
        self.num_terms = self.num_terms.max(term + 1);
        self.sparse_and_dense[term][usize::from(is_dense)] += u64::from(blocks);
    }

    fn clear(&mut self) {
        self.sparse_and_dense[..self.num_terms].fill([0; 2]);
        self.num_terms = 0;
    }
}

/// How many blocks a warp goes through, in the lists of a lone query.
#[derive(Clone, Copy, Debug)]
struct LoneSizes {
    /// So many first terms of each query have blocks that four warps share.
    shared_terms: usize,
    sparse: u32,
    dense: u32,
}

impl LoneSizes {
    /// Sizes for a launch of these blocks on a machine that holds `warps` at once.
    fn new(counts: &BlockCounts, warps: u32) -> Self {
        let mut left = u64::from(SHARED_WAVES * warps / 4);
        let mut shared_terms = 0;
        let mut blocks = [0_u64; 2];
        for (t, of_term) in counts.sparse_and_dense[..counts.num_terms].iter().enumerate() {
            let sum = of_term[0] + of_term[1];
            if shared_terms == t && sum <= left {
                shared_terms += 1;
                left -= sum;
            } else {
                blocks[0] += of_term[0];
                blocks[1] += of_term[1];
            }
        }
        let a_warp = |blocks: u64, most: u32| blocks.div_ceil(u64::from(warps)).clamp(1, u64::from(most)) as u32;
        Self { shared_terms, sparse: a_warp(blocks[0], SPARSE_BLOCKS), dense: a_warp(blocks[1], DENSE_BLOCKS) }
    }

    /// How many blocks of a term a warp goes through; 0 where four warps share a block.
    #[inline]
    fn of(self, term: usize, is_dense: bool) -> u32 {
        match term {
            t if t < self.shared_terms => 0,
            _ if is_dense => self.dense,
            _ => self.sparse,
        }
    }
}

/// The items that blocks are shared out to.
#[inline]
fn num_items_of(num_blocks: u32, blocks_an_item: u32) -> u32 {
    match blocks_an_item {
        0 => 4 * num_blocks,
        1 => num_blocks,
        each => num_blocks.div_ceil(each),
    }
}

/// A query, of at most `TERMS` terms, as it is passed alone, for `warps` that the machine holds.
pub(super) fn lone<const TERMS: usize>(
    plan: &Plan,
    terms: &[TermEntry],
    needs_all: bool,
    warps: u32,
) -> LoneArgument<TERMS> {
    let mut lone = LoneArgument { query: plan.query, ..LoneArgument::default() };
    lone.terms[..terms.len()].copy_from_slice(terms);
    let drivers = 0..plan.num_drivers(needs_all);
    let is_dense = |t: usize| plan.all_enter(terms, t, needs_all);
    let mut counts = BlockCounts::default();
    for t in drivers.clone() {
        counts.add(t, is_dense(t), num_blocks(&terms[t]));
    }
    let sizes = LoneSizes::new(&counts, warps);
    let mut num_items = 0;
    for (t, driver) in lone.drivers[..drivers.end].iter_mut().enumerate() {
        let blocks_an_item = sizes.of(t, is_dense(t));
        *driver = DriverEntry { query: 0, term: t as u32, first_item: num_items, blocks_an_item };
        num_items += num_items_of(num_blocks(&terms[t]), blocks_an_item);
    }
    lone.stage = LoneStage {
        num_drivers: drivers.end as u32,
        num_items,
        needs_all: u32::from(needs_all),
        ..LoneStage::default()
    };
    lone
}

/// The drivers of one launch for a batch.
#[derive(Debug, Default)]
pub(super) struct DriverShares {
    /// As queries add them.
    added: Vec<AddedDriver>,
    num_terms: usize,
    rounds: f32,
    counts: BlockCounts,
    blocks: u64,
    /// All first terms before all second ones.
    pub(super) drivers: Vec<DriverEntry>,
    /// For every 32nd item, its driver.
    pub(super) hints: Vec<u32>,
    pub(super) num_items: u32,
    /// Of these, those of first terms.
    pub(super) num_first_items: u32,
}

#[derive(Clone, Copy, Debug)]
struct AddedDriver {
    query: u32,
    term: u32,
    num_blocks: u32,
    rounds_a_block: f32,
    dense: bool,
}

impl DriverShares {
    pub(super) fn clear(&mut self) {
        self.added.clear();
        self.num_terms = 0;
        self.counts.clear();
        (self.rounds, self.blocks) = (0.0, 0);
        self.drivers.clear();
        self.hints.clear();
        (self.num_items, self.num_first_items) = (0, 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty()
    }

    /// How many drivers there are.
    pub(super) fn len(&self) -> usize {
        self.added.len()
    }

    /// Adds the lists that drive for entry `query` of the batch.
    #[inline]
    pub(super) fn add(&mut self, query: u32, plan: &Plan, terms: &[TermEntry], needs_all: bool) {
        for t in 0..plan.num_drivers(needs_all) {
            let num_blocks = num_blocks(&terms[t]);
            let rounds_a_block = rounds_of(plan.share(terms, t, needs_all));
            self.rounds += rounds_a_block * num_blocks as f32;
            self.blocks += u64::from(num_blocks);
            self.counts.add(t, plan.all_enter(terms, t, needs_all), num_blocks);
            let dense = plan.all_enter(terms, t, needs_all);
            self.added.push(AddedDriver { dense, query, term: t as u32, num_blocks, rounds_a_block });
        }
        self.num_terms = self.num_terms.max(plan.num_drivers(needs_all));
    }

    /// How many hints there are at most, with drivers of so many more blocks.
    pub(super) fn most_hints(&self, more_drivers: usize, more_blocks: u64, warps: u32) -> usize {
        // Items have as many rounds as there are for each warp, or all they may have; rounding doubles them at most.
        let rounds = self.rounds + MOST_ROUNDS_A_BLOCK * more_blocks as f32;
        let items = 2.0 * (ITEMS_A_WARP * warps as f32 + rounds / MOST_ROUNDS)
            + (self.blocks + more_blocks) as f32 / MOST_BLOCKS;
        (items as usize + self.len() + more_drivers) / HINTED_ITEMS as usize + 2
    }

    /// Gives each driver its items, for a machine that holds `warps` at once, counts them in the entries, and writes
    /// hints if they are wanted.
    pub(super) fn share_out(&mut self, entries: &mut [BatchEntry], warps: u32, with_hints: bool) {
        let sizes = ItemSizes::new(self.rounds, warps);
        let lone = LoneSizes::new(&self.counts, warps);
        let old = *OLD;
        let mut starts = [0_usize; Query::MAX_TERMS];
        for driver in &self.added {
            starts[driver.term as usize] += 1;
        }
        let mut start = 0;
        for of_term in &mut starts[..self.num_terms] {
            start += std::mem::replace(of_term, start);
        }
        self.drivers.resize(self.added.len(), DriverEntry::default());
        for added in &self.added {
            let at = &mut starts[added.term as usize];
            let blocks_an_item =
                if old { lone.of(added.term as usize, added.dense) } else { sizes.of(added.rounds_a_block) };
            // Until all are in order, the number of items stands where the first one's will.
            let items = num_items_of(added.num_blocks, blocks_an_item);
            self.drivers[*at] = DriverEntry { query: added.query, term: added.term, first_item: items, blocks_an_item };
            *at += 1;
        }
        let mut num_items = 0;
        for (number, driver) in self.drivers.iter_mut().enumerate() {
            let items = std::mem::replace(&mut driver.first_item, num_items);
            entries[driver.query as usize].num_items += items;
            num_items += items;
            if driver.term == 0 {
                self.num_first_items = num_items;
            }
            while with_hints && (self.hints.len() as u32) * HINTED_ITEMS < num_items {
                self.hints.push(number as u32);
            }
        }
        self.num_items = num_items;
    }
}

#[cfg(test)]
mod tests {
    use super::super::arguments::FEW_TERMS;
    use super::super::plan::tests::plan;
    use super::*;
    use crate::index::BLOCK_LEN;
    use crate::query::Mode;

    #[test]
    fn gpu_shares_all_blocks_of_a_lone_query_out() {
        let lists = [(1000, 6.0), (50_001, 4.0), (300_000, 1.5)];
        for warps in [1, 10, 100, 10_000] {
            for (seed, needs_all) in [(0.0, false), (2.0, false), (7.0, false), (0.0, true)] {
                let (plan, terms) = plan(&lists, seed, Mode::AndOr);
                let lone = lone::<FEW_TERMS>(&plan, &terms, needs_all, warps);
                let drivers = &lone.drivers[..plan.num_drivers(needs_all)];
                let ends = drivers.iter().skip(1).map(|driver| driver.first_item).chain([lone.stage.num_items]);
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

    #[test]
    fn gpu_batches_put_first_terms_first_and_leave_no_block_out() {
        let plans = [
            plan(&[(200, 5.0), (90_000, 1.0)], 0.0, Mode::Or),
            plan(&[(5000, 5.0)], 0.0, Mode::Or),
            plan(&[(129, 5.0), (1300, 4.0), (700_000, 1.0)], 2.0, Mode::Or),
        ];
        let mut shares = DriverShares::default();
        for warps in [4, 1000, 1_000_000] {
            shares.clear();
            let mut entries = [BatchEntry::default(); 3];
            for (query, (plan, terms)) in plans.iter().enumerate() {
                shares.add(query as u32, plan, terms, false);
            }
            shares.share_out(&mut entries, warps, true);
            let order: Vec<_> = shares.drivers.iter().map(|driver| (driver.query, driver.term)).collect();
            assert_eq!(order, [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1)]);
            let ends = shares.drivers.iter().skip(1).map(|driver| driver.first_item).chain([shares.num_items]);
            let mut items_of = [0; 3];
            for (driver, end) in shares.drivers.iter().zip(ends) {
                let blocks = num_blocks(&plans[driver.query as usize].1[driver.term as usize]);
                assert_eq!(end - driver.first_item, num_items_of(blocks, driver.blocks_an_item));
                items_of[driver.query as usize] += end - driver.first_item;
            }
            assert_eq!(entries.map(|entry| entry.num_items), items_of);
            // The driver of an item is among the 32 from its hint on.
            assert_eq!(shares.hints.len() as u32, shares.num_items.div_ceil(HINTED_ITEMS));
            assert!(shares.hints.len() <= shares.most_hints(0, 0, warps));
            for item in 0..shares.num_items {
                let hint = shares.hints[(item / HINTED_ITEMS) as usize] as usize;
                let found = shares.drivers.iter().rposition(|driver| driver.first_item <= item).unwrap();
                assert!((hint..hint + HINTED_ITEMS as usize).contains(&found));
            }
        }
        shares.clear();
        plans.iter().zip(0..).for_each(|((plan, terms), query)| shares.add(query, plan, terms, true));
        assert_eq!(shares.len(), 3);
    }

    #[test]
    fn gpu_items_of_the_largest_batch_fit_32_bits() {
        let (largest, terms) = plan(&[((1 << 31) - 1, 1.0)], 0.0, Mode::Or);
        let mut shares = DriverShares::default();
        for warps in [1, 4000, u32::MAX / 8] {
            shares.clear();
            let mut entries = [BatchEntry::default(); 64];
            (0..64).for_each(|query| shares.add(query, &largest, &terms, false));
            shares.share_out(&mut entries, warps, true);
            assert!(shares.drivers.is_sorted_by_key(|driver| driver.first_item));
            assert!(u64::from(shares.num_items) <= (1 << 30) + u64::from(warps), "{}", shares.num_items);
        }
    }
}
