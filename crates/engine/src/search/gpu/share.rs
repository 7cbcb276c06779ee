//! Assigns the driving lists of a launch to warps, as items of work small enough to keep all warps busy.
//!
//! A warp scores 32 postings at a time, so the slowest warp would dominate a launch of few blocks. In the first lists
//! of queries postings are likely to be scored, so four warps share a block while there are enough warps. In other
//! lists a warp takes several blocks, and more if few of their postings are looked up.

use super::arguments::{BatchEntry, DriverEntry, LoneArgument, LoneStage, MAX_TERMS, TermEntry};
use super::plan::{Plan, num_blocks};

/// The most blocks per warp if most of their postings are looked up.
const DENSE_BLOCKS: u32 = 8;
/// The most blocks per warp if few of their postings are looked up.
const SPARSE_BLOCKS: u32 = 32;
/// Four warps share a block while this multiple of the resident warps suffices.
const SHARED_WAVES: u32 = 2;
/// The most entries of a small batch, whose time is that of its longest items.
const FEW_ENTRIES: usize = 128;
/// The cost of a block that is only inspected, in rounds of 32 look-ups.
const ROUNDS_A_BLOCK: f32 = 0.2;
/// The cost of 32 survivors of look-ups for each list after the driving one: their scores and further look-ups.
const ROUNDS_A_LATER_LIST: f32 = 0.75;
/// The most estimated rounds of survivors per block.
const MOST_LATER_ROUNDS: f32 = 4.2;
/// The most estimated rounds per block.
pub(super) const MOST_ROUNDS_A_BLOCK: f32 = 4.0 + ROUNDS_A_BLOCK + MOST_LATER_ROUNDS;
/// Items per resident warp of a small batch of unions, as long as they have at most [`FEW_ROUNDS`].
const ITEMS_A_WARP: f32 = 3.0;
/// The rounds of an item from which on a union has more items instead of longer ones.
const FEW_ROUNDS: f32 = 4.0;
/// The most items per resident warp of a small batch of unions. The more there are, the longer they may be.
const MOST_ITEMS_A_WARP: f32 = 9.0;
/// [`ITEMS_A_WARP`] of intersections, whose items take more equal times.
const EQUAL_ITEMS_A_WARP: f32 = 2.0;
/// [`FEW_ROUNDS`] of intersections.
const FEW_EQUAL_ROUNDS: f32 = 3.0;
/// [`MOST_ITEMS_A_WARP`] of intersections.
const MOST_EQUAL_ITEMS_A_WARP: f32 = 4.0;
/// The most rounds per item of a small batch.
const MOST_ROUNDS: f32 = 16.0;
/// The most blocks per item: those that a warp inspects together.
const MOST_BLOCKS: f32 = 32.0;
/// A list of a small batch has at least half of this number of items, if it has as many blocks. More rounds than
/// estimated do most harm in the long items of short lists.
const LEAST_ITEMS: u32 = 64;
/// Rows by which the items of a small batch are interleaved.
const FEW_ROWS: u32 = 256;
/// Rows by which the items of a large, mostly conjunctive batch are interleaved. In other large batches consecutive
/// items gain more by looking up the same lists.
const MANY_ROWS: u32 = 1024;
/// The most items of a batch's entry: kernels count its finished items in 24 bits (`DONE_BIT` in tandem.cuh).
const MAX_ITEMS: u64 = (1 << 24) - 1;
/// Items per hint: a warp inspects this number of drivers at once.
const HINTED_ITEMS: u32 = 32;

/// Blocks of all driving lists by term number. Lists in which every posting may be looked up (dense) count apart.
#[derive(Clone, Copy, Debug)]
struct BlockCounts {
    sparse_and_dense: [[u64; 2]; MAX_TERMS],
    num_terms: usize,
}

impl Default for BlockCounts {
    fn default() -> Self {
        Self { sparse_and_dense: [[0; 2]; MAX_TERMS], num_terms: 0 }
    }
}

