//! Orders of small collections, and invariants of reordering.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use tandem_base::base::ids::{DocId, TermId};

use super::*;
use crate::index::{Bm25, Index, IndexBuilder};

/// Makes `num_docs` documents of `num_topics` topics in turn, each of 12 words of its topic's 40 and 4 of 10 common
/// ones.
fn topics(num_docs: u32, num_topics: u32) -> Index {
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(5);
    let mut lists: BTreeMap<String, BTreeMap<u32, u32>> = BTreeMap::new();
    for doc in 0..num_docs {
        let topic = doc % num_topics;
        let mut add = |term: String| *lists.entry(term).or_default().entry(doc).or_insert(0) += 1;
        (0..12).for_each(|_| add(format!("t{topic}-{}", random.random_range(0..40))));
        (0..4).for_each(|_| add(format!("common-{}", random.random_range(0..10))));
    }
    let lists: Vec<(String, Vec<(u32, u32)>)> =
        lists.into_iter().map(|(term, list)| (term, list.into_iter().collect())).collect();
    Index::from_lists(&lists).unwrap()
}

fn quietly(index: &Index, options: BisectionOptions) -> Permutation {
    bisect(index, options, &|done, of| assert!(done <= of))
}

#[test]
fn bisection_brings_the_documents_of_a_topic_together() {
    let index = topics(4_096, 8);
    let permutation = quietly(&index, BisectionOptions::default());
    let topics: Vec<u32> = permutation.old_of_new().iter().map(|old| old % 8).collect();
    let changes = topics.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes < 16, "{changes} changes of topic along the order, 4095 before");

    let dir = tempfile::tempdir().unwrap();
    apply(&index, &permutation, dir.path(), &|_| ()).unwrap();
    let (before, after) = (log_gap_bits(&index), log_gap_bits(&Index::open(dir.path()).unwrap()));
    assert!(after < before - 2.0, "{before} bits a gap before, {after} after");
}

#[test]
fn the_order_is_the_same_on_any_number_of_threads() {
    let index = topics(3_001, 7);
    let orders = [1, 2, 5].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (quietly(&index, BisectionOptions::default()), log_gap_bits(&index).to_bits()))
    });
    assert!(orders[0] == orders[1] && orders[0] == orders[2]);
}

#[test]
fn collections_without_anything_to_go_by_keep_their_order() {
    let lists: Vec<(String, Vec<(u32, u32)>)> = (0..100).map(|doc| (format!("{doc:03}"), vec![(doc, 1)])).collect();
    let index = Index::from_lists(&lists).unwrap();
    let identity: Vec<u32> = (0..100).collect();
    assert_eq!(quietly(&index, BisectionOptions::default()).new_of_old(), identity);
    let one = Index::from_lists(&[("a", vec![(0, 1)])]).unwrap();
    assert_eq!(quietly(&one, BisectionOptions { min_part: 0, ..BisectionOptions::default() }).new_of_old(), [0]);
}

#[test]
fn the_cost_of_an_order_is_the_mean_of_log2_gaps() {
    let index = Index::from_lists(&[("a", vec![(0, 1), (1, 1), (5, 1)]), ("b", vec![(7, 1)])]).unwrap();
    assert_eq!(log_gap_bits(&index), (0.0 + 0.0 + 2.0 + 3.0) / 4.0);
}

#[test]
fn permutations_are_read_from_numbers_and_from_text() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p");
    let expected = Permutation::new(vec![2, 0, 1]).unwrap();
    assert_eq!(expected.old_of_new(), [1, 2, 0]);
    let mut bytes = Vec::new();
    expected.write_to(&mut bytes).unwrap();
    for bytes in [&bytes[..], b"2\n0\n1\n", b"2\r\n\n0\r\n1"] {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Permutation::read(&path, 3).unwrap(), expected);
    }
    for (bytes, message) in [
        (&b"2\n0\n2\n"[..], "p:3: number 2 a second time; document 0 has it already"),
        (b"2\n0\n3\n", "p:3: number 3, expected 0 to 2"),
        (b"2\n0\n", "p: 2 numbers, the index has 3 documents"),
        (b"2\n0 1\n", "p:2:1: \"0 1\", expected the number of a document"),
        (b"", "p: 0 numbers, the index has 3 documents"),
        (b"\x02\0\0\0\0\0\0\0\x03\0\0\0", "p: byte 8: number 3, expected 0 to 2"),
        (b"\x02\0\0\0\0\0\0\0", "p: is no permutation of 3 documents: expected 12 bytes"),
        (&[b'1'; 100], "p: is no permutation of 3 documents"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = Permutation::read(&path, 3).unwrap_err().to_string();
        assert!(error.contains(message), "{error:?}, expected {message:?}");
    }
}

