//! What these executors find is what the reference finds, bit for bit.

use std::sync::Arc;

use proptest::prelude::*;

use super::cursor::{Advance, Cursor};
use super::lists::CodedLists;
use super::small_adaptive::intersect;
use crate::codec::{Codec, PForDelta, Pfor, Rice};
use tandem_core::base::ids::{DocId, QueryId, TermId};
use tandem_core::base::random::Random;
use tandem_core::index::Index;
use tandem_core::query::{Mode, Query};
use tandem_core::search::cpu::CpuExecutor;
use tandem_core::search::{Executor, Hit};

fn index(num_docs: u32, densities: &[u32], seed: u64) -> Arc<Index> {
    let mut random = Random::new(seed, 0);
    let lists: Vec<(String, Vec<(u32, u32)>)> = densities
        .iter()
        .enumerate()
        .map(|(term, &one_in)| {
            let mut list: Vec<(u32, u32)> =
                (0..num_docs).filter(|_| random.below(one_in) == 0).map(|doc| (doc, 1 + doc % 5)).collect();
            if list.is_empty() {
                list.push((num_docs - 1, 1));
            }
            (format!("t{term}"), list)
        })
        .collect();
    Arc::new(Index::from_lists(&lists).unwrap())
}

fn coded(index: &Index, codec: Box<dyn Codec>) -> CodedLists {
    let terms: Vec<TermId> = (0..index.num_terms()).map(TermId).collect();
    CodedLists::encode(index, &terms, codec, 0..index.num_docs()).unwrap()
}

fn bits(hits: &[Hit]) -> Vec<(u32, u32)> {
    hits.iter().map(|hit| (hit.doc.0, hit.score.to_bits())).collect()
}

#[test]
fn a_cursor_finds_what_a_search_in_the_list_finds_both_ways() {
    let index = index(20_000, &[1, 3, 700], 5);
    let lists = coded(&index, Box::new(Pfor::<128>));
    for term in (0..3).map(TermId) {
        let docs = index.list(term).docs();
        for (advance, step) in [(Advance::BySkips, 777), (Advance::BySkips, 3), (Advance::BlockByBlock, 41)] {
            let mut cursor = lists.cursor(term);
            for target in (0..21_000).step_by(step) {
                let place = docs.partition_point(|&doc| doc < target);
                assert_eq!(cursor.seek(target, advance), docs.get(place).copied().unwrap_or(DocId::END.0));
                if place < docs.len() {
                    assert_eq!((cursor.place(), cursor.freq(place)), (place, 1 + docs[place] % 5));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn eliminators_find_what_all_lists_have_in_any_range(
        densities in prop::collection::vec(1..60_u32, 1..5),
        range in (0..9000_u32, 0..9000_u32),
        by_skips in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let index = index(9000, &densities, seed);
        let lists = coded(&index, Box::new(Pfor::<512>));
        let (first, end) = range;
        let mut cursors: Vec<Cursor<'_>> = (0..index.num_terms()).map(|term| lists.cursor(TermId(term))).collect();
        let advance = if by_skips { Advance::BySkips } else { Advance::BlockByBlock };
        let mut found = Vec::new();
        intersect(&mut cursors, first, end, advance, |doc, _| found.push(doc));
        let columns: Vec<Vec<u32>> = (0..index.num_terms()).map(|term| index.list(TermId(term)).docs()).collect();
        let expected: Vec<u32> = (first..end.max(first)).filter(|doc| columns.iter().all(|docs| docs.binary_search(doc).is_ok())).collect();
        prop_assert_eq!(found, expected);
    }

    #[cfg(feature = "gpu")]
    #[test]
    fn a_document_at_a_time_gives_the_references_bits(
        num_docs in 1..9000_u32,
        densities in prop::collection::vec(1..100_u32, 1..6),
        k in 1..30_usize,
        seed in any::<u64>(),
    ) {
        let index = index(num_docs, &densities, seed);
        let mut reference = CpuExecutor::new(Arc::clone(&index), index.built_with());
        let codecs: [Box<dyn Codec>; 3] = [Box::new(Pfor::<128>), Box::new(PForDelta::new(1)), Box::new(Rice)];
        let names: Vec<String> = (0..densities.len()).map(|term| format!("t{term}")).collect();
        for codec in codecs {
            let mut executor = super::executor::DaatExecutor::new(Arc::new(coded(&index, codec)));
            for num_terms in 1..=names.len() {
                let query = Query::prepare(QueryId(0), "q", &names[..num_terms], &index).unwrap();
                for mode in Mode::ALL {
                    let (mut expected, mut found) = (Vec::new(), Vec::new());
                    reference.search(&query, mode, k, &mut expected).unwrap();
                    executor.search(&query, mode, k, &mut found).unwrap();
                    prop_assert_eq!(bits(&found), bits(&expected), "{} terms, {}", num_terms, mode);
                }
            }
        }
    }
}
