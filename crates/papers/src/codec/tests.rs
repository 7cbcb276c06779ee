//! Laws of all codecs.

use proptest::prelude::*;

use super::{Codec, CodecError, Column, MAX_BLOCK_LEN, all_codecs};

const LENGTHS: [usize; 14] = [0, 1, 2, 3, 127, 128, 129, 255, 256, 257, 511, 512, 513, 10_000];

/// Returns pseudo-random numbers that depend on the seed only.
fn noise(seed: u64) -> impl Iterator<Item = u32> {
    let mut state = seed | 1;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    })
}

/// Returns ascending documents from gaps minus one, up to 2^32 - 1.
fn docs_of(gaps: impl Iterator<Item = u32>) -> Vec<u32> {
    let ends = gaps.scan(-1_i64, |doc, gap| {
        *doc += i64::from(gap) + 1;
        u32::try_from(*doc).ok()
    });
    ends.collect()
}

/// Encodes behind other words, decodes the whole list and its blocks backwards, and checks the skip table.
fn roundtrip(codec: &dyn Codec, column: Column, values: &[u32]) {
    let name = codec.name();
    let mut words = vec![7; 3];
    codec.encode(column, values, &mut words).unwrap();
    let list = codec.open(column, &words[3..]).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(list.len(), values.len(), "{name}");
    let mut all = vec![9];
    list.decode_all(&mut all).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(all[0], 9);
    assert!(all[1..] == *values, "{name} {column:?}: {} values decode differently", values.len());
    let mut buffer = [0; MAX_BLOCK_LEN];
    for (block, expected) in values.chunks(list.block_len()).enumerate().rev() {
        assert_eq!(list.decode_block(block, &mut buffer), Ok(expected.len()), "{name} block {block}");
        assert_eq!(&buffer[..expected.len()], expected, "{name} block {block}");
        if column == Column::Docs {
            assert_eq!(list.find_block(expected[0]), block, "{name}");
            assert_eq!(list.find_block(expected[expected.len() - 1]), block, "{name}");
        }
    }
    assert!(matches!(list.decode_block(list.num_blocks(), &mut buffer), Err(CodecError::NoBlock { .. })), "{name}");
}

#[test]
fn every_width_and_length_roundtrips() {
    for codec in all_codecs() {
        for width in 0..=32_u32 {
            for len in LENGTHS {
                let mask = ((1_u64 << width) - 1) as u32;
                let numbers: Vec<u32> = noise(u64::from(width) * 31 + len as u64).map(|v| v & mask).take(len).collect();
                let freqs: Vec<u32> = numbers.iter().map(|&v| v.max(1)).collect();
                roundtrip(&*codec, Column::Freqs, &freqs);
                roundtrip(&*codec, Column::Docs, &docs_of(numbers.into_iter()));
            }
        }
    }
}

#[test]
fn runs_outliers_and_the_largest_documents_roundtrip() {
    for codec in all_codecs() {
        for len in LENGTHS {
            let end = 1_u32 << 31;
            roundtrip(&*codec, Column::Docs, &(end - len as u32..end).collect::<Vec<_>>());
            roundtrip(&*codec, Column::Docs, &(u32::MAX - len as u32..u32::MAX).collect::<Vec<_>>());
            // An outlier of each size is at some place among small numbers.
            for (at, bit) in (0..32).map(|bit| (bit * 37 % len.max(1), bit)) {
                let mut numbers: Vec<u32> = noise(at as u64).map(|v| v % 4 + 1).take(len).collect();
                if let Some(outlier) = numbers.get_mut(at) {
                    *outlier = 1 << bit | 1;
                }
                roundtrip(&*codec, Column::Freqs, &numbers);
                roundtrip(&*codec, Column::Docs, &docs_of(numbers.into_iter()));
            }
        }
        roundtrip(&*codec, Column::Freqs, &[u32::MAX; 600]);
        roundtrip(&*codec, Column::Freqs, &(0..700).map(|i| if i % 3 == 0 { u32::MAX } else { 1 }).collect::<Vec<_>>());
    }
}

#[test]
fn lists_that_are_none_are_refused() {
    for codec in all_codecs() {
        let mut words = Vec::new();
        let unsorted = CodecError::Unsorted { position: 2, doc: 4, previous: 4 };
        assert_eq!(codec.encode(Column::Docs, &[1, 4, 4], &mut words), Err(unsorted));
        let zero = CodecError::ZeroFreq { position: 1 };
        assert_eq!(codec.encode(Column::Freqs, &[1, 0], &mut words), Err(zero));
        assert!(words.is_empty());
        assert!(codec.open(Column::Docs, &[]).is_err());
    }
}

#[test]
fn truncations_are_errors_or_leave_earlier_blocks() {
    let docs = docs_of(noise(5).map(|v| v >> (v % 32)).take(700).map(|v| v >> 12));
    for codec in all_codecs() {
        let mut words = Vec::new();
        codec.encode(Column::Docs, &docs, &mut words).unwrap();
        for len in 0..words.len() {
            let mut out = Vec::new();
            let result = codec.open(Column::Docs, &words[..len]).and_then(|list| list.decode_all(&mut out));
            assert!(result.is_err(), "{} cut to {len} of {} words", codec.name(), words.len());
        }
    }
}

/// Decodes as much as possible of arbitrary words.
fn decode_anything(codec: &dyn Codec, words: &[u32]) {
    for column in [Column::Docs, Column::Freqs] {
        if let Ok(list) = codec.open(column, words) {
            let mut buffer = [0; MAX_BLOCK_LEN];
            for block in 0..list.num_blocks().min(50) {
                let _ = list.decode_block(block, &mut buffer);
            }
            let _ = list.find_block(words.len() as u32 * 77);
            let _ = list.decode_all(&mut Vec::new());
        }
    }
}

proptest! {
    #[test]
    fn random_lists_roundtrip(numbers in prop::collection::vec((any::<u32>(), 0..33_u32), 0..1500)) {
        let numbers: Vec<u32> = numbers.iter().map(|&(v, width)| (u64::from(v) & ((1 << width) - 1)) as u32).collect();
        let docs = docs_of(numbers.iter().map(|v| v >> 9));
        let freqs: Vec<u32> = numbers.iter().map(|v| (*v).max(1)).collect();
        for codec in all_codecs() {
            roundtrip(&*codec, Column::Docs, &docs);
            roundtrip(&*codec, Column::Freqs, &freqs);
        }
    }

    #[test]
    fn arbitrary_words_never_panic(len in 0..2000_u32, words in prop::collection::vec(any::<u32>(), 0..300)) {
        for codec in all_codecs() {
            decode_anything(&*codec, &words);
            let mut likely = words.clone();
            if let Some(first) = likely.first_mut() {
                *first = len;
            }
            decode_anything(&*codec, &likely);
        }
    }

    #[test]
    fn damaged_words_never_panic(
        gaps in prop::collection::vec(0..5000_u32, 1..1200),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), 0..33_u32), 1..6),
    ) {
        for codec in all_codecs() {
            for column in [Column::Docs, Column::Freqs] {
                let values = match column {
                    Column::Docs => docs_of(gaps.iter().copied()),
                    Column::Freqs => gaps.iter().map(|gap| gap + 1).collect(),
                };
                let mut words = Vec::new();
                codec.encode(column, &values, &mut words).unwrap();
                for (place, value, shift) in &changes {
                    let place = place.index(words.len().min(40 + words.len() / 4));
                    words[place] ^= (u64::from(*value) >> shift) as u32;
                }
                decode_anything(&*codec, &words);
            }
        }
    }
}
