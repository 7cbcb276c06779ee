//! The GPU against the CPU: the same documents with the same scores, bit for bit.
//!
//! Without a GPU these tests print a note and pass; with `TANDEM_REQUIRE_GPU` set they fail. In debug builds the executor
//! poisons its buffers before each query. Real collections are found by `TANDEM_DATA`, as in effectiveness.rs. With
//! `TANDEM_SANITIZER` set (kernels/sanitize.py does so) each test tries fewer cases: kernels then run a hundred times
//! slower.

#[path = "../skipped/mod.rs"]
mod skipped;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tandem::base::ids::{DocId, QueryId};
use tandem::base::quantile::median;
use tandem::corpus::{Collection, Tokenizer};
use tandem::index::{Bm25, Idf, Index, IndexBuilder};
use tandem::indexing::{BuildOptions, build_from_text};
use tandem::query::{Query, prepare_queries};
use tandem::search::cpu::CpuExecutor;
use tandem::search::device::{GpuError, list_gpus};
use tandem::search::gpu::{GpuExecutor, MAX_K, MAX_TERMS};
use tandem::search::{self, Answers, ExecError, Executor, Hit, Pipeline, Request};
use tandem::traffic::Mode;

mod batches;
mod tiered;

type List = Vec<(u32, u32)>;

/// The cases of a test: `all`, or `few` under a sanitizer. Both reach the same code paths.
fn sized<T>(all: T, few: T) -> T {
    if std::env::var_os("TANDEM_SANITIZER").is_some() { few } else { all }
}

/// An index on disk with both executors; the folder lives as long as they do.
struct World {
    _dir: tempfile::TempDir,
    index: Arc<Index>,
    cpu: CpuExecutor,
    gpu: GpuExecutor,
}

impl World {
    /// Lists `t000`, `t001` and so on; `None` where there is no GPU.
    fn new(lists: &[List], lengths: Vec<u32>, bm25: Bm25) -> Option<Self> {
        Self::with_index(bm25, |path| write_lists(path, lists, lengths, Bm25::default()))
    }

    /// Makes a world from the index that `write` writes to its argument; `None` without a GPU.
    fn with_index(bm25: Bm25, write: impl FnOnce(&Path)) -> Option<Self> {
        if let Err(GpuError::NoGpu(reason)) = list_gpus() {
            assert!(std::env::var_os("TANDEM_REQUIRE_GPU").is_none(), "TANDEM_REQUIRE_GPU is set, but: {reason}");
            skipped::skipped("no GPU");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        write(&path);
        let index = Arc::new(Index::open(&path).unwrap());
        let cpu = CpuExecutor::new(Arc::clone(&index), bm25);
        let gpu = GpuExecutor::new(&index, bm25).unwrap();
        Some(Self { _dir: dir, index, cpu, gpu })
    }

    fn query(&self, terms: &[usize]) -> Query {
        let names: Vec<String> = terms.iter().map(|&term| name(term)).collect();
        Query::prepare(QueryId(0), "q", &names, &self.index).unwrap()
    }

    /// Checks one query in all modes for several k.
    fn check(&mut self, terms: &[usize], note: &str) {
        let ks = sized(&[1, 10, 128, 129, MAX_K][..], &[10, MAX_K]);
        self.check_query(&self.query(terms), ks, &format!("{note}, terms {terms:?}"));
    }

    fn check_query(&mut self, query: &Query, ks: &[usize], note: &str) {
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        for mode in Mode::ALL {
            for &k in ks {
                self.cpu.search(query, mode, k, &mut expected).unwrap();
                let execution = self.gpu.search(query, mode, k, &mut found).unwrap();
                assert!(execution.device_us.is_some_and(|us| us > 0.0));
                compare(&expected, &found, &format!("{note}, {mode}, k {k}"));
                // A batch of two is needed: a single query would take the path already tested.
                self.check_requests(&[Request { query, mode, k }; 2], &format!("{note}, as a batch"));
            }
        }
    }

    fn check_requests(&mut self, batch: &[Request<'_>], note: &str) {
        let mut answers = Answers::default();
        let execution = self.gpu.search_batch(batch, &mut answers).unwrap();
        assert!(batch.is_empty() || execution.device_us.is_some_and(|us| us >= 0.0));
        self.compare_all(batch, &answers, note);
    }

    /// Compares the answers to a batch with the CPU's.
    fn compare_all(&mut self, batch: &[Request<'_>], answers: &Answers, note: &str) {
        assert_eq!(answers.len(), batch.len(), "{note}");
        let mut expected = Vec::new();
        for (number, (&Request { query, mode, k }, found)) in batch.iter().zip(answers.iter()).enumerate() {
            self.cpu.search(query, mode, k, &mut expected).unwrap();
            compare(&expected, found, &format!("{note}, {mode}, k {k}, query {number} of {}", batch.len()));
        }
    }

    fn check_batch(&mut self, queries: &[Query], k: usize, note: &str) {
        for mode in Mode::ALL {
            self.check_requests(&requests(queries, mode, k), note);
        }
    }
}

fn requests(queries: &[Query], mode: Mode, k: usize) -> Vec<Request<'_>> {
    queries.iter().map(|query| Request { query, mode, k }).collect()
}

fn compare(expected: &[Hit], found: &[Hit], note: &str) {
    if bits(expected) != bits(found) {
        let first = bits(expected).iter().zip(&bits(found)).position(|(a, b)| a != b);
        panic!(
            "{note}: {} results, expected {}; first difference at {first:?}: {:?}, expected {:?}",
            found.len(),
            expected.len(),
            first.map(|i| found[i]),
            first.map(|i| expected[i]),
        );
    }
}

fn write_lists(path: &Path, lists: &[List], lengths: Vec<u32>, built_with: Bm25) {
    let mut builder = IndexBuilder::new(lengths, Vec::new(), built_with);
    for (term, list) in lists.iter().enumerate() {
        builder.add(&name(term), list).unwrap();
    }
    builder.write(path).unwrap();
}

fn name(term: usize) -> String {
    format!("t{term:03}")
}

fn bits(hits: &[Hit]) -> Vec<(u32, u32)> {
    hits.iter().map(|hit| (hit.doc.0, hit.score.to_bits())).collect()
}

/// SplitMix64: good enough for test data, and equal on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u32) -> u32 {
        (self.roll() % u64::from(end)) as u32
    }

