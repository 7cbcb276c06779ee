//! Tests of the strategies against exhaustive scoring for every division of the documents, and of the kernels against
//! the strategies.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::prelude::*;
use tandem_engine::index::{Bm25, Index};
use tandem_engine::indexing::synth::{SynthOptions, build_synthetic};
use tandem_engine::query::{Query, QueryTerm};
use tandem_engine::search::cpu::CpuExecutor;
use tandem_engine::search::{Executor, Hit, TopK};
use tandem_model::base::ids::{QueryId, TermId};
use tandem_model::base::random::Random;
use tandem_model::traffic::Mode;

use super::batch::{Address, Batch, CURSOR_WORDS, Cached, Limits, cut};
use super::index::{Norms, PAPERS_BM25, RangeIndex, num_blocks};
use super::list::{Decoded, RANGE_BLOCK_LEN, RangeList};
use super::range::Ranges;
use super::strategy::Strategy;
use crate::context::terms_of;
use crate::test_support::bits;

/// Lists of (document, frequency), and queries of them.
struct TestLists {
    index: RangeIndex,
    postings: Vec<Vec<(u32, u32)>>,
}

/// Largest document of an index.
const LAST_DOC: u32 = (1 << 31) - 2;

impl TestLists {
    fn new(num_docs: u32, norms: Norms, postings: Vec<Vec<(u32, u32)>>) -> Self {
        let lists = postings.iter().map(|list| {
            let (docs, freqs): (Vec<u32>, Vec<u32>) = list.iter().copied().unzip();
            RangeList::encode(&docs, &freqs, |doc| norms.of(doc))
        });
        let lists: HashMap<TermId, RangeList> = (0..).map(TermId).zip(lists).collect();
        Self { index: RangeIndex::from_lists(num_docs, norms, lists), postings }
    }

    /// Makes clustered lists of these lengths, so that ranges differ in length and some are empty.
    fn random(seed: u64, num_docs: u32, lens: &[usize]) -> Self {
        let mut random = Random::new(seed, 0);
        let norms = Norms::Each((0..num_docs).map(|_| 0.3 + random.below(64) as f32 / 16.0).collect());
        let mut postings = Vec::new();
        for &len in lens {
            let mut docs = BTreeSet::new();
            while docs.len() < len.min(num_docs as usize) {
                let start = random.below(num_docs);
                let run = 1 + random.below(40);
                for doc in start..start.saturating_add(run).min(num_docs) {
                    if random.below(3) > 0 && docs.len() < len {
                        docs.insert(doc);
                    }
                }
            }
            let mut freq = || 1 + if random.below(20) == 0 { random.below(5000) } else { random.below(4) };
            postings.push(docs.into_iter().map(|doc| (doc, freq())).collect());
        }
        Self::new(num_docs, norms, postings)
    }

    /// Makes a query of these terms with their multiplicities.
    fn query(&self, terms: &[u32]) -> Query {
        let mut counts = BTreeMap::new();
        terms.iter().for_each(|&term| *counts.entry(TermId(term)).or_insert(0) += 1);
        let doc_freq = |term: TermId| self.postings[term.index()].len() as u32;
        let mut terms: Vec<QueryTerm> =
            counts.into_iter().map(|(term, qtf)| QueryTerm { term, doc_freq: doc_freq(term), qtf }).collect();
        terms.sort_by_key(|term| (term.doc_freq, term.term));
        Query { id: QueryId(0), label: String::from("0"), terms, dropped_terms: 0 }
    }

    /// Returns the best k documents by scoring every posting and sorting.
    fn exhaustive(&self, query: &Query, needs_all: bool, k: usize) -> Vec<Hit> {
        let mut scores: HashMap<u32, (f32, usize)> = HashMap::new();
        for term in &query.terms {
            let weight = PAPERS_BM25.weight(self.index.num_docs(), term.doc_freq, term.qtf);
            for &(doc, freq) in &self.postings[term.term.index()] {
                let (score, count) = scores.entry(doc).or_default();
                *score += Bm25::score(weight, freq, self.index.norms().of(doc));
                *count += 1;
            }
        }
        let with_all = |&(_, &(_, count)): &(&u32, &(f32, usize))| !needs_all || count == query.terms.len();
        let keys = scores.iter().filter(with_all).map(|(&doc, &(score, _))| TopK::key(doc, score));
        let mut keys: Vec<u64> = keys.collect();
        keys.sort_unstable_by(|a, b| b.cmp(a));
        keys.into_iter().take(k).map(TopK::hit).collect()
    }