impl BlockCounts {
    /// The counts of the first terms, to add drivers.
    #[inline]
    fn of_terms(&mut self, drivers: usize) -> &mut [[u64; 2]] {
        self.num_terms = self.num_terms.max(drivers);
        &mut self.sparse_and_dense[..drivers]
    }

    fn clear(&mut self) {
        self.sparse_and_dense[..self.num_terms].fill([0; 2]);
        self.num_terms = 0;
    }
}

#[derive(Clone, Copy, Debug)]
struct ItemSizes {
    /// The number of first terms whose blocks four warps share.
    shared_terms: usize,
    sparse: u32,
    dense: u32,
}

impl ItemSizes {
    /// Sizes for a launch of these blocks on a device with `warps` resident warps.
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

    /// Blocks of a term per warp, or 0 if four warps share a block.
    #[inline]
    fn of(self, term: usize, is_dense: bool) -> u32 {
        match term {
            t if t < self.shared_terms => 0,
            _ if is_dense => self.dense,
            _ => self.sparse,
        }
    }
}

/// Estimated rounds per block of a list of which these shares of the impact range are looked up, and survive. `later`
/// lists follow the list. High impacts are rare.
#[inline]
fn rounds_of(shares: [f32; 2], later: usize) -> f32 {
    let [looked_up, surviving] = shares.map(|share| 4.0 * share * share * share);
    looked_up + ROUNDS_A_BLOCK + (surviving * ROUNDS_A_LATER_LIST * later as f32).min(MOST_LATER_ROUNDS)
}

/// Blocks per item of a small batch, given the rounds of a block and of an item; 0 if four items share a block.
#[inline]
fn blocks_of_rounds(rounds: f32, rounds_an_item: f32) -> u32 {
    let blocks = rounds_an_item / rounds;
    if blocks < 0.5 { 0 } else { blocks.clamp(1.0, MOST_BLOCKS) as u32 }
}

/// Factors that replace divisions by up to 127 blocks per item, in units of 2^-32. That of 0 makes four items a block.
const FACTORS: [u64; 128] = {
    let mut factors = [4 << 32; 128];
    let mut each = 1;
    while each < factors.len() {
        factors[each] = (1_u64 << 32).div_ceil(each as u64);
        each += 1;
    }
    factors
};

/// Has no branches, which processors would often predict wrong. Factors are exact enough for 2^25 blocks.
#[inline]
fn num_items_of(num_blocks: u32, blocks_an_item: u32) -> u32 {
    let rounded_up = num_blocks + blocks_an_item.saturating_sub(1);
    ((u64::from(rounded_up) * FACTORS[blocks_an_item as usize]) >> 32) as u32
}

/// The least blocks per item of an entry with `blocks` blocks in all its driving lists, so that its items do not exceed
/// [`MAX_ITEMS`]; 0 if four items may share a block.
fn least_blocks_an_item(blocks: u64) -> u32 {
    if 4 * blocks <= MAX_ITEMS { 0 } else { blocks.div_ceil(MAX_ITEMS - MAX_TERMS as u64) as u32 }
}

