//! Roundtrips, and every kind of damage to a small index.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::index::layout::section_checksum;
use crate::index::{BLOCK_LEN, IndexWriter, ListEncoder};

/// A sparse list of many blocks and a tail, with values that stick out.
fn uneven_list() -> Vec<(u32, u32)> {
    (0..2000).map(|i| (i * 9 + i % 5 + i / 90 * 400, if i % 50 == 3 { 900 } else { 1 + i % 3 })).collect()
}

fn small_lists() -> Vec<(String, Vec<(u32, u32)>)> {
    vec![
        ("all".into(), (0..300).map(|doc| (doc, doc % 7 + 1)).collect()),
        ("few".into(), vec![(3, 1), (250, 9)]),
        ("grün".into(), (0..129).map(|doc| (doc * 2, 1)).collect()),
        ("one".into(), vec![(299, 4_000_000)]),
        ("solo".into(), vec![(17, 1)]),
    ]
}

#[test]
fn what_was_added_is_read_back() {
    let lists = small_lists();
    let index = Index::from_lists(&lists).unwrap();
    assert_eq!((index.num_docs(), index.num_terms(), index.num_postings()), (300, 5, 300 + 2 + 129 + 1 + 1));
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
fn values_that_stick_out_come_back() {
    let list = uneven_list();
    let index =
        Index::from_lists(&[("a", &list[..]), ("b", &list[..127])].map(|(term, list)| (term, list.to_vec()))).unwrap();
    let mut number = 0;
    index
        .for_each_list(|term, got| {
            let len = if term == "a" { list.len() } else { 127 };
            assert_eq!(got.postings().collect::<Vec<_>>(), list[..len]);
            number += 1;
            Ok::<_, IndexError>(())
        })
        .unwrap();
    assert_eq!(number, 2);
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
fn long_lists_begin_at_16_bytes() {
    let index = Index::from_lists(&small_lists()).unwrap();
    assert!(index.payload().as_ptr().addr().is_multiple_of(64));
    assert_eq!(index.long_lists().len(), 2);
    for list in index.long_lists() {
        assert!((list.doc_freq as usize) >= BLOCK_LEN && list.payload_word.is_multiple_of(4), "{list:?}");
    }
}

#[test]
fn a_short_list_is_packed_bit_by_bit() {
    let index = Index::from_lists(&[("a", vec![(9, 1)]), ("b", vec![(3, 2), (8, 1), (1000, 1)])]).unwrap();
    // Gaps minus one 3, 4, 991 take 10 bits, frequencies minus one 1, 0, 0 one: no exceptions pay.
    let bytes: Vec<u8> = bytemuck::cast_slice(index.short_lists()).to_vec();
    let bits = bytes.iter().rev().fold(0_u128, |bits, &byte| bits << 8 | u128::from(byte));
    assert_eq!(bits & 0x7f, 3);
    assert_eq!((bits >> 7 & 63, bits >> 13 & 63), (10, 1));
    assert_eq!((bits >> 27 & 1023, bits >> 37 & 1023, bits >> 47 & 1023), (3, 4, 991));
    assert_eq!((bits >> 57 & 7, bits >> 60), (1, 0));
    assert_eq!(bytes.len(), 8);
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
fn an_older_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let mut bytes = vec![0; 1000];
    bytes[..8].copy_from_slice(b"TandemIx");
    bytes[8] = 1;
    bytes[12..16].copy_from_slice(&0x0A0B_0C0D_u32.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let message = Index::open(dir.path()).unwrap_err().to_string();
    assert!(message.contains("index format 1, this build reads formats 2 to 3 (rebuild it"), "{message}");
}

#[test]
fn format_2_whose_dictionary_is_one_map_reads_as_ever() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let lists = small_lists();
    let mut builder = IndexBuilder::new(vec![5; 300], Vec::new(), Bm25::default());
    lists.iter().for_each(|(term, list)| builder.add(term, list).unwrap());
    builder.write(dir.path()).unwrap();
    let new = fs::read(&path).unwrap();
    let mut header: FileHeader = bytemuck::pod_read_unaligned(&new[..size_of::<FileHeader>()]);
    let mut old = vec![0; size_of::<FileHeader>()];
    for section in Section::ALL {
        let mut range = range_of(&header, section);
        if section == Section::Dictionary {
            // The only part, without the table.
            range.start += 8;
        }
        let row = &mut header.sections[section as usize];
        (row.offset, row.len) = (old.len() as u64, range.len() as u64);
        row.checksum = section_checksum(&new[range.clone()]);
        old.extend_from_slice(&new[range]);
        old.resize(old.len().next_multiple_of(64), 0);
    }
    (header.version, header.file_len) = (2, old.len() as u64);
    header.checksum = header.compute_checksum();
    old[..size_of::<FileHeader>()].copy_from_slice(bytemuck::bytes_of(&header));
    fs::write(&path, old).unwrap();
    let index = Index::open(dir.path()).unwrap();
    for (rank, (text, list)) in lists.iter().enumerate() {
        let term = index.term(text).unwrap();
        assert_eq!((term, index.term_text(term)), (TermId(rank as u32), text.clone()));
        assert_eq!(index.list(term).postings().collect::<Vec<_>>(), *list);
    }
}

#[test]
fn inconsistent_lists_with_right_checksums_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut builder = IndexBuilder::new(vec![3; 40_000], Vec::new(), Bm25::default());
    builder.add("a", &(0..8000).map(|doc| (doc * 3 + doc % 7 / 6, 1 + doc % 17)).collect::<Vec<_>>()).unwrap();
    builder.add("b", &uneven_list()).unwrap();
    builder.add("c", &[(5, 1)]).unwrap();
    builder.add("d", &[(5, 1), (6, 3), (39_000, 1)]).unwrap();
    builder.write(dir.path()).unwrap();
    let path = dir.path().join(FILE_NAME);
    let good = fs::read(&path).unwrap();
    let header: FileHeader = bytemuck::pod_read_unaligned(&good[..size_of::<FileHeader>()]);
    let mut bytes = good.clone();
    for section in Section::ALL[..6].iter().chain([&Section::Dictionary]) {
        let range = range_of(&header, *section);
        // Every byte of what describes lists, a sample of the packed bits.
        let step = if *section == Section::Payload { 101 } else { 1 };
        for at in range.clone().step_by(step) {
            bytes[at] ^= 1 << (at * 7 % 11 % 8);
            let mut header = header;
            header.sections[*section as usize].checksum = section_checksum(&bytes[range.clone()]);
            header.checksum = header.compute_checksum();
            bytes[..size_of::<FileHeader>()].copy_from_slice(bytemuck::bytes_of(&header));
            fs::write(&path, &bytes).unwrap();
            // Refused, or harmless: then every list still decodes.
            if let Ok(index) = Index::open(dir.path()) {
                assert_ne!(*section, Section::Dictionary, "the checksum of the dictionary shows a change in it");
                (0..index.num_terms()).for_each(|term| read_all(index.list(TermId(term)), index.num_docs()));
            }
            bytes[at] = good[at];
        }
    }
}

fn read_all(list: PostingList<'_>, num_docs: u32) {
    list.postings().for_each(drop);
    for block in 0..list.num_blocks() {
        (0..list.block_len(block)).for_each(|position| _ = list.freq_at(block, position));
    }
    if let Some(probe) = list.probe() {
        (0..num_docs).step_by(61).for_each(|doc| _ = probe.freq(doc));
        let mut room = [0; 172];
        for first in (0..num_docs as usize).step_by(97) {
            _ = probe.freqs(first, 100, &mut room);
            probe.large(first, 100).for_each(drop);
        }
    }
    _ = list.bits();
}

#[test]
fn dense_lists_are_probed_as_they_are_decoded() {
    // Four bits a frequency, four bits with few exceptions, eight bits, eight bits with exceptions of any size.
    let freqs: [fn(u32) -> u32; 4] = [
        |doc| 1 + doc % 5,
        |doc| if doc % 1000 == 1 { 16 + doc } else { 1 + doc % 15 },
        |doc| 1 + doc * 31 % 97 / 3,
        |doc| if doc % 900 == 2 { u32::MAX - doc } else { 1 + doc % 255 },
    ];
    for (num_docs, freq) in [400, 70_000, 200_000].into_iter().flat_map(|num_docs| freqs.map(|freq| (num_docs, freq))) {
        let dense: Vec<(u32, u32)> = (0..num_docs).filter(|doc| doc % 7 < 3).map(|doc| (doc, freq(doc))).collect();
        let sparse: Vec<(u32, u32)> = (0..num_docs).step_by(16).map(|doc| (doc, 1)).collect();
        let index =
            Index::from_lists(&[("dense", dense.clone()), ("sparse", sparse), ("z", vec![(num_docs - 1, 2)])]).unwrap();
        assert!(index.list(TermId(1)).probe().is_none() && index.list(TermId(2)).probe().is_none());
        let list = index.list(TermId(0));
        assert_eq!(list.postings().collect::<Vec<_>>(), dense);
        let probe = list.probe().unwrap();
        let mut found = dense.iter().peekable();
        for doc in 0..num_docs {
            let expected = found.next_if(|posting| posting.0 == doc).map_or(0, |posting| posting.1);
            assert_eq!(probe.freq(doc), expected, "document {doc}");
            assert_eq!(probe.contains(doc), expected > 0);
            assert_eq!(probe.words()[doc as usize / 64] >> (doc % 64) & 1 == 1, expected > 0);
        }
        assert_eq!(probe.words().iter().map(|word| word.count_ones() as usize).sum::<usize>(), dense.len());
        for first in [0, 1, (dense.len() - 100) / 2, dense.len() - 100] {
            let mut room = [0; 172];
            let freqs = probe.freqs(first, 100, &mut room);
            assert!(freqs.len() >= 164);
            let mut large = probe.large(first, 100).peekable();
            for (posting, &freq) in (first..first + 100).zip(freqs) {
                let freq =
                    if freq > 0 { u32::from(freq) } else { large.next_if(|large| large.0 == posting).unwrap().1 };
                assert_eq!(freq, dense[posting].1, "posting {posting}");
            }
            assert_eq!(large.next(), None);
        }
    }
}

#[test]
fn as_many_documents_as_said_reach_the_stored_impacts() {
    let list: Vec<(u32, u32)> = (0..5000).map(|i| (i * 2, 1 + i * 7919 % 23)).collect();
    let index =
        Index::from_lists(&[("a", list.clone()), ("b", list[..300].to_vec()), ("c", list[..100].to_vec())]).unwrap();
    let bm25 = index.built_with();
    for term in 0..3 {
        let list = index.list(TermId(term));
        let weight = bm25.weight(index.num_docs(), list.doc_freq(), 1);
        let score = |(doc, tf): (u32, u32)| {
            Bm25::score(weight, tf, bm25.norm(index.doc_lengths()[doc as usize], index.average_length()))
        };
        for k in [1, 10, 11, 100, 1000, 1001] {
            let reached = list.postings().filter(|&posting| score(posting) >= weight * list.kth_impact(k)).count();
            assert!(reached >= k.min(list.doc_freq() as usize), "{reached} reach the {k}-th best impact");
            let known = k <= 1000 && (list.doc_freq() as usize) >= BLOCK_LEN && list.doc_freq() as usize >= k;
            assert_eq!(list.kth_impact(k) > 0.0, known && (k <= 100 || list.doc_freq() >= 1000), "term {term}, {k}");
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
            proptest::collection::btree_map(
                0_u32..100_000,
                prop_oneof![Just(1), 1_u32..20, 1_u32..=u32::MAX / 1000],
                1..700,
            ),
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
            prop_assert!(got.docs().iter().eq(list.iter().map(|(doc, _)| doc)));
            prop_assert!(got.probe().is_none_or(|probe| list.iter().all(|&(doc, freq)| probe.freq(doc) == freq)));
            let weight = bm25.weight(index.num_docs(), got.doc_freq(), 1);
            prop_assert_eq!(got.num_blocks(), list.len().div_ceil(BLOCK_LEN));
            for (number, block) in list.chunks(BLOCK_LEN).enumerate() {
                prop_assert_eq!(got.block_len(number), block.len());
                let last_doc = block[block.len() - 1].0;
                let bounds = list.len() < BLOCK_LEN && got.last_doc(number) > last_doc;
                prop_assert!(bounds || got.last_doc(number) == last_doc);
                for (position, &(doc, tf)) in block.iter().enumerate() {
                    prop_assert_eq!(got.freq_at(number, position), tf);
                    let norm = bm25.norm(index.doc_lengths()[doc as usize], index.average_length());
                    prop_assert!(Bm25::score(weight, tf, norm) <= weight * got.block_max_impact(number));
                }
            }
        }
    }
}
