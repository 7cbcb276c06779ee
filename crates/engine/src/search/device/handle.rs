//! Access to a GPU, and the reason if none can be used.

use std::ffi::CStr;
use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaContext, CudaStream, sys};
use tandem_base::base::ids::DeviceId;

use super::GpuInfo;
use super::error::GpuError;
use super::wait;

/// The oldest driver that reads the kernels, in CUDA's encoding of versions: 12.4.
const MIN_DRIVER_VERSION: i32 = 12_040;
/// All functions of the driver's library that the program can call: the binding would panic at the first call of one that is missing.
/// A test compares this list with the program.
#[rustfmt::skip]
pub const DRIVER_FUNCTIONS: [&CStr; 59] = [
    c"cuCtxDestroy_v2", c"cuCtxGetCurrent", c"cuCtxSetCurrent", c"cuCtxSetLimit", c"cuCtxSynchronize", c"cuDeviceGet",
    c"cuDeviceGetAttribute", c"cuDeviceGetCount", c"cuDeviceGetName", c"cuDeviceGetUuid", c"cuDevicePrimaryCtxRelease_v2",
    c"cuDevicePrimaryCtxRetain", c"cuDeviceTotalMem_v2", c"cuDriverGetVersion", c"cuEventCreate", c"cuEventDestroy_v2",
    c"cuEventElapsedTime", c"cuEventQuery", c"cuEventRecord", c"cuEventSynchronize", c"cuFuncGetAttribute", c"cuFuncSetAttribute",
    c"cuGetErrorName", c"cuGetErrorString", c"cuInit", c"cuLaunchKernel", c"cuMemAddressFree", c"cuMemAddressReserve",
    c"cuMemAllocAsync", c"cuMemAlloc_v2", c"cuMemCreate", c"cuMemFreeAsync", c"cuMemFreeHost", c"cuMemFree_v2",
    c"cuMemGetAllocationGranularity", c"cuMemGetInfo_v2", c"cuMemHostAlloc", c"cuMemHostRegister_v2", c"cuMemHostUnregister",
    c"cuMemMap", c"cuMemRelease", c"cuMemSetAccess", c"cuMemUnmap", c"cuMemcpyDtoDAsync_v2", c"cuMemcpyDtoHAsync_v2",
    c"cuMemcpyHtoDAsync_v2", c"cuMemcpyPeerAsync", c"cuMemsetD8Async", c"cuModuleGetFunction", c"cuModuleGetGlobal_v2",
    c"cuModuleLoad", c"cuModuleLoadData", c"cuModuleUnload", c"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    c"cuStreamCreate", c"cuStreamDestroy_v2", c"cuStreamQuery", c"cuStreamSynchronize", c"cuStreamWaitEvent",
];
/// The L2 cache's fetch size from memory, as a hint. Neighbours of read data are often read next. It stays set after the last
/// [`Device`], because the driver's context belongs to the process.
const L2_FETCH_BYTES: usize = 128;
/// The oldest compute capability of the compiled kernels: Turing.
const MIN_CAPABILITY: (i32, i32) = (7, 5);

/// The GPUs of this machine, including those that are too old. Fails with [`GpuError::NoGpu`] if there is no driver, or
/// one too old.
pub fn list_gpus() -> Result<Vec<GpuInfo>, GpuError> {
    let count = count_devices()?;
    (0..u32::try_from(count).unwrap_or(0)).map(|ordinal| Ok(Device::open_any(DeviceId(ordinal))?.info)).collect()
}

/// A GPU in use.
#[derive(Clone, Debug)]
pub struct Device {
    /// The driver's context of this GPU.
    pub context: Arc<CudaContext>,
    /// Name, memory and limits of this GPU.
    pub info: GpuInfo,
    pub(crate) multiprocessors: u32,
}

