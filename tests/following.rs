//! Pages that follow the queries, simulated: by the very machine that counts play, and the still tier and the resident index as its
//! ends.

mod far_times;

use std::sync::Arc;

use far_times::{far_evenly, tier_model};
use proptest::prelude::*;
use tandem::cache::{AtOnce, OnlineOptions, OnlineTier, Pages, ReadRates, Residency};
use tandem::cost::{
    BatchCost, BatchLoad, Cost, Following, FollowingPace, IndexPages, ListOfPages, MachineModel, Measured,
    MeasuredTimes, PageLayout, Retold, ServiceTimes, Workload, WorkloadRow,
};
use tandem::files::Provenance;
use tandem::ids::{ProcessorId, QueryId};
use tandem::live::{self, LanePool, LiveRun};
use tandem::machine::{Class, Machine, PerClass};
use tandem::query::{Features, Mode};
use tandem::sched::{PolicyFactory, PolicyKind, PolicyOptions, RunLog};
use tandem::sim::{Arrivals, Experiment, SimQuery, simulate};
use tandem::time::Nanos;

const STAYING: u64 = 5000;
const HEADERS: u64 = 1000;
const PAGE_BYTES: u64 = 16 * 128;
const AT_ONCE: FollowingPace = FollowingPace { copy_rate: f64::INFINITY, decide: Nanos::ZERO };

/// Queries of one to three lists, in pages of eight blocks of 16 rows; what they cost near, and far.
#[derive(Clone, Debug)]
struct World {
    workload: Workload,
    pages: IndexPages,
    queries: Vec<SimQuery>,
    near: Vec<PerClass<Cost>>,
}

fn world(blocks: &[u32], learned: &[u16], named: &[Vec<usize>], far_us: &[u16]) -> World {
    let mut end = 0;
    let ranges: Vec<_> = blocks
        .iter()
        .map(|blocks| {
            end += blocks;
            end - blocks..end
        })
        .collect();
    let pages = Pages::new(&vec![16; end as usize], (0..).zip(ranges), 128);
    let mut lists: Vec<ListOfPages> = pages
        .of_each_list(blocks.len())
        .into_iter()
        .zip(blocks)
        .zip(learned)
        .map(|((pages, &blocks), &reads)| ListOfPages {
            postings: 128 * blocks,
            reads: f32::from(reads),
            pages,
            queries: Vec::new(),
        })
        .collect();
    let mut rows = Vec::new();
    for ((id, named), &far_us) in (0..).zip(named).zip(far_us) {
        let mut named: Vec<usize> = named.iter().map(|list| list % blocks.len()).collect();
        named.sort_unstable();
        named.dedup();
        named.iter().for_each(|&list| lists[list].queries.push(id));
        let mut lengths: Vec<u64> = named.iter().map(|&list| lists[list].postings.into()).collect();
        lengths.sort_unstable();
        rows.push(row(id, &lengths, far_us.into()));
    }
    let tiers = tier_model(STAYING, PAGE_BYTES * u64::from(pages.num_pages()));
    let provenance = Provenance::default().with("index", "1");
    let workload = Workload { provenance: provenance.clone(), rows, tiers: Some(tiers), ..Workload::default() };
    let layout = PageLayout { num_pages: pages.num_pages(), page_rows: 128, headers_bytes: HEADERS };
    let near: Vec<PerClass<Cost>> = workload.rows.iter().map(near_costs).collect();
    let queries =
        (0..).map(QueryId).zip(&near).map(|(id, &cost)| SimQuery { id, service: cost, estimate: cost }).collect();
    World { workload, pages: IndexPages { provenance, layout, rates: ReadRates::default(), lists }, queries, near }
}

/// A query of lists of these lengths, ascending.
fn row(id: u32, lengths: &[u64], far_us: f64) -> WorkloadRow {
    let near_us = 20.0 + f64::from(id);
    let measured = Measured { median_us: near_us, spread_us: 0.0, device_us: None };
    WorkloadRow {
        query_id: QueryId(id),
        log_id: id,
        mode: Mode::Or,
        features: Features::from_lengths(lengths, 100_000),
        index_features: None,
        measured: PerClass::two(Some(Measured { median_us: 3.0 * near_us, ..measured }), Some(measured)),
        far: Some(far_evenly(near_us + far_us)),
        results: 10,
    }
}

