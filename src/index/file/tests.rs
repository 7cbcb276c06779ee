//! Roundtrips, and every way to damage a small index.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::index::{BLOCK_LEN, IndexWriter, ListEncoder};

fn small_lists() -> Vec<(String, Vec<(u32, u32)>)> {
    vec![
        ("all".into(), (0..300).map(|doc| (doc, doc % 7 + 1)).collect()),
        ("few".into(), vec![(3, 1), (250, 9)]),
        ("grün".into(), (0..129).map(|doc| (doc * 2, 1)).collect()),
        ("one".into(), vec![(299, 4_000_000)]),
    ]
}

#[test]
fn what_was_added_is_read_back() {
    let lists = small_lists();
    let index = Index::from_lists(&lists).unwrap();
    assert_eq!((index.num_docs(), index.num_terms(), index.num_postings()), (300, 4, 300 + 2 + 129 + 1));
    for (rank, (text, list)) in lists.iter().enumerate() {
        let term = index.term(text).unwrap();
        assert_eq!(term, TermId(rank as u32));
        assert_eq!(index.term_text(term), *text);
        assert_eq!(index.list(term).postings().collect::<Vec<_>>(), *list);
    }
    assert_eq!(index.term("al"), None);
    assert_eq!(index.external_id(DocId(17)), "17");
    assert_eq!(index.num_tokens(), index.doc_lengths().iter().map(|&l| u64::from(l)).sum::<u64>());
}

#[test]
fn external_ids_and_the_tokenizer_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let ids = vec!["first".to_owned(), String::new(), "dritte ä".to_owned()];
    let mut builder = IndexBuilder::new(vec![1, 0, 2], ids.clone(), Bm25::default()).tokenizer("unicode+stem=german");
    builder.add("x", &[(0, 1), (2, 2)]).unwrap();
    builder.write(dir.path()).unwrap();
    let index = Index::open(dir.path()).unwrap();
    assert_eq!(index.tokenizer_name(), "unicode+stem=german");
    for (doc, id) in ids.iter().enumerate() {
        assert_eq!(index.external_id(DocId(doc as u32)), *id);
    }
}

#[test]
fn the_file_does_not_depend_on_how_the_vocabulary_was_cut() {
    let whole = tempfile::tempdir().unwrap();
    let cut = tempfile::tempdir().unwrap();
    for (dir, chunk) in [(&whole, 100), (&cut, 1)] {
        let mut writer = IndexWriter::create(dir.path(), vec![10; 300], Vec::new(), Bm25::default(), "ascii").unwrap();
        let mut encoder = ListEncoder::new(writer.norms());
        for (position, (term, list)) in small_lists().iter().enumerate() {
            encoder.add(term, list).unwrap();
            if (position + 1) % chunk == 0 {
                writer.append(&encoder.take()).unwrap();
            }
        }
        writer.append(&encoder.take()).unwrap();
        writer.finish().unwrap();
    }
    let read = |dir: &tempfile::TempDir| fs::read(dir.path().join(FILE_NAME)).unwrap();
    assert!(read(&whole) == read(&cut));
}

#[test]
fn lists_with_a_full_block_begin_at_16_bytes() {
    let index = Index::from_lists(&small_lists()).unwrap();
    assert!(index.payload().as_ptr().addr().is_multiple_of(64));
    for entry in index.term_entries() {
        assert!((entry.doc_freq as usize) < BLOCK_LEN || entry.payload_word.is_multiple_of(4), "{entry:?}");
    }
}

#[test]
fn wrong_postings_are_refused() {
    let bad = [
        (vec![(1, 1), (1, 1)], "ascending documents"),
        (vec![(2, 1), (1, 1)], "ascending documents"),
        (vec![(10, 1)], "document 10 of 10"),
        (vec![(1, 0)], "at least 1"),
        (vec![], "0 documents"),
    ];
    for (list, expected) in bad {
        let mut builder = IndexBuilder::new(vec![5; 10], Vec::new(), Bm25::default());
        let message = builder.add("b", &list).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert!(builder.write(tempfile::tempdir().unwrap().path()).is_err(), "an index without terms");
    }
    let mut builder = IndexBuilder::new(vec![5; 10], Vec::new(), Bm25::default());
    builder.add("b", &[(1, 1)]).unwrap();
    assert!(builder.add("b", &[(1, 1)]).is_err() && builder.add("a", &[(1, 1)]).is_err());
}

