//! S_c: the beginnings of lists that stay on the device during a session.

use cudarc::driver::CudaSlice;

use super::kernels::TermArgument;
use super::memory::CachedGpu;
use super::transfer::Transfer;
use crate::Result;
use crate::error::CacheError;
use crate::wang::cache::prefixes::Prefixes;
use crate::wang::cache::sizes::Sizes;

/// Memory of the cache, and the places of the lists' beginnings.
#[derive(Debug)]
pub(crate) struct Resident {
    /// Owner of the addresses in `terms`.
    _d_words: CudaSlice<u32>,
    /// Argument of each list, without an address if nothing is cached.
    terms: Vec<TermArgument>,
}

impl Resident {
    /// Copies the beginnings of `prefixes` into a cache of `cache_bytes`.
    pub(crate) fn upload(gpu: &CachedGpu<'_>, prefixes: &Prefixes, cache_bytes: u64) -> Result<Self> {
        let lists = &gpu.data.lists;
        let cached: Vec<(u32, u64)> = (0..lists.num_lists() as u32)
            .filter(|&list| prefixes.is_cached(list))
            .map(|list| (list, lists.bytes(list, prefixes.postings(list))))
            .collect();
        let bytes = cached.iter().map(|&(_, bytes)| bytes).sum();
        if bytes > cache_bytes {
            let (wanted_bytes, room_bytes, budget_bytes) = (bytes, cache_bytes, cache_bytes);
            return Err(CacheError::DoesNotFit { wanted_bytes, room_bytes, budget_bytes }.into());
        }
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

    /// Returns the argument of a list's beginning without a weight.
    pub(crate) fn term(&self, list: u32) -> TermArgument {
        self.terms[list as usize]
    }
}

/// Returns the argument of a list of `len` postings whose words begin at `address`.
pub(crate) fn term_at(address: u64, len: u32, table_len: u32, shift: u32) -> TermArgument {
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
