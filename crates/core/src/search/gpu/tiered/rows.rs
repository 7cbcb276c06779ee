//! The rows of all blocks: device-resident rows, then host-resident ones.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError};

use crate::search::device::{Device, HostMemory};
use crate::search::placement::list_rows::ROW_BYTES;

/// Memory of rows on the device and on the host.
#[derive(Debug)]
pub(crate) struct Rows {
    d_rows: CudaSlice<u32>,
    host: Option<HostMemory>,
    num_resident: u64,
    num_on_host: u64,
}

impl Rows {
    /// Uninitialised memory for rows. Fails if the device or the host lacks memory.
    pub(crate) fn new(
        device: &Device,
        stream: &Arc<CudaStream>,
        num_resident: u64,
        num_on_host: u64,
    ) -> Result<Self, DriverError> {
        // SAFETY: kernels write all rows before others read them.
        let d_rows = unsafe { stream.alloc::<u32>(4 * num_resident.max(1) as usize) }?;
        let host = (num_on_host > 0).then(|| HostMemory::new(device, 4 * num_on_host as usize)).transpose()?;
        Ok(Self { d_rows, host, num_resident, num_on_host })
    }

    /// The address of row 0 for device-resident rows.
    pub(crate) fn device_address(&self, stream: &CudaStream) -> u64 {
        self.d_rows.device_ptr(stream).0
    }

    /// The address that row 0 would have in host memory if all rows were there. It is meaningless without host-resident
    /// rows.
    pub(crate) fn host_address(&self) -> u64 {
        self.host.as_ref().map_or(0, |host| host.address().wrapping_sub(ROW_BYTES * self.num_resident))
    }

    /// The border. Rows before it are device-resident.
    pub(crate) fn num_resident(&self) -> u32 {
        // Row numbers have 32 bits. Without host-resident rows the border is past all of them.
        if self.host.is_some() { self.num_resident as u32 } else { u32::MAX }
    }

    /// Bytes of host-resident rows.
    pub(crate) fn host_bytes(&self) -> u64 {
        ROW_BYTES * self.num_on_host
    }

    /// All rows in order.
    #[cfg(test)]
    pub(crate) fn to_host(&self, stream: &Arc<CudaStream>) -> Vec<u32> {
        let mut rows = stream.clone_dtoh(&self.d_rows).unwrap();
        stream.synchronize().unwrap();
        rows.truncate(4 * self.num_resident as usize);
        if let Some(host) = &self.host {
            let mut host_rows = vec![0; 4 * self.num_on_host as usize];
            // SAFETY: the memory has this many words, written by kernels that have ended.
            unsafe { cudarc::driver::result::memcpy_dtoh_sync(&mut host_rows, host.address()) }.unwrap();
            rows.extend(host_rows);
        }
        rows
    }

    /// Device-resident rows only.
    #[cfg(test)]
    pub(crate) fn all_resident(d_rows: CudaSlice<u32>) -> Self {
        Self { num_resident: d_rows.len() as u64 / 4, d_rows, host: None, num_on_host: 0 }
    }
}