    /// About `expected` of `num_docs` documents, uniformly; frequencies up to `max_tf`. At least one posting.
    fn list(&mut self, num_docs: u32, expected: u32, max_tf: u32) -> List {
        if expected >= num_docs {
            return (0..num_docs).map(|doc| (doc, 1 + self.below(max_tf))).collect();
        }
        let mean_gap = f64::from(num_docs) / f64::from(expected);
        let mut list = List::new();
        let mut doc = self.below(num_docs.min(2 * mean_gap as u32 + 1));
        while doc < num_docs {
            list.push((doc, 1 + self.below(max_tf)));
            doc += 1 + (f64::from(self.below(1 << 20)) / f64::from(1 << 19) * (mean_gap - 1.0)).round() as u32;
        }
        list
    }
}

/// Every `step`-th document from `first`, frequencies cycling from 1 to `max_tf`.
fn strided(first: u32, step: u32, len: u32, max_tf: u32) -> List {
    (0..len).map(|i| (first + i * step, 1 + i % max_tf)).collect()
}

/// Parameters that differ from the index's, whose bounds don't hold for them.
const OTHER_BM25: Bm25 = Bm25 { k1: 0.9, b: 0.4, idf: Idf::Papers };

fn lengths(num_docs: u32) -> Vec<u32> {
    (0..num_docs).map(|doc| 10 + doc % 90).collect()
}