/// The arguments of a single query of at most `TERMS` terms, for `warps` resident warps.
pub(crate) fn lone<const TERMS: usize>(
    plan: &Plan,
    terms: &[TermEntry],
    needs_all: bool,
    warps: u32,
) -> LoneArgument<TERMS> {
    let mut lone = LoneArgument { query: plan.query, ..LoneArgument::default() };
    lone.terms[..terms.len()].copy_from_slice(terms);
    let drivers = 0..plan.num_drivers(needs_all);
    let mut counts = BlockCounts::default();
    for (t, of_term) in counts.of_terms(drivers.end).iter_mut().enumerate() {
        of_term[usize::from(t < plan.num_dense(needs_all))] += u64::from(num_blocks(&terms[t]));
    }
    let sizes = ItemSizes::new(&counts, warps);
    let mut num_items = 0;
    for (t, driver) in lone.drivers[..drivers.end].iter_mut().enumerate() {
        let blocks_an_item = sizes.of(t, t < plan.num_dense(needs_all));
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

#[derive(Debug, Default)]
pub(crate) struct DriverShares {
    /// Drivers by term number, in the order of queries.
    added: Vec<Vec<AddedDriver>>,
    num_drivers: usize,
    counts: BlockCounts,
    pub(crate) rounds: f32,
    /// Blocks of conjunctive queries, and of others.
    blocks_all_and_any: [u64; 2],
    /// Drivers in the order of terms: all first terms, then all second ones.
    pub(crate) drivers: Vec<DriverEntry>,
    /// The driver of every 32nd item.
    pub(crate) hints: Vec<u32>,
    pub(crate) num_items: u32,
    /// The items of first terms.
    pub(crate) num_first_items: u32,
    /// Rows by which the items are interleaved.
    pub(crate) item_rows: u32,
}

#[derive(Clone, Copy, Debug)]
struct AddedDriver {
    query: u32,
    num_blocks: u32,
    /// Rounds of a block, as long as the batch may be a small one.
    rounds: f32,
    least_blocks_an_item: u16,
    is_dense: bool,
}

impl DriverShares {
    pub(crate) fn clear(&mut self) {
        self.added[..self.counts.num_terms].iter_mut().for_each(Vec::clear);
        self.num_drivers = 0;
        self.counts.clear();
        self.rounds = 0.0;
        self.blocks_all_and_any = [0; 2];
        self.drivers.clear();
        self.hints.clear();
        (self.num_items, self.num_first_items) = (0, 0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.num_drivers == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.num_drivers
    }

    /// The items with the free places between their rows: first terms' items and the others each fill whole columns.
    pub(crate) fn num_places(&self) -> u32 {
        let parts = [self.num_first_items, self.num_items - self.num_first_items];
        parts.map(|items| items.next_multiple_of(self.item_rows.max(1))).iter().sum()
    }

    /// Adds the driving lists of entry `query` of the batch.
    #[inline(always)]
    pub(crate) fn add(&mut self, query: u32, plan: &Plan, terms: &[TermEntry], needs_all: bool) {
        let (drivers, dense) = (plan.num_drivers(needs_all), plan.num_dense(needs_all));
        let blocks = if needs_all { u64::from(num_blocks(&terms[0])) } else { plan.num_blocks };
        let least_blocks_an_item = least_blocks_an_item(blocks) as u16;
        if self.added.len() < drivers {
            self.added.resize_with(drivers, Vec::new);
        }
        let counts = self.counts.of_terms(drivers);
        for (t, ((term, added), counts)) in terms[..drivers].iter().zip(&mut self.added).zip(counts).enumerate() {
            let (num_blocks, is_dense) = (num_blocks(term), t < dense);
            counts[usize::from(is_dense)] += u64::from(num_blocks);
            added.push(AddedDriver { query, num_blocks, rounds: 0.0, least_blocks_an_item, is_dense });
        }
        self.num_drivers += drivers;
        self.blocks_all_and_any[usize::from(!needs_all)] += blocks;
        if (query as usize) < FEW_ENTRIES {
            let mut sum = 0.0;
            for (t, added) in self.added[..drivers].iter_mut().enumerate() {
                let Some(driver) = added.last_mut() else { continue };
                driver.rounds = rounds_of(plan.shares(terms, t, needs_all), terms.len() - 1 - t);
                sum += driver.rounds * driver.num_blocks as f32;
            }
            self.rounds += sum;
        }
    }

    /// The rounds of an item of a small batch. Few items leave warps without work at the end, many cost time to begin.
    fn rounds_an_item(&self, warps: u32) -> f32 {
        let a_warp = self.rounds / warps as f32;
        let [all, any] = self.blocks_all_and_any;
        let (items, few_rounds, most_items) = if all > any {
            (EQUAL_ITEMS_A_WARP, FEW_EQUAL_ROUNDS, MOST_EQUAL_ITEMS_A_WARP)
        } else {
            (ITEMS_A_WARP, FEW_ROUNDS, MOST_ITEMS_A_WARP)
        };
        (a_warp / items).min(few_rounds).max(a_warp / most_items).clamp(1.0, MOST_ROUNDS)
    }

    /// Upper bound of the number of hints. `rounds` are those of a small batch.
    pub(crate) fn most_hints(entries: usize, rounds: f64, blocks: u64, drivers: usize, warps: u32) -> usize {
        // Rounding at most doubles the items, which hold all their rounds, or their most blocks, or are the least ones.
        let in_small = || {
            let full = rounds / f64::from(MOST_ROUNDS) + blocks as f64 / f64::from(MOST_BLOCKS);
            (2.0 * (f64::from(MOST_ITEMS_A_WARP) * f64::from(warps) + full)) as u64
                + u64::from(LEAST_ITEMS) * drivers as u64
        };
        // Few blocks make four items each; others at most one item per warp or of the most blocks, in either kind.
        let in_large = u64::from(2 * SHARED_WAVES * warps + 2 * warps) + blocks / u64::from(DENSE_BLOCKS);
        // A query is counted as two entries before it turns out to be one.
        let items = match entries {
            ..=FEW_ENTRIES => in_small(),
            _ if entries - 1 == FEW_ENTRIES => in_small().max(in_large),
            _ => in_large,
        };
        ((items + drivers as u64) / u64::from(HINTED_ITEMS)) as usize + 1
    }

    /// Assigns items to each driver, for `warps` resident warps, counts them in the entries, and writes hints if
    /// wanted.
    pub(crate) fn share_out(&mut self, entries: &mut [BatchEntry], warps: u32, with_hints: bool) {
        let is_small = entries.len() <= FEW_ENTRIES;
        let [all, any] = self.blocks_all_and_any;
        self.item_rows = match (is_small, all > any) {
            (true, _) => FEW_ROWS,
            (false, true) => MANY_ROWS,
            (false, false) => 1,
        };
        let rounds_an_item = self.rounds_an_item(warps);
        let sizes = ItemSizes::new(&self.counts, warps);
        let mut num_items = 0;
        self.drivers.reserve(self.num_drivers);
        for (t, added) in self.added[..self.counts.num_terms].iter().enumerate() {
            let sizes = [false, true].map(|is_dense| sizes.of(t, is_dense));
            self.drivers.extend(added.iter().map(|added| {
                let blocks_an_item = if is_small {
                    let most = added.num_blocks.div_ceil(LEAST_ITEMS);
                    blocks_of_rounds(added.rounds, rounds_an_item).min(most)
                } else {
                    sizes[usize::from(added.is_dense)]
                };
                let blocks_an_item = blocks_an_item.max(u32::from(added.least_blocks_an_item));
                let (query, first_item) = (added.query, num_items);
                let items = num_items_of(added.num_blocks, blocks_an_item);
                entries[query as usize].num_items += items;
                num_items += items;
                DriverEntry { query, term: t as u32, first_item, blocks_an_item }
            }));
            if t == 0 {
                self.num_first_items = num_items;
            }
        }
        if with_hints {
            self.hint(num_items);
        }
        self.num_items = num_items;
    }

    /// Finds the driver of every 32nd of the items: the last one that begins with it or before. Drivers replace those
    /// before them, as a branch could not be predicted, and the maximum covers the further hints of long ones.
    fn hint(&mut self, num_items: u32) {
        let num_hints = num_items.div_ceil(HINTED_ITEMS) as usize;
        self.hints.resize(num_hints + 1, 0);
        for (driver, number) in self.drivers.iter().zip(0..) {
            self.hints[driver.first_item.div_ceil(HINTED_ITEMS) as usize] = number;
        }
        self.hints.truncate(num_hints);
        let mut last = 0;
        for hint in &mut self.hints {
            last = last.max(*hint);
            *hint = last;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::arguments::FEW_TERMS;
    use super::super::plan::tests::plan;
    use super::*;
    use crate::index::BLOCK_LEN;
    use tandem_base::traffic::Mode;

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
    fn gpu_numbers_of_items_are_those_of_a_division() {
        for each in 1..FACTORS.len() as u32 {
            for blocks in (1..300).chain([each - 1, each, each + 1].map(|last| (1 << 24) / each * each + last)) {
                assert_eq!(num_items_of(blocks, each), blocks.div_ceil(each), "{blocks} blocks, {each} an item");
            }
        }
        assert_eq!(num_items_of(1 << 24, 0), 1 << 26);
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
            assert!(shares.hints.len() <= DriverShares::most_hints(3, shares.rounds.into(), 6000, 5, warps));
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
    fn gpu_hints_of_the_largest_small_batch_have_room() {
        const BLOCKS: u32 = 20_000;
        let list = |blocks: u32| (blocks * BLOCK_LEN as u32, 5.0);
        // Lists of which all postings survive, and short ones, of many items.
        for lists in [vec![list(BLOCKS)], vec![list(BLOCKS); 4], vec![list(64); 8], vec![list(65)]] {
            for mode in [Mode::Or, Mode::And] {
                let (dense, terms) = plan(&lists, 0.0, mode);
                let mut shares = DriverShares::default();
                let mut entries = [BatchEntry::default(); FEW_ENTRIES];
                (0..FEW_ENTRIES as u32).for_each(|query| shares.add(query, &dense, &terms, mode == Mode::And));
                shares.share_out(&mut entries, 4224, true);
                let (blocks, drivers) = (FEW_ENTRIES as u64 * dense.num_blocks, shares.drivers.len());
                for counted in [FEW_ENTRIES, FEW_ENTRIES + 1] {
                    let most = DriverShares::most_hints(counted, shares.rounds.into(), blocks, drivers, 4224);
                    assert!(shares.hints.len() <= most, "{} of {most}", shares.hints.len());
                }
            }
        }
    }

    #[test]
    fn gpu_items_of_the_largest_batch_fit_32_bits() {
        let (largest, terms) = plan(&[((1 << 31) - 1, 1.0)], 0.0, Mode::Or);
        let mut shares = DriverShares::default();
        for warps in [1, 4000, 1_000_000] {
            shares.clear();
            let mut entries = [BatchEntry::default(); 64];
            (0..64).for_each(|query| shares.add(query, &largest, &terms, false));
            shares.share_out(&mut entries, warps, true);
            assert!(shares.drivers.is_sorted_by_key(|driver| driver.first_item));
            assert!(u64::from(shares.num_items) <= (1 << 30) + u64::from(warps), "{}", shares.num_items);
        }
    }

    #[test]
    fn gpu_items_of_an_entry_fit_24_bits() {
        // Few blocks keep their four items each.
        assert_eq!([1, MAX_ITEMS / 4].map(least_blocks_an_item), [0, 0]);
        let longest = [((1 << 31) - 1, 1.0); MAX_TERMS];
        for (lists, num_queries) in [(&longest[..1], 1), (&longest[..3], 1), (&longest[..], 1), (&longest[..1], 200)] {
            let (plan, terms) = plan(lists, 0.0, Mode::Or);
            for warps in [1, 4000, 1_000_000] {
                let mut shares = DriverShares::default();
                let mut entries = [BatchEntry::default(); 200];
                (0..num_queries).for_each(|query| shares.add(query, &plan, &terms, false));
                shares.share_out(&mut entries[..num_queries as usize], warps, false);
                let most = entries.iter().map(|entry| entry.num_items).max().unwrap();
                assert!(most > 0 && u64::from(most) <= MAX_ITEMS, "{most} items of {} lists", lists.len());
                // Kernels have places within an item in 16 bits.
                assert!(shares.drivers.iter().all(|driver| driver.blocks_an_item <= 512));
            }
        }
    }
}
