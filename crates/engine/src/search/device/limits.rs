//! Measured limits of a GPU: rates and latencies that bound every search.

use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DriverError};
use cudarc::nvrtc::Ptx;
use tandem_base::base::ids::DeviceId;
use tandem_base::base::quantile::median;

use super::error::GpuError;
use super::handle::Device;
use super::host_reads::HostReads;
use super::module::{Module, shape};
use super::pinned::Pinned;
use super::wait::{wait, wait_for};

/// Words of a device copy: 1 GiB, many times any cache.
const COPY_WORDS: usize = 1 << 28;
/// Bytes of copies from the host: small ones show latency, large ones the rate.
const HOST_COPY_BYTES: [usize; 4] = [10_000, 1 << 20, 16 << 20, 256 << 20];
/// Timed launches, each waited for or in a row.
const LAUNCHES: usize = 1000;
/// A kernel without work, in PTX, which shows the cost of a launch.
const NOTHING_PTX: &str = "\
.version 7.0
.target sm_75
.address_size 64
.visible .entry nothing() { ret; }
";
/// Threads of the kernel without work.
const THREADS: u32 = 128;

/// The measured limits of one GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceLimits {
    /// The GPU's name.
    pub device: String,
    /// Bytes per second of a device copy, read and written together.
    pub copy_rate: f64,
    /// Microseconds from a launch to the return of the wait for it.
    pub launch_and_wait_us: f64,
    /// Microseconds between launches of empty kernels without waits.
    pub launch_us: f64,
    /// Copies from page-locked host memory: bytes, and microseconds from the call to the end of the wait.
    pub host_copies: Vec<(usize, f64)>,
    /// Rates of scattered reads of host memory.
    pub host_reads: HostReads,
}

impl DeviceLimits {
    /// Measures a GPU. Copies are the median of `repeats`, launches of a thousand. Fails with [`GpuError::NoGpu`] if
    /// there is none, [`GpuError::DoesNotFit`] if 2 GiB of device memory are not free.
    pub fn measure(ordinal: DeviceId, repeats: usize) -> Result<Self, GpuError> {
        let device = Device::open(ordinal)?;
        let stream = device.new_stream()?;
        device.check_room(2 * 4 * COPY_WORDS as u64)?;
        let host_reads = HostReads::measure(&device, repeats)?;
        let module = Module::load_image(&device, "a kernel without work", Ptx::from_src(NOTHING_PTX))?;
        let nothing = module.function("nothing")?;
        let measure = || {
            let copy_us = copy_us(&device, &stream, repeats)?;
            let (launch_and_wait_us, launch_us) = launches_us(&stream, &nothing)?;
            let host_copies = HOST_COPY_BYTES.into_iter().map(|bytes| host_copy(&device, &stream, bytes, repeats));
            Ok(Self {
                device: device.info.name.clone(),
                copy_rate: 2.0 * 4.0 * COPY_WORDS as f64 / copy_us * 1e6,
                launch_and_wait_us,
                launch_us,
                host_copies: host_copies.collect::<Result<_, _>>()?,
                host_reads: host_reads.clone(),
            })
        };
        measure().map_err(|e: DriverError| GpuError::of("measuring the device", &e))
    }

    /// Bytes per second of the largest copy from page-locked host memory.
    pub fn host_copy_rate(&self) -> f64 {
        self.host_copies.last().map_or(f64::NAN, |&(bytes, us)| bytes as f64 / us * 1e6)
    }
}

fn copy_us(device: &Device, stream: &Arc<CudaStream>, repeats: usize) -> Result<f64, DriverError> {
    let (started, finished) = (device.new_event()?, device.new_event()?);
    let d_source: CudaSlice<u32> = stream.alloc_zeros(COPY_WORDS)?;
    let mut d_target: CudaSlice<u32> = stream.alloc_zeros(COPY_WORDS)?;
    let mut times_us = Vec::with_capacity(repeats);
    for run in 0..=repeats {
        started.record(stream)?;
        stream.memcpy_dtod(&d_source, &mut d_target)?;
        finished.record(stream)?;
        wait_for(&finished)?;
        if run > 0 {
            times_us.push(f64::from(started.elapsed_ms(&finished)?) * 1e3);
        }
    }
    Ok(median(times_us))
}

/// Microseconds of a launch with a wait, and of one without.
fn launches_us(stream: &Arc<CudaStream>, nothing: &CudaFunction) -> Result<(f64, f64), DriverError> {
    // SAFETY: the kernel takes no argument and accesses no memory.
    let launch = || unsafe { stream.launch_builder(nothing).launch(shape(1, THREADS)) }.map(drop);
    let mut waited_us = Vec::with_capacity(LAUNCHES);
    for _ in 0..LAUNCHES {
        let began = Instant::now();
        launch()?;
        wait(stream)?;
        waited_us.push(began.elapsed().as_secs_f64() * 1e6);
    }
    let began = Instant::now();
    for _ in 0..LAUNCHES {
        launch()?;
    }
    wait(stream)?;
    Ok((median(waited_us), began.elapsed().as_secs_f64() * 1e6 / LAUNCHES as f64))
}

fn host_copy(
    device: &Device,
    stream: &Arc<CudaStream>,
    bytes: usize,
    repeats: usize,
) -> Result<(usize, f64), DriverError> {
    let mut pinned = Pinned::<u8>::for_input(device, bytes)?;
    // SAFETY: no kernel writes them, and nobody writes them while they are copied.
    let source = unsafe { pinned.as_mut_slice() };
    source.fill(1);
    let mut d_target: CudaSlice<u8> = stream.alloc_zeros(bytes)?;
    wait(stream)?;
    let mut times_us = Vec::with_capacity(repeats);
    for run in 0..=repeats {
        let began = Instant::now();
        stream.memcpy_htod(&*source, &mut d_target)?;
        wait(stream)?;
        if run > 0 {
            times_us.push(began.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok((bytes, median(times_us)))
}
