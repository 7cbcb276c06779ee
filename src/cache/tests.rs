//! The cache's laws, on random lists and logs.

use proptest::prelude::*;

use super::*;

/// Lists of these lengths, eight bytes a posting and four for every started block.
#[derive(Debug)]
struct Lens(Vec<u32>);

impl Sizes for Lens {
    fn num_lists(&self) -> usize {
        self.0.len()
    }

    fn len(&self, list: u32) -> u32 {
        self.0[list as usize]
    }

    fn bytes(&self, _list: u32, postings: u32) -> u64 {
        u64::from(8 * postings + 4 * postings.div_ceil(CACHE_BLOCK_LEN))
    }
}

const FOOTPRINT: Footprint = Footprint { query_bytes: 32, term_bytes: 48 };

fn policies(share: f64) -> [AdmissionPolicy; 3] {
    [AdmissionPolicy::Vfb { share }, AdmissionPolicy::Qtf, AdmissionPolicy::QtfDf]
}

/// Lists, and queries of 1 to 4 of them, each with how far it goes into each list.
fn worlds() -> impl Strategy<Value = (Lens, Vec<Vec<u32>>, Vec<Vec<u32>>)> {
    let lens = prop::collection::vec(1_u32..3000, 1..20);
    lens.prop_flat_map(|lens| {
        let lists = prop::collection::btree_set(0..lens.len() as u32, 1..5.min(lens.len() + 1).max(2));
        let query = lists.prop_map(|lists| lists.into_iter().collect::<Vec<u32>>());
        let reaches = prop::collection::vec(0.0..=1.0_f64, 4);
        let log = prop::collection::vec((query, reaches), 1..60);
        (Just(lens), log).prop_map(|(lens, log)| {
            let depths = |(lists, reaches): &(Vec<u32>, Vec<f64>)| {
                let depth = |(&list, &reach): (&u32, &f64)| (f64::from(lens[list as usize]) * reach) as u32;
                lists.iter().zip(reaches).map(depth).collect()
            };
            let depths = log.iter().map(depths).collect();
            (Lens(lens), log.into_iter().map(|(lists, _)| lists).collect(), depths)
        })
    })
}

/// The rows of all blocks of lists, and the blocks of each list.
fn blocks_of(lists: &[Vec<u32>]) -> (Vec<u32>, Vec<std::ops::Range<u32>>) {
    let mut end = 0;
    let ranges = lists.iter().map(|blocks| {
        end += blocks.len() as u32;
        end - blocks.len() as u32..end
    });
    (lists.concat(), ranges.collect())
}

fn visits_of(sizes: &Lens, log: &[Vec<u32>], depths: &[Vec<u32>]) -> Visits {
    let mut visits = Visits::new(sizes);
    for (lists, depths) in log.iter().zip(depths) {
        for (&list, &depth) in lists.iter().zip(depths) {
            visits.record(list, depth);
        }
    }
    visits
}

