//! What an index's own blocks cost: nanoseconds to decode one, as a search does.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::ids::TermId;
use crate::index::{BLOCK_LEN, BlockBuffer, Index, PostingList};

/// Blocks timed at once: their bytes and entries fit a core's caches, and the clock is read rarely.
const PIECE_BLOCKS: usize = 300;

/// Blocks of one kind, and the mean time of each operation on one.
#[derive(Clone, Copy, Debug)]
pub struct BlockTimes {
    /// What they are: full blocks, the last ones of long lists, short lists.
    pub kind: &'static str,
    /// Blocks timed.
    pub num_blocks: usize,
    /// Postings in a block, in the mean.
    pub mean_len: f64,
    /// All documents, in nanoseconds.
    pub docs_ns: f64,
    /// All frequencies, in nanoseconds.
    pub freqs_ns: f64,
    /// One frequency alone, in nanoseconds.
    pub freq_at_ns: f64,
}

/// Decodes blocks of every `step`-th list, `rounds` times. Blocks are timed in pieces of the order of their lists, and
/// each piece's least time counts; pieces that aren't full are left out.
#[must_use]
pub fn time_blocks(index: &Index, step: usize, rounds: usize) -> [BlockTimes; 3] {
    let [mut full, mut rest, mut short] = [const { Vec::new() }; 3];
    for term in (0..index.num_terms()).step_by(step.max(1)) {
        let list = index.list(TermId(term));
        for block in 0..list.num_blocks() {
            let of_its_kind = match (list.block_len(block), list.doc_freq() as usize) {
                (BLOCK_LEN, _) => &mut full,
                (_, BLOCK_LEN..) => &mut rest,
                _ => &mut short,
            };
            of_its_kind.push((list, block));
        }
    }
    [
        time_kind("full blocks", &full, rounds),
        time_kind("last blocks", &rest, rounds),
        time_kind("short lists", &short, rounds),
    ]
}

fn time_kind(kind: &'static str, blocks: &[(PostingList<'_>, usize)], rounds: usize) -> BlockTimes {
    let (pieces, _) = blocks.as_chunks::<PIECE_BLOCKS>();
    let mut buffer = BlockBuffer::default();
    let mut least = vec![[Duration::MAX; 3]; pieces.len()];
    for _ in 0..rounds {
        for (piece, least) in pieces.iter().zip(&mut least) {
            let [docs, freqs, freq_at] = least;
            least_of(docs, piece, |list, block| {
                list.decode_docs(block, &mut buffer.docs);
                black_box(&buffer);
            });
            least_of(freqs, piece, |list, block| {
                list.decode_freqs(block, &mut buffer.freqs);
                black_box(&buffer);
            });
            least_of(freq_at, piece, |list, block| _ = black_box(list.freq_at(block, list.block_len(block) * 5 / 8)));
        }
    }
    let num_blocks = pieces.len() * PIECE_BLOCKS;
    let postings: usize = blocks[..num_blocks].iter().map(|(list, block)| list.block_len(*block)).sum();
    let mean_ns = |operation: usize| {
        least.iter().map(|least| least[operation].as_secs_f64()).sum::<f64>() * 1e9 / num_blocks.max(1) as f64
    };
    BlockTimes {
        kind,
        num_blocks,
        mean_len: postings as f64 / num_blocks.max(1) as f64,
        docs_ns: mean_ns(0),
        freqs_ns: mean_ns(1),
        freq_at_ns: mean_ns(2),
    }
}

/// Lets `operation` go through the blocks twice, and keeps the least time: the first fetches them from memory, the
/// second finds them in the cache.
fn least_of(
    least: &mut Duration,
    piece: &[(PostingList<'_>, usize)],
    mut operation: impl FnMut(&PostingList<'_>, usize),
) {
    for _ in 0..2 {
        let began = Instant::now();
        for (list, block) in piece {
            operation(list, *block);
        }
        *least = began.elapsed().min(*least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_every_kind_are_timed() {
        let long: Vec<(u32, u32)> = (0..60_000).map(|doc| (doc, 1 + doc % 3)).collect();
        let index = Index::from_lists(&[("a", long)]).unwrap();
        let [full, rest, short] = time_blocks(&index, 1, 1);
        assert_eq!((full.num_blocks, full.mean_len), (300, 128.0));
        assert!(full.docs_ns > 0.0 && full.freqs_ns > 0.0 && full.freq_at_ns > 0.0);
        assert_eq!((rest.num_blocks, short.num_blocks), (0, 0));
    }
}
