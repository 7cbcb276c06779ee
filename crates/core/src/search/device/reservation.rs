//! Memory that is held for a while.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DriverError};

use super::{Device, GpuError};
use crate::base::ids::DeviceId;

/// Device memory is given out in such pieces.
const RESERVED_STEP: u64 = 32 << 20;

/// Device memory that is held so that little is left for others: how a full device is tried.
#[derive(Debug)]
pub(crate) struct Reservation {
    stream: Arc<CudaStream>,
    d_memory: Option<CudaSlice<u8>>,
}

impl Reservation {
    /// Takes all free memory but about `left_bytes`.
    ///
    /// # Errors
    /// If the device refuses.
    pub(crate) fn leaving(ordinal: DeviceId, left_bytes: u64) -> Result<Self, GpuError> {
        let device = Device::open(ordinal)?;
        let reserve = |bytes: u64| {
            let stream = device.context.new_stream()?;
            // SAFETY: nobody reads it.
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
        // Memory is given back in the order of the stream: others should find it free.
        drop(self.d_memory.take());
        self.stream.context().record_err(self.stream.synchronize());
    }
}
