//! Lists that stay in device memory: those of more than one block in the order of terms, while there is room.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};
use tandem_engine::search::device::{Device, GpuError, wait};

use crate::huang::ranges::batch::{Address, Cached, WORDS_AFTER, is_admitted};
use crate::huang::ranges::index::RangeIndex;

/// Alignment of lists in words: sixteen bytes, in which the head of a block is read.
const ALIGNMENT: usize = 4;

/// Lists in device memory, and the host's table of them.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) table: Cached,
    pub(crate) bytes: u64,
    /// Owner of the lists.
    _d_words: CudaSlice<u32>,
}

impl Cache {
    /// Copies the lists that stay to the device, up to `most_bytes`.
    pub(crate) fn fill(
        device: &Device,
        stream: &Arc<CudaStream>,
        index: &RangeIndex,
        most_bytes: u64,
    ) -> Result<Self, GpuError> {
        let mut places = Vec::new();
        let mut words = 0;
        for (term, list) in index.lists() {
            let list_words = 4 * list.blocks.len() + list.words.len().next_multiple_of(ALIGNMENT);
            if is_admitted(list) && 4 * (words + list_words) as u64 <= most_bytes {
                places.push((term, list, words));
                words += list_words;
            }
        }
        let bytes = 4 * words as u64;
        device.check_room(bytes)?;
        let copying = |e| GpuError::of("copying lists to the device", &e);
        let mut d_words = stream.alloc_zeros::<u32>(words + WORDS_AFTER).map_err(copying)?;
        let base = d_words.device_ptr(stream).0;
        let mut table = Cached::new();
        for (term, list, start) in places {
            let blocks: &[u32] = bytemuck::cast_slice(&list.blocks);
            let words_at = start + blocks.len();
            stream.memcpy_htod(blocks, &mut d_words.slice_mut(start..words_at)).map_err(copying)?;
            let end = words_at + list.words.len();
            stream.memcpy_htod(&list.words, &mut d_words.slice_mut(words_at..end)).map_err(copying)?;
            table.insert(term, Address { blocks: base + 4 * start as u64, words: base + 4 * words_at as u64 });
        }
        wait(stream).map_err(copying)?;
        Ok(Self { table, bytes, _d_words: d_words })
    }
}
