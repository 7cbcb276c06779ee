//! Laws of the cache on random lists and logs.

use proptest::prelude::*;

use super::admission::{Admission, AdmissionPolicy};
use super::batches::{Batch, BatchMaker, BatchTrace, Footprint};
use super::model::{Fit, ThroughputModel};
use super::prefixes::Prefixes;
use super::sizes::Sizes;
use super::visits::{CACHE_BLOCK_LEN, Visits};
use crate::error::CacheError;

/// Lists of these lengths with eight bytes per posting and four per started block.
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

/// Lists, and queries of 1 to 4 lists, each with the postings that it reads of them.
fn lists_and_logs() -> impl Strategy<Value = (Lens, Vec<Vec<u32>>, Vec<Vec<u32>>)> {
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
    fn visits_of_blocks_count_who_goes_that_far((sizes, log, depths) in lists_and_logs()) {
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
        (sizes, log, depths) in lists_and_logs(),
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
            // An unlimited budget holds all that the policy admits.
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
    fn vfb_leaves_no_block_that_would_fit(
        (sizes, log, depths) in lists_and_logs(), budget in 0_u64..60_000,
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
            // The block did not fit at its turn, and the remaining room has only shrunk since.
            prop_assert!(more > room, "list {left}: {more} would fit into {room}");
        }
    }

    #[test]
    fn batches_hold_every_query_once_and_fit_the_buffer(
        (sizes, log, depths) in lists_and_logs(),
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
            match BatchMaker::new(&sizes, &prefixes, FOOTPRINT, buffer).trace(&log, limit) {
                Ok(trace) => {
                    prop_assert_eq!((trace.queries, trace.list_bytes), (seen.len() as u64, moved));
                    prop_assert_eq!(trace.oversized, oversized.len() as u64);
                }
                Err(error) => {
                    let is_small = matches!(error, CacheError::BufferTooSmall { needed_bytes, .. } if needed_bytes > buffer);
                    prop_assert!(seen.is_empty() && is_small);
                }
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
    fn the_buffer_under_a_limit_is_the_largest_within_it(
        c in (0.1_f64..10.0, 0.0_f64..100.0), t in (1.0_f64..100.0, 0.0_f64..50.0), limit_ms in 0.01_f64..100.0,
    ) {
        let model = ThroughputModel {
            calculation: Fit { constant: c.0, inverse: c.1, relative_residual: 0.0 },
            transfer: Fit { constant: t.0, inverse: t.1, relative_residual: 0.0 },
        };
        // Every query moves 10 kB; a smaller buffer holds none.
        let trace = |buffer: u64| {
            let n = buffer / 10_000;
            (n > 0).then(|| BatchTrace { queries: n * 7, batches: 7, bytes: n * 70_000, ..BatchTrace::default() })
        };
        let memory = 64 << 20;
        match model.with_cache(memory, 16 << 20, limit_ms, trace) {
            Some(found) => {
                prop_assert!(found.batch_ms <= limit_ms);
                let step = (memory - (16 << 20)) / 256 + 1;
                let larger = found.buffer_bytes + step;
                if larger <= memory - (16 << 20) {
                    let trace = trace(larger).unwrap();
                    prop_assert!(model.query_us(&trace) * trace.queries_per_batch() / 1e3 > limit_ms);
                }
            }
            // Even the smallest buffer that bisection tries exceeds the limit.
            None => {
                let trace = trace((48 << 20) / 256 + 1).unwrap();
                prop_assert!(model.query_us(&trace) * trace.queries_per_batch() / 1e3 > limit_ms);
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
    // Blocks with two or more visits: 3 + 2 + 3. With one visit: the fourth of list 0, then the third of list 1 before
    // those of list 2.
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
    // The order by names is 0, 2, 1, 3: list 2 does not fit next to 0, list 1 does.
    assert_eq!(held(AdmissionPolicy::Qtf), [1000, 10, 0, 0]);
    // The order by names over length is 1, 3, 2, 0.
    assert_eq!(held(AdmissionPolicy::QtfDf), [0, 10, 500, 20]);
}

#[test]
fn bad_shares_and_small_buffers_are_refused_with_figures() {
    let sizes = Lens(vec![100]);
    let visits = Visits::new(&sizes);
    for share in [0.0, -0.5, 1.01, f64::NAN] {
        let error = Admission::new(AdmissionPolicy::Vfb { share }, &visits, &sizes).err().unwrap();
        assert!(error.to_string().contains("expected above 0 and at most 1"), "{error}");
    }
    let none = Prefixes::none(1);
    let error = BatchMaker::new(&sizes, &none, FOOTPRINT, 500).trace(&[vec![0_u32]], 10).unwrap_err();
    assert_eq!(error, CacheError::BufferTooSmall { buffer_bytes: 500, needed_bytes: 884, num_queries: 1 });
    assert!(error.to_string().contains("the smallest needs 884 bytes"));
}