proptest! {
    #[test]
    fn visits_of_blocks_count_who_goes_that_far((sizes, log, depths) in worlds()) {
        let visits = visits_of(&sizes, &log, &depths);
        for list in 0..sizes.num_lists() as u32 {
            let reach = |block: u32| {
                let pairs = log.iter().zip(&depths).flat_map(|(lists, depths)| lists.iter().zip(depths));
                pairs.filter(|&(&named, &depth)| named == list && depth > block * CACHE_BLOCK_LEN).count() as u32
            };
            let expected: Vec<u32> = (0..sizes.len(list).div_ceil(CACHE_BLOCK_LEN)).map(reach).collect();
            prop_assert_eq!(visits.of_blocks(list), expected);
            prop_assert_eq!(visits.named(list) as usize, log.iter().filter(|lists| lists.contains(&list)).count());
        }
    }

    #[test]
    fn what_is_admitted_keeps_to_the_budget_and_to_the_share(
        (sizes, log, depths) in worlds(),
        budget in 0_u64..100_000,
        share in prop::sample::select(vec![0.01, 0.5, 0.75, 0.95, 1.0]),
    ) {
        let visits = visits_of(&sizes, &log, &depths);
        for policy in policies(share) {
            let admission = Admission::new(policy, &visits, &sizes).unwrap();
            let prefixes = admission.within(budget, &sizes);
            prop_assert!(prefixes.bytes() <= budget);
            prop_assert_eq!(&Prefixes::of(prefixes.as_slice().to_vec(), &sizes), &prefixes);
            for list in 0..sizes.num_lists() as u32 {
                let held = prefixes.postings(list);
                match policy {
                    AdmissionPolicy::Vfb { .. } => prop_assert!(f64::from(held) <= share * f64::from(sizes.len(list))),
                    _ => prop_assert!(held == 0 || held == sizes.len(list)),
                }
            }
            // With room for all, all is held that may be.
            let all = admission.within(u64::MAX / 2, &sizes);
            for list in 0..sizes.num_lists() as u32 {
                let most = match policy {
                    AdmissionPolicy::Vfb { share } => (share * f64::from(sizes.len(list))).floor() as u32,
                    _ => sizes.len(list),
                };
                prop_assert_eq!(all.postings(list), most);
            }
        }
    }

    #[test]
    fn vfb_never_holds_a_block_and_leaves_a_more_visited_one_that_would_fit(
        (sizes, log, depths) in worlds(), budget in 0_u64..60_000,
    ) {
        let visits = visits_of(&sizes, &log, &depths);
        let prefixes = Admission::new(AdmissionPolicy::Vfb { share: 1.0 }, &visits, &sizes).unwrap().within(budget, &sizes);
        let room = budget - prefixes.bytes();
        for left in 0..sizes.num_lists() as u32 {
            let held = prefixes.postings(left);
            if held == sizes.len(left) {
                continue;
            }
            let next = (held + CACHE_BLOCK_LEN).min(sizes.len(left));
            let more = sizes.bytes(left, next) - sizes.bytes(left, held);
            // It was turned away because it did not fit when its turn came, and what is left is not more than then.
            prop_assert!(more > room, "list {left}: {more} would fit into {room}");
        }
    }

    #[test]
    fn batches_hold_every_query_once_in_order_and_keep_to_the_buffer(
        (sizes, log, depths) in worlds(),
        cache in 0_u64..60_000,
        buffer in 100_u64..80_000,
        limit in 1_usize..40,
        share in prop::sample::select(vec![0.3, 1.0]),
    ) {
        let visits = visits_of(&sizes, &log, &depths);
        for policy in policies(share) {
            let prefixes = Admission::new(policy, &visits, &sizes).unwrap().within(cache, &sizes);
            let mut maker = BatchMaker::new(&sizes, &prefixes, FOOTPRINT, buffer);
            let (mut batch, mut seen, mut moved) = (Batch::default(), Vec::new(), 0);
            while maker.next(&log, limit, &mut batch) {
                prop_assert!(batch.queries.len() <= limit && batch.bytes <= buffer);
                let mut missing: Vec<u32> = batch.queries.iter()
                    .flat_map(|&query| &log[query as usize]).copied().filter(|&list| !prefixes.is_cached(list)).collect();
                missing.sort_unstable();
                missing.dedup();
                let mut lists = batch.lists.clone();
                lists.sort_unstable();
                prop_assert_eq!(&lists, &missing);
                let list_bytes: u64 = lists.iter().map(|&list| sizes.whole_bytes(list)).sum();
                let own: u64 = batch.queries.iter().map(|&query| FOOTPRINT.of(log[query as usize].len())).sum();
                prop_assert_eq!((batch.list_bytes, batch.bytes), (list_bytes, list_bytes + own));
                seen.extend(&batch.queries);
                moved += list_bytes;
            }
            let oversized = maker.oversized().to_vec();
            let mut all: Vec<u32> = seen.iter().chain(&oversized).copied().collect();
            prop_assert!(seen.is_sorted() && oversized.is_sorted());
            all.sort_unstable();
            prop_assert_eq!(all, (0..log.len() as u32).collect::<Vec<_>>());
            match BatchMaker::new(&sizes, &prefixes, FOOTPRINT, buffer).walk(&log, limit) {
                Ok(walk) => {
                    prop_assert_eq!((walk.queries, walk.list_bytes), (seen.len() as u64, moved));
                    prop_assert_eq!(walk.oversized, oversized.len() as u64);
                }
                Err(error) => {
                    let is_small = matches!(error, CacheError::BufferTooSmall { needed_bytes, .. } if needed_bytes > buffer);
                    prop_assert!(seen.is_empty() && is_small);
                }
            }
        }
    }

    #[test]
    fn the_store_keeps_its_budget_and_what_is_pinned(
        lens in prop::collection::vec(1_u64..100, 4..30),
        budget in 50_u64..600,
        steps in prop::collection::vec((prop::collection::btree_set(0_usize..30, 1..5), any::<bool>()), 1..80),
        half_life in 1.0_f64..50.0,
    ) {
        let mut store = ListStore::new(lens.len(), budget, LeastSaved::new(lens.len(), half_life));
        let mut pinned: Vec<Vec<(u32, u64)>> = Vec::new();
        for (lists, is_release) in steps {
            if is_release && !pinned.is_empty() {
                store.unpin(&pinned.remove(0));
            }
            let lists: Vec<(u32, u64)> =
                lists.into_iter().filter(|&list| list < lens.len()).map(|list| (list as u32, lens[list])).collect();
            let was_held: Vec<bool> = lists.iter().map(|&(list, _)| store.holds(list)).collect();
            if let Ok(found) = store.pin(&lists) {
                let hits: u64 = lists.iter().zip(&was_held).filter(|&(_, &held)| held).map(|(&(_, bytes), _)| bytes).sum();
                prop_assert_eq!(found.hit_bytes, hits);
                prop_assert_eq!(found.hit_bytes + found.miss_bytes, lists.iter().map(|&(_, bytes)| bytes).sum::<u64>());
                pinned.push(lists);
            } else {
                // Only what is pinned can stand in the way.
                let mut held: Vec<(u32, u64)> = pinned.iter().flatten().chain(&lists).copied().collect();
                held.sort_unstable();
                held.dedup();
                prop_assert!(held.iter().map(|&(_, bytes)| bytes).sum::<u64>() > budget);
            }
            prop_assert!(store.used_bytes() <= budget);
            prop_assert!(pinned.iter().flatten().all(|&(list, _)| store.holds(list)));
            let held: u64 = (0..lens.len()).filter(|&list| store.holds(list as u32)).map(|list| lens[list]).sum();
            prop_assert_eq!(held, store.used_bytes());
        }
    }

    #[test]
    fn placed_lists_keep_their_bytes_wherever_they_move(
        lens in prop::collection::vec(1_u64..100, 4..30),
        budget in 50_u64..600,
        steps in prop::collection::vec((prop::collection::btree_set(0_usize..30, 1..5), any::<bool>()), 1..80),
        half_life in 1.0_f64..50.0,
    ) {
        let mut placed = PlacedLists::new(lens.len(), budget, LeastSaved::new(lens.len(), half_life));
        // The same under a budget alone: places cost no list its own.
        let mut store = ListStore::new(lens.len(), budget, LeastSaved::new(lens.len(), half_life));
        let mut memory = vec![u32::MAX; budget as usize];
        let mut pinned: Vec<Vec<(u32, u64)>> = Vec::new();
        for (lists, is_release) in steps {
            if is_release && !pinned.is_empty() {
                let lists = pinned.remove(0);
                placed.unpin(&lists);
                store.unpin(&lists);
            }
            let lists: Vec<(u32, u64)> =
                lists.into_iter().filter(|&list| list < lens.len()).map(|list| (list as u32, lens[list])).collect();
            match (placed.pin(&lists), store.pin(&lists)) {
                (Ok(arrivals), Ok(expected)) => {
                    prop_assert_eq!(&arrivals.misses, &expected.misses);
                    prop_assert_eq!((arrivals.hit_bytes, arrivals.miss_bytes), (expected.hit_bytes, expected.miss_bytes));
                    for Move { from, to, len } in arrivals.moves {
                        prop_assert!(to < from);
                        memory.copy_within(from as usize..(from + len) as usize, to as usize);
                    }
                    for list in arrivals.misses {
                        let place = placed.place_of(list).unwrap() as usize;
                        memory[place..][..lens[list as usize] as usize].fill(list);
                    }
                    pinned.push(lists);
                }
                (placed, expected) => prop_assert_eq!(placed.err(), expected.err()),
            }
            for list in 0..lens.len() as u32 {
                let place = placed.place_of(list);
                prop_assert_eq!(place.is_some(), store.holds(list));
                let Some(place) = place else { continue };
                prop_assert!(memory[place as usize..][..lens[list as usize] as usize].iter().all(|&held| held == list));
            }
        }
    }

    #[test]
    fn every_block_lies_in_one_tier_apart_from_the_others_and_the_warmest_near(
        rows in prop::collection::vec(0_u32..40, 1..200),
        warm in prop::collection::vec((any::<prop::sample::Index>(), 1_u32..20, 0.0_f32..9.0), 0..10),
        room in 0_u64..5000,
    ) {
        let warm: Vec<WarmBlocks> = warm.into_iter().map(|(first, num_blocks, reads)| {
            let first_block = first.index(rows.len()) as u32;
            WarmBlocks { first_block, num_blocks: num_blocks.min(rows.len() as u32 - first_block), reads }
        }).collect();
        let placement = place_blocks(rows.clone(), &warm);
        let num_near = placement.num_near(room);
        let Placement { first_rows, num_rows, .. } = &placement;
        let num_rows = *num_rows;
        prop_assert!(num_near <= room);
        // The border moves with the budget, and nothing else does.
        prop_assert!(placement.num_near(room / 2) <= num_near);
        prop_assert!(num_near == num_rows || room - num_near < 40);
        prop_assert_eq!(num_rows, rows.iter().map(|&rows| u64::from(rows)).sum::<u64>());
        let mut spans: Vec<(u64, u64)> =
            first_rows.iter().zip(&rows).map(|(&first, &rows)| (u64::from(first), u64::from(first + rows))).collect();
        for &(first, end) in &spans {
            prop_assert!(end <= num_near || first >= num_near, "{first} to {end} of {num_near}");
        }
        spans.retain(|(first, end)| first < end);
        spans.sort_unstable();
        prop_assert!(spans.windows(2).all(|pair| pair[0].1 == pair[1].0) && spans.last().is_none_or(|last| last.1 == num_rows));
        // The warmest come first, and what is far does not fit.
        let colder = |a: &&WarmBlocks, b: &&WarmBlocks| b.reads.total_cmp(&a.reads).then(a.first_block.cmp(&b.first_block));
        if let Some(hottest) = warm.iter().min_by(colder) {
            prop_assert_eq!(first_rows[hottest.first_block as usize], 0);
            let (from, to) = placement.span(hottest.first_block, hottest.num_blocks);
            prop_assert_eq!((from, to <= num_near), (0, to <= room));
        }
        if room >= num_rows {
            prop_assert_eq!(num_near, num_rows);
        }
    }

    #[test]
    fn every_block_lies_in_one_page_apart_from_the_others(
        lists in prop::collection::vec(prop::collection::vec(0_u32..40, 1..30), 1..30),
        page_rows in 40_u32..200,
    ) {
        let (rows, ranges) = blocks_of(&lists);
        let pages = Pages::new(&rows, ranges.iter().cloned().zip(0..).map(|(range, list)| (list, range)), page_rows);
        let mut seen = vec![0; rows.len()];
        let mut spans = Vec::new();
        for page in 0..pages.num_pages() {
            for run in pages.runs(page) {
                for block in run.first_block..run.first_block + run.num_blocks {
                    prop_assert!(ranges[run.list as usize].contains(&block));
                    seen[block as usize] += 1;
                    let first = pages.first_rows()[block as usize];
                    let end = first + rows[block as usize];
                    prop_assert!(first >= page * page_rows && end <= (page + 1) * page_rows, "{first} to {end}, page {page}");
                    spans.push((first, end));
                }
            }
        }
        prop_assert!(seen.iter().zip(&rows).all(|(&seen, &rows)| seen == u32::from(rows > 0)));
        spans.sort_unstable();
        prop_assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{spans:?}");
    }

    #[test]
    fn an_online_tier_keeps_to_its_frames_swaps_only_what_pays_and_rests_when_queries_do(
        lists in prop::collection::vec(prop::collection::vec(1_u32..40, 1..30), 1..30),
        logs in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), 0.0_f32..500.0), 0..8), 1..4),
        num_frames in 1_u32..12,
        most_pages in 1_u32..6,
    ) {
        let (rows, ranges) = blocks_of(&lists);
        let pages = Pages::new(&rows, ranges.into_iter().zip(0..).map(|(range, list)| (list, range)), 64);
        let pages = std::sync::Arc::new(pages);
        let options = OnlineOptions {
            page_rows: 64, epoch_queries: 1, half_life_queries: 2, most_pages, copy_reads: 16.0,
        };
        let mut tier = OnlineTier::new(std::sync::Arc::clone(&pages), lists.len(), num_frames, options);
        // What a frame holds, as whoever copies has it.
        let mut frames: Vec<Option<u32>> = (0..num_frames).map(|page| (page < pages.num_pages()).then_some(page)).collect();
        for log in &logs {
            let mut last = Moves::default();
            // Each log long enough for its reads to settle, and for all pages to have moved.
            for _ in 0..80 {
                log.iter().for_each(|(list, reads)| tier.record(list.index(lists.len()) as u32, *reads));
                last = tier.end_epoch();
                prop_assert!(last.come.len() <= most_pages as usize && last.gone.len() <= last.come.len());
                for &(page, frame) in &last.gone {
                    prop_assert_eq!(frames[frame as usize].take(), Some(page));
                }
                for &(page, frame) in &last.come {
                    prop_assert_eq!(frames[frame as usize].replace(page), None);
                }
                for page in 0..pages.num_pages() {
                    let held = frames.iter().position(|&held| held == Some(page));
                    prop_assert_eq!(tier.frame_of(page), held.map(|frame| frame as u32));
                }
            }
            prop_assert!(last.is_empty(), "pages still move where queries stay the same: {last:?}");
        }
        for list in 0..lists.len() as u32 {
            let blocks = |near: Option<bool>| -> u32 {
                let runs = (0..pages.num_pages()).flat_map(|page| pages.runs(page).iter().map(move |run| (page, run)));
                let runs = runs.filter(|(page, run)| run.list == list && near.is_none_or(|near| tier.frame_of(*page).is_some() == near));
                runs.map(|(_, run)| run.num_blocks).sum()
            };
            prop_assert_eq!(tier.near().far_share(list), f64::from(blocks(Some(false))) / f64::from(blocks(None)));
        }
    }

    #[test]
    fn a_query_sees_one_map_whose_frames_hold_what_it_says(
        steps in prop::collection::vec((0_u8..4, any::<prop::sample::Index>()), 1..300),
    ) {
        // Three pages and two frames; by map the frame of each page.
        let mut maps = [[Some(0), Some(1), None]; 2];
        let mut frames = [0, 1];
        let mut turns = Turns::default();
        let mut readers: Vec<usize> = Vec::new();
        let mut epoch: (usize, usize, usize) = (0, 0, 0);
        let mut task = None;
        for (what, index) in steps {
            match what {
                0 => readers.push(turns.enter()),
                1 if !readers.is_empty() => turns.leave(readers.swap_remove(index.index(readers.len()))),
                2 if turns.is_idle() => {
                    let frame = index.index(2);
                    let gone = frames[frame];
                    let come = (0..3).find(|page| !frames.contains(page)).unwrap();
                    epoch = (gone, come, frame);
                    task = Some(turns.begin());
                }
                _ => {
                    // What was to be done is done between two steps.
                    task = turns.step(task.is_some());
                }
            }
            let (gone, come, frame) = epoch;
            match task {
                Some(Task::Part { map }) => maps[map][gone] = None,
                Some(Task::Bring { map }) => {
                    frames[frame] = come;
                    maps[map][gone] = None;
                    maps[map][come] = Some(frame);
                }
                Some(Task::Settle { map }) => maps[map][come] = Some(frame),
                None => {}
            }
            if let Some(Task::Part { map } | Task::Bring { map } | Task::Settle { map }) = task {
                prop_assert!(!readers.contains(&map), "a map is written while it is read");
            }
            for &map in &readers {
                for (page, frame) in maps[map].iter().enumerate() {
                    prop_assert!(frame.is_none_or(|frame: usize| frames[frame] == page), "page {page} of map {map}");
                }
            }
            if turns.is_idle() {
                prop_assert_eq!(maps[0], maps[1]);
            }
        }
    }

    #[test]
    fn a_fit_finds_what_made_its_points(constant in 0.1_f64..100.0, inverse in 0.0_f64..1e4) {
        let points: Vec<(f64, f64)> = [1.0, 10.0, 64.0, 500.0, 9000.0].map(|x| (x, constant + inverse / x)).to_vec();
        let fit = Fit::of(&points);
        prop_assert!((fit.constant - constant).abs() < 1e-6 * (constant + inverse), "{fit:?}");
        prop_assert!((fit.inverse - inverse).abs() < 1e-6 * (constant + inverse), "{fit:?}");
        prop_assert!(fit.relative_residual < 1e-9);
    }

    #[test]
    fn the_buffer_under_a_limit_is_within_it_and_no_much_larger_one_is(
        c in (0.1_f64..10.0, 0.0_f64..100.0), t in (1.0_f64..100.0, 0.0_f64..50.0), limit_ms in 0.01_f64..100.0,
    ) {
        let model = ThroughputModel {
            calculation: Fit { constant: c.0, inverse: c.1, relative_residual: 0.0 },
            transfer: Fit { constant: t.0, inverse: t.1, relative_residual: 0.0 },
        };
        // Every query brings 10 kB; a buffer below that holds none.
        let walk = |buffer: u64| {
            let n = buffer / 10_000;
            (n > 0).then(|| Walk { queries: n * 7, batches: 7, bytes: n * 70_000, ..Walk::default() })
        };
        let memory = 64 << 20;
        match model.with_cache(memory, 16 << 20, limit_ms, walk) {
            Some(found) => {
                prop_assert!(found.batch_ms <= limit_ms);
                let step = (memory - (16 << 20)) / 256 + 1;
                let larger = found.buffer_bytes + step;
                if larger <= memory - (16 << 20) {
                    let walk = walk(larger).unwrap();
                    prop_assert!(model.query_us(&walk) * walk.queries_a_batch() / 1e3 > limit_ms);
                }
            }
            // Not even the smallest buffer that halving tries.
            None => {
                let walk = walk((48 << 20) / 256 + 1).unwrap();
                prop_assert!(model.query_us(&walk) * walk.queries_a_batch() / 1e3 > limit_ms);
            }
        }
    }
}

