//! Tests against the reference executor, bit by bit.

use proptest::prelude::*;
use tandem_model::base::ids::{DocId, TermId};

use super::cursor::{Advance, Cursor};
use super::small_adaptive::intersect;
use crate::codec::Pfor;
use crate::test_support::{coded, random_index};

#[test]
fn a_cursor_finds_what_a_search_in_the_list_finds_both_ways() {
    let index = random_index(20_000, &[1, 3, 700], 5);
    let lists = coded(&index, Box::new(Pfor::<128>), 0..20_000);
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
        let index = random_index(9000, &densities, seed);
        let lists = coded(&index, Box::new(Pfor::<512>), 0..9000);
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
        use crate::codec::{Codec, PForDelta, Rice};
        use crate::test_support::{bits, query_of};
        use std::sync::Arc;
        use tandem_model::traffic::Mode;
        use tandem_engine::search::Executor;
        use tandem_engine::search::cpu::CpuExecutor;
        let index = random_index(num_docs, &densities, seed);
        let mut reference = CpuExecutor::new(Arc::clone(&index), index.built_with());
        let codecs: [Box<dyn Codec>; 3] = [Box::new(Pfor::<128>), Box::new(PForDelta::new(1)), Box::new(Rice)];
        for codec in codecs {
            let mut executor = super::executor::DaatExecutor::new(coded(&index, codec, 0..num_docs));
            for num_terms in 1..=densities.len() {
                let query = query_of(&index, 0..num_terms);
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
