//! The GPU, its stream and the published kernels: what every method here is given.

use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError, ValidAsZeroBits};

use super::kernels::Kernels;
use tandem_core::base::ids::DeviceId;
use tandem_core::base::quantile::median;
use tandem_core::search::device::{Device, GpuError};

/// The machine's first GPU with the published kernels loaded, and one stream that all work goes through.
#[derive(Debug)]
pub struct PublishedGpu {
    pub(crate) device: Device,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) kernels: Kernels,
}

impl PublishedGpu {
    /// Opens the GPU.
    ///
    /// # Errors
    /// [`GpuError::NoGpu`] if there is none to use.
    pub fn open() -> Result<Arc<Self>, GpuError> {
        let device = Device::open(DeviceId(0))?;
        let stream = device.new_stream()?;
        let kernels = Kernels::load(&device, &stream)?;
        Ok(Arc::new(Self { device, stream, kernels }))
    }

    /// The GPU's name.
    pub(crate) fn name(&self) -> &str {
        &self.device.info.name
    }

    /// The device's time in microseconds for each of `repeats` runs of `work`, which enqueues on the stream. One more
    /// run goes first, unmeasured.
    ///
    /// # Errors
    /// What `work` or a CUDA call says.
    pub fn time_us(
        &self,
        repeats: usize,
        mut work: impl FnMut() -> Result<(), GpuError>,
    ) -> Result<Vec<f64>, GpuError> {
        let doing = |e| GpuError::of("timing", &e);
        let event = || self.device.new_event().map_err(doing);
        let (started, finished) = (event()?, event()?);
        let mut times_us = Vec::with_capacity(repeats);
        for _ in 0..=repeats {
            started.record(&self.stream).map_err(doing)?;
            work()?;
            finished.record(&self.stream).map_err(doing)?;
            finished.synchronize().map_err(doing)?;
            times_us.push(f64::from(started.elapsed_ms(&finished).map_err(doing)?) * 1e3);
        }
        times_us.remove(0);
        Ok(times_us)
    }

    /// Microseconds on the host's clock from the enqueuing of `work` until the device has done it: each of `repeats`.
    pub(crate) fn wall_us(
        &self,
        repeats: usize,
        mut work: impl FnMut() -> Result<(), GpuError>,
    ) -> Result<Vec<f64>, GpuError> {
        (0..repeats)
            .map(|_| {
                let began = Instant::now();
                work()?;
                self.stream.synchronize().map_err(|e| GpuError::of("timing", &e))?;
                Ok(began.elapsed().as_secs_f64() * 1e6)
            })
            .collect()
    }

    /// Bytes a second that a device-to-device copy moves, read and written together: the median of `repeats`.
    pub(crate) fn copy_rate(&self, repeats: usize) -> Result<f64, GpuError> {
        const COPY_WORDS: usize = 1 << 28;
        let source = self.zeros::<u32>(COPY_WORDS)?;
        let mut target = self.zeros::<u32>(COPY_WORDS)?;
        let times_us = self.time_us(repeats, || {
            self.stream.memcpy_dtod(&source, &mut target).map_err(|e| GpuError::of("copying device memory", &e))
        })?;
        Ok(2.0 * 4.0 * COPY_WORDS as f64 / median(times_us) * 1e6)
    }

    /// Zeroed device memory; at least one item, so that it has an address.
    pub(crate) fn zeros<T: DeviceRepr + ValidAsZeroBits>(&self, len: usize) -> Result<CudaSlice<T>, GpuError> {
        self.device.check_room((len.max(1) * size_of::<T>()) as u64)?;
        self.stream.alloc_zeros(len.max(1)).map_err(|e| GpuError::of("allocating buffers", &e))
    }

    /// A copy of `words` in device memory.
    pub(crate) fn upload(&self, words: &[u32]) -> Result<CudaSlice<u32>, GpuError> {
        let mut target = self.zeros(words.len())?;
        let copied = self.stream.memcpy_htod(words, &mut target.slice_mut(..words.len()));
        copied.map_err(|e| GpuError::of("copying to the device", &e))?;
        Ok(target)
    }

    /// A copy of `len` words from word `start` of `source`, once all that was enqueued is done.
    pub(crate) fn download(&self, source: &CudaSlice<u32>, start: usize, len: usize) -> Result<Vec<u32>, GpuError> {
        let copied = self.stream.clone_dtoh(&source.slice(start..start + len));
        copied
            .and_then(|words| self.stream.synchronize().map(|()| words))
            .map_err(|e| GpuError::of("copying to the host", &e))
    }

    /// Where a buffer is.
    pub(crate) fn address<T>(&self, buffer: &CudaSlice<T>) -> u64 {
        buffer.device_ptr(&self.stream).0
    }
}

/// The error of a launch.
pub(crate) fn launching(kernel: &'static str) -> impl Fn(DriverError) -> GpuError {
    move |e| GpuError::of(format!("kernel `{kernel}`"), &e)
}