#[test]
fn any_changed_byte_and_any_other_length_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut builder = IndexBuilder::new(vec![3; 200], (0..200).map(|i| i.to_string()).collect(), Bm25::default());
    builder.add("a", &(0..150).map(|doc| (doc, 1 + doc % 2)).collect::<Vec<_>>()).unwrap();
    builder.add("b", &[(5, 1)]).unwrap();
    builder.write(dir.path()).unwrap();
    let path = dir.path().join(FILE_NAME);
    let good = fs::read(&path).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        fs::write(&path, bytes).unwrap();
        let message = Index::open(dir.path()).expect_err(what).to_string();
        assert!(message.contains(FILE_NAME) && message.contains("tandem index build"), "{what}: {message}");
    };
    let mut bytes = good.clone();
    for at in 0..good.len() {
        bytes[at] ^= 1 << (at % 8);
        refused(&bytes, &format!("byte {at} changed"));
        bytes[at] = good[at];
    }
    for len in 0..good.len() {
        refused(&good[..len], &format!("cut to {len} bytes"));
    }
    bytes.push(0);
    refused(&bytes, "a byte too many");
    fs::write(&path, &good).unwrap();
    Index::open(dir.path()).unwrap();
}

#[test]
fn inconsistent_lists_with_right_checksums_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut builder = IndexBuilder::new(vec![3; 200], Vec::new(), Bm25::default());
    builder.add("a", &(0..150).map(|doc| (doc, 1 + doc % 2)).collect::<Vec<_>>()).unwrap();
    builder.add("b", &[(5, 1)]).unwrap();
    builder.write(dir.path()).unwrap();
    let path = dir.path().join(FILE_NAME);
    let good = fs::read(&path).unwrap();
    let header: FileHeader = bytemuck::pod_read_unaligned(&good[..size_of::<FileHeader>()]);
    for section in [Section::Blocks, Section::Terms] {
        for at in range_of(&header, section) {
            let mut bytes = good.clone();
            bytes[at] ^= 0x80;
            let mut header = header;
            header.sections[section as usize].checksum =
                crate::index::layout::section_checksum(&bytes[range_of(&header, section)]);
            header.checksum = header.compute_checksum();
            bytes[..size_of::<FileHeader>()].copy_from_slice(bytemuck::bytes_of(&header));
            fs::write(&path, &bytes).unwrap();
            // Refused, or harmless: then every list still decodes.
            if let Ok(index) = Index::open(dir.path()) {
                for term in 0..index.num_terms() {
                    index.list(TermId(term)).postings().for_each(drop);
                }
            }
        }
    }
}

#[test]
fn a_missing_index_says_how_to_make_one() {
    let message = Index::open(Path::new("/nowhere/at-all")).unwrap_err().to_string();
    assert!(message.contains("/nowhere/at-all") && message.contains("tandem index build"), "{message}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_lists_roundtrip(
        lists in proptest::collection::btree_map(
            "[a-zäß]{1,6}",
            proptest::collection::btree_map(0_u32..100_000, prop_oneof![Just(1), 1_u32..20, 1_u32..=u32::MAX / 1000], 1..700),
            1..6,
        ),
    ) {
        let lists: Vec<(String, Vec<(u32, u32)>)> =
            lists.into_iter().map(|(term, list)| (term, list.into_iter().collect())).collect();
        let index = Index::from_lists(&lists).unwrap();
        let bm25 = index.built_with();
        for (text, list) in &lists {
            let term = index.term(text).unwrap();
            let got = index.list(term);
            prop_assert_eq!(&got.postings().collect::<Vec<_>>(), list);
            let weight = bm25.weight(index.num_docs(), got.doc_freq(), 1);
            prop_assert_eq!(got.num_blocks(), list.len().div_ceil(BLOCK_LEN));
            for (number, block) in list.chunks(BLOCK_LEN).enumerate() {
                prop_assert_eq!(got.block_len(number), block.len());
                let last_doc = block[block.len() - 1].0;
                prop_assert!(got.last_doc(number) == last_doc || list.len() < BLOCK_LEN && got.last_doc(number) > last_doc);
                for (position, &(doc, tf)) in block.iter().enumerate() {
                    prop_assert_eq!(got.freq_at(number, position), tf);
                    let norm = bm25.norm(index.doc_lengths()[doc as usize], index.average_length());
                    prop_assert!(Bm25::score(weight, tf, norm) <= weight * got.block_max_impact(number));
                }
            }
        }
    }
}