impl Device {
    /// Opens the GPU with this ordinal.
    ///
    /// It also sets the L2 cache's fetch size to 128 bytes, a hint that holds for all of the process's work on this GPU.
    /// Fails with [`GpuError::NoGpu`], with the reason.
    pub fn open(ordinal: DeviceId) -> Result<Self, GpuError> {
        let count = count_devices()?;
        if i64::from(ordinal.0) >= i64::from(count) {
            return Err(GpuError::NoGpu(format!(
                "there is no GPU {ordinal}: the driver sees {count}, numbered from 0"
            )));
        }
        wait::read_limit()?;
        if wait::has_gpu_hung(ordinal.index()) {
            return Err(GpuError::NoGpu(format!("GPU {ordinal} did not answer this process before (restart it)")));
        }
        let device = Self::open_any(ordinal)?;
        let capability = device.info.capability;
        if capability < MIN_CAPABILITY {
            return Err(GpuError::NoGpu(format!(
                "{} has compute capability {}.{}, expected {}.{} or newer",
                device.info.name, capability.0, capability.1, MIN_CAPABILITY.0, MIN_CAPABILITY.1
            )));
        }
        Ok(device)
    }

    fn open_any(ordinal: DeviceId) -> Result<Self, GpuError> {
        let open = || {
            let context = CudaContext::new(ordinal.index())?;
            // SAFETY: every buffer is used on one stream only, or its writer is waited for. So no stream must wait for
            // another.
            unsafe { context.disable_event_tracking() };
            context.bind_to_thread()?;
            // GPUs without this hint are not slower. SAFETY: the call concerns this thread's context only.
            let _ = unsafe { sys::cuCtxSetLimit(sys::CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY, L2_FETCH_BYTES) };
            let info = GpuInfo {
                ordinal,
                name: context.name()?,
                memory_bytes: context.total_mem()? as u64,
                capability: context.compute_capability()?,
            };
            let multiprocessors = context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
            Ok(Self { context, info, multiprocessors: multiprocessors.unsigned_abs() })
        };
        open().map_err(|e| GpuError::no_gpu(&e))
    }

    /// A new stream. Fails if the driver refuses.
    pub fn new_stream(&self) -> Result<Arc<CudaStream>, GpuError> {
        self.context.new_stream().map_err(|e| GpuError::of("making a stream", &e))
    }

    /// A new event with timing.
    pub fn new_event(&self) -> Result<cudarc::driver::CudaEvent, cudarc::driver::DriverError> {
        self.context.new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))
    }

    /// Checks that `needed_bytes` of device memory are free. Fails with [`GpuError::DoesNotFit`] if not.
    pub fn check_room(&self, needed_bytes: u64) -> Result<(), GpuError> {
        let free_bytes = self.free_bytes()?;
        if needed_bytes > free_bytes {
            return Err(GpuError::DoesNotFit { needed_bytes, free_bytes });
        }
        Ok(())
    }

    /// Free device memory in bytes.
    pub fn free_bytes(&self) -> Result<u64, GpuError> {
        let (free, _total) =
            self.context.mem_get_info().map_err(|e| GpuError::of("asking for free device memory", &e))?;
        Ok(free as u64)
    }
}

/// The number of devices, after checking that the driver exists and is new enough. The binding would panic on a missing
/// library or function.
fn count_devices() -> Result<i32, GpuError> {
    // SAFETY: loading NVIDIA's driver library runs its initialisers only.
    if !unsafe { sys::is_culib_present() } {
        return Err(GpuError::NoGpu("no NVIDIA driver on this machine (libcuda.so.1 not found)".to_owned()));
    }
    let lacks = |name: &&&CStr| {
        // SAFETY: the address is not used.
        unsafe { sys::culib().get::<*const ()>(name.to_bytes_with_nul()) }.is_err()
    };
    if let Some(name) = DRIVER_FUNCTIONS.iter().find(lacks) {
        let name = name.to_string_lossy();
        return Err(GpuError::NoGpu(format!("the NVIDIA driver's library is broken: it has no function {name}")));
    }
    let mut version = 0;
    // SAFETY: the call writes one integer that outlives it, exists in every driver and needs no context.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(|e| GpuError::no_gpu(&e))?;
    if version < MIN_DRIVER_VERSION {
        return Err(GpuError::NoGpu(format!(
            "the NVIDIA driver supports CUDA {}.{}, expected {}.{} or newer (update the driver)",
            version / 1000,
            version % 1000 / 10,
            MIN_DRIVER_VERSION / 1000,
            MIN_DRIVER_VERSION % 1000 / 10
        )));
    }
    // This call fails if a driver is installed without a GPU.
    cudarc::driver::result::init().and_then(|()| CudaContext::device_count()).map_err(|e| GpuError::no_gpu(&e))
}
