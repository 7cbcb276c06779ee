//! Round trips.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tandem_base::base::ids::{DocId, TermId};

use super::*;
use crate::corpus::ListSource;
use crate::corpus::ciff::CiffReader;
use crate::index::{Bm25, Idf, Index, IndexBuilder};

/// Compares everything that an exchange format holds, and what is derived from it.
fn assert_same(a: &Index, b: &Index) {
    assert_eq!(a.doc_lengths(), b.doc_lengths());
    assert_eq!(a.num_terms(), b.num_terms());
    for doc in (0..a.num_docs()).map(DocId) {
        assert_eq!(a.external_id(doc), b.external_id(doc));
    }
    for term in (0..a.num_terms()).map(TermId) {
        assert_eq!(a.term_text(term), b.term_text(term));
        assert!(a.list(term).postings().eq(b.list(term).postings()));
    }
}

fn round_trip(index: &Index) {
    let dir = tempfile::tempdir().unwrap();
    let none = |_| ();
    for name in ["x.ciff", "x.ciff.gz"] {
        let path = dir.path().join(name);
        export_ciff(index, &path, &none).unwrap();
        let mut source = CiffReader::open(&path).unwrap();
        assert_eq!(source.tokenizer_name().as_deref(), Some(index.tokenizer_name()));
        let options =
            ImportOptions { bm25: index.built_with(), tokenizer: index.tokenizer_name().to_owned(), may_repeat: false };
        let out = dir.path().join("index");
        import(&mut source, &out, &options, &none).unwrap();
        assert!(source.notes().is_empty(), "{:?}", source.notes());
        let back = Index::open(&out).unwrap();
        assert_same(index, &back);
        assert_eq!(index.fingerprint(), back.fingerprint());
    }
}

#[test]
fn documents_without_tokens_and_terms_of_any_text_come_back() {
    let dir = tempfile::tempdir().unwrap();
    // A byte order mark in a name is part of it.
    let ids = ["\u{feff}", "a\tb", "ü\u{0}", "d"].map(String::from).to_vec();
    let bm25 = Bm25 { k1: 0.9, b: 0.4, idf: Idf::Papers };
    let mut builder = IndexBuilder::new(vec![0, 7, 2, 0], ids, bm25).tokenizer("unicode+stem=english");
    builder.add("\u{1}\r\t;", &[(1, 6)]).unwrap();
    builder.add("z", &[(1, 1), (2, 1)]).unwrap();
    builder.add("𝕏 \u{10ffff}", &[(2, 1)]).unwrap();
    builder.write(dir.path()).unwrap();
    round_trip(&Index::open(dir.path()).unwrap());
}

#[test]
fn a_first_term_with_a_byte_order_mark_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut builder = IndexBuilder::new(vec![1], vec!["d".to_owned()], Bm25::default());
    builder.add("\u{feff}a", &[(0, 1)]).unwrap();
    builder.write(dir.path()).unwrap();
    round_trip(&Index::open(dir.path()).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn random_indexes_come_back(
        lists in prop::collection::btree_map(
            "[^\n]{0,5}",
            prop::collection::btree_map(0_u32..700, 1_u32..1_000_000, 1..300),
            1..12,
        ),
        extra in 0_u32..3,
    ) {
        let num_docs = lists.values().flat_map(BTreeMap::keys).max().map_or(0, |&doc| doc + 1) + extra;
        let mut lengths = vec![0_u32; num_docs as usize];
        for (&doc, &freq) in lists.values().flatten() {
            lengths[doc as usize] += freq;
        }
        let ids = (0..num_docs).map(|doc| format!("doc-{}", doc * 7 % 709)).collect();
        let mut builder = IndexBuilder::new(lengths, ids, Bm25::default());
        for (term, list) in &lists {
            let list: Vec<(u32, u32)> = list.iter().map(|(&doc, &freq)| (doc, freq)).collect();
            builder.add(term, &list).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        builder.write(dir.path()).unwrap();
        round_trip(&Index::open(dir.path()).unwrap());
    }
}