/// What it costs with its lists near: three tenths of it in a batch.
fn near_costs(row: &WorkloadRow) -> PerClass<Cost> {
    let time = |class: Class| Nanos::from_us(row.measured[class].map_or(0.0, |measured| measured.median_us));
    PerClass::from_fn(|class| match class {
        Class::GPU => Cost { added: Nanos::from_us(0.3 * time(class).as_us()), ..Cost::alone(time(class)) },
        Class::CPU => Cost::alone(time(class)),
        _ => Cost::NEVER,
    })
}

prop_compose! {
    fn worlds()(
        blocks in prop::collection::vec(1_u32..30, 2..12),
    )(
        learned in prop::collection::vec(0_u16..500, blocks.len()),
        named in prop::collection::vec(prop::collection::vec(0_usize..100, 1..4), 1..20),
        far_us in prop::collection::vec(0_u16..300, 20),
        blocks in Just(blocks),
    ) -> World {
        world(&blocks, &learned, &named, &far_us)
    }
}

impl World {
    fn following(&self, num_frames: u32, epoch_queries: u32, pace: FollowingPace) -> Following {
        let bytes = match num_frames >= self.pages.layout.num_pages {
            true => u64::MAX,
            false => STAYING + HEADERS + PAGE_BYTES * u64::from(num_frames),
        };
        let options = OnlineOptions { copy_reads: 8.0, ..OnlineOptions::of_pages(128, epoch_queries) };
        let far = || self.workload.far_costs(&self.near, false).unwrap();
        Following::new(&self.workload, &self.pages, bytes, options, pace, (far(), far())).unwrap()
    }

    /// One CPU worker, and streams of one GPU.
    fn experiment(&self, streams: usize, arrivals: &[(u16, u16)], following: Option<Following>) -> Experiment {
        let mut at = 0.0;
        let times = arrivals.iter().map(|&(gap, _)| {
            at += f64::from(gap);
            at
        });
        let asked = arrivals.iter().map(|&(_, query)| u32::from(query) % self.queries.len() as u32);
        let batches = BatchCost {
            host_fixed_us: 5.0,
            host_each_us: 1.0,
            exposed: None,
            device_fixed_us: 3.0,
            longest: 0.5,
            crowding: vec![(2, 3.0), (64, 1.0)],
            bus_crowding: vec![(4, 2.0), (64, 1.0)],
            most_queries: 64,
        };
        Experiment {
            deadline: Nanos::from_ms(1.0),
            arrivals: vec![Arrivals::given(0, times.collect(), asked.collect())],
            queries: self.queries.clone(),
            cluster: None,
            model: MachineModel {
                batches: PerClass::two(None, Some(batches)),
                following: following.map(Arc::new),
                ..Machine::new(1, 0).with_gpus(1, streams, 2).into()
            },
        }
    }
}

/// Gaps are microseconds at this rate.
const RATE_QPS: f64 = 1e6;

fn play(experiment: &Experiment, kind: PolicyKind) -> RunLog {
    let policy = kind.with(PolicyOptions::default());
    simulate(experiment.run(&policy, RATE_QPS, &experiment.arrivals[0]).unwrap()).unwrap()
}

/// All that need no second sort of GPU.
fn policies() -> impl Iterator<Item = PolicyKind> {
    PolicyKind::ALL.into_iter()
}

