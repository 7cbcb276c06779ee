//! The GPU, its stream and the published kernels.

use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError, ValidAsZeroBits};
use tandem_engine::search::device::{Device, GpuError, wait, wait_for};
use tandem_model::base::ids::DeviceId;
use tandem_model::base::quantile::median;

use super::kernels::Kernels;

/// The machine's first GPU with the published kernels and one stream for all work.
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
    /// Returns [`GpuError::NoGpu`] if there is no usable GPU.
    pub fn open() -> Result<Arc<Self>, GpuError> {
        let device = Device::open(DeviceId(0))?;
        let stream = device.new_stream()?;
        let kernels = Kernels::load(&device, &stream)?;
        Ok(Arc::new(Self { device, stream, kernels }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.device.info.name
    }

    /// Returns the device time in microseconds of each of `repeats` runs of `work`, which enqueues on the stream. A
    /// first run is not measured.
    ///
    /// # Errors
    /// Returns the errors of `work` and of CUDA calls.
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
            wait_for(&finished).map_err(doing)?;
            times_us.push(f64::from(started.elapsed_ms(&finished).map_err(doing)?) * 1e3);
        }
        times_us.remove(0);
        Ok(times_us)
    }

    /// Returns microseconds by the host's clock from the enqueuing of `work` to its end, for each of `repeats` runs.
    pub(crate) fn wall_us(
        &self,
        repeats: usize,
        mut work: impl FnMut() -> Result<(), GpuError>,
    ) -> Result<Vec<f64>, GpuError> {
        (0..repeats)
            .map(|_| {
                let began = Instant::now();
                work()?;
                self.wait("timing")?;
                Ok(began.elapsed().as_secs_f64() * 1e6)
            })
            .collect()
    }

    /// Returns bytes per second of a device-to-device copy, read and written together: the median of `repeats`.
    pub(crate) fn copy_rate(&self, repeats: usize) -> Result<f64, GpuError> {
        const COPY_WORDS: usize = 1 << 28;
        let source = self.zeros::<u32>(COPY_WORDS)?;
        let mut target = self.zeros::<u32>(COPY_WORDS)?;
        let times_us = self.time_us(repeats, || {
            self.stream.memcpy_dtod(&source, &mut target).map_err(|e| GpuError::of("copying device memory", &e))
        })?;
        Ok(2.0 * 4.0 * COPY_WORDS as f64 / median(times_us) * 1e6)
    }

    /// Allocates zeroed device memory, at least one item so that it has an address.
    pub(crate) fn zeros<T: DeviceRepr + ValidAsZeroBits>(&self, len: usize) -> Result<CudaSlice<T>, GpuError> {
        self.device.check_room((len.max(1) * size_of::<T>()) as u64)?;
        self.stream.alloc_zeros(len.max(1)).map_err(|e| GpuError::of("allocating buffers", &e))
    }

    pub(crate) fn upload(&self, words: &[u32]) -> Result<CudaSlice<u32>, GpuError> {
        let mut target = self.zeros(words.len())?;
        let copied = self.stream.memcpy_htod(words, &mut target.slice_mut(..words.len()));
        copied.map_err(|e| GpuError::of("copying to the device", &e))?;
        Ok(target)
    }

    /// Copies `len` words from word `start` of `source` to the host after all enqueued work.
    pub(crate) fn download(&self, source: &CudaSlice<u32>, start: usize, len: usize) -> Result<Vec<u32>, GpuError> {
        self.wait("waiting for words")?;
        let copied = self.stream.clone_dtoh(&source.slice(start..start + len));
        copied.map_err(|e| GpuError::of("copying to the host", &e))
    }

    /// Waits for all enqueued work. A copy to pageable memory would wait for it too, but without a limit.
    pub(crate) fn wait(&self, doing: &str) -> Result<(), GpuError> {
        wait(&self.stream).map_err(|e| GpuError::of(doing, &e))
    }

    pub(crate) fn address<T>(&self, buffer: &CudaSlice<T>) -> u64 {
        buffer.device_ptr(&self.stream).0
    }
}

pub(crate) fn launching(kernel: &'static str) -> impl Fn(DriverError) -> GpuError {
    move |e| GpuError::of(format!("kernel `{kernel}`"), &e)
}
