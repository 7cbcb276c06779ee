//! Tests of the published method against exhaustive evaluation, on random collections.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_engine::search::TopK;
use tandem_model::base::ids::QueryId;

use super::cpu::{answer, answer_all};
use super::lists::{Postings, SortedLists};
use super::order::GlobalOrder;
use super::page_rank;
use super::ranker::{Best, Ranker};
use super::ranking::Ranking;
use crate::wang::cache::batches::{Batch, BatchMaker};
use crate::wang::cache::sizes::Sizes;
use crate::wang::data::{ExperimentData, FOOTPRINT, ROUND, policies};
use crate::wang::train_test_split::RankedQuery;

/// A small collection in global order, with queries on it.
#[derive(Debug)]
pub(crate) struct Small {
    index: Index,
    page_rank: Vec<f32>,
    queries: Vec<Query>,
}

impl Small {
    pub(crate) fn of(lists: &[BTreeMap<u32, u32>], queries: &[Vec<usize>], seed: u64) -> Self {
        let named: Vec<(String, Vec<(u32, u32)>)> = lists
            .iter()
            .enumerate()
            .map(|(term, list)| (format!("t{term}"), list.iter().map(|(&doc, &freq)| (doc, freq)).collect()))
            .collect();
        let index = Index::from_lists(&named).unwrap();
        let query = |(id, terms): (usize, &Vec<usize>)| {
            let names: Vec<String> = terms.iter().map(|term| format!("t{}", term % lists.len())).collect();
            Query::prepare(QueryId(id as u32), "q", &names, &index)
        };
        let queries = queries.iter().enumerate().filter_map(query).collect();
        let page_rank = page_rank::draw(index.num_docs(), seed);
        Self { index, page_rank, queries }
    }

    fn order(&self) -> GlobalOrder {
        GlobalOrder::of(&self.index, &Ranking::default(), &self.page_rank)
    }

    pub(crate) fn data(&self, k: usize) -> Option<ExperimentData> {
        let order = self.order();
        let lists = SortedLists::of(&self.index, &order, &self.queries);
        let bytes = SortedLists::bytes_of_all_terms(&self.index);
        ExperimentData::new(lists, order.documents, Ranking::default(), &self.queries, bytes, k).ok()
    }
}

pub(crate) fn answer_on_cpu(data: &ExperimentData, query: &RankedQuery) -> Best {
    answer(&data.ranker(), &data.lists, query, data.k)
}

/// Lists of documents with frequencies, and queries by the numbers of their terms.
fn collections() -> impl Strategy<Value = Small> {
    let list = prop::collection::btree_map(0_u32..900, 1_u32..6, 1..700);
    let lists = prop::collection::vec(list, 2..7);
    let queries = prop::collection::vec(prop::collection::vec(0_usize..7, 1..5), 4..12);
    (lists, queries, 0_u64..1000).prop_map(|(lists, queries, seed)| Small::of(&lists, &queries, seed))
}

/// Scores every document of the intersection from the index's own lists and sorts them.
fn exhaustive(small: &Small, order: &GlobalOrder, query: &Query, k: usize) -> Vec<u64> {
    let ranking = Ranking::default();
    let average = small.index.average_length();
    let doc_freqs: Vec<u32> = query.terms.iter().map(|term| term.doc_freq).collect();
    let weights = ranking.weights(small.index.num_docs(), &doc_freqs);
    let lists: Vec<BTreeMap<u32, u32>> =
        query.terms.iter().map(|term| small.index.list(term.term).postings().collect()).collect();
    let mut keys: Vec<u64> = lists[0]
        .keys()
        .filter(|doc| lists.iter().all(|list| list.contains_key(doc)))
        .map(|&doc| {
            let norm = ranking.norm(small.index.doc_lengths()[doc as usize], average);
            let mut score = ranking.prior(small.page_rank[doc as usize]);
            for (list, weight) in lists.iter().zip(&weights) {
                score += weight * ranking.impact(list[&doc], norm);
            }
            TopK::key(order.new_of_old[doc as usize], score)
        })
        .collect();
    keys.sort_unstable_by(|a, b| b.cmp(a));
    keys.truncate(k);
    keys
}

