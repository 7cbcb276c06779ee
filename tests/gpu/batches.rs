//! Batches and pipelines give the CPU's answers, for any mixture of queries.

use super::*;

#[test]
fn batches_of_all_sizes_equal_the_cpu() {
    let num_docs = 200_000;
    let mut dice = Dice(3);
    // Lengths range from one posting to all documents.
    let lens = [1, 2, 60, 127, 128, 129, 700, 5000, 30_000, 100_000, num_docs];
    let lists: Vec<List> = (0..88).map(|i| dice.list(num_docs, lens[i % lens.len()], 30)).collect();
    let lengths = (0..num_docs).map(|_| 1 + dice.below(500)).collect();
    let Some(mut world) = World::new(&lists, lengths, Bm25::default()) else { return };
    let query = |dice: &mut Dice| {
        let num_terms = [1, 2, 2, 3, 3, 4, 6, 12][dice.below(8) as usize];
        let terms: Vec<usize> = (0..num_terms).map(|_| dice.below(88) as usize).collect();
        world.query(&terms)
    };
    let queries: Vec<Query> = (0..1500).map(|_| query(&mut dice)).collect();
    for &size in sized(&[0, 1, 2, 127, 128, 129][..], &[2, 129]) {
        for &k in sized(&[1, 10, MAX_K][..], &[10, MAX_K]) {
            world.check_batch(&queries[..size], k, "batch");
        }
    }
    world.check_batch(&queries[..sized(1500, 300)], 10, "batch");
    world.check_batch(&queries[..sized(600, 130)], 100, "batch");
}

#[test]
fn batches_of_ties_equal_the_cpu() {
    // Some queries have more candidates than a batch has room for; fewer queries leave more room for each.
    let (num_docs, num_queries, num_long) = sized((1_500_000, 300, 300), (70_000, 128, 6));
    let all = strided(0, 1, num_docs, 1);
    let most: List = all.iter().copied().filter(|(doc, _)| doc % 97 != 0).collect();
    let few = strided(0, 1, 10, 1);
    let Some(mut world) = World::new(&[all, most, few], vec![7; num_docs as usize], Bm25::default()) else { return };
    let terms = |i: usize| if i < num_long { [&[0][..], &[1], &[0, 1]][i % 3] } else { &[2] };
    let queries: Vec<Query> = (0..num_queries).map(|i| world.query(terms(i))).collect();
    world.check_batch(&queries[..sized(7, num_queries)], 10, "ties");
    let mut found = Answers::default();
    world.gpu.search_batch(&requests(&queries, Mode::Or, 1), &mut found).unwrap();
    assert!(found.len() == queries.len() && found.iter().all(|hits| hits.len() == 1 && hits[0].doc.0 < 2));
}

/// Queries of all kinds: short and long lists, many terms, some that are scored by tiles.
fn mixed_queries(world: &World, num_lists: usize, count: usize) -> Vec<Query> {
    let mut dice = Dice(17);
    let query = |_| {
        let num_terms = [1, 2, 2, 3, 3, 4, 9, 24][dice.below(8) as usize];
        let terms: Vec<usize> = (0..num_terms).map(|_| dice.below(num_lists as u32) as usize).collect();
        world.query(&terms)
    };
    (0..count).map(query).collect()
}

/// Modes and numbers of results that change from request to request.
fn mixed_requests(queries: &[Query], seed: u64) -> Vec<Request<'_>> {
    let mut dice = Dice(seed);
    let ks = [1, 3, 10, 10, 10, 11, 100, 128, 129, MAX_K];
    let request =
        |query| Request { query, mode: Mode::ALL[dice.below(3) as usize], k: ks[dice.below(ks.len() as u32) as usize] };
    queries.iter().map(request).collect()
}

/// A world of lists from one posting to all documents.
fn mixed_world(bm25: Bm25) -> Option<World> {
    let num_docs = 60_000;
    let mut dice = Dice(5);
    let lens = [1, 2, 60, 127, 128, 129, 700, 5000, 15_000, 30_000, num_docs];
    let lists: Vec<List> = (0..88).map(|i| dice.list(num_docs, lens[i % lens.len()], 30)).collect();
    let lengths = (0..num_docs).map(|_| 1 + dice.below(500)).collect();
    World::new(&lists, lengths, bm25)
}

#[test]
fn batches_of_mixed_modes_and_k_equal_the_cpu() {
    // Without initial thresholds more queries are scored by tiles.
    for bm25 in [Bm25::default(), OTHER_BM25] {
        let Some(mut world) = mixed_world(bm25) else { return };
        let queries = mixed_queries(&world, 88, sized(4096, 300));
        for &size in sized(&[1, 2, 16, 17, 64, 300, 1025, 4096][..], &[2, 17, 300]) {
            let batch = mixed_requests(&queries[..size], size as u64);
            world.check_requests(&batch, "mixed");
        }
    }
}

