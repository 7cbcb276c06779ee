//! Decoding: arbitrary words, or words of a good list with some of them changed, give values or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem::papers::codec::{Codec, Column, MAX_BLOCK_LEN, all_codecs};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[codec, mode], bytes)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let codecs = all_codecs();
    let codec = &*codecs[usize::from(codec) % codecs.len()];
    let column = if mode & 1 == 0 { Column::Docs } else { Column::Freqs };
    let input: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let words = if mode & 2 == 0 { input } else { damaged(codec, column, &input) };
    let Ok(list) = codec.open(column, &words) else {
        return;
    };
    let mut buffer = [0; MAX_BLOCK_LEN];
    for block in 0..list.num_blocks().min(1000) {
        let _ = list.decode_block(block, &mut buffer);
    }
    for target in [0, 1000, u32::MAX] {
        let block = list.find_block(target);
        assert!(block < list.num_blocks().max(1));
    }
    let _ = list.decode_all(&mut Vec::new());
});

/// A list of the codec. The first word gives its length, the others change its words.
fn damaged(codec: &dyn Codec, column: Column, input: &[u32]) -> Vec<u32> {
    let Some((&first, changes)) = input.split_first() else {
        return Vec::new();
    };
    let numbers = (0..first % 1500).map(|i| i.wrapping_mul(first | 1) >> (8 + first % 20) | 1);
    let values: Vec<u32> = match column {
        Column::Freqs => numbers.collect(),
        Column::Docs => numbers.scan(0_u32, |doc, gap| Some(std::mem::replace(doc, doc.checked_add(gap)?))).collect(),
    };
    let mut words = Vec::new();
    codec.encode(column, &values, &mut words).expect("a good list");
    let len = words.len();
    for change in changes.chunks_exact(2) {
        words[change[0] as usize % len] = change[1];
    }
    words
}
