//! What this GPU can do at best: the rates and latencies that everything else is a fraction of.

use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaSlice, CudaStream, DriverError};

use super::decoder::EmptyLaunch;
use super::device::{Device, cuda};
use crate::exec::ExecError;
use crate::quantile::median;

/// Words of what is copied: 1 GiB, many times any cache.
const COPY_WORDS: usize = 1 << 28;
/// Bytes of copies from the host: the latency of small ones, the rate of large ones.
const HOST_COPY_BYTES: [usize; 4] = [10_000, 1 << 20, 16 << 20, 256 << 20];
/// Device memory is given out in such pieces.
const RESERVED_STEP: u64 = 32 << 20;
/// Launches that are timed, one by one and in a row.
const LAUNCHES: usize = 1000;

/// The limits of one GPU, as measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceLimits {
    /// The GPU's name.
    pub(crate) device: String,
    /// Bytes a second of a copy from device memory to device memory, read and written together.
    pub(crate) copy_rate: f64,
    /// Microseconds from a launch to the return of the call that waits for it.
    pub(crate) launch_and_wait_us: f64,
    /// Microseconds from launch to launch of kernels that do nothing, none waited for.
    pub(crate) launch_us: f64,
    /// Copies from page-locked host memory: bytes, and microseconds from the call to the end of the wait.
    pub(crate) host_copies: Vec<(usize, f64)>,
}

impl DeviceLimits {
    /// Measures the machine's first GPU; each number is the median of `repeats`, of launches of a thousand.
    ///
    /// # Errors
    /// [`ExecError::NoGpu`] if there is none, [`ExecError::DoesNotFit`] if 2 GiB of its memory are not free.
    pub(crate) fn measure(repeats: usize) -> Result<Self, ExecError> {
        let device = Device::open()?;
        let stream = device.context.new_stream().map_err(|e| cuda("making a stream", &e))?;
        let (needed_bytes, free_bytes) = (2 * 4 * COPY_WORDS as u64, device.free_bytes()?);
        if needed_bytes > free_bytes {
            return Err(ExecError::DoesNotFit { needed_bytes, free_bytes });
        }
        let empty = EmptyLaunch::load(&device, &stream)?;
        let measure = || {
            let copy_us = copy_us(&device, &stream, repeats)?;
            let (launch_and_wait_us, launch_us) = launches_us(&stream, &empty)?;
            let host_copies = HOST_COPY_BYTES.into_iter().map(|bytes| host_copy(&stream, bytes, repeats));
            Ok(Self {
                device: device.info.name.clone(),
                copy_rate: 2.0 * 4.0 * COPY_WORDS as f64 / copy_us * 1e6,
                launch_and_wait_us,
                launch_us,
                host_copies: host_copies.collect::<Result<_, _>>()?,
            })
        };
        measure().map_err(|e: DriverError| cuda("measuring the device", &e))
    }

    /// Bytes a second of the largest copy from page-locked host memory.
    pub(crate) fn host_copy_rate(&self) -> f64 {
        self.host_copies.last().map_or(f64::NAN, |&(bytes, us)| bytes as f64 / us * 1e6)
    }
}

fn copy_us(device: &Device, stream: &Arc<CudaStream>, repeats: usize) -> Result<f64, DriverError> {
    let event = || device.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
    let (started, finished) = (event()?, event()?);
    let d_source: CudaSlice<u32> = stream.alloc_zeros(COPY_WORDS)?;
    let mut d_target: CudaSlice<u32> = stream.alloc_zeros(COPY_WORDS)?;
    let mut times_us = Vec::with_capacity(repeats);
    for run in 0..=repeats {
        started.record(stream)?;
        stream.memcpy_dtod(&d_source, &mut d_target)?;
        finished.record(stream)?;
        finished.synchronize()?;
        if run > 0 {
            times_us.push(f64::from(started.elapsed_ms(&finished)?) * 1e3);
        }
    }
    Ok(median(times_us))
}

/// Microseconds of a launch that is waited for, and of one that is not.
fn launches_us(stream: &Arc<CudaStream>, empty: &EmptyLaunch) -> Result<(f64, f64), DriverError> {
    let mut waited_us = Vec::with_capacity(LAUNCHES);
    for _ in 0..LAUNCHES {
        let began = Instant::now();
        empty.launch(stream)?;
        stream.synchronize()?;
        waited_us.push(began.elapsed().as_secs_f64() * 1e6);
    }
    let began = Instant::now();
    for _ in 0..LAUNCHES {
        empty.launch(stream)?;
    }
    stream.synchronize()?;
    Ok((median(waited_us), began.elapsed().as_secs_f64() * 1e6 / LAUNCHES as f64))
}

fn host_copy(stream: &Arc<CudaStream>, bytes: usize, repeats: usize) -> Result<(usize, f64), DriverError> {
    // SAFETY: all bytes are written before they are copied.
    let mut source = unsafe { stream.context().alloc_pinned::<u8>(bytes) }?;
    source.as_mut_slice()?.fill(1);
    let mut d_target: CudaSlice<u8> = stream.alloc_zeros(bytes)?;
    stream.synchronize()?;
    let mut times_us = Vec::with_capacity(repeats);
    for run in 0..=repeats {
        let began = Instant::now();
        stream.memcpy_htod(&source, &mut d_target)?;
        stream.synchronize()?;
        if run > 0 {
            times_us.push(began.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok((bytes, median(times_us)))
}

/// Bytes of the first GPU's memory that are free now.
///
/// # Errors
/// [`ExecError::NoGpu`] if there is none.
pub(crate) fn free_device_bytes() -> Result<u64, ExecError> {
    Device::open()?.free_bytes()
}

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
    pub(crate) fn leaving(left_bytes: u64) -> Result<Self, ExecError> {
        let device = Device::open()?;
        let reserve = |bytes: u64| {
            let stream = device.context.new_stream()?;
            // SAFETY: nobody reads it.
            let d_memory = unsafe { stream.alloc(bytes as usize) }?;
            stream.synchronize()?;
            Ok(Self { stream, d_memory: Some(d_memory) })
        };
        let bytes = device.free_bytes()?.saturating_sub(left_bytes) / RESERVED_STEP * RESERVED_STEP;
        reserve(bytes.max(1)).map_err(|e: DriverError| cuda("reserving device memory", &e))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // Memory is given back in the order of the stream: others should find it free.
        drop(self.d_memory.take());
        self.stream.context().record_err(self.stream.synchronize());
    }
}