#[test]
fn vfb_admits_as_in_the_papers_example() {
    // Figure 2: blocks with two visits and more, then those of the list that most queries name.
    let sizes = Lens(vec![5 * CACHE_BLOCK_LEN, 4 * CACHE_BLOCK_LEN, 6 * CACHE_BLOCK_LEN]);
    let mut visits = Visits::new(&sizes);
    for blocks in [4, 3, 2] {
        visits.record(0, blocks * CACHE_BLOCK_LEN);
    }
    for (list, blocks) in [(1, 3), (1, 2), (2, 5), (2, 3)] {
        visits.record(list, blocks * CACHE_BLOCK_LEN);
    }
    let admission = Admission::new(AdmissionPolicy::Vfb { share: 1.0 }, &visits, &sizes).unwrap();
    let ten_blocks = 10 * sizes.bytes(0, CACHE_BLOCK_LEN);
    let held = admission.within(ten_blocks, &sizes);
    // Two visits or more: 3 + 2 + 3 blocks; one visit: the fourth of list 0, then the third of list 1 before those of 2.
    assert_eq!(held.as_slice(), [4, 3, 3].map(|blocks| blocks * CACHE_BLOCK_LEN));
}

#[test]
fn rivals_take_the_most_named_or_the_shortest_for_their_names() {
    let sizes = Lens(vec![1000, 10, 500, 20]);
    let mut visits = Visits::new(&sizes);
    for (list, times) in [(0, 9), (1, 3), (2, 5), (3, 1)] {
        (0..times).for_each(|_| visits.record(list, 1));
    }
    let budget = sizes.bytes(0, 1000) + sizes.bytes(1, 10);
    let held = |policy| Admission::new(policy, &visits, &sizes).unwrap().within(budget, &sizes).as_slice().to_vec();
    // By names 0, 2, 1, 3: list 2 does not fit beside 0, list 1 does.
    assert_eq!(held(AdmissionPolicy::Qtf), [1000, 10, 0, 0]);
    // By names over length 1, 3, 2, 0.
    assert_eq!(held(AdmissionPolicy::QtfDf), [0, 10, 500, 20]);
}