/// Twin of the kernel: the device's part on beginnings of `has` postings each up to m, and the CPU's part behind it.
fn as_the_device(data: &ExperimentData, query: &RankedQuery, has: impl Fn(u32) -> u32) -> Best {
    let tables: Vec<Vec<u32>> = query
        .lists
        .iter()
        .map(|&list| {
            let held = has(list);
            let len = data.lists.table_len(list, held) as usize;
            let mut table = data.lists.list(list).table[..len].to_vec();
            if let Some(last) = table.last_mut() {
                *last = held;
            }
            table
        })
        .collect();
    let whole = query.postings(&data.lists);
    let mut m = u32::MAX;
    let mut held: Vec<Postings<'_>> = Vec::new();
    for ((&list, postings), table) in query.lists.iter().zip(&whole).zip(&tables) {
        let len = has(list) as usize;
        assert!(len > 0, "a list of a batch's query is neither cached nor brought along");
        if len < postings.docs.len() {
            m = m.min(postings.docs[len - 1]);
        }
        held.push(Postings { docs: &postings.docs[..len], freqs: &postings.freqs[..len], table, ..*postings });
    }
    let behind = whole[0].docs.partition_point(|&doc| doc <= m);
    assert!(behind <= held[0].docs.len());
    held[0].docs = &held[0].docs[..behind];
    let (mut best, mut depths) = (Best::new(data.k), vec![0; held.len()]);
    data.ranker().rank(&held, &query.weights, 0, ROUND, &mut best, &mut depths);
    data.ranker().rank(&whole, &query.weights, behind, ROUND, &mut best, &mut depths);
    best
}