#[test]
fn batches_of_tiled_queries_equal_the_cpu() {
    let num_docs = 5 * 8192 + 77;
    let lists: Vec<List> = (0..10).map(|i| strided(i, 2 + i % 3, 10_000, 5 + i)).collect();
    let Some(mut world) = World::new(&lists, lengths(num_docs), OTHER_BM25) else { return };
    let tiled: Vec<Query> = (0..40).map(|i| world.query(&[i % 10, 0, 1, 2, 3, 4, 5, 6, 7])).collect();
    let other = world.query(&[3]);
    let all = |modes: [Mode; 2], ks: [usize; 3]| -> Vec<Request<'_>> {
        let queries = tiled.iter().flat_map(|query| [query, &other]);
        queries.enumerate().map(|(i, query)| Request { query, mode: modes[i / 2 % 2], k: ks[i % 3] }).collect()
    };
    for modes in [[Mode::Or, Mode::Or], [Mode::AndOr, Mode::Or], [Mode::And, Mode::AndOr]] {
        for ks in [[10, 10, 10], [1, 129, MAX_K]] {
            world.check_requests(&all(modes, ks), "tiled");
        }
    }
}

/// A thread block takes several tiles if there are many, the last one of a query fewer.
#[test]
fn groups_of_tiles_equal_the_cpu_for_bm25_and_impacts() {
    const TILES: u32 = 151;
    let lists: Vec<List> = (0..10).map(|i| strided(i, 119 + i % 3, 10_000, 5 + 20 * i)).collect();
    for (bm25, built_with) in [(OTHER_BM25, Bm25::default()), (Bm25::IMPACTS, Bm25::IMPACTS)] {
        let write = |path: &Path| write_lists(path, &lists, lengths(TILES * 8192 - 5), built_with);
        let Some(mut world) = World::with_index(bm25, write) else { return };
        let weighted = |i: u32| {
            let terms = [i % 10, 0, 1, 2, 3, 4, 5, 6, 7].map(|term| (name(term as usize), 1 + i * (term + 1) % 255));
            Query::counted(QueryId(0), "q", terms, &world.index).unwrap()
        };
        let queries: Vec<Query> = (0..40).map(weighted).collect();
        for k in [1, 10, MAX_K] {
            world.check_batch(&queries, k, "groups of tiles");
        }
    }
}

/// Sums of impacts need no order of addition, because single precision has each of them.
#[test]
fn the_largest_sums_of_impacts_equal_the_cpu() {
    let list = |i: u32| -> List { (0..20_000).map(|doc| (3 * doc, 255 - (doc + i) % 997 / 996)).collect() };
    let lists: Vec<List> = (0..64).map(list).collect();
    let write = |path: &Path| write_lists(path, &lists, lengths(60_000), Bm25::IMPACTS);
    let Some(mut world) = World::with_index(Bm25::IMPACTS, write) else { return };
    let queries = [1, 2, 1023, 1024].map(|count| {
        let terms = (0..64).map(|term| (name(term), count));
        Query::counted(QueryId(0), "q", terms, &world.index).unwrap()
    });
    for k in [1, 10, MAX_K] {
        assert!(world.gpu.goes_by_tiles(&queries[3], Mode::Or, k));
        world.check_batch(&queries, k, "largest sums");
    }
    world.check_query(&queries[3], &[10], "largest sums alone");
}

#[test]
fn a_pipeline_gives_batches_in_order_while_later_ones_run() {
    let Some(mut world) = mixed_world(Bm25::default()) else { return };
    let queries = mixed_queries(&world, 88, sized(3000, 300));
    let sizes = sized(&[300, 1, 17, 2500, 0, 64, 5, 1200, 16, 2, 700, 1][..], &[1, 17, 200, 0, 2]);
    let batches: Vec<Vec<Request<'_>>> =
        sizes.iter().enumerate().map(|(i, &size)| mixed_requests(&queries[i..i + size], i as u64)).collect();
    let depth = world.gpu.depth();
    assert!(depth >= 2);
    let (mut next, mut answered) = (0, 0);
    let mut answers = Answers::default();
    while answered < batches.len() {
        while next < batches.len() && next - answered < depth {
            world.gpu.submit(&batches[next]).unwrap();
            next += 1;
        }
        // A single query may come between batches.
        if answered == 1 {
            world.check_query(&queries[0], &[10], "during a pipeline");
        }
        if let Some(execution) = world.gpu.poll(&mut answers) {
            let execution = execution.unwrap();
            assert!(execution.host_us.is_some() && execution.device_us.is_some());
            world.compare_all(&batches[answered], &answers, &format!("batch {answered} of a pipeline"));
            answered += 1;
        }
    }
    assert!(world.gpu.poll(&mut answers).is_none());
}

#[test]
fn an_executor_dropped_amid_batches_leaves_others_alone() {
    let Some(mut world) = mixed_world(Bm25::default()) else { return };
    let queries = mixed_queries(&world, 88, sized(2000, 200));
    let batch = mixed_requests(&queries, 3);
    for round in 0..sized(6, 2) {
        // Dropping the executor frees its index while its kernels still read it.
        let mut dropped = GpuExecutor::new(&world.index, Bm25::default()).unwrap();
        for _ in 0..dropped.depth() {
            dropped.submit(&batch).unwrap();
        }
        drop(dropped);
        world.check_requests(&batch[..sized(200, 20)], &format!("after drop {round}"));
    }
}
