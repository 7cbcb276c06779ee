//! Tests of every width and density, with equal and unequal groups.

use proptest::prelude::*;

use super::*;
use crate::index::packed::SLACK_BYTES;

/// Packs and unpacks a block, with and without room for wide loads behind it.
fn check(base: u32, docs: &[u32; BLOCK_LEN], freqs: &[u32; BLOCK_LEN]) -> (ColumnCode, ColumnCode) {
    let mut packed = vec![0xee; 3];
    let (doc_code, freq_code, freqs_at) = encode_full(base, docs, freqs, &mut packed);
    let len = packed.len() - 3;
    let last_doc = docs[BLOCK_LEN - 1];
    for room in [0, 3, SLACK_BYTES] {
        packed.resize(3 + len + room, 0xff);
        let block = FullBlock { base, last_doc, doc_code, freq_code, bytes: &packed[3..], freqs_at };
        assert_eq!(block.part_bytes(), (freqs_at, len - freqs_at));
        let mut out = [0; BLOCK_LEN];
        block.decode_docs(&mut out);
        assert_eq!(&out, docs, "{doc_code:?}");
        block.decode_freqs(&mut out);
        assert_eq!(&out, freqs, "{freq_code:?}");
        for (position, &freq) in freqs.iter().enumerate() {
            assert_eq!(block.freq_at(position), freq, "{freq_code:?}, position {position}");
        }
    }
    (doc_code, freq_code)
}

#[test]
fn every_width_roundtrips() {
    for width in 0..=31_u32 {
        for base in [u32::MAX, 0, 41] {
            // Half of the groups are wide if the range of documents allows that.
            let wide = if width <= 24 { 16 } else { BLOCK_LEN };
            let mut doc = base;
            let docs = std::array::from_fn(|i| {
                let gap = if width > 0 && i % wide == 3 { 1 << (width - 1) } else { 0 };
                doc = doc.wrapping_add(gap + 1);
                doc
            });
            let freqs = std::array::from_fn(|i| if i % 16 == 5 { (1 << width) - 1 } else { 0 } + 1);
            let (doc_code, freq_code) = check(base, &docs, &freqs);
            assert_eq!(u32::from(freq_code.widest()), width);
            assert!(u32::from(doc_code.widest()) == width || doc_code == ColumnCode::BITSET);
        }
    }
    check(u32::MAX, &std::array::from_fn(|i| i as u32), &[u32::MAX; BLOCK_LEN]);
}

#[test]
fn dense_blocks_are_bitsets() {
    // Gaps of 1, 1, 1 and 5: three bits each, and too many exceptions to two.
    let docs = std::array::from_fn(|i| 1000 + i as u32 / 4 * 8 + i as u32 % 4);
    assert_eq!(check(999, &docs, &[1; BLOCK_LEN]).0, ColumnCode::BITSET);
    let docs = std::array::from_fn(|i| if i < 64 { 5 + i as u32 } else { 50 + i as u32 * 2 });
    check(u32::MAX, &docs, &[1; BLOCK_LEN]);
}

#[test]
fn groups_are_as_narrow_as_their_widths_can_say() {
    // Two bits express widths 1 to 4, four bits 0 to 15. Next to a width of 20, a width of 0 takes 5.
    let freqs = |width: fn(usize) -> u32| std::array::from_fn(|i| 1 + (1 << width(i / 8)) / 2);
    let docs = std::array::from_fn(|i| i as u32 * 2);
    let bytes = |freqs: &[u32; BLOCK_LEN]| {
        let mut packed = Vec::new();
        let (_, code, freqs_at) = encode_full(u32::MAX, &docs, freqs, &mut packed);
        (code.control_bytes(), packed.len() - freqs_at)
    };
    assert_eq!(bytes(&freqs(|group| 1 + group as u32 % 4)), (4, 4 + 40));
    assert_eq!(bytes(&freqs(|group| group as u32)), (8, 8 + 120));
    assert_eq!(bytes(&freqs(|group| if group == 9 { 20 } else { 0 })), (8, 8 + 20 + 15 * 5));
    assert_eq!(bytes(&[1; BLOCK_LEN]), (0, 0));
}

#[test]
fn damaged_blocks_are_harmless() {
    let bytes: Vec<u8> = (0..600_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut out = [0; BLOCK_LEN];
    for stored in 0..128 {
        let code = ColumnCode::from_stored(stored);
        assert_eq!(code.stored(), stored);
        for len in [0, 3, 7, 100, 600] {
            let bytes = &bytes[..len];
            let block = FullBlock { base: 5, last_doc: 1000, doc_code: code, freq_code: code, bytes, freqs_at: 50 };
            block.decode_docs(&mut out);
            block.decode_freqs(&mut out);
            (0..BLOCK_LEN).for_each(|position| _ = block.freq_at(position));
            _ = block.part_bytes();
        }
    }
}

proptest! {
    #[test]
    fn random_blocks_roundtrip(
        base in prop_oneof![Just(u32::MAX), 0_u32..1000],
        dense in 1_u32..40,
        postings in proptest::collection::vec(
            (prop_oneof![9 => 0_u32..40, 1 => 0_u32..16_000_000], prop_oneof![9 => 1_u32..4, 1 => 1_u32..=u32::MAX]),
            BLOCK_LEN..=BLOCK_LEN,
        ),
        rare in 1_usize..20,
    ) {
        let mut doc = base;
        let docs = std::array::from_fn(|i| {
            let gap = if i % rare == 0 { postings[i].0 } else { postings[i].0 % dense };
            doc = doc.wrapping_add(gap + 1);
            doc
        });
        check(base, &docs, &std::array::from_fn(|i| postings[i].1));
    }
}
