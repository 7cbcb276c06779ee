//! Decoding an encoded list gives the list, whole and by blocks. The first byte chooses the codec.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem::papers::codec::{Column, MAX_BLOCK_LEN, all_codecs};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[codec, repeat], bytes)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    // The numbers are repeated, so that few bytes fill several blocks.
    let numbers: Vec<u32> = numbers(bytes).collect();
    let len = numbers.len() * (1 + usize::from(repeat));
    let numbers = numbers.into_iter().cycle().take(len.min(3000));
    let docs: Vec<u32> = numbers
        .clone()
        .scan(-1_i64, |doc, gap| {
            *doc += i64::from(gap) + 1;
            u32::try_from(*doc).ok()
        })
        .collect();
    let freqs: Vec<u32> = numbers.map(|number| number.max(1)).collect();
    let codecs = all_codecs();
    let codec = &*codecs[usize::from(codec) % codecs.len()];
    for (column, values) in [(Column::Docs, &docs), (Column::Freqs, &freqs)] {
        let mut words = Vec::new();
        codec.encode(column, values, &mut words).expect("a good list");
        let list = codec.open(column, &words).expect("its own words");
        let mut all = Vec::new();
        list.decode_all(&mut all).expect("its own words");
        assert!(all == *values, "{} {column:?} of {values:?}", codec.name());
        let mut buffer = [0; MAX_BLOCK_LEN];
        for (block, expected) in values.chunks(list.block_len()).enumerate().rev() {
            let len = list.decode_block(block, &mut buffer).expect("its own words");
            assert_eq!(&buffer[..len], expected, "{} block {block}", codec.name());
            if column == Column::Docs {
                assert_eq!(list.find_block(expected[len - 1]), block);
            }
        }
    }
});

/// Numbers of all sizes: each begins with the bytes it takes, 0 to 4.
fn numbers(mut bytes: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let (&size, rest) = bytes.split_first()?;
        let len = usize::from(size % 5).min(rest.len());
        let (taken, rest) = rest.split_at(len);
        bytes = rest;
        Some(taken.iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    })
}
