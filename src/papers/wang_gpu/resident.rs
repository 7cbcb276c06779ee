//! S_c: the beginnings of lists that lie on the device as long as a division of its memory lasts.

use cudarc::driver::CudaSlice;

use super::kernels::TermArgument;
use super::memory::CachedGpu;
use crate::cache::{KeepAll, ListStore, Prefixes, Sizes};
use crate::gpu::GpuError;
use crate::papers::ExperimentError;

/// Words that are gathered before they are copied.
const PIECE_WORDS: usize = 8 << 20;

/// The cache: its memory, and where each list's beginning is.
#[derive(Debug)]
pub(super) struct Resident {
    /// Kept as long as the addresses are used.
    _d_words: CudaSlice<u32>,
    /// By list; no address where nothing is cached.
    terms: Vec<TermArgument>,
}

impl Resident {
    /// Copies what `prefixes` says into a cache of `cache_bytes`.
    ///
    /// # Errors
    /// If they don't fit into it, or a call fails.
    pub(super) fn upload(gpu: &CachedGpu<'_>, prefixes: &Prefixes, cache_bytes: u64) -> Result<Self, ExperimentError> {
        let lists = &gpu.world.lists;
        let cached: Vec<(u32, u64)> = (0..lists.num_lists() as u32)
            .filter(|&list| prefixes.is_cached(list))
            .map(|list| (list, lists.bytes(list, prefixes.postings(list))))
            .collect();
        ListStore::new(lists.num_lists(), cache_bytes, KeepAll).pin(&cached)?;
        let num_words = cached.iter().map(|&(_, bytes)| bytes as usize / 4).sum();
        let mut d_words = gpu.alloc::<u32>(num_words)?;
        let base = gpu.address(&d_words);
        let mut terms = vec![TermArgument::default(); lists.num_lists()];
        let (mut piece, mut copied) = (Vec::with_capacity(PIECE_WORDS), 0);
        let mut flush = |piece: &mut Vec<u32>, copied: &mut usize| {
            let mut target = d_words.slice_mut(*copied..*copied + piece.len());
            let sent = gpu.stream.memcpy_htod(piece.as_slice(), &mut target);
            sent.map_err(|e| GpuError::of("copying lists to the cache", &e))?;
            // The piece is filled again at once.
            gpu.wait("copying lists to the cache")?;
            *copied += piece.len();
            piece.clear();
            Ok::<_, GpuError>(())
        };
        for (list, _) in cached {
            if piece.len() >= PIECE_WORDS {
                flush(&mut piece, &mut copied)?;
            }
            let held = prefixes.postings(list);
            let (postings, table_len) = (lists.list(list), lists.table_len(list, held) as usize);
            terms[list as usize] =
                term_at(base + 4 * (copied + piece.len()) as u64, held, table_len as u32, postings.shift);
            piece.extend_from_slice(&postings.docs[..held as usize]);
            piece.extend_from_slice(&postings.freqs[..held as usize]);
            piece.extend_from_slice(&postings.table[..table_len - 1]);
            piece.push(held);
        }
        if !piece.is_empty() {
            flush(&mut piece, &mut copied)?;
        }
        Ok(Self { _d_words: d_words, terms })
    }

    /// The list's beginning, without a weight.
    pub(super) fn term(&self, list: u32) -> TermArgument {
        self.terms[list as usize]
    }
}

/// A list of `len` postings whose words begin at `address`.
pub(super) fn term_at(address: u64, len: u32, table_len: u32, shift: u32) -> TermArgument {
    let freqs = address + 4 * u64::from(len);
    TermArgument {
        docs: address,
        freqs,
        table: freqs + 4 * u64::from(len),
        num_buckets: table_len - 1,
        shift,
        ..TermArgument::default()
    }
}