#[test]
fn shares_out_of_range_and_buffers_without_room_are_refused_with_figures() {
    let sizes = Lens(vec![100]);
    let visits = Visits::new(&sizes);
    for share in [0.0, -0.5, 1.01, f64::NAN] {
        let error = Admission::new(AdmissionPolicy::Vfb { share }, &visits, &sizes).err().unwrap();
        assert!(error.to_string().contains("expected above 0 and at most 1"), "{error}");
    }
    let none = Prefixes::none(1);
    let error = BatchMaker::new(&sizes, &none, FOOTPRINT, 500).walk(&[vec![0_u32]], 10).unwrap_err();
    assert_eq!(error, CacheError::BufferTooSmall { buffer_bytes: 500, needed_bytes: 884, num_queries: 1 });
    assert!(error.to_string().contains("the smallest needs 884 bytes"));
}

#[test]
fn a_static_store_refuses_what_it_has_no_room_for() {
    let mut store = ListStore::new(3, 100, KeepAll);
    assert_eq!(store.pin(&[(0, 60), (1, 30)]).unwrap().misses, [0, 1]);
    let error = store.pin(&[(2, 11)]).unwrap_err();
    assert_eq!(error, CacheError::DoesNotFit { wanted_bytes: 11, room_bytes: 10, budget_bytes: 100 });
    assert_eq!(store.pin(&[(1, 30)]).unwrap().hit_bytes, 30);
}

