//! Size and speed of every codec: `cargo bench --bench codecs -- [INDEX [POSTINGS [ROUNDS]]]`.
//!
//! Takes every so many-th list of 128 postings or more until there are about POSTINGS (8 million). For documents and
//! frequencies apart: bits a value with everything (skip tables, headers), values decoded a second by one thread, what
//! share of the rate of copying memory that is (bytes of values written), values encoded a second. All codecs take
//! turns; lists are timed in pieces of some 40,000 values, and each piece's least time over the rounds counts, with the
//! piece in the cache. Decoding goes block by block into one buffer, as a search does, and includes opening the list.
//! Then `bp128` stands beside crate `bitpacking` on the same lists cut to whole blocks, which is all that the crate
//! packs. The last rows are the index's own blocks, of every eighth list: nanoseconds to decode one. Without arguments
//! the index is a synthetic one of 200,000 documents.

use std::error::Error;
use std::path::Path;

use bitpacking::{BitPacker, BitPacker4x};
use tandem::build::synth::{SynthOptions, build_synthetic};
use tandem::index::{BLOCK_LEN, Index};
use tandem::measure::{copy_rate, time_blocks};
use tandem::papers::codec::{
    Codec, CodecError, CodecTimes, Column, ListColumns, ListReader, all_codecs, codec_by_name, sample_lists,
    time_codecs,
};

/// Copied for the copy rate: several times any cache.
const COPY_BYTES: usize = 256 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds a `--bench` of its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let number = |position: usize, default: usize| arguments.get(position).map_or(Ok(default), |text| text.parse());
    let (num_postings, rounds) = (number(1, 8_000_000)?, number(2, 25)?);
    let index = match arguments.first() {
        Some(dir) => Index::open(Path::new(dir))?,
        None => {
            let dir = tempfile::tempdir()?;
            build_synthetic(&SynthOptions::new(200_000, 1), dir.path(), &|_, _| {})?;
            Index::open(dir.path())?
        }
    };
    let lists = sample_lists(&index, BLOCK_LEN as u32, num_postings as u64);
    let times = time_codecs(&all_codecs(), &lists, rounds)?;
    let whole_blocks: Vec<ListColumns> = lists.iter().map(whole_blocks).collect();
    let packers: Vec<Box<dyn Codec>> =
        codec_by_name("bp128").into_iter().chain([Box::new(BitpackingCrate) as _]).collect();
    let whole_times = time_codecs(&packers, &whole_blocks, rounds)?;
    let copy = copy_rate(COPY_BYTES, 7).one_thread;
    let taken: usize = lists.iter().map(|list| list.docs.len()).sum();
    println!("{} lists, {taken} postings, {rounds} rounds; copying memory {:.1} GB/s", lists.len(), copy / 1e9);
    println!("{:<18} {:>35}   {:>35}", "", "documents", "frequencies");
    let columns = format!("{:>6} {:>9} {:>7} {:>10}", "bits", "decode G/s", "of copy", "encode M/s");
    println!("{:<18} {columns}   {columns}", "codec");
    let cells = |times: &CodecTimes| {
        let share = times.decoded_per_s * 4.0 / copy * 100.0;
        let (decode, encode) = (times.decoded_per_s / 1e9, times.encoded_per_s / 1e6);
        format!("{:>6.2} {decode:>10.2} {share:>5.0} % {encode:>10.1}", times.bits_a_value)
    };
    for pair in times.chunks(2) {
        println!("{:<18} {}   {}", pair[0].codec, cells(&pair[0]), cells(&pair[1]));
    }
    println!("whole blocks alone");
    for pair in whole_times.chunks(2) {
        println!("{:<18} {}   {}", pair[0].codec, cells(&pair[0]), cells(&pair[1]));
    }
    println!(
        "{:<18} {:>9} {:>9} {:>9} {:>9} {:>12}",
        "the index's own", "blocks", "postings", "docs ns", "freqs ns", "one freq ns"
    );
    for times in time_blocks(&index, 8, rounds) {
        let (blocks, len) = (times.num_blocks, times.mean_len);
        let (docs, freqs, freq) = (times.docs_ns, times.freqs_ns, times.freq_at_ns);
        println!("{:<18} {blocks:>9} {len:>9.1} {docs:>9.1} {freqs:>9.1} {freq:>12.1}", times.kind);
    }
    Ok(())
}