    /// Compares all strategies with `exhaustive`, by `search`.
    fn check(&self, query: &Query, k: usize, mut search: impl FnMut(Strategy) -> Vec<Hit>, what: &str) {
        for strategy in Strategy::ALL {
            let expected = self.exhaustive(query, strategy == Strategy::And, k);
            let found = search(strategy);
            assert_eq!(bits(&found), bits(&expected), "{} by {what}, k {k}, {:?}", strategy.name(), query.terms);
        }
    }

    /// Compares the strategies on the host with `exhaustive`, for several numbers of owners.
    fn check_on_host(&self, query: &Query, owners: &[u32], ks: &[usize]) {
        for &owners in owners {
            for &k in ks {
                let search = |strategy| self.index.search(query, strategy, owners, k).unwrap().0;
                self.check(query, k, search, &format!("{owners} owners"));
            }
        }
    }
}

/// Makes lists that are hard for ranges, with queries: few documents, all documents, ties everywhere, documents at both ends of
/// what an index holds, lists of one posting and of a block and one.
fn hard_lists() -> Vec<(TestLists, Vec<Query>)> {
    let mut cases = Vec::new();
    let all = |num_docs: u32| (0..num_docs).map(|doc| (doc, 1)).collect::<Vec<_>>();
    // There are fewer documents than owners, and both lists have every document with equal frequencies; ties go to the
    // smaller document.
    for num_docs in [1, 2, 33, 500] {
        let lists =
            TestLists::new(num_docs, Norms::All(1.2), vec![all(num_docs), all(num_docs), vec![(num_docs - 1, 3)]]);
        let queries = vec![lists.query(&[0]), lists.query(&[0, 1]), lists.query(&[0, 1, 2, 2])];
        cases.push((lists, queries));
    }
    // Nearly all ranges are empty between the first documents and the last ones.
    let ends = |shift: u32| {
        let low = (0..200).map(|i| (3 * i + shift, 1 + i % 7));
        low.chain((0..200).map(|i| (LAST_DOC - 3 * (199 - i) - shift, 1 + i % 5))).collect::<Vec<_>>()
    };
    let lists =
        TestLists::new(LAST_DOC + 1, Norms::All(0.9), vec![ends(0), ends(3), vec![(LAST_DOC, 9)], vec![(0, 2)]]);
    let queries = vec![lists.query(&[0]), lists.query(&[0, 1]), lists.query(&[0, 2]), lists.query(&[0, 1, 2, 3])];
    cases.push((lists, queries));
    // One block has gaps of every width, and frequencies with the widest exceptions.
    let wide: Vec<(u32, u32)> = (0..31).map(|bit| ((1 << bit) - 1 + bit, 1 << (30 - bit))).collect();
    let dense: Vec<(u32, u32)> = (0..20_000).map(|doc| (doc, 1 + doc % 3)).collect();
    let lists = TestLists::new(LAST_DOC + 1, Norms::All(1.7), vec![wide, dense]);
    let queries = vec![lists.query(&[0]), lists.query(&[1, 0])];
    cases.push((lists, queries));
    // Lengths are around a block's, and a query has as many terms as a GPU supports.
    let lens = [1, 2, 63, 64, 65, 127, 128, 129, 640, 4000];
    let lists = TestLists::random(7, 6000, &lens);
    let mut queries: Vec<Query> = (0..10).map(|term| lists.query(&[term])).collect();
    queries.extend([lists.query(&[9, 8]), lists.query(&[9, 7, 3, 0]), lists.query(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])]);
    cases.push((lists, queries));
    let lists = TestLists::random(8, 3000, &(0..64).map(|term| 20 + 11 * term).collect::<Vec<_>>());
    let queries = vec![lists.query(&(0..64).collect::<Vec<_>>())];
    cases.push((lists, queries));
    cases
}

