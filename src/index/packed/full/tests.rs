//! Every width, every density, exceptions and none.

use proptest::prelude::*;

use super::*;

fn check(base: u32, docs: &[u32; BLOCK_LEN], freqs: &[u32; BLOCK_LEN]) -> (Code, Code) {
    let (mut rows, mut exceptions) = (Vec::new(), Vec::new());
    let (doc_code, freq_code) = encode(base, docs, freqs, &mut rows, &mut exceptions);
    let last_doc = docs[BLOCK_LEN - 1];
    let block = FullBlock { base, last_doc, doc_code, freq_code, words: &rows, exceptions: &exceptions };
    assert_eq!(rows.len(), ROW_WORDS * (doc_rows(doc_code, base, last_doc) + freq_code.width() as usize));
    let (doc_bits, freq_bits) = block.exception_bits();
    assert_eq!((doc_bits + freq_bits).div_ceil(8), exceptions.len());
    let mut out = [0; BLOCK_LEN];
    block.decode_docs(&mut out);
    assert_eq!(&out, docs, "{doc_code:?}");
    block.decode_freqs(&mut out);
    assert_eq!(&out, freqs, "{freq_code:?}");
    for (position, &freq) in freqs.iter().enumerate() {
        assert_eq!(block.freq_at(position), freq, "{freq_code:?}, position {position}");
    }
    (doc_code, freq_code)
}

#[test]
fn every_width_roundtrips() {
    for width in 0..=31_u32 {
        for base in [u32::MAX, 0, 41] {
            // Half of the values are wide where the range of documents allows, so that exceptions don't pay.
            let wide = if width <= 24 { 2 } else { BLOCK_LEN };
            let mut doc = base;
            let docs = std::array::from_fn(|i| {
                let gap = if width > 0 && i % wide == 0 { 1 << (width - 1) } else { 0 };
                doc = doc.wrapping_add(gap + 1);
                doc
            });
            let freqs = std::array::from_fn(|i| if i % 2 == 0 { (1 << width) - 1 } else { 0 } + 1);
            let (doc_code, freq_code) = check(base, &docs, &freqs);
            assert!(freq_code.width() == width && !freq_code.has_exceptions());
            assert!(width > 24 || doc_code.width() == width || doc_code == Code::BITSET);
        }
    }
    check(u32::MAX, &std::array::from_fn(|i| i as u32), &[u32::MAX; BLOCK_LEN]);
}

#[test]
fn dense_blocks_are_bitsets() {
    // Gaps of 1, 1, 1 and 5: three bits each, and too many exceptions to two.
    let docs = std::array::from_fn(|i| 1000 + i as u32 / 4 * 8 + i as u32 % 4);
    assert_eq!(check(999, &docs, &[1; BLOCK_LEN]).0, Code::BITSET);
    let docs = std::array::from_fn(|i| if i < 64 { 5 + i as u32 } else { 50 + i as u32 * 2 });
    check(u32::MAX, &docs, &[1; BLOCK_LEN]);
}

#[test]
fn exceptions_need_not_ascend_to_be_harmless() {
    // Two exceptions of width 1 at positions 9 and 3, as only a damaged file has them.
    let mut bytes = Vec::new();
    let mut writer = BitWriter::new(&mut bytes);
    for (value, width) in [(1, 5), (0, 5), (9, 7), (1, 1), (3, 7), (1, 1)] {
        writer.write(value, width);
    }
    writer.finish();
    let code = Code::from_stored(33);
    let block = FullBlock { base: 5, last_doc: 200, doc_code: code, freq_code: code, words: &[], exceptions: &bytes };
    let mut out = [0; BLOCK_LEN];
    block.decode_docs(&mut out);
    block.decode_freqs(&mut out);
    (0..BLOCK_LEN).for_each(|position| _ = block.freq_at(position));
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
