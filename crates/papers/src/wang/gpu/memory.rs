//! The GPU with what stays on it whatever is cached, and the host's lists as the bus takes them.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, ValidAsZeroBits, result, sys};

use super::kernels;
use crate::wang::data::World;
use tandem_core::base::ids::DeviceId;
use tandem_core::search::device::{Device, GpuError};

/// The machine's first GPU with the kernel, the documents' scores and norms, and one stream that all work goes through.
#[derive(Debug)]
pub(crate) struct CachedGpu<'w> {
    pub(super) world: &'w World,
    pub(super) device: Device,
    pub(super) stream: Arc<CudaStream>,
    pub(super) rank: CudaFunction,
    pub(super) d_priors: CudaSlice<f32>,
    pub(super) d_norms: CudaSlice<f32>,
    pub(super) d_global_scores: CudaSlice<f32>,
    /// The host's lists, page-locked; or why they are not.
    pub(super) locked: Result<LockedWords<'w>, GpuError>,
}

impl<'w> CachedGpu<'w> {
    /// Opens the GPU. Where the lists can't be page-locked they go by staged copies: [`Self::why_staged`] tells.
    ///
    /// # Errors
    /// [`GpuError::NoGpu`] if there is none to use, [`GpuError::DoesNotFit`] if the documents' arrays don't fit.
    pub(crate) fn open(world: &'w World, may_lock: bool) -> Result<Self, GpuError> {
        let device = Device::open(DeviceId(0))?;
        let stream = device.new_stream()?;
        let rank = kernels::load(&device, &stream)?;
        let documents = &world.documents;
        device.check_room(12 * documents.norms.len() as u64)?;
        let upload = |values: &[f32]| {
            let copied = stream.clone_htod(values);
            copied.map_err(|e| GpuError::of("copying what is known of documents", &e))
        };
        let locked = if may_lock {
            LockedWords::lock(&device, world.lists.all_words())
        } else {
            Err(GpuError::Failed { doing: "page-locking".into(), message: "not asked for".into() })
        };
        Ok(Self {
            world,
            rank,
            d_priors: upload(&documents.priors)?,
            d_norms: upload(&documents.norms)?,
            d_global_scores: upload(&documents.global_scores)?,
            locked,
            device,
            stream,
        })
    }

    /// The GPU's name.
    pub(crate) fn name(&self) -> &str {
        &self.device.info.name
    }

    /// Why lists go by staged copies; `None` if they don't.
    pub(crate) fn why_staged(&self) -> Option<String> {
        self.locked.as_ref().err().map(ToString::to_string)
    }

    /// Device memory, not yet written; at least one item, so that it has an address. Debug builds fill it with ones, so that
    /// what is read and was not written shows.
    pub(super) fn alloc<T: DeviceRepr + ValidAsZeroBits>(&self, len: usize) -> Result<CudaSlice<T>, GpuError> {
        let failed = |e| GpuError::of("allocating device memory", &e);
        // SAFETY: whoever asks writes, or has a kernel write, what is read.
        let memory = unsafe { self.stream.alloc::<T>(len.max(1)) }.map_err(failed)?;
        if cfg!(debug_assertions) {
            let address = self.address(&memory);
            // SAFETY: it has that many bytes and is used on this stream alone.
            unsafe { result::memset_d8_async(address, 0xff, memory.num_bytes(), self.stream.cu_stream()) }
                .map_err(failed)?;
        }
        Ok(memory)
    }

    /// Where memory lies on the device. Its owner must outlive the work that uses it.
    pub(super) fn address<T>(&self, memory: &CudaSlice<T>) -> u64 {
        memory.device_ptr(&self.stream).0
    }

    /// Waits for all that was enqueued.
    pub(super) fn wait(&self, doing: &str) -> Result<(), GpuError> {
        self.stream.synchronize().map_err(|e| GpuError::of(doing, &e))
    }
}

/// Words of the host that the GPU copies from by itself.
#[derive(Debug)]
pub(super) struct LockedWords<'w> {
    device: Device,
    words: &'w [u32],
}

impl<'w> LockedWords<'w> {
    fn lock(device: &Device, words: &'w [u32]) -> Result<Self, GpuError> {
        let failed = |e| GpuError::of(format!("page-locking {} bytes of lists", size_of_val(words)), &e);
        device.context.bind_to_thread().map_err(failed)?;
        // SAFETY: the words live for 'w, longer than `self`, which unlocks them; nobody writes them.
        let locked = unsafe {
            sys::cuMemHostRegister_v2(
                words.as_ptr().cast_mut().cast(),
                size_of_val(words),
                sys::CU_MEMHOSTREGISTER_PORTABLE,
            )
        };
        locked.result().map_err(failed)?;
        Ok(Self { device: device.clone(), words })
    }
}

impl Drop for LockedWords<'_> {
    fn drop(&mut self) {
        let bound = self.device.context.bind_to_thread();
        // SAFETY: they were locked; who enqueues a copy waits for it before it gives the GPU up.
        let unlocked = unsafe { sys::cuMemHostUnregister(self.words.as_ptr().cast_mut().cast()) }.result();
        self.device.context.record_err(bound.and(unlocked));
    }
}
