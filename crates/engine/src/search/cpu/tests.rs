//! Compares the executors with a twin that takes one posting at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tandem_base::base::ids::{DocId, QueryId};
use tandem_base::traffic::Mode;

use super::{Algorithm, CpuExecutor};
use crate::index::{Bm25, Idf, Index, IndexBuilder};
use crate::indexing::quantise;
use crate::query::Query;
use crate::search::{ExecError, Executor, Hit, MAX_K};

/// Postings of each term. Names are padded so that byte order is numerical order.
type Lists = Vec<Vec<(u32, u32)>>;

fn name(term: usize) -> String {
    format!("t{term:04}")
}

/// An index of these lists on disk, and the folder that keeps it.
fn build(lists: &Lists, lengths: &[u32]) -> (tempfile::TempDir, Arc<Index>) {
    let dir = tempfile::tempdir().unwrap();
    let ids = (0..lengths.len()).map(|i| format!("d{i}")).collect();
    let mut builder = IndexBuilder::new(lengths.to_vec(), ids, Bm25::default());
    for (term, list) in lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
        builder.add(&name(term), list).unwrap();
    }
    let path = dir.path().join("index");
    builder.write(&path).unwrap();
    (dir, Arc::new(Index::open(&path).unwrap()))
}

/// An index with quantised impacts in place of frequencies.
fn with_impacts(index: &Index) -> (tempfile::TempDir, Arc<Index>) {
    let dir = tempfile::tempdir().unwrap();
    quantise(index, dir.path()).unwrap();
    let quantised = Arc::new(Index::open(dir.path()).unwrap());
    (dir, quantised)
}

fn naive(index: &Index, bm25: Bm25, query: &Query, mode: Mode, k: usize) -> Vec<Hit> {
    let mut scores: BTreeMap<u32, (usize, f32)> = BTreeMap::new();
    for term in &query.terms {
        let weight = bm25.weight(index.num_docs(), term.doc_freq, term.qtf);
        for (doc, tf) in index.list(term.term).postings() {
            let norm = bm25.norm(index.doc_lengths()[doc as usize], index.average_length());
            let (found, score) = scores.entry(doc).or_insert((0, 0.0));
            *found += 1;
            *score += (weight * tf as f32) / (tf as f32 + norm);
        }
    }
    let best = |least: usize| {
        let mut hits: Vec<Hit> = scores
            .iter()
            .filter(|(_, (found, _))| *found >= least)
            .map(|(&doc, &(_, score))| Hit { doc: DocId(doc), score })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.doc.cmp(&b.doc)));
        hits.truncate(k);
        hits
    };
    match mode {
        Mode::And => best(query.terms.len()),
        Mode::Or => best(1),
        Mode::AndOr => Some(best(query.terms.len())).filter(|hits| hits.len() == k).unwrap_or_else(|| best(1)),
    }
}

fn bits(hits: &[Hit]) -> Vec<(u32, u32)> {
    hits.iter().map(|hit| (hit.doc.0, hit.score.to_bits())).collect()
}

fn all_terms(index: &Index, num_lists: usize) -> Option<Query> {
    let terms: Vec<String> = (0..num_lists).map(name).collect();
    Query::prepare(QueryId(0), "q", &terms, index)
}

/// Every `step`-th document from `first`, frequencies cycling from 1 to `max_tf`.
fn strided(first: u32, step: u32, len: usize, max_tf: u32) -> Vec<(u32, u32)> {
    (0..len as u32).map(|i| (first + i * step, 1 + i % max_tf)).collect()
}

#[test]
fn modes_equal_the_twin_around_block_and_window_borders() {
    for len in [1, 2, 127, 128, 129, 255, 256, 257, 1000] {
        // One list has this length, one leads it by a stride, and one is in a distant window.
        let lists = vec![
            strided(0, 3, len, 5),
            strided(0, 2, 2 * len, 3),
            strided(4095, 1, 300, 2),
            strided(20_000, 7, 129, 1),
        ];
        let lengths: Vec<u32> = (0..25_000).map(|i| 10 + i % 90).collect();
        let (_dir, index) = build(&lists, &lengths);
        for chosen in 1..16_usize {
            let terms: Vec<String> = (0..4).filter(|i| chosen >> i & 1 == 1).map(name).collect();
            let query = Query::prepare(QueryId(0), "q", &terms, &index).unwrap();
            [1, 10, MAX_K].iter().for_each(|&k| check_all_modes(&index, Bm25::default(), &query, k).unwrap());
        }
    }
}

#[test]
fn equal_scores_rank_by_smaller_document() {
    let lists = vec![strided(0, 1, 5000, 1)];
    let (_dir, index) = build(&lists, &vec![7; 5000]);
    let query = all_terms(&index, 1).unwrap();
    let mut hits = Vec::new();
    CpuExecutor::new(index, Bm25::default()).search(&query, Mode::Or, 300, &mut hits).unwrap();
    assert!(hits.iter().map(|hit| hit.doc.0).eq(0..300));
}