#[test]
fn scores_are_one_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    std::fs::write(&path, "1e3\n-0.5\n 7 \n").unwrap();
    assert_eq!(read_scores(&path, 3).unwrap(), [1000.0, -0.5, 7.0]);
    for (text, message) in [
        ("1\n x\n3\n", "s:2:2: \"x\", expected a number"),
        ("1\nnan\n3\n", "s:2:1: \"nan\", expected a number"),
        ("1\n2\n", "s: 2 scores, the index has 3 documents"),
        ("1\n2\n3\n4\n", "s:4: a score too many"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = read_scores(&path, 3).unwrap_err().to_string();
        assert!(error.contains(message), "{error:?}, expected {message:?}");
    }
}

/// A document's length and its terms with their frequencies, by the document's name.
type Documents = BTreeMap<String, (u32, BTreeMap<String, u32>)>;

fn documents(index: &Index) -> Documents {
    let name = |doc| index.external_id(DocId(doc)).into_owned();
    let lengths = (0..).zip(index.doc_lengths());
    let mut documents: Documents = lengths.map(|(doc, &length)| (name(doc), (length, BTreeMap::new()))).collect();
    for term in (0..index.num_terms()).map(TermId) {
        for (doc, freq) in index.list(term).postings() {
            documents.get_mut(&name(doc)).unwrap().1.insert(index.term_text(term), freq);
        }
    }
    documents
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn documents_stay_what_they_are(
        lists in prop::collection::btree_map(
            "[a-z]{1,3}",
            prop::collection::btree_map(0_u32..600, 1_u32..50, 1..400),
            1..9,
        ),
        is_named: bool,
        seed: u64,
    ) {
        let num_docs = lists.values().flat_map(BTreeMap::keys).max().map_or(0, |&doc| doc + 1);
        let lengths = (0..num_docs).map(|doc| doc * 37 % 101).collect();
        let ids = (0..num_docs).filter(|_| is_named).map(|doc| format!("d{}", doc ^ 5)).collect();
        let mut builder = IndexBuilder::new(lengths, ids, Bm25::default());
        for (term, list) in &lists {
            let list: Vec<(u32, u32)> = list.iter().map(|(&doc, &freq)| (doc, freq)).collect();
            builder.add(term, &list).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        let (original, there, back) = (dir.path().join("o"), dir.path().join("t"), dir.path().join("b"));
        builder.write(&original).unwrap();
        let original = Index::open(&original).unwrap();

        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
        let keys: Vec<u64> = (0..num_docs).map(|_| random.random()).collect();
        let permutation = Permutation::sorted_by(num_docs, |a, b| keys[a as usize].cmp(&keys[b as usize]));
        apply(&original, &permutation, &there, &|_| ()).unwrap();
        let reordered = Index::open(&there).unwrap();
        prop_assert_eq!(documents(&original), documents(&reordered));
        for (old, &new) in (0..).zip(permutation.new_of_old()) {
            prop_assert_eq!(original.external_id(DocId(old)), reordered.external_id(DocId(new)));
        }

        let inverse = Permutation::new(permutation.old_of_new()).unwrap();
        apply(&reordered, &inverse, &back, &|_| ()).unwrap();
        let back = Index::open(&back).unwrap();
        for term in (0..original.num_terms()).map(TermId) {
            prop_assert!(original.list(term).postings().eq(back.list(term).postings()));
        }
        prop_assert_eq!(original.doc_lengths(), back.doc_lengths());
    }
}
