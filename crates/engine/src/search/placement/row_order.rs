//! One order of all rows, in which a budget of device memory is a border.
//!
//! A device-resident block saves its bytes on the bus at each read, so blocks are ordered by expected reads per row.
//!
//! ```text
//!   order    | blocks of the list with most reads per row | next list | ... | lists without reads, in block order |
//!   a budget | device-resident ............................ ▲ host-resident ..................................... |
//!                                                         border
//! ```

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HotBlocks {
    pub(crate) first_block: u32,
    pub(crate) num_blocks: u32,
    /// Expected reads of each row, relative to other blocks and not negative.
    pub(crate) reads: f32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowOrder {
    pub(crate) first_rows: Vec<u32>,
    rows: Vec<u32>,
    pub(crate) num_rows: u64,
}

impl RowOrder {
    /// The border under a budget of `room_rows` rows. Rows before it are device-resident, and no block spans it.
    pub(crate) fn num_resident(&self, room_rows: u64) -> u64 {
        let ends = self.first_rows.iter().zip(&self.rows).map(|(&first, &rows)| u64::from(first) + u64::from(rows));
        ends.filter(|&end| end <= room_rows).max().unwrap_or(0)
    }
}

/// Orders blocks with `rows[b]` rows each: `hot` blocks by descending reads, then all others by number. A block in
/// several entries takes the best place. Row numbers wrap beyond 32 bits, so callers check [`RowOrder::num_rows`].
pub(crate) fn place_blocks(rows: Vec<u32>, hot: &[HotBlocks]) -> RowOrder {
    const NOWHERE: u32 = u32::MAX;
    let mut first_rows = vec![NOWHERE; rows.len()];
    let mut order: Vec<&HotBlocks> = hot.iter().collect();
    order.sort_by(|a, b| b.reads.total_cmp(&a.reads).then(a.first_block.cmp(&b.first_block)));
    let hot_blocks = order.into_iter().flat_map(|hot| hot.first_block..hot.first_block + hot.num_blocks);
    let mut num_rows: u64 = 0;
    for block in hot_blocks.chain(0..rows.len() as u32).map(|block| block as usize) {
        if first_rows[block] == NOWHERE {
            first_rows[block] = num_rows as u32;
            num_rows += u64::from(rows[block]);
        }
    }
    RowOrder { first_rows, rows, num_rows }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_hottest_blocks_are_device_resident(
            rows in prop::collection::vec(0_u32..40, 1..200),
            hot in prop::collection::vec((any::<prop::sample::Index>(), 1_u32..20, 0.0_f32..9.0), 0..10),
            room in 0_u64..5000,
        ) {
            let hot: Vec<HotBlocks> = hot.into_iter().map(|(first, num_blocks, reads)| {
                let first_block = first.index(rows.len()) as u32;
                HotBlocks { first_block, num_blocks: num_blocks.min(rows.len() as u32 - first_block), reads }
            }).collect();
            let order = place_blocks(rows.clone(), &hot);
            let num_resident = order.num_resident(room);
            let RowOrder { first_rows, num_rows, .. } = &order;
            let num_rows = *num_rows;
            prop_assert!(num_resident <= room);
            // The order is the same for all budgets.
            prop_assert!(order.num_resident(room / 2) <= num_resident);
            prop_assert!(num_resident == num_rows || room - num_resident < 40);
            prop_assert_eq!(num_rows, rows.iter().map(|&rows| u64::from(rows)).sum::<u64>());
            let span = |(&first, &rows): (&u32, &u32)| (u64::from(first), u64::from(first + rows));
            let mut spans: Vec<(u64, u64)> = first_rows.iter().zip(&rows).map(span).collect();
            for &(first, end) in &spans {
                prop_assert!(end <= num_resident || first >= num_resident, "{first} to {end} of {num_resident}");
            }
            // The hottest blocks come first and contiguous, and are host-resident only if they do not fit.

            let colder = |a: &&HotBlocks, b: &&HotBlocks| b.reads.total_cmp(&a.reads).then(a.first_block.cmp(&b.first_block));
            if let Some(hottest) = hot.iter().min_by(colder) {
                let of_hottest = &spans[hottest.first_block as usize..][..hottest.num_blocks as usize];
                let end = of_hottest.last().map_or(0, |last| last.1);
                prop_assert_eq!((of_hottest[0].0, end <= num_resident), (0, end <= room));
            }
            spans.retain(|(first, end)| first < end);
            spans.sort_unstable();
            prop_assert!(spans.windows(2).all(|pair| pair[0].1 == pair[1].0));
            prop_assert!(spans.last().is_none_or(|last| last.1 == num_rows));
            if room >= num_rows {
                prop_assert_eq!(num_resident, num_rows);
            }
        }
    }
}