#[test]
fn all_lists_of_a_query_are_read_as_often_and_their_blocks_share_that() {
    let mut reads = BlockReads::default();
    reads.record(expected_reads([(7, 100), (2, 128_000)].into_iter(), 128, &ReadRates::default()));
    assert_eq!(reads.iter().collect::<Vec<_>>(), [(2, 0.1), (7, 100.0)]);
    // By itself a list is read by blocks.
    reads.record(expected_reads([(2, 128_000)].into_iter(), 128, &ReadRates::default()));
    assert_eq!(reads.iter().collect::<Vec<_>>(), [(2, 1.1), (7, 100.0)]);
    // Of the shortest list's documents few go on to long ones.
    let rates = ReadRates::counted([(100, 1.0, 1.0), (128_000, 100.0, 5.0)]);
    let read: Vec<f64> =
        expected_reads([(7, 100), (2, 128_000)].into_iter(), 128, &rates).map(|read| read.reads).collect();
    assert!((read[0] - 100.0).abs() < 1e-4 && (read[1] - 5.0).abs() < 1e-4, "{read:?}");
}

#[test]
fn what_queries_turn_to_comes_near_and_what_they_left_goes() {
    // Two lists of four pages each, room for four.
    let rows = [64; 8];
    let pages = std::sync::Arc::new(Pages::new(&rows, [(0, 0..4), (1, 4..8)].into_iter(), 64));
    let options =
        OnlineOptions { page_rows: 64, epoch_queries: 1, half_life_queries: 1, most_pages: 3, copy_reads: 10.0 };
    let mut tier = OnlineTier::new(pages, 2, 4, options);
    tier.record(0, 100.0);
    assert_eq!((tier.near().far_share(0), tier.near().far_share(1), tier.end_epoch()), (0.0, 1.0, Moves::default()));
    // 60 are hotter than 50, but by no more than a copy costs.
    tier.record(1, 60.0);
    assert_eq!(tier.end_epoch(), Moves::default());
    tier.record(1, 60.0);
    let moves = tier.end_epoch();
    assert_eq!((moves.gone, moves.come), (vec![(3, 3), (2, 2), (1, 1)], vec![(4, 3), (5, 2), (6, 1)]));
    assert_eq!((tier.near().far_share(0), tier.near().far_share(1)), (0.75, 0.25));
}

#[test]
fn a_memory_in_pieces_is_put_together() {
    let mut space = Space::new(5, 100);
    assert_eq!([0, 1, 2].map(|list| space.place(list, 30)), [Some(0), Some(30), Some(60)]);
    space.free(0);
    space.free(2);
    // 70 are free, in two gaps.
    assert_eq!(space.place(3, 45), None);
    assert_eq!(space.compact(), [Move { from: 30, to: 0, len: 30 }]);
    assert_eq!((space.place(3, 45), space.place_of(1)), (Some(30), Some(0)));
    // The lowest gap that is long enough.
    assert_eq!((space.place(4, 25), space.place(2, 1)), (Some(75), None));
    // What lies side by side moves at once.
    space.free(1);
    assert_eq!(space.compact(), [Move { from: 30, to: 0, len: 70 }]);
    assert_eq!([3, 4].map(|list| space.place_of(list)), [Some(0), Some(45)]);
}
