use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DriverError};

use super::{Device, GpuError};
use crate::base::ids::DeviceId;

/// Allocation granularity of device memory.
const RESERVED_STEP: u64 = 32 << 20;

/// Reserved device memory, to test a nearly full device.
#[derive(Debug)]
pub(crate) struct Reservation {
    stream: Arc<CudaStream>,
    d_memory: Option<CudaSlice<u8>>,
}

impl Reservation {
    /// Reserves all free memory except about `left_bytes`.
    pub(crate) fn leaving(ordinal: DeviceId, left_bytes: u64) -> Result<Self, GpuError> {
        let device = Device::open(ordinal)?;
        let reserve = |bytes: u64| {
            let stream = device.context.new_stream()?;
            // SAFETY: the memory is never read.
            let d_memory = unsafe { stream.alloc(bytes as usize) }?;
            stream.synchronize()?;
            Ok(Self { stream, d_memory: Some(d_memory) })
        };
        let bytes = device.free_bytes()?.saturating_sub(left_bytes) / RESERVED_STEP * RESERVED_STEP;
        reserve(bytes.max(1)).map_err(|e: DriverError| GpuError::of("reserving device memory", &e))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // Memory is freed in stream order, and later tests need it free.
        drop(self.d_memory.take());
        self.stream.context().record_err(self.stream.synchronize());
    }
}