proptest! {
    #[test]
    fn early_termination_gives_the_exhaustive_answer(
        small in collections(), k in 1_usize..17, round in prop::sample::select(vec![1, 3, 16, 256]),
    ) {
        let order = small.order();
        let lists = SortedLists::of(&small.index, &order, &small.queries);
        let ranker = Ranker { documents: &order.documents, ranking: Ranking::default() };
        for query in &small.queries {
            let ranked = RankedQuery::new(query, &lists, &Ranking::default(), small.index.num_docs());
            let mut best = Best::new(k);
            let mut depths = vec![0; ranked.lists.len()];
            ranker.rank(&ranked.postings(&lists), &ranked.weights, 0, round, &mut best, &mut depths);
            let expected = exhaustive(&small, &order, query, k);
            prop_assert_eq!(best.keys(), &expected[..]);
            // Results lie within the visited postings.
            for (&list, &depth) in ranked.lists.iter().zip(&depths) {
                let postings = lists.list(list);
                for &key in &expected {
                    let doc = TopK::hit(key).doc.0;
                    prop_assert!(postings.find(doc).is_some_and(|place| place < depth as usize));
                }
            }
        }
    }

    #[test]
    fn going_on_from_any_place_with_what_was_found_gives_the_same(
        small in collections(), k in 1_usize..17, cut in 0.0..=1.0_f64,
    ) {
        let order = small.order();
        let lists = SortedLists::of(&small.index, &order, &small.queries);
        let ranker = Ranker { documents: &order.documents, ranking: Ranking::default() };
        for query in &small.queries {
            let ranked = RankedQuery::new(query, &lists, &Ranking::default(), small.index.num_docs());
            let postings = ranked.postings(&lists);
            let from = (postings[0].docs.len() as f64 * cut) as usize;
            let mut first = postings.clone();
            first[0].docs = &first[0].docs[..from];
            let (mut best, mut depths) = (Best::new(k), vec![0; postings.len()]);
            ranker.rank(&first, &ranked.weights, 0, 16, &mut best, &mut depths);
            ranker.rank(&postings, &ranked.weights, from, 5, &mut best, &mut depths);
            prop_assert_eq!(best.keys(), &exhaustive(&small, &order, query, k)[..]);
        }
    }

    #[test]
    fn beginnings_and_post_processing_give_the_whole_answer(
        small in collections(),
        k in 1_usize..17,
        share in prop::sample::select(vec![0.2, 0.75, 0.95, 1.0]),
        cached in 0.0..1.0_f64,
        buffer in 300_u64..40_000,
        limit in 1_usize..9,
    ) {
        let Some(data) = small.data(k) else { return Ok(()) };
        let expected: Vec<Best> = data.test.iter().map(|query| answer(&data.ranker(), &data.lists, query, k)).collect();
        for policy in policies(share) {
            let budget = (data.lists.all_bytes() as f64 * cached) as u64;
            let prefixes = data.admission(policy).unwrap().within(budget, &data.lists);
            let mut maker = BatchMaker::new(&data.lists, &prefixes, FOOTPRINT, buffer);
            let (mut batch, mut found) = (Batch::default(), vec![None; data.test.len()]);
            while maker.next(&data.test, limit, &mut batch) {
                for &query in &batch.queries {
                    let has = |list: u32| if prefixes.is_cached(list) || !batch.lists.contains(&list) {
                        prefixes.postings(list)
                    } else {
                        data.lists.len(list)
                    };
                    found[query as usize] = Some(as_the_device(&data, &data.test[query as usize], has));
                }
            }
            for &query in maker.oversized() {
                found[query as usize] = Some(answer(&data.ranker(), &data.lists, &data.test[query as usize], k));
            }
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert_eq!(found.as_ref(), Some(expected));
            }
        }
    }

    #[test]
    fn any_number_of_threads_gives_the_same_answers(small in collections(), k in 1_usize..17, threads in 1_usize..5) {
        let Some(data) = small.data(k) else { return Ok(()) };
        let (answers, _) = answer_all(&data.ranker(), &data.lists, &data.test, k, threads);
        for (query, found) in data.test.iter().zip(&answers) {
            prop_assert_eq!(found, &answer(&data.ranker(), &data.lists, query, k));
        }
    }

    #[test]
    fn no_score_exceeds_the_global_score_which_never_rises(small in collections()) {
        let order = small.order();
        let scores = &order.documents.global_scores;
        prop_assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]));
        for query in &small.queries {
            for key in exhaustive(&small, &order, query, usize::MAX) {
                let hit = TopK::hit(key);
                prop_assert!(hit.score <= scores[hit.doc.index()], "{hit:?}");
            }
        }
    }

    #[test]
    fn buckets_find_what_is_there_and_nothing_else(small in collections()) {
        let order = small.order();
        let lists = SortedLists::of(&small.index, &order, &small.queries);
        for list in 0..lists.num_lists() as u32 {
            let postings = lists.list(list);
            for doc in 0..small.index.num_docs() + 5 {
                prop_assert_eq!(postings.find(doc), postings.docs.binary_search(&doc).ok());
            }
            // The table of a beginning is the beginning of the table, except for its last entry.
            for held in [1, postings.docs.len() / 2, postings.docs.len()] {
                if held == 0 { continue }
                let len = lists.table_len(list, held as u32) as usize;
                prop_assert!(len <= postings.table.len());
                prop_assert!((postings.table[len - 2] as usize) < held && postings.table[len - 1] as usize >= held);
            }
        }
    }
}

#[test]
fn a_bad_page_rank_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pr.txt");
    let fault = |text: &str| {
        std::fs::write(&path, text).unwrap();
        page_rank::read(&path, 3).unwrap_err().to_string()
    };
    for bad in ["NaN", "inf", "-1", "much"] {
        let error = fault(&format!("0.5\n{bad}\n1\n"));
        assert!(error.contains("pr.txt:2:1:") && error.contains("expected a number of at least 0"), "{error}");
    }
    assert!(fault("1\n2\n").contains("2 numbers, expected one for each of the 3 documents"));
    std::fs::write(&path, "1\n4\n0\n").unwrap();
    assert_eq!(page_rank::read(&path, 3).unwrap(), [0.25, 1.0, 0.0]);
}

#[test]
fn weights_are_positive_shares_of_one() {
    let ranking = Ranking::default();
    let weights = ranking.weights(1000, &[10, 900]);
    assert!(weights[1] > 0.0 && weights[1] < 1e-6);
    assert!((weights.iter().sum::<f32>() - 0.7).abs() < 1e-6);
    assert_eq!(ranking.weights(1000, &[900]), [0.7]);
}
