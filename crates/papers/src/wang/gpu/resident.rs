//! S_c: the beginnings of lists that lie on the device as long as a division of its memory lasts.

use cudarc::driver::CudaSlice;

use super::kernels::TermArgument;
use super::memory::CachedGpu;
use super::transfer::Transfer;
use crate::ExperimentError;
use crate::wang::cache::{KeepAll, ListStore, Prefixes, Sizes};

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
        let bytes = cached.iter().map(|&(_, bytes)| bytes).sum();
        let mut transfer = Transfer::new(gpu, bytes)?;
        let base = transfer.address(gpu);
        let mut terms = vec![TermArgument::default(); lists.num_lists()];
        for (list, _) in cached {
            let held = prefixes.postings(list);
            let (postings, table_len) = (lists.list(list), lists.table_len(list, held));
            let place = if held == lists.len(list) {
                transfer.push(gpu, lists.words(list), true)?
            } else {
                let place = transfer.push(gpu, &postings.docs[..held as usize], true)?;
                transfer.push(gpu, &postings.freqs[..held as usize], true)?;
                transfer.push(gpu, &postings.table[..table_len as usize - 1], true)?;
                transfer.push(gpu, &[held], false)?;
                place
            };
            terms[list as usize] = term_at(base + 4 * place as u64, held, table_len, postings.shift);
        }
        transfer.flush(gpu)?;
        gpu.wait("copying lists to the cache")?;
        Ok(Self { _d_words: transfer.into_memory(), terms })
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
