//! Parallel Merge Find, and the intersection of two uncompressed lists by it.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, PushKernelArg};
use tandem_engine::search::device::GpuError;

use super::compact::{Compaction, Matches};
use super::context::{PublishedGpu, launching};
use super::kernels::{Count, MergeFindArgument, threads_for};

/// Maximum levels of recursion, as in the paper's figure 6.
pub(crate) const MAX_LEVELS: u32 = 4;

/// Returns the strides of the searches, coarsest first: powers of one ratio down to 1, which cut every segment into
/// equally many. Levels without a splitter are left out.
pub(crate) fn strides(len: u32, levels: u32) -> Vec<u32> {
    let bits = len.checked_ilog2().unwrap_or(0).div_ceil(levels + 1).max(1);
    (0..=levels).rev().map(|level| (level * bits).min(31)).filter(|&b| b == 0 || len >> b > 0).map(|b| 1 << b).collect()
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceList {
    pub(crate) address: u64,
    pub(crate) count: Count,
}

/// Memory for the results of the levels.
#[derive(Debug)]
pub(crate) struct MergeFinder {
    d_coarse: CudaSlice<u32>,
}

impl MergeFinder {
    /// Makes room for lists of `len`. Strides at least double from level to level, so that all levels find fewer
    /// places.
    pub(crate) fn new(gpu: &PublishedGpu, len: u32) -> Result<Self, GpuError> {
        Ok(Self { d_coarse: gpu.zeros(len as usize)? })
    }

    /// Fills all memory with ones, which exposes reads of unwritten memory.
    #[cfg(test)]
    pub(crate) fn poison(&mut self, gpu: &PublishedGpu) -> Result<(), GpuError> {
        super::tests::poison(gpu, &mut self.d_coarse)
    }

    /// Enqueues the search for the elements of `a` in `b`. `found` gets the number of smaller elements of `b` for each;
    /// with `matching` it gets the place in `b` plus one, or 0 if `b` lacks the element.
    ///
    /// `found` has room for `a.count.at_most()` words.
    pub(crate) fn find(
        &self,
        gpu: &PublishedGpu,
        a: DeviceList,
        b: DeviceList,
        levels: u32,
        matching: bool,
        found: u64,
    ) -> Result<(), GpuError> {
        let len = a.count.at_most();
        let mut coarse = gpu.address(&self.d_coarse);
        let mut task = MergeFindArgument {
            a: a.address,
            b: b.address,
            coarse: 0,
            found: 0,
            num_a: a.count,
            num_b: b.count,
            stride: 0,
            coarse_stride: 0,
        };
        for stride in strides(len, levels) {
            let is_last = stride == 1;
            task.stride = stride;
            task.found = if is_last { found } else { coarse };
            let (kernel, name) = if is_last && matching {
                (&gpu.kernels.merge_match, "merge_match")
            } else {
                (&gpu.kernels.merge_find, "merge_find")
            };
            let mut launch = gpu.stream.launch_builder(kernel);
            launch.arg(&task);
            // SAFETY: the argument is that of `merge_find` and `merge_match` in kernels/ding/merge_find.cu; both lists
            // are on the device, and `found` and `d_coarse` have room for `a` and for all levels above.
            unsafe { launch.launch(threads_for(len / stride)) }.map_err(launching(name))?;
            task.coarse = task.found;
            task.coarse_stride = stride;
            coarse += 4 * u64::from(len / stride);
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct ListIntersection {
    gpu: Arc<PublishedGpu>,
    a: DeviceList,
    b: DeviceList,
    finder: MergeFinder,
    compaction: Compaction,
    d_found: CudaSlice<u32>,
    matches: Matches,
    d_a: CudaSlice<u32>,
    _d_b: CudaSlice<u32>,
}

impl ListIntersection {
    pub(crate) fn upload(gpu: &Arc<PublishedGpu>, a: &[u32], b: &[u32]) -> Result<Self, GpuError> {
        let (d_a, d_b) = (gpu.upload(a)?, gpu.upload(b)?);
        let list = |d_list: &CudaSlice<u32>, len: usize| DeviceList {
            address: gpu.address(d_list),
            count: Count::known(len as u32),
        };
        Ok(Self {
            a: list(&d_a, a.len()),
            b: list(&d_b, b.len()),
            finder: MergeFinder::new(gpu, a.len() as u32)?,
            compaction: Compaction::new(gpu, a.len() as u32)?,
            d_found: gpu.zeros(a.len())?,
            matches: Matches::new(gpu, a.len() as u32)?,
            gpu: Arc::clone(gpu),
            d_a,
            _d_b: d_b,
        })
    }

    /// Enqueues the intersection with `levels` of recursion, 0 to 4.
    pub(crate) fn run(&mut self, levels: u32) -> Result<(), GpuError> {
        let found = self.gpu.address(&self.d_found);
        self.finder.find(&self.gpu, self.a, self.b, levels.min(MAX_LEVELS), true, found)?;
        let docs = self.gpu.address(&self.d_a);
        self.compaction.gather_matches(&self.gpu, found, self.a.count, docs, None, &mut self.matches)
    }

    /// Fills all outputs with ones, which exposes reads of unwritten memory.
    #[cfg(test)]
    pub(crate) fn poison(&mut self) -> Result<(), GpuError> {
        self.finder.poison(&self.gpu)?;
        self.compaction.poison(&self.gpu)?;
        self.matches.poison(&self.gpu)?;
        super::tests::poison(&self.gpu, &mut self.d_found)
    }

    /// Returns the common documents of the last run.
    pub(crate) fn docs(&self) -> Result<Vec<u32>, GpuError> {
        self.matches.docs(&self.gpu)
    }
}