#[test]
fn a_bad_k_is_refused_and_the_executor_works_on() {
    let (_dir, index) = build(&vec![vec![(0, 1)]], &[3]);
    let query = all_terms(&index, 1).unwrap();
    let mut executor = CpuExecutor::new(index, Bm25::default());
    let mut hits = Vec::new();
    for k in [0, MAX_K + 1] {
        let refused = executor.search(&query, Mode::Or, k, &mut hits);
        assert!(matches!(refused, Err(ExecError::BadK(bad)) if bad == k), "{k}");
    }
    executor.clone_for_worker().search(&query, Mode::And, MAX_K, &mut hits).unwrap();
    assert_eq!(hits.len(), 1);
}

/// Up to 64 lists over up to 6,000 documents.
fn worlds() -> impl Strategy<Value = (Lists, Vec<u32>)> {
    (1..6000_u32, 1..=64_usize).prop_flat_map(|(num_docs, num_terms)| world(num_docs, num_terms))
}

/// More than 64 lists over up to 2,000 documents.
fn long_worlds() -> impl Strategy<Value = (Lists, Vec<u32>)> {
    let num_terms = prop_oneof![Just(65_usize), Just(100), 65..=400_usize, Just(Query::MAX_TERMS)];
    (1..2000_u32, num_terms).prop_flat_map(|(num_docs, num_terms)| world(num_docs, num_terms))
}

/// Lists from nearly empty to nearly full, with few distinct lengths of documents so that scores tie often.
fn world(num_docs: u32, num_terms: usize) -> impl Strategy<Value = (Lists, Vec<u32>)> {
    let one_in = prop_oneof![1..=8_u32, 1..=256_u32];
    let list = (one_in, 1..=4_u32, any::<u64>()).prop_map(move |(one_in, max_tf, seed)| {
        // Three numbers give a list, so that shrinking stays quick.
        let mut state = seed | 1;
        let mut draw = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        let mut list = Vec::new();
        for doc in 0..num_docs {
            if draw() % one_in == 0 {
                list.push((doc, 1 + draw() % max_tf));
            }
        }
        list
    });
    let lengths = prop::collection::vec(1..6_u32, num_docs as usize);
    (prop::collection::vec(list, num_terms), lengths)
}

#[test]
fn scores_of_impacts_are_sums_of_whole_numbers() {
    let lists: Lists = (1..=64).map(|step| strided(step, step, 20_000 / step as usize, 1 + step)).collect();
    let (_dir, index) = build(&lists, &(0..20_100).map(|i| 64 + i % 900).collect::<Vec<_>>());
    let (_dir, index) = with_impacts(&index);
    let mut executor = CpuExecutor::new(Arc::clone(&index), index.built_with()).with_algorithm(Algorithm::Exhaustive);
    let mut hits = Vec::new();
    // The counts cover sums within 16 bits, sums beyond them, and the cap on counts.
    for repetitions in [1, 5, 1500] {
        let mut terms: Vec<String> = (0..64).map(name).collect();
        terms.extend((0..3).cycle().map(name).take(3 * (repetitions - 1)));
        let query = Query::prepare(QueryId(0), "q", &terms, &index).unwrap();
        let mut sums = vec![0_u32; index.num_docs() as usize];
        for term in &query.terms {
            index
                .list(term.term)
                .postings()
                .for_each(|(doc, impact)| sums[doc as usize] += impact * term.qtf.min(1024));
        }
        let mut expected: Vec<(u32, u32)> = (0..).zip(sums).map(|(doc, sum)| (doc, (sum as f32).to_bits())).collect();
        expected.sort_by_key(|&(doc, score)| (std::cmp::Reverse(score), doc));
        executor.search(&query, Mode::Or, 100, &mut hits).unwrap();
        assert_eq!(bits(&hits), expected[..100], "{repetitions}");
    }
}

fn check_all_modes(index: &Arc<Index>, bm25: Bm25, query: &Query, k: usize) -> Result<(), TestCaseError> {
    let mut executor = CpuExecutor::new(Arc::clone(index), bm25);
    let mut hits = Vec::new();
    for mode in Mode::ALL {
        executor.search(query, mode, k, &mut hits).unwrap();
        let expected = naive(index, bm25, query, mode, k);
        prop_assert_eq!(bits(&hits), bits(&expected), "{} terms, {}, k {}", query.terms.len(), mode, k);
    }
    Ok(())
}

/// Checks every algorithm, with seeds and without.
fn check_all_algorithms(index: &Arc<Index>, bm25: Bm25, query: &Query, k: usize) -> Result<(), TestCaseError> {
    let expected = bits(&naive(index, bm25, query, Mode::Or, k));
    let mut hits = Vec::new();
    for (algorithm, is_seeded) in Algorithm::ALL.into_iter().flat_map(|a| [(a, false), (a, true)]) {
        let mut executor = CpuExecutor::new(Arc::clone(index), bm25).with_algorithm(algorithm).with_seeds(is_seeded);
        // The second run shows that scratch memory of the first changes nothing.
        for _ in 0..2 {
            executor.search(query, Mode::Or, k, &mut hits).unwrap();
            prop_assert_eq!(bits(&hits), &expected[..], "{} seeded: {}, k {}", algorithm, is_seeded, k);
        }
    }
    Ok(())
}

