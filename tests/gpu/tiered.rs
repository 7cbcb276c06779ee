//! An index of which a part lies in the host's memory is searched with the same answers, whatever the part.

use tandem::cache::OnlineOptions;
use tandem::exec::gpu::GpuMemory;
use tandem::ids::DeviceId;

use super::*;

fn with_memory(world: &World, bytes: u64, log: &[Query]) -> Result<GpuExecutor, ExecError> {
    let memory = GpuMemory::new(bytes, &world.index, log);
    GpuExecutor::on_device(DeviceId(0), &world.index, Bm25::default(), Some(&memory), &|_, _| ())
}

#[test]
fn any_budget_of_device_memory_gives_the_same_answers() {
    let num_docs = sized(200_000, 60_000);
    let mut dice = Dice(23);
    // Short lists, long ones, all documents: some go by tiles.
    let lens = [1, 2, 60, 127, 128, 129, 700, 5000, 30_000, num_docs];
    let lists: Vec<List> = (0..60).map(|i| dice.list(num_docs, lens[i % lens.len()], 30)).collect();
    let lengths = (0..num_docs).map(|_| 1 + dice.below(500)).collect();
    let Some(mut world) = World::new(&lists, lengths, Bm25::default()) else { return };
    let query = |dice: &mut Dice| {
        let num_terms = [1, 2, 2, 3, 3, 4, 6, 12][dice.below(8) as usize];
        let terms: Vec<usize> = (0..num_terms).map(|_| dice.below(60) as usize).collect();
        world.query(&terms)
    };
    let queries: Vec<Query> = (0..sized(300, 40)).map(|_| query(&mut dice)).collect();
    let whole = world.gpu.upload_report();
    assert_eq!(whole.far_bytes, 0);
    let least = match with_memory(&world, 0, &[]) {
        Err(ExecError::Gpu(GpuError::BadBudget { least_bytes, .. })) => least_bytes,
        other => panic!("{other:?}, expected a refusal"),
    };
    for share in [0.0, 0.1, 0.4, 0.9, 1.0] {
        let budget = least + ((whole.device_bytes - least) as f64 * share).ceil() as u64;
        // Without a log, and with one of other queries than these.
        for log in [&[][..], &queries[..10]] {
            world.gpu = with_memory(&world, budget, log).unwrap();
            let report = world.gpu.upload_report();
            assert!(report.device_bytes <= budget, "{report:?} with {budget}");
            assert_eq!(report.device_bytes + report.far_bytes, whole.device_bytes);
            assert_eq!(report.far_bytes == 0, share == 1.0, "{report:?}");
            let note = format!("{budget} of {} bytes", whole.device_bytes);
            world.check_batch(&queries, 10, &note);
            for query in &queries[..sized(20, 3)] {
                world.check_query(query, &[10, MAX_K], &note);
            }
        }
    }
}

#[test]
fn budgets_that_are_too_small_or_not_free_are_refused_with_figures() {
    let lists = vec![strided(0, 2, 5000, 3), strided(1, 3, 3000, 5)];
    let Some(world) = World::new(&lists, lengths(10_000), Bm25::default()) else { return };
    for bytes in [0, 1000, 1 << 50] {
        let error = with_memory(&world, bytes, &[]).err().unwrap().to_string();
        assert!(error.contains(&format!("a budget of {bytes} bytes")) && error.contains("what is free"), "{error}");
    }
}

#[test]
fn answers_stay_the_same_while_pages_follow_the_queries() {
    let num_docs = sized(200_000, 60_000);
    let mut dice = Dice(29);
    let lens = [1, 60, 128, 700, 5000, 30_000, num_docs];
    let lists: Vec<List> = (0..50).map(|i| dice.list(num_docs, lens[i % lens.len()], 30)).collect();
    let lengths = (0..num_docs).map(|_| 1 + dice.below(500)).collect();
    let Some(mut world) = World::new(&lists, lengths, Bm25::default()) else { return };
    // Two topics, of different lists.
    let mut topic = |from: u32| -> Vec<Query> {
        let mut query = || {
            let num_terms = 1 + dice.below(4);
            let terms: Vec<usize> = (0..num_terms).map(|_| (from + dice.below(25)) as usize).collect();
            world.query(&terms)
        };
        (0..sized(200, 40)).map(|_| query()).collect()
    };
    let topics = [topic(0), topic(25)];
    let options =
        OnlineOptions { page_rows: 128, epoch_queries: 16, half_life_queries: 32, most_pages: 40, copy_reads: 1.0 };
    let whole = world.gpu.upload_report();
    let index = Arc::clone(&world.index);
    let memory = |bytes: u64| GpuMemory::new(bytes, &index, &topics[0]).online(options);
    let open =
        |bytes: u64| GpuExecutor::on_device(DeviceId(0), &index, Bm25::default(), Some(&memory(bytes)), &|_, _| ());
    let least = match open(0) {
        Err(ExecError::Gpu(GpuError::BadBudget { least_bytes, .. })) => least_bytes,
        other => panic!("{other:?}, expected a refusal"),
    };
    // Headers are there twice, and there is a frame.
    let least_online = match open(least) {
        Err(ExecError::Gpu(GpuError::BadBudget { least_bytes, .. })) => least_bytes,
        other => panic!("{other:?}, expected a refusal"),
    };
    assert!(least_online > least);
    for share in [0.0, 0.2, 0.6] {
        let budget = least_online + ((whole.device_bytes - least_online) as f64 * share) as u64;
        world.gpu = open(budget).unwrap();
        let report = world.gpu.upload_report();
        assert!(report.device_bytes <= budget && report.far_bytes > 0, "{report:?} with {budget}");
        let mut other = world.gpu.for_another_stream().unwrap();
        let far_before: f64 = topics[1].iter().filter_map(|query| world.gpu.far_share(query)).sum();
        let note = format!("{budget} of {} bytes, pages moving", whole.device_bytes);
        for round in 0..sized(20, 6) {
            let topic = &topics[usize::from(round >= 2)];
            world.check_batch(topic, 10, &note);
            // Another stream, which sees the same maps.
            std::mem::swap(&mut world.gpu, &mut other);
            world.check_query(&topic[round as usize], &[10, MAX_K], &note);
        }
        let moved = world.gpu.online_report().unwrap();
        assert!(moved.epochs > 0 && moved.pages > 0, "{moved:?}");
        let far_after: f64 = topics[1].iter().filter_map(|query| world.gpu.far_share(query)).sum();
        assert!(share == 0.0 || far_after < far_before, "{far_after} far of what was {far_before}");
    }
    // With room for all there is nothing to follow.
    world.gpu = open(2 * whole.device_bytes).unwrap();
    assert_eq!((world.gpu.online_report(), world.gpu.upload_report().far_bytes), (None, 0));
}