/// A list without its last postings, if those do not fill a block.
fn whole_blocks(list: &ListColumns) -> ListColumns {
    let len = list.docs.len() / BLOCK_LEN * BLOCK_LEN;
    ListColumns { docs: list.docs[..len].to_vec(), freqs: list.freqs[..len].to_vec() }
}

/// Whole blocks by crate `bitpacking`; the same skip table as our codecs have.
///
/// Word 0 is the number of values; then for each block its base document and its width; then the blocks.
#[derive(Debug)]
struct BitpackingCrate;

impl Codec for BitpackingCrate {
    fn name(&self) -> &'static str {
        "crate bitpacking"
    }

    fn encode(&self, column: Column, values: &[u32], words: &mut Vec<u32>) -> Result<(), CodecError> {
        let packer = BitPacker4x::new();
        let mut skips = vec![values.len() as u32];
        let mut payload = Vec::new();
        let mut previous = None;
        for block in values.chunks(BLOCK_LEN) {
            let start = payload.len();
            let width;
            if column == Column::Docs {
                width = packer.num_bits_strictly_sorted(previous, block);
                payload.resize(start + 4 * usize::from(width), 0);
                packer.compress_strictly_sorted(previous, block, bytes_mut(&mut payload[start..]), width);
            } else {
                width = packer.num_bits(block);
                payload.resize(start + 4 * usize::from(width), 0);
                packer.compress(block, bytes_mut(&mut payload[start..]), width);
            }
            skips.extend([previous.unwrap_or(u32::MAX), start as u32 | u32::from(width) << 26]);
            previous = block.last().copied();
        }
        words.extend(skips);
        words.extend(payload);
        Ok(())
    }

    fn open<'a>(&self, column: Column, words: &'a [u32]) -> Result<Box<dyn ListReader + 'a>, CodecError> {
        let len = words[0] as usize;
        let (skips, payload) = words[1..].split_at(len.div_ceil(BLOCK_LEN) * 2);
        Ok(Box::new(CrateList { column, len, skips, payload }))
    }
}

#[derive(Debug)]
struct CrateList<'a> {
    column: Column,
    len: usize,
    skips: &'a [u32],
    payload: &'a [u32],
}

impl ListReader for CrateList<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn block_len(&self) -> usize {
        BLOCK_LEN
    }

    fn base(&self, block: usize) -> Option<u32> {
        self.skips.get(2 * block).copied()
    }

    fn decode_block(&self, block: usize, out: &mut [u32]) -> Result<usize, CodecError> {
        let (base, entry) = (self.skips[2 * block], self.skips[2 * block + 1]);
        let words = &self.payload[(entry & ((1 << 26) - 1)) as usize..];
        let width = (entry >> 26) as u8;
        if self.column == Column::Docs {
            let previous = (base != u32::MAX).then_some(base);
            let (bytes, out) = (bytes(&words[..4 * usize::from(width)]), &mut out[..BLOCK_LEN]);
            BitPacker4x::new().decompress_strictly_sorted(previous, bytes, out, width);
        } else {
            BitPacker4x::new().decompress(bytes(&words[..4 * usize::from(width)]), &mut out[..BLOCK_LEN], width);
        }
        Ok(BLOCK_LEN)
    }
}

fn bytes(words: &[u32]) -> &[u8] {
    bytemuck::cast_slice(words)
}

fn bytes_mut(words: &mut [u32]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}