#[test]
fn strategies_find_what_scoring_everything_finds_in_hard_lists() {
    for (lists, queries) in hard_lists() {
        for query in &queries {
            lists.check_on_host(query, &[1, 2, 32, 64, 512], &[1, 10, 1000]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_number_of_owners_finds_what_scoring_all_finds(
        seed in any::<u64>(),
        num_docs in 1_u32..5000,
        lens in prop::collection::vec(1_usize..1500, 1..6),
        owners in 1_u32..600,
        k in 1_usize..40,
    ) {
        let lists = TestLists::random(seed, num_docs, &lens);
        let terms: Vec<u32> = (0..lens.len() as u32).collect();
        lists.check_on_host(&lists.query(&terms), &[1, owners], &[k]);
        lists.check_on_host(&lists.query(&[0, 0, lens.len() as u32 - 1]), &[owners], &[k]);
    }

    #[test]
    fn a_list_is_what_it_was_made_of(seed in any::<u64>(), len in 1_usize..400, gap_bits in 0_u32..22) {
        let mut random = Random::new(seed, 1);
        let mut doc = random.below(1 << gap_bits);
        let mut postings = Vec::new();
        while postings.len() < len && doc <= LAST_DOC {
            postings.push((doc, 1 + (random.bits() as u32 >> random.below(32))));
            let spread = 1 << random.below(gap_bits + 1);
            doc = doc.saturating_add(1 + random.below(spread));
        }
        let (docs, freqs): (Vec<u32>, Vec<u32>) = postings.iter().copied().unzip();
        let list = RangeList::encode(&docs, &freqs, |_| 1.0);
        let mut decoded = Decoded::default();
        for (block, expected) in postings.chunks(RANGE_BLOCK_LEN).enumerate() {
            list.decode_docs(block, &mut decoded).unwrap();
            list.decode_freqs(block, &mut decoded).unwrap();
            let found: Vec<(u32, u32)> =
                decoded.docs.iter().copied().zip(decoded.freqs).take(decoded.len).collect();
            prop_assert_eq!(&found, expected);
            prop_assert_eq!(list.blocks[block].least, expected[0].0);
            prop_assert_eq!(list.blocks[block].greatest, expected[expected.len() - 1].0);
        }
    }
}

#[test]
fn pruning_scores_fewer_postings_and_or_scores_all() {
    let lists = TestLists::random(3, 20_000, &[300, 5000, 9000]);
    let query = lists.query(&[0, 1, 2]);
    let scored = |strategy, owners| lists.index.search(&query, strategy, owners, 10).unwrap().1.postings_scored;
    assert_eq!(scored(Strategy::Or, 1), 14_300);
    assert_eq!(scored(Strategy::Or, 64), 14_300);
    assert!(scored(Strategy::Wand, 1) < 14_300);
    assert!(scored(Strategy::Bmw, 1) <= scored(Strategy::Wand, 1));
    // Ranges with separate thresholds score more.
    assert!(scored(Strategy::Bmw, 64) > scored(Strategy::Bmw, 1));
}

/// Makes a small synthetic index with its queries.
fn synthetic(dir: &std::path::Path, docs: u32, num_queries: usize) -> (Index, Vec<Query>) {
    let mut options = SynthOptions::new(docs, 11);
    options.num_queries = num_queries;
    build_synthetic(&options, dir, &|_, _| {}).unwrap();
    let index = Index::open(dir).unwrap();
    let log = std::fs::read_to_string(dir.join("queries.tsv")).unwrap();
    let queries = log.lines().enumerate().filter_map(|(number, line)| {
        let (label, text) = line.split_once('\t')?;
        let terms: Vec<&str> = text.split(' ').collect();
        Query::prepare(QueryId(number as u32), label, &terms, &index)
    });
    let queries = queries.collect();
    (index, queries)
}

fn range_index(index: &Index, queries: &[Query]) -> RangeIndex {
    RangeIndex::new(index, &terms_of(queries))
}

fn own_answers(index: &std::sync::Arc<Index>, query: &Query, strategy: Strategy, k: usize) -> Vec<Hit> {
    let mut cpu = CpuExecutor::new(index.clone(), PAPERS_BM25);
    let mut hits = Vec::new();
    let mode = if strategy == Strategy::And { Mode::And } else { Mode::Or };
    cpu.search(query, mode, k, &mut hits).unwrap();
    hits
}

#[test]
fn the_published_system_and_tandems_own_find_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (index, queries) = synthetic(dir.path(), 30_000, 20);
    let ranges = range_index(&index, &queries);
    let index = std::sync::Arc::new(index);
    for query in &queries {
        for strategy in Strategy::ALL {
            let (found, _) = ranges.search(query, strategy, 64, 10).unwrap();
            assert_eq!(bits(&found), bits(&own_answers(&index, query, strategy, 10)), "{}", strategy.name());
        }
    }
}

#[test]
fn a_querys_length_is_its_blocks_of_64() {
    let lists = TestLists::random(1, 5000, &[1, 64, 65, 1000]);
    assert_eq!(num_blocks(&lists.query(&[0])), 1);
    assert_eq!(num_blocks(&lists.query(&[0, 1, 2, 3])), 1 + 1 + 2 + 16);
}

#[test]
fn batches_close_at_a_count_and_at_a_size_and_lose_no_query() {
    let lists = TestLists::random(5, 4000, &[10, 20, 30, 2000]);
    let queries: Vec<Query> = (0..40).map(|i| lists.query(&[i % 3, 3])).collect();
    let cached: Cached = [(TermId(3), Address { blocks: 16, words: 32 })].into_iter().collect();
    let cut = |limits| cut(&lists.index, &queries, &cached, limits);
    assert_eq!(cut(Limits { queries: 16, bytes: 1 << 20 }), [0..16, 16..32, 32..40]);
    assert_eq!(cut(Limits::default()), std::slice::from_ref(&(0..40)));
    // A batch has at least one query.
    assert_eq!(cut(Limits { queries: 9, bytes: 1 }).len(), 40);
    for bytes in [500, 1000, 3000] {
        let batches = cut(Limits { queries: 1000, bytes });
        assert_eq!((batches[0].start, batches[batches.len() - 1].end), (0, 40));
        assert!(batches.windows(2).all(|pair| pair[0].end == pair[1].start));
        for batch in batches {
            let packed = Batch::pack(
                &lists.index,
                &queries[batch.clone()].iter().collect::<Vec<_>>(),
                64,
                Ranges::AsPublished,
                &cached,
                0,
            );
            assert!(packed.bytes.len() as u64 <= bytes, "{batch:?}: {}", packed.bytes.len());
            assert_eq!(packed.state_words, (batch.len() * 2 * CURSOR_WORDS * 64) as u64);
        }
    }
}

#[test]
fn a_list_travels_once_a_batch_and_cached_ones_not_at_all() {
    let lists = TestLists::random(6, 4000, &[60, 2000]);
    let queries: Vec<Query> = (0..5).map(|_| lists.query(&[0, 1])).collect();
    let bytes = |cached: &Cached| {
        Batch::pack(&lists.index, &queries.iter().collect::<Vec<_>>(), 32, Ranges::AsPublished, cached, 0).bytes.len()
            as u64
    };
    let entries = bytes(&[0, 1].map(|term| (TermId(term), Address { blocks: 16, words: 16 })).into_iter().collect());
    assert_eq!(entries, 5 * (32 + 2 * 32));
    let long: Cached = [(TermId(1), Address { blocks: 16, words: 16 })].into_iter().collect();
    assert_eq!(bytes(&long), entries + lists.index.list(TermId(0)).bytes().next_multiple_of(16));
}

mod on_a_gpu {
    use std::sync::Arc;

    use super::*;
    use crate::huang::ranges::gpu::executor::{RangesGpu, Settings};
    use crate::test_support::{gpu_or_skip, sized, with_a_hang};
    use tandem_engine::search::ExecError;
    use tandem_model::base::ids::DeviceId;

    fn open(index: &Arc<RangeIndex>, most_bytes: u64) -> Option<RangesGpu> {
        gpu_or_skip(RangesGpu::open(DeviceId(0), index, most_bytes))
    }

    /// Compares a batch with the host's twin: answers, postings scored, blocks decoded.
    fn compare(gpu: &mut RangesGpu, index: &RangeIndex, queries: &[Query], threads: u32, k: usize) {
        for strategy in Strategy::ALL {
            let outcome = gpu.run(queries, Settings::published(strategy, threads, k)).unwrap();
            assert_eq!(outcome.answers.len(), queries.len());
            // Shared thresholds depend on the order of threads, but the answers do not.
            let even = gpu.run(queries, Settings { strategy, threads, ranges: Ranges::EqualWork, k }).unwrap();
            assert_eq!(even.answers, outcome.answers, "{}, {threads} threads, k {k}", strategy.name());
            for ((query, hits), report) in queries.iter().zip(outcome.answers.iter()).zip(&outcome.reports) {
                let (expected, work) = index.search(query, strategy, threads, k).unwrap();
                let what = format!("{}, {threads} threads, k {k}, {:?}", strategy.name(), query.terms);
                assert_eq!(bits(hits), bits(&expected), "{what}");
                assert_eq!(report.postings_scored, work.postings_scored, "{what}");
                assert_eq!(report.blocks_decoded, work.blocks_decoded, "{what}");
            }
        }
    }

    #[test]
    fn gpu_ranges_find_what_their_twins_find_in_hard_lists() {
        for (lists, queries) in hard_lists() {
            let index = Arc::new(lists.index);
            let Some(mut gpu) = open(&index, u64::MAX) else { return };
            for threads in sized(vec![32, 64, 96, 512], vec![64]) {
                for k in sized(vec![1, 10, 1000], vec![10]) {
                    compare(&mut gpu, &index, &queries, threads, k);
                }
            }
        }
    }

    #[test]
    fn a_hang_ends_a_batch_in_an_error() {
        with_a_hang("huang::ranges::tests::on_a_gpu::a_hang_ends_a_batch_in_an_error", |hang| {
            let (lists, queries) = hard_lists().into_iter().next().unwrap();
            let mut gpu = RangesGpu::open(DeviceId(0), &Arc::new(lists.index), u64::MAX).unwrap();
            let settings = Settings::published(Strategy::And, 64, 10);
            gpu.run(&queries, settings).unwrap();
            hang();
            let error = gpu.run(&queries, settings).unwrap_err().to_string();
            assert!(error.contains("CUDA_ERROR_TIMEOUT"), "{error}");
        });
    }

    #[test]
    fn gpu_ranges_whose_keys_exceed_shared_memory_find_the_same() {
        let lists = TestLists::random(21, 40_000, &[900, 12_000, 30_000]);
        let queries = [lists.query(&[0, 1, 2]), lists.query(&[1]), lists.query(&[1, 2])];
        let index = Arc::new(lists.index);
        let Some(mut gpu) = open(&index, u64::MAX) else { return };
        for (threads, k) in sized(vec![(512, 1000), (64, 100), (320, 20), (32, 1000)], vec![(32, 200)]) {
            compare(&mut gpu, &index, &queries, threads, k);
        }
    }

    #[test]
    fn gpu_ranges_answer_alike_for_any_cache_and_batch() {
        let dir = tempfile::tempdir().unwrap();
        let (index, queries) = synthetic(dir.path(), sized(50_000, 5_000), sized(60, 8));
        let ranges = Arc::new(range_index(&index, &queries));
        for most_bytes in [u64::MAX, 100_000, 0] {
            let Some(mut gpu) = open(&ranges, most_bytes) else { return };
            assert!(gpu.cached_bytes() <= most_bytes);
            for limits in [Limits::default(), Limits { queries: 7, bytes: 50_000 }] {
                for batch in gpu.cut(&queries, limits) {
                    compare(&mut gpu, &ranges, &queries[batch], 64, 10);
                }
            }
        }
    }

    #[test]
    fn gpu_ranges_refuse_what_their_kernels_do_not_take_and_go_on() {
        let lists = TestLists::random(2, 500, &[10, 200]);
        let query = [lists.query(&[0, 1])];
        let index = Arc::new(lists.index);
        let Some(mut gpu) = open(&index, u64::MAX) else { return };
        for threads in [0, 33, 544] {
            let refused = gpu.run(&query, Settings::published(Strategy::Or, threads, 10));
            assert!(matches!(refused, Err(ExecError::BadThreads { .. })), "{threads}");
        }
        let refused = gpu.run(&query, Settings::published(Strategy::Or, 64, 1001));
        assert!(matches!(refused, Err(ExecError::BeyondGpu { .. })));
        assert!(gpu.run(&[], Settings::published(Strategy::Or, 64, 10)).unwrap().answers.is_empty());
        compare(&mut gpu, &index, &query, 64, 10);
    }
}