#[test]
fn without_a_gpu_there_is_a_reason_and_no_panic() {
    match list_gpus() {
        Ok(gpus) => println!("{gpus:?}"),
        Err(GpuError::NoGpu(reason)) => assert!(!reason.is_empty()),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn equals_the_cpu_around_block_and_tile_borders() {
    let lens = sized(&[1, 2, 3, 4, 5, 127, 128, 129, 130, 255, 256, 257, 1000][..], &[1, 127, 129]);
    for &len in lens {
        let lists = [
            strided(0, 3, len, 5),
            strided(0, 2, 2 * len, 3),
            strided(8191, 1, 300, 2),
            strided(8192, 7, 129, 1),
            strided(24_999, 1, 1, 1),
        ];
        let Some(mut world) = World::new(&lists, lengths(25_000), Bm25::default()) else { return };
        for chosen in (1..32_usize).step_by(sized(1, 6)) {
            let terms: Vec<usize> = (0..5).filter(|i| chosen >> i & 1 == 1).collect();
            world.check(&terms, &format!("length {len}"));
        }
    }
}

#[test]
fn equals_the_cpu_for_every_bit_width() {
    // Gaps and frequencies need exactly `width` bits, in a full block and in a tail.
    let num_docs = 1 << 21;
    let mut lists = Vec::new();
    for width in 0..=13_u32 {
        let step = 1_u32 << width;
        lists.push((0..160).map(|i| (i * step, 1 + (i % 3) * (step - 1))).collect());
    }
    for width in 14..=31_u32 {
        lists.push((0..200).map(|i| (i * 10_000 + width, (i << (width - 8)).max(1) | 1 << width)).collect());
    }
    let num_lists = lists.len();
    let Some(mut world) = World::new(&lists, lengths(num_docs), Bm25::default()) else { return };
    for term in (0..num_lists).step_by(sized(1, 2)) {
        if sized(true, term % 8 == 0) {
            world.check(&[term], "one list");
        }
        world.check(&[term, (term + 1) % num_lists], "two lists");
    }
}

#[test]
fn equals_the_cpu_on_random_lists_of_1_to_64_terms() {
    for seed in sized(0..12, 2..4) {
        let mut dice = Dice(seed);
        let num_docs = [100, 8192, 8193, 60_000][seed as usize % 4];
        let lists: Vec<List> = (0..MAX_TERMS)
            .map(|_| {
                let expected = 1 + dice.below(num_docs) / [1, 3, 50, 1000][dice.below(4) as usize];
                let max_tf = [1, 3, 200, 100_000][dice.below(4) as usize];
                dice.list(num_docs, expected, max_tf)
            })
            .collect();
        // Lengths have few distinct values, so that scores often tie.
        let lengths = (0..num_docs).map(|_| 20 * (1 + dice.below(3))).collect();
        let Some(mut world) = World::new(&lists, lengths, Bm25::default()) else { return };
        for &num_terms in sized(&[1, 2, 2, 3, 3, 4, 5, 8, 17, 40][..], &[2, 5, 17]) {
            let terms: Vec<usize> = (0..num_terms).map(|_| dice.below(MAX_TERMS as u32) as usize).collect();
            world.check(&terms, &format!("seed {seed}"));
        }
        // The numbers of terms include the limits from which a lane gets a second term and none may be added.
        for &num_terms in sized(&[31, 32, 33, MAX_TERMS - 1, MAX_TERMS][..], &[33, MAX_TERMS]) {
            world.check(&(0..num_terms).collect::<Vec<_>>(), &format!("seed {seed}"));
        }
    }
}

#[test]
fn equals_the_cpu_on_64_lists_that_share_documents() {
    let num_docs = sized(40_000, 10_000);
    // Each list lacks every few hundredth document: most documents remain in the intersection.
    let lists: Vec<List> = (0..MAX_TERMS as u32)
        .map(|term| {
            strided(0, 1, num_docs, 3 + term).into_iter().filter(|(doc, _)| doc % (300 - term) != term).collect()
        })
        .collect();
    let Some(mut world) = World::new(&lists, lengths(num_docs), Bm25::default()) else { return };
    for &num_terms in sized(&[32, 33, 48, MAX_TERMS][..], &[33, MAX_TERMS]) {
        world.check(&(0..num_terms).collect::<Vec<_>>(), "dense");
    }
}

/// All queries of the judged collections; some of them have more than 32 terms.
#[test]
fn equals_the_cpu_on_real_collections() {
    let Some(data) = std::env::var_os("TANDEM_DATA").map(PathBuf::from) else {
        skipped::skipped("TANDEM_DATA is not set");
        return;
    };
    for name in ["cranfield", "cacm", "vaswani"] {
        let tokenizer = || Tokenizer::from_name("ascii").unwrap();
        let world = World::with_index(Bm25::default(), |path| {
            let collection = Collection::open(&data.join(format!("corpus/{name}.jsonl.zst")), 2).unwrap();
            let options =
                BuildOptions { tokenizer: tokenizer(), bm25: Bm25::default(), threads: 2, memory_bytes: None };
            build_from_text(collection, path, &options, &|_| ()).unwrap();
        });
        let Some(mut world) = world else { return };
        let log = data.join(format!("queries/{name}.tsv"));
        let log = prepare_queries(&log, &Default::default(), &world.index, |text| tokenizer().terms(text)).unwrap();
        let queries: Vec<&Query> = log.queries.iter().step_by(sized(1, 50)).collect();
        for query in &queries {
            world.check_query(query, &[10, MAX_K], &format!("{name}, query {}", query.label));
        }
        let longest = queries.iter().map(|query| query.terms.len()).max();
        println!("{name}: {} queries of up to {longest:?} terms agree", queries.len());
    }
}

#[test]
fn equals_the_cpu_when_millions_of_scores_tie() {
    let num_docs = sized(4_500_000, 50_000);
    let all = strided(0, 1, num_docs, 1);
    let most = |one_in: u32| -> List { all.iter().copied().filter(|(doc, _)| doc % one_in != 0).collect() };
    let lists = [all.clone(), most(97), most(89), vec![(num_docs - 1, 7)]];
    // Without an initial threshold, three such lists are scored tile by tile.
    for bm25 in [Bm25::default(), OTHER_BM25] {
        let Some(mut world) = World::new(&lists, vec![7; num_docs as usize], bm25) else { return };
        for terms in sized(&[&[0][..], &[1], &[0, 1], &[0, 3], &[0, 1, 3], &[0, 1, 2]][..], &[&[0, 3], &[0, 1, 2]]) {
            world.check(terms, "ties");
        }
    }
}

#[test]
fn equals_the_cpu_for_lists_of_all_lengths_and_widths() {
    // Six dense lists without an initial threshold are scored completely, the hard ones included.
    let num_docs = 3 * 8192 + 1;
    let mut lists: Vec<List> = (0..6).map(|i| strided(i, 2 + i % 2, 8000, 5 + i)).collect();
    let num_dense = lists.len();
    for len in [1, 127, 128, 129, 255, 257, 1000] {
        // Lists with gaps of 1 are placed at a tile's end, across one, and at the last document.
        lists.extend([8191, 2 * 8192 - len / 2, num_docs - len].map(|first| strided(first, 1, len, 3)));
    }
    lists.extend((0..32_u32).map(|width| (0..160).map(|i| (i * 150 + width, (1 + i) << width.min(24))).collect()));
    lists.extend((25..32_u32).map(|width| (0..160).map(|i| (i * 150 + width, 1 << width | i)).collect()));
    let Some(mut world) = World::new(&lists, lengths(num_docs), OTHER_BM25) else { return };
    for hard in (num_dense..lists.len() - 1).step_by(sized(1, 8)) {
        world.check(&[0, 1, 2, 3, 4, 5, hard, hard + 1], "tile by tile");
    }
}

#[test]
fn equals_the_cpu_when_tiles_are_sampled_first() {
    // With this many tiles, `score_tiles` begins with a sample of them. It runs because lists are alike and initial
    // thresholds are low or missing; scores tie.
    let num_docs = 4_500_000;
    let lists: Vec<List> = (0..8).map(|i| strided(56 * (i % 2), 112, 40_000, 1 + i / 4)).collect();
    for (bm25, built_with) in [(OTHER_BM25, Bm25::default()), (Bm25::IMPACTS, Bm25::IMPACTS)] {
        let write = |path: &Path| write_lists(path, &lists, vec![7; num_docs as usize], built_with);
        let Some(mut world) = World::with_index(bm25, write) else { return };
        world.check(&[0, 1, 2, 3, 4, 5, 6, 7], "sampled");
        world.check(&[0, 1, 2, 4, 5, 7], "sampled");
    }
}

#[test]
fn equals_the_cpu_on_long_lists_and_any_parameters() {
    let num_docs = sized(3_000_000, 300_000);
    let lists_of = |dice: &mut Dice| -> Vec<List> {
        [600_000, 3000, 100, 10, 2, 1].map(|one_in| dice.list(num_docs, num_docs.div_ceil(one_in), 20)).into()
    };
    for bm25 in [Bm25::default(), OTHER_BM25] {
        let lists = lists_of(&mut Dice(99));
        let mut dice = Dice(7);
        let lengths = (0..num_docs).map(|_| 1 + dice.below(2000)).collect();
        let Some(mut world) = World::new(&lists, lengths, bm25) else { return };
        for chosen in (1..64_usize).step_by(sized(1, 20)) {
            let terms: Vec<usize> = (0..6).filter(|i| chosen >> i & 1 == 1).collect();
            if terms.len() != 4 {
                world.check(&terms, "long lists");
            }
        }
    }
}

#[test]
fn a_bad_k_is_refused_and_streams_share_one_index() {
    let lists: Vec<List> = vec![strided(0, 2, 20_000, 9), strided(0, 3, 10_000, 4)];
    let Some(mut world) = World::new(&lists, lengths(50_000), Bm25::default()) else { return };
    let query = world.query(&[0, 1]);
    let mut hits = Vec::new();
    for k in [0, search::MAX_K + 1] {
        assert!(matches!(world.gpu.search(&query, Mode::Or, k, &mut hits), Err(ExecError::BadK(bad)) if bad == k));
    }
    for k in [0, search::MAX_K + 1, (1 << 60) - 256, usize::MAX] {
        let batch = [10, k].map(|k| Request { query: &query, mode: Mode::Or, k });
        let refused = world.gpu.search_batch(&batch, &mut Answers::default());
        assert!(matches!(refused, Err(ExecError::BadK(bad)) if bad == k));
        assert!(matches!(world.gpu.submit(&batch), Err(ExecError::BadK(bad)) if bad == k));
        assert!(world.gpu.poll(&mut Answers::default()).is_none(), "a refused batch is not under way");
    }
    let mut expected = Vec::new();
    world.cpu.search(&query, Mode::AndOr, 100, &mut expected).unwrap();
    let mut streams = [world.gpu.for_another_stream().unwrap(), world.gpu.for_another_stream().unwrap(), world.gpu];
    std::thread::scope(|scope| {
        for stream in &mut streams {
            let (query, expected) = (&query, &expected);
            scope.spawn(move || {
                let mut hits = Vec::new();
                for _ in 0..sized(200, 10) {
                    stream.search(query, Mode::AndOr, 100, &mut hits).unwrap();
                    assert_eq!(bits(&hits), bits(expected));
                }
            });
        }
    });
}

#[test]
fn refused_queries_leave_others_to_be_answered() {
    let lists: Vec<List> = (0..=MAX_TERMS as u32).map(|term| strided(term, 3, 400, 5)).collect();
    let Some(mut world) = World::new(&lists, lengths(2000), Bm25::default()) else { return };
    let all: Vec<usize> = (0..=MAX_TERMS).collect();
    let (long, short) = (world.query(&all), world.query(&all[1..]));
    let mut hits = Vec::new();
    for mode in Mode::ALL {
        for (query, k, expected) in [(&long, 10, MAX_TERMS), (&short, MAX_K + 1, MAX_K), (&short, search::MAX_K, MAX_K)]
        {
            let alone = world.gpu.search(query, mode, k, &mut hits).map(|_| ());
            let batch = [(&short, 10), (query, k)].map(|(query, k)| Request { query, mode, k });
            let batch = world.gpu.search_batch(&batch, &mut Answers::default()).map(|_| ());
            for refused in [alone, batch] {
                let is_said = matches!(refused, Err(ExecError::BeyondGpu { most, .. }) if most == expected);
                assert!(is_said, "{refused:?}");
            }
        }
        world.check_query(&short, &[10, MAX_K], "after a refusal");
    }
}

#[test]
fn queries_without_terms_find_nothing() {
    let Some(mut world) = World::new(&[strided(0, 2, 300, 9)], lengths(1000), Bm25::default()) else { return };
    let one = world.query(&[0]);
    let none = Query { terms: Vec::new(), ..one.clone() };
    let mut hits = vec![Hit { doc: DocId(3), score: 1.0 }];
    for mode in Mode::ALL {
        world.gpu.search(&none, mode, MAX_K, &mut hits).unwrap();
        assert!(hits.is_empty());
    }
    let (mut expected, mut answers) = (Vec::new(), Answers::default());
    world.cpu.search(&one, Mode::Or, 10, &mut expected).unwrap();
    let queries = [none.clone(), one, none.clone()];
    world.gpu.search_batch(&requests(&queries, Mode::Or, 10), &mut answers).unwrap();
    let found: Vec<&[Hit]> = answers.iter().collect();
    assert_eq!(found.len(), 3);
    assert!(found[0].is_empty() && found[2].is_empty());
    compare(&expected, found[1], "between two without terms");
    world.gpu.search_batch(&requests(&[none.clone(), none], Mode::Or, 10), &mut answers).unwrap();
    assert!(answers.len() == 2 && answers.iter().all(<[Hit]>::is_empty));
    world.gpu.search_batch(&[], &mut answers).unwrap();
    assert!(answers.is_empty());
}

/// The largest number of documents of an index: `cargo test --release --test gpu -- --ignored document`.
#[test]
#[ignore = "takes 60 GB of memory and, in a release build, a minute"]
fn equals_the_cpu_up_to_the_last_document_there_can_be() {
    let num_docs = (1_u32 << 31) - 1;
    let near = |len: u32, step: u32| strided(num_docs - 1 - (len - 1) * step, step, len, 5);
    let lists = [
        near(1, 1),
        near(100, 3),
        near(127, 1),
        near(128, 2),
        near(129, 1),
        near(30_000, 1),
        near(40_000, 7),
        near(50_000, 2),
        // Differences have 31 bits, in one block and in many.
        vec![(0, 2), (1, 1), (num_docs - 1, 3)],
        [strided(0, 1, 127, 4), vec![(num_docs - 2, 1), (num_docs - 1, 9)]].concat(),
        strided(5, 71_582, 30_000, 6),
        // Frequencies have all widths.
        (0..256_u32).map(|i| (num_docs - 256 + i, 1 << (i % 32))).collect(),
    ];
    let Some(mut world) = World::new(&lists, vec![100; num_docs as usize], Bm25::default()) else { return };
    for term in 0..lists.len() {
        world.check_query(&world.query(&[term, (term + 5) % lists.len()]), &[10, MAX_K], "up to the last document");
    }
    for terms in [&[0, 1, 2, 3][..], &[4, 5, 6, 7], &[8, 9, 10, 11]] {
        world.check_query(&world.query(terms), &[10, MAX_K], "up to the last document");
    }
}

/// Prints latencies by list length: `cargo test --release --test gpu -- --ignored --nocapture latency`.
#[test]
#[ignore = "a measurement"]
fn latency_by_list_length() {
    let num_docs = 16_000_000;
    let lens = [1_000, 10_000, 100_000, 1_000_000, 4_000_000];
    let mut dice = Dice(1);
    let lists: Vec<List> = lens.iter().flat_map(|&len| [len, len]).map(|len| dice.list(num_docs, len, 8)).collect();
    let lengths = (0..num_docs).map(|_| 50 + dice.below(1000)).collect();
    let Some(mut world) = World::new(&lists, lengths, Bm25::default()) else { return };
    println!(
        "{}, {num_docs} documents; medians of 31 runs in us: whole call, device alone, one CPU core",
        world.gpu.device()
    );
    println!("mode  k     lists                    gpu_call  gpu_device  cpu");
    let pairs = [
        vec![0],
        vec![8],
        vec![0, 1],
        vec![2, 3],
        vec![4, 5],
        vec![6, 7],
        vec![8, 9],
        vec![0, 8],
        vec![2, 8],
        vec![4, 8],
        vec![0, 4, 8],
        vec![2, 4, 6, 8, 9],
    ];
    for (mode, k) in [(Mode::And, 10), (Mode::And, 1000), (Mode::Or, 10), (Mode::Or, 1000)] {
        for terms in &pairs {
            let query = world.query(terms);
            let mut hits = Vec::new();
            let (mut calls, mut devices, mut cpus) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..31 {
                let start = Instant::now();
                let execution = world.gpu.search(&query, mode, k, &mut hits).unwrap();
                calls.push(start.elapsed().as_secs_f64() * 1e6);
                devices.push(execution.device_us.unwrap());
            }
            let found = bits(&hits);
            for _ in 0..3 {
                let start = Instant::now();
                world.cpu.search(&query, mode, k, &mut hits).unwrap();
                cpus.push(start.elapsed().as_secs_f64() * 1e6);
            }
            assert_eq!(found, bits(&hits), "{mode} {k} {terms:?}");
            let sizes: Vec<String> = query.terms.iter().map(|term| term.doc_freq.to_string()).collect();
            println!(
                "{:6}{k:<6}{:40}{:9.1}{:11.1}{:10.1}",
                mode.name(),
                sizes.join(" "),
                median(calls),
                median(devices),
                median(cpus)
            );
        }
    }
}
