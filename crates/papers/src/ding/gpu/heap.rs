//! The 512-ary heap for the best k scores.

use cudarc::driver::{CudaSlice, PushKernelArg};
use tandem_engine::search::device::GpuError;
use tandem_engine::search::gpu::MAX_K;

use super::context::{PublishedGpu, launching};
use super::kernels::{Count, HEAP_DEGREE, HEAP_LEVELS, HeapArgument, shape, warps_for};

/// Memory for a heap and its results.
#[derive(Debug)]
pub(crate) struct Heap {
    d_keys: CudaSlice<u64>,
    d_results: CudaSlice<u64>,
}

/// Scores under a heap, which removes the ones that it extracts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scores {
    pub(crate) scores: u64,
    /// Documents of the scores; 0 if score i is that of document i.
    pub(crate) docs: u64,
    pub(crate) count: Count,
}

/// A heap whose building is enqueued.
#[derive(Debug)]
pub(crate) struct Built(HeapArgument);

/// Returns the number of keys of each level over `len` scores, up to at most 512 at the top.
fn level_lens(len: u32) -> Vec<u32> {
    let mut lens = vec![len.div_ceil(HEAP_DEGREE).max(1)];
    while let Some(&last) = lens.last()
        && last > HEAP_DEGREE
    {
        lens.push(last.div_ceil(HEAP_DEGREE));
    }
    lens
}

impl Heap {
    pub(crate) fn new(gpu: &PublishedGpu, len: u32) -> Result<Self, GpuError> {
        let keys: u32 = level_lens(len).iter().sum();
        Ok(Self { d_keys: gpu.zeros(keys as usize)?, d_results: gpu.zeros(1 + MAX_K)? })
    }

    /// Enqueues the building of the heap. Scores and documents are aligned to sixteen bytes.
    pub(crate) fn build(&mut self, gpu: &PublishedGpu, scores: Scores) -> Result<Built, GpuError> {
        let lens = level_lens(scores.count.at_most());
        let mut argument = HeapArgument {
            scores: scores.scores,
            docs: scores.docs,
            levels: [0; HEAP_LEVELS],
            lens: [0; HEAP_LEVELS],
            num_levels: lens.len() as u32,
            num_scores: scores.count,
        };
        let mut address = gpu.address(&self.d_keys);
        for (level, &len) in lens.iter().enumerate() {
            argument.levels[level] = address;
            argument.lens[level] = len;
            address += 8 * u64::from(len);
        }
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.heap_leaves);
        launch.arg(&argument);
        // SAFETY: the argument is that of `heap_leaves` in kernels/ding/heap.cu; the levels are in `d_keys`, which
        // `new` made long enough, and the scores are on the device.
        unsafe { launch.launch(warps_for(lens[0])) }.map_err(launching("heap_leaves"))?;
        for (level, &len) in lens.iter().enumerate().skip(1) {
            let level = level as u32;
            let mut launch = gpu.stream.launch_builder(&gpu.kernels.heap_level);
            launch.arg(&argument).arg(&level);
            // SAFETY: the arguments are those of `heap_level`, as for `heap_leaves`; the level exists and is not the lowest.
            unsafe { launch.launch(shape(len, HEAP_DEGREE)) }.map_err(launching("heap_level"))?;
        }
        Ok(Built(argument))
    }

    /// Enqueues the extraction of the best `k`, at most [`MAX_K`], from the last heap.
    pub(crate) fn take_best(&mut self, gpu: &PublishedGpu, Built(argument): Built, k: u32) -> Result<(), GpuError> {
        let k = k.min(MAX_K as u32);
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.heap_extract);
        launch.arg(&argument).arg(&k).arg(&mut self.d_results);
        // SAFETY: as in `build`, for `heap_extract`; the results have room for `MAX_K` keys and their number.
        unsafe { launch.launch(shape(1, HEAP_DEGREE)) }.map(drop).map_err(launching("heap_extract"))
    }

    /// Returns the extracted keys, best first, after all enqueued work.
    pub(crate) fn keys(&self, gpu: &PublishedGpu, k: usize, keys: &mut Vec<u64>) -> Result<(), GpuError> {
        let copying = |e| GpuError::of("copying to the host", &e);
        keys.clear();
        keys.resize(1 + k, 0);
        gpu.wait("waiting for the best documents")?;
        gpu.stream.memcpy_dtoh(&self.d_results.slice(..=k), keys).map_err(copying)?;
        let count = keys.remove(0) as usize;
        keys.truncate(count);
        Ok(())
    }

    /// Fills all memory with ones, which exposes reads of unwritten memory.
    #[cfg(test)]
    pub(crate) fn poison(&mut self, gpu: &PublishedGpu) -> Result<(), GpuError> {
        super::tests::poison(gpu, &mut self.d_keys)?;
        super::tests::poison(gpu, &mut self.d_results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_shrink_by_512_until_one_group_is_left() {
        assert_eq!(level_lens(0), [1]);
        assert_eq!(level_lens(512), [1]);
        assert_eq!(level_lens(513), [2]);
        assert_eq!(level_lens(512 * 512 + 1), [513, 2]);
        assert_eq!(level_lens(25_200_000), [49_219, 97]);
        assert!(level_lens(u32::MAX).len() <= HEAP_LEVELS);
    }
}
