//! An index with a part in the host's memory gives equal answers for any part.

use tandem::base::ids::DeviceId;
use tandem::search::gpu::GpuMemory;

use super::*;

fn with_memory(world: &World, bytes: u64, log: &[Query]) -> Result<GpuExecutor, ExecError> {
    let memory = GpuMemory::new(bytes, &world.index, log);
    GpuExecutor::on_device(DeviceId(0), &world.index, Bm25::default(), Some(&memory), &|_, _| ())
}

#[test]
fn any_budget_of_device_memory_gives_the_same_answers() {
    let num_docs = sized(200_000, 60_000);
    let mut dice = Dice(23);
    // Lists are short, long or of all documents, so that some are scored by tiles.
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
    assert_eq!(whole.host_bytes, 0);
    let least = match with_memory(&world, 0, &[]) {
        Err(ExecError::Gpu(GpuError::BadBudget { least_bytes, .. })) => least_bytes,
        other => panic!("{other:?}, expected a refusal"),
    };
    for share in [0.0, 0.1, 0.4, 0.9, 1.0] {
        let budget = least + ((whole.device_bytes - least) as f64 * share).ceil() as u64;
        // The index is placed without a log, and with a log of other queries.
        for log in [&[][..], &queries[..10]] {
            world.gpu = with_memory(&world, budget, log).unwrap();
            let report = world.gpu.upload_report();
            assert!(report.device_bytes <= budget, "{report:?} with {budget}");
            // Directories may lack up to 7 of their 10 entries of 8 bytes per block, so that more rows are device-resident.
            let saved_bytes = whole.device_bytes - (report.device_bytes + report.host_bytes);
            let of_one = 8 * world.index.list_sections().blocks.len() as u64;
            assert!(saved_bytes % of_one == 0 && saved_bytes <= 7 * of_one, "{report:?} of {whole:?}");
            assert!(report.host_bytes == 0 || share < 1.0, "{report:?}");
            assert!(report.host_bytes > 0 || share > 0.4, "{report:?}");
            let note = format!("{budget} of {} bytes", whole.device_bytes);
            world.check_batch(&queries, 10, &note);
            for query in &queries[..sized(20, 3)] {
                world.check_query(query, &[10, MAX_K], &note);
            }
        }
    }
}

#[test]
fn impossible_budgets_are_refused_with_figures() {
    let lists = vec![strided(0, 2, 5000, 3), strided(1, 3, 3000, 5)];
    let Some(world) = World::new(&lists, lengths(10_000), Bm25::default()) else { return };
    for bytes in [0, 1000, 1 << 50] {
        let error = with_memory(&world, bytes, &[]).err().unwrap().to_string();
        assert!(error.contains(&format!("a budget of {bytes} bytes")) && error.contains("what is free"), "{error}");
    }
}