/// Checks all modes and algorithms with the first terms of an index, by the query's number of terms.
fn check_world(
    (lists, lengths): &(Lists, Vec<u32>),
    k: usize,
    others: Option<(f32, f32)>,
    (is_plus, repeated, is_quantised): (bool, bool, bool),
    query_lengths: &[usize],
) -> Result<(), TestCaseError> {
    prop_assume!(lists.iter().any(|list| !list.is_empty()));
    let (mut _dir, mut index) = build(lists, lengths);
    let Bm25 { k1, b, .. } = Bm25::default();
    let (k1, b) = others.unwrap_or((k1, b));
    let mut bm25 = Bm25 { k1, b, idf: if is_plus { Idf::Plus } else { Idf::Papers } };
    if is_quantised {
        ((_dir, index), bm25) = (with_impacts(&index), Bm25::IMPACTS);
    }
    for &num_terms in query_lengths.iter().chain([&lists.len()]) {
        let mut terms: Vec<String> = (0..num_terms.min(lists.len())).map(name).collect();
        if repeated {
            // Repeated terms get weights that do not follow list lengths.
            terms.extend([name(0), name(0), name(num_terms / 2)]);
        }
        let Some(query) = Query::prepare(QueryId(0), "q", &terms, &index) else { continue };
        check_all_algorithms(&index, bm25, &query, k)?;
        check_all_modes(&index, bm25, &query, k)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_modes_and_algorithms_equal_the_naive_twin_bit_for_bit(
        world in worlds(),
        k in prop_oneof![1..20_usize, 1..=MAX_K],
        others in prop::option::of((0.0..3.0_f32, 0.0..=1.0_f32)),
        flags in any::<(bool, bool, bool)>(),
    ) {
        check_world(&world, k, others, flags, &[1, 2, 3, 5])?;
    }

    #[test]
    fn algorithms_agree_on_lists_over_many_windows(
        shapes in prop::collection::vec((0..40_000_u32, 1..400_u32, 1..3000_usize, 1..30_u32), 1..6),
        k in prop_oneof![Just(1_usize), Just(10), Just(1000)],
    ) {
        let lists: Lists = shapes
            .iter()
            .map(|&(first, step, len, max_tf)| {
                strided(first, step, len, max_tf).into_iter().filter(|&(doc, _)| doc < 60_000).collect()
            })
            .collect();
        let lengths: Vec<u32> = (0..60_000_u32).map(|i| 5 + i.wrapping_mul(2_654_435_761) % 50).collect();
        let (_dir, index) = build(&lists, &lengths);
        let Some(query) = all_terms(&index, lists.len()) else { return Ok(()) };
        check_all_algorithms(&index, Bm25::default(), &query, k)?;
        check_all_modes(&index, Bm25::default(), &query, k)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn long_queries_are_answered_by_all_algorithms_alike(
        world in long_worlds(),
        k in prop_oneof![1..20_usize, 1..=MAX_K],
        (repeated, is_quantised) in any::<(bool, bool)>(),
    ) {
        check_world(&world, k, None, (true, repeated, is_quantised), &[65, 100])?;
    }
}

/// All lists hold some documents in common, so that AND finds them: blocks and bitmaps, whose documents are many.
#[test]
fn long_conjunctions_and_large_results_equal_the_naive_twin() {
    for (step, num_terms, k) in [(1, 65, 10), (1, 1024, 10), (40, 100, 10_000), (40, 1024, 100), (3, 65, 10_000)] {
        // Lists of all multiples of the step, and some documents more: each another one.
        let lists: Lists = (0..num_terms as u32)
            .map(|term| {
                let is_here = |doc: u32| doc.is_multiple_of(step) || doc % (7 * (1 + term % 50)) == term % 7;
                (0..12_000).filter(|&doc| is_here(doc)).map(|doc| (doc, 1 + (doc + term) % 5)).collect()
            })
            .collect();
        let lengths: Vec<u32> = (0..12_000).map(|i| 500 + i % 90).collect();
        let (_dir, index) = build(&lists, &lengths);
        let query = all_terms(&index, num_terms).unwrap();
        check_all_modes(&index, Bm25::default(), &query, k).unwrap();
    }
}

#[test]
fn more_terms_than_any_executor_takes_are_refused() {
    let lists: Lists = (0..=Query::MAX_TERMS as u32).map(|doc| vec![(doc, 1)]).collect();
    let (_dir, index) = build(&lists, &vec![1; lists.len()]);
    let query = all_terms(&index, lists.len()).unwrap();
    let refused = CpuExecutor::new(index, Bm25::default()).search(&query, Mode::Or, 10, &mut Vec::new());
    assert!(matches!(refused, Err(ExecError::TooManyTerms(1025))));
}
