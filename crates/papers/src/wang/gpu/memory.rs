//! The GPU with the arrays of documents, and the host's page-locked lists.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, ValidAsZeroBits, result, sys};
use tandem_engine::search::device::{Device, GpuError, Module, has_hung, wait};
use tandem_model::base::ids::DeviceId;

use super::kernels;
use crate::wang::data::ExperimentData;

/// The machine's first GPU with the kernel, the arrays of documents, and the one stream of all work.
#[derive(Debug)]
pub(crate) struct CachedGpu<'d> {
    pub(crate) data: &'d ExperimentData,
    pub(crate) device: Device,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) rank: CudaFunction,
    _module: Module,
    pub(crate) d_priors: CudaSlice<f32>,
    pub(crate) d_norms: CudaSlice<f32>,
    pub(crate) d_global_scores: CudaSlice<f32>,
    /// The host's page-locked lists, or the reason why they are not page-locked.
    pub(crate) locked: Result<LockedWords<'d>, GpuError>,
}

impl<'d> CachedGpu<'d> {
    /// Opens the GPU. Lists that cannot be page-locked use staged copies; [`Self::why_staged`] gives the reason.
    /// [`GpuError::NoGpu`] if there is none to use, [`GpuError::DoesNotFit`] if the documents' arrays don't fit.
    pub(crate) fn open(data: &'d ExperimentData, may_lock: bool) -> Result<Self, GpuError> {
        let device = Device::open(DeviceId(0))?;
        let stream = device.new_stream()?;
        let (rank, module) = kernels::load(&device, &stream)?;
        let documents = &data.documents;
        device.check_room(12 * documents.norms.len() as u64)?;
        let upload = |values: &[f32]| {
            let copied = stream.clone_htod(values);
            copied.map_err(|e| GpuError::of("copying what is known of documents", &e))
        };
        let locked = if may_lock {
            LockedWords::lock(&device, data.lists.all_words())
        } else {
            Err(GpuError::Failed { doing: "page-locking".into(), message: "not asked for".into() })
        };
        Ok(Self {
            data,
            rank,
            _module: module,
            d_priors: upload(&documents.priors)?,
            d_norms: upload(&documents.norms)?,
            d_global_scores: upload(&documents.global_scores)?,
            locked,
            device,
            stream,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.device.info.name
    }

    /// Returns the reason for staged copies; `None` without them.
    pub(crate) fn why_staged(&self) -> Option<String> {
        self.locked.as_ref().err().map(ToString::to_string)
    }

    /// Allocates device memory without writing it, at least one item so that it has an address. Debug builds fill it
    /// with ones, which exposes reads of unwritten memory.
    pub(crate) fn alloc<T: DeviceRepr + ValidAsZeroBits>(&self, len: usize) -> Result<CudaSlice<T>, GpuError> {
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

    /// Returns the device address of memory, whose owner must outlive the work that uses it.
    pub(crate) fn address<T>(&self, memory: &CudaSlice<T>) -> u64 {
        memory.device_ptr(&self.stream).0
    }

    pub(crate) fn wait(&self, doing: &str) -> Result<(), GpuError> {
        wait(&self.stream).map_err(|e| GpuError::of(doing, &e))
    }
}

/// Page-locked words of the host.
#[derive(Debug)]
pub(crate) struct LockedWords<'d> {
    device: Device,
    words: &'d [u32],
}

impl<'d> LockedWords<'d> {
    fn lock(device: &Device, words: &'d [u32]) -> Result<Self, GpuError> {
        let failed = |e| GpuError::of(format!("page-locking {} bytes of lists", size_of_val(words)), &e);
        device.context.bind_to_thread().map_err(failed)?;
        // SAFETY: the words live for 'd, longer than `self`, which unlocks them; nobody writes them.
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
        // Unlocking would wait for running kernels, which only read the words.
        if has_hung(&self.device.context) {
            return;
        }
        let bound = self.device.context.bind_to_thread();
        // SAFETY: the words were locked, and every copy has finished before the GPU is dropped.
        let unlocked = unsafe { sys::cuMemHostUnregister(self.words.as_ptr().cast_mut().cast()) }.result();
        self.device.context.record_err(bound.and(unlocked));
    }
}