fn arrivals() -> impl Strategy<Value = Vec<(u16, u16)>> {
    prop::collection::vec((prop_oneof![Just(0_u16), 0..80_u16], any::<u16>()), 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn pages_that_never_move_are_the_still_tier_row_for_row(
        world in worlds(), arrivals in arrivals(), num_frames in 1_u32..30, streams in 1_usize..3,
    ) {
        let following = world.following(num_frames, u32::MAX, AT_ONCE);
        let mut still = world.experiment(streams, &arrivals, None);
        for (row, query) in (0..).zip(&mut still.queries) {
            let cost = following.cost(row, query.service[Class::GPU], following.first_far_share(row));
            (query.service[Class::GPU], query.estimate[Class::GPU]) = (cost, cost);
        }
        let following = world.experiment(streams, &arrivals, Some(following));
        for kind in policies() {
            prop_assert_eq!(play(&following, kind), play(&still, kind), "{}", kind);
        }
    }

    #[test]
    fn with_all_pages_near_it_is_the_resident_index_row_for_row(
        world in worlds(), arrivals in arrivals(), epoch in 1_u32..40,
    ) {
        let resident = world.experiment(1, &arrivals, None);
        let following = world.following(u32::MAX, epoch, FollowingPace::new(1e9, 100));
        prop_assert_eq!(following.num_near().0, following.num_near().1);
        let following = world.experiment(1, &arrivals, Some(following));
        for kind in policies() {
            prop_assert_eq!(play(&following, kind), play(&resident, kind), "{}", kind);
        }
    }

    #[test]
    fn a_run_finds_far_what_a_count_of_its_batches_finds(
        world in worlds(), arrivals in arrivals(), num_frames in 1_u32..20, epoch in 1_u32..40,
    ) {
        let following = world.following(num_frames, epoch, AT_ONCE);
        let experiment = world.experiment(1, &arrivals, Some(following));
        let log = play(&experiment, PolicyKind::Greedy);
        // The lane's batches, in order: two may be under way, of which the first is counted as read when the second begins.
        let mut batches: Vec<(Nanos, Nanos, Vec<u32>)> = Vec::new();
        let mut of_gpu: Vec<_> = log.rows.iter().filter(|row| row.class == Class::GPU).collect();
        of_gpu.sort_by_key(|row| (row.batch, row.job));
        for row in of_gpu.chunk_by(|a, b| a.batch == b.batch) {
            batches.push((row[0].started, row[0].finished, row.iter().map(|row| row.query.0).collect()));
        }
        let options = OnlineOptions { copy_reads: 8.0, ..OnlineOptions::of_pages(128, epoch) };
        let frames = num_frames.min(world.pages.layout.num_pages);
        let mut tier = OnlineTier::new(Arc::new(world.pages.pages()), world.pages.lists.len(), frames, options);
        (0..).zip(&world.pages.lists).for_each(|(list, of_list)| tier.record(list, of_list.reads));
        let demands = world.pages.demands(&world.workload).unwrap();
        let mut count = Residency::new(tier);
        let mut readers: Vec<(Nanos, usize)> = Vec::new();
        let model = &experiment.model;
        let mut times = MeasuredTimes::new(model, |row: u32, class| world.near[row as usize][class]);
        for (started, finished, rows) in &batches {
            readers.retain(|&(end, map)| {
                if end <= *started { count.leave(map); }
                end > *started
            });
            readers.push((*finished, count.start(rows, |row| demands.of(row), &mut AtOnce)));
            // By the log alone the very times of the run: what its costs were is what was near.
            prop_assert_eq!(times.start(ProcessorId(1), rows, *started), *finished);
        }
        let simulated: Vec<_> = times.followed().collect();
        prop_assert_eq!(simulated[0], count.followed());
        prop_assert!(batches.is_empty() || count.followed().reads.all > 0.0);
    }

    #[test]
    fn a_log_retold_says_what_each_query_cost_when_its_batch_started(
        world in worlds(), arrivals in arrivals(), num_frames in 1_u32..20, epoch in 1_u32..40,
    ) {
        let following = world.following(num_frames, epoch, AT_ONCE);
        let mut experiment = world.experiment(1, &arrivals, Some(following.clone()));
        // One batch at a time: each takes what its own queries do, and nothing else.
        experiment.model.machine = Machine::new(1, 0).with_gpus(1, 1, 1);
        for kind in [PolicyKind::GpuOnly, PolicyKind::Greedy] {
            let log = play(&experiment, kind);
            let mut on_gpu: Vec<_> = log.rows.iter().filter(|row| row.class == Class::GPU).collect();
            on_gpu.sort_by_key(|row| (row.batch, row.job));
            let mut retold = Retold::new(&following, 1);
            for batch in on_gpu.chunk_by(|a, b| a.batch == b.batch) {
                let rows: Vec<u32> = batch.iter().map(|row| row.query.0).collect();
                let times = (batch[0].started, batch[0].finished);
                let costs = retold.batch(0, &rows, times, |row| world.near[row as usize][Class::GPU]);
                let load = costs.into_iter().fold(BatchLoad::default(), BatchLoad::with);
                let predicted = experiment.model.batch_time(Class::GPU, &load).total();
                prop_assert_eq!(times.1.since(times.0), predicted, "{}", kind);
            }
        }
    }

    #[test]
    fn the_live_driver_with_a_manual_clock_plays_the_same(
        world in worlds(), arrivals in arrivals(), num_frames in 1_u32..20, epoch in 1_u32..40,
    ) {
        let pace = FollowingPace { copy_rate: 1e8, decide: Nanos(30_000) };
        let experiment = world.experiment(2, &arrivals, Some(world.following(num_frames, epoch, pace)));
        let mut lane_pool = LanePool::recorded(experiment.model.clone(), world.near.clone());
        let estimates: Vec<_> = world.queries.iter().map(|query| (query.id, query.estimate)).collect();
        let jobs = live::plan(experiment.arrivals[0].at_rate(RATE_QPS), &estimates, experiment.deadline);
        for kind in policies() {
            let policy = kind.with(PolicyOptions::default()).build(&experiment.model).unwrap();
            let run = LiveRun { policy, jobs: &jobs, abandon_after: None };
            let driven = live::run_under_manual_clock(&mut lane_pool, run).unwrap();
            prop_assert_eq!(&driven.log, &play(&experiment, kind), "{}", kind);
        }
    }

    #[test]
    fn bounds_are_those_of_all_near_and_nothing_is_certified(
        world in worlds(), arrivals in arrivals(), num_frames in 1_u32..20,
    ) {
        let following = world.following(num_frames, 8, AT_ONCE);
        let region = |experiment: &Experiment| experiment.region().unwrap().rate_qps;
        let resident = world.experiment(1, &arrivals, None);
        // Whatever share is far, no more is stable.
        let mut far = world.experiment(1, &arrivals, None);
        for (row, query) in (0..).zip(&mut far.queries) {
            query.service[Class::GPU] = following.cost(row, query.service[Class::GPU], 0.5);
        }
        let experiment = world.experiment(1, &arrivals, Some(following));
        prop_assert_eq!(region(&experiment), region(&resident));
        prop_assert!(region(&far) <= region(&experiment) * (1.0 + 1e-9));
        let policy = PolicyKind::Greedy.with(PolicyOptions::default());
        prop_assert!(tandem::sim::certificate::dearest(&experiment.queries, &policy, &resident.model).is_some());
        prop_assert_eq!(tandem::sim::certificate::dearest(&experiment.queries, &policy, &experiment.model), None);
    }
}

#[test]
fn pages_that_come_are_read_near_once_they_are_there_and_hold_up_reads_meanwhile() {
    // Two lists of sixteen pages, and room for one.
    let world = world(&[128, 128], &[1, 0], &[vec![0], vec![1]], &[400, 400]);
    // An epoch of four, each page copied in 2,048 ns: sixteen take 33 us.
    let pace = FollowingPace { copy_rate: 1e9, decide: Nanos(600_000) };
    let experiment = world.experiment(1, &[(0, 0)], Some(world.following(16, 4, pace)));
    let mut times = MeasuredTimes::new(&experiment.model, |row: u32, class| world.near[row as usize][class]);
    let mut took =
        |at_us: u64| times.start(ProcessorId(1), &[1], Nanos(at_us * 1000)).since(Nanos(at_us * 1000)).as_us();
    // 21 us near, 400 more with all far; four queries end an epoch, and 600 us later it is decided.
    let far_us = [0, 1000, 2000, 3000].map(&mut took);
    assert_eq!(far_us, [421.0; 4]);
    // What goes, and from the next border on what comes; with all pages on their way all is still far.
    assert_eq!([3500, 4000].map(&mut took), [421.0; 2]);
    let beside_us = took(5000);
    assert!(beside_us > 421.0 && beside_us < 421.0 + 33.0, "{beside_us}");
    // They have come within that query.
    assert_eq!(took(6000), 21.0);
    let mut expected = world.near[1];
    times.predict_cost(1, &mut expected);
    assert_eq!(expected, world.near[1]);
    times.predict_cost(0, &mut expected);
    assert!(expected[Class::GPU].bus > Nanos::ZERO, "{expected:?}");
}
