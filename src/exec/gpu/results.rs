//! Results as kernels write them: how many, then their keys, best first, in page-locked memory of the host.

use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut, DriverError};

use super::arguments::TOO_MANY;
use crate::exec::{Hit, TopK};

/// Fills a buffer with keys better than any real one.
pub(super) fn poison(stream: &CudaStream, d_keys: &mut CudaSlice<u64>) -> Result<(), DriverError> {
    let bytes = d_keys.num_bytes();
    let (pointer, _guard) = d_keys.device_ptr_mut(stream);
    // SAFETY: the buffer has that many bytes and is used on this stream alone.
    unsafe { cudarc::driver::result::memset_d8_async(pointer, 0xff, bytes, stream.cu_stream()) }
}

/// Replaces `hits` by what a kernel has written: how many results, then their keys, best first.
pub(super) fn read_results(results: &[u64], k: usize, hits: &mut Vec<Hit>) -> Result<(), String> {
    hits.clear();
    match results[0] {
        count if count <= k as u64 => {
            hits.extend(results[1..=count as usize].iter().map(|&key| TopK::hit(key)));
            Ok(())
        }
        TOO_MANY => Err("more candidates than there is room for".to_owned()),
        count => Err(format!("{count} results where at most {k} are expected")),
    }
}
