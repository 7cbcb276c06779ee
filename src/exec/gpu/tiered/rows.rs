//! The rows of all blocks: near ones on the device, far ones in memory of the host.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError};

use crate::gpu::{Device, FarMemory};

pub(in crate::exec::gpu) use crate::exec::ROW_BYTES;

/// Where rows lie.
#[derive(Debug)]
pub(in crate::exec::gpu) struct Rows {
    d_near: CudaSlice<u32>,
    far: Option<FarMemory>,
    num_near: u64,
    num_far: u64,
}

impl Rows {
    /// Room for rows, not written yet.
    ///
    /// # Errors
    /// If either memory does not give so much.
    pub(in crate::exec::gpu) fn new(
        device: &Device,
        stream: &Arc<CudaStream>,
        num_near: u64,
        num_far: u64,
    ) -> Result<Self, DriverError> {
        // SAFETY: kernels write all rows before others read them.
        let d_near = unsafe { stream.alloc::<u32>(4 * num_near.max(1) as usize) }?;
        let far = (num_far > 0).then(|| FarMemory::new(device, 4 * num_far as usize)).transpose()?;
        Ok(Self { d_near, far, num_near, num_far })
    }

    /// Where row 0 is.
    pub(in crate::exec::gpu) fn near(&self, stream: &CudaStream) -> u64 {
        self.d_near.device_ptr(stream).0
    }

    /// Where row 0 would be if far rows lay behind near ones; of no meaning if none is far.
    pub(in crate::exec::gpu) fn far(&self) -> u64 {
        self.far.as_ref().map_or(0, |far| far.address().wrapping_sub(ROW_BYTES * self.num_near))
    }

    /// The border: rows below it are near.
    pub(in crate::exec::gpu) fn num_near(&self) -> u32 {
        // All rows are counted in 32 bits, and where none is far all are below it.
        if self.far.is_some() { self.num_near as u32 } else { u32::MAX }
    }

    /// Rows that are far.
    pub(in crate::exec::gpu) fn num_far(&self) -> u64 {
        self.num_far
    }

    /// All rows, near ones first.
    #[cfg(test)]
    pub(in crate::exec::gpu) fn to_host(&self, stream: &Arc<CudaStream>) -> Vec<u32> {
        let mut rows = stream.clone_dtoh(&self.d_near).unwrap();
        stream.synchronize().unwrap();
        rows.truncate(4 * self.num_near as usize);
        if let Some(far) = &self.far {
            let mut far_rows = vec![0; 4 * self.num_far as usize];
            // SAFETY: the memory has so many words, which the kernels that were waited for above have written.
            unsafe { cudarc::driver::result::memcpy_dtoh_sync(&mut far_rows, far.address()) }.unwrap();
            rows.extend(far_rows);
        }
        rows
    }

    /// These rows, all near.
    #[cfg(test)]
    pub(in crate::exec::gpu) fn all_near(d_near: CudaSlice<u32>) -> Self {
        Self { num_near: d_near.len() as u64 / 4, d_near, far: None, num_far: 0 }
    }
}
