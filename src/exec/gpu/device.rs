//! Finding a GPU: the one place that says why none can be used.

use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaContext, DriverError, sys};

use crate::exec::ExecError;

/// The oldest driver that reads our kernels, as CUDA encodes versions: 12.4.
const MIN_DRIVER_VERSION: i32 = 12_040;
/// The oldest compute capability that they are compiled for: Turing.
const MIN_CAPABILITY: (i32, i32) = (7, 5);

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// Its number: 0 is the one that executors use. `CUDA_VISIBLE_DEVICES` chooses and renumbers.
    pub ordinal: usize,
    /// Its name, as the driver has it.
    pub name: String,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Its compute capability, major and minor.
    pub capability: (i32, i32),
}

/// The GPUs of this machine, usable or too old.
///
/// # Errors
/// [`ExecError::NoGpu`] if there is no driver, or one too old.
pub fn list_gpus() -> Result<Vec<GpuInfo>, ExecError> {
    check_driver()?;
    let count = CudaContext::device_count().map_err(|e| no_gpu(&e))?;
    (0..usize::try_from(count).unwrap_or(0)).map(|ordinal| Ok(Device::open_any(ordinal)?.info)).collect()
}

/// A GPU in use.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) context: Arc<CudaContext>,
    pub(super) info: GpuInfo,
    pub(super) multiprocessors: u32,
}

impl Device {
    /// Opens the first GPU.
    ///
    /// # Errors
    /// [`ExecError::NoGpu`], with the reason.
    pub(super) fn open() -> Result<Self, ExecError> {
        check_driver()?;
        let device = Self::open_any(0)?;
        let capability = device.info.capability;
        if capability < MIN_CAPABILITY {
            return Err(ExecError::NoGpu(format!(
                "{} has compute capability {}.{}, expected {}.{} or newer",
                device.info.name, capability.0, capability.1, MIN_CAPABILITY.0, MIN_CAPABILITY.1
            )));
        }
        Ok(device)
    }

    fn open_any(ordinal: usize) -> Result<Self, ExecError> {
        let open = || {
            let context = CudaContext::new(ordinal)?;
            // SAFETY: buffers belong to one executor and are used on its stream alone; the index is shared, but only
            // read, and its upload is awaited before anyone sees it. So no stream needs to wait for another one.
            unsafe { context.disable_event_tracking() };
            let info = GpuInfo {
                ordinal,
                name: context.name()?,
                memory_bytes: context.total_mem()? as u64,
                capability: context.compute_capability()?,
            };
            let multiprocessors = context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
            Ok(Self { context, info, multiprocessors: multiprocessors.unsigned_abs() })
        };
        open().map_err(|e| no_gpu(&e))
    }

    /// Bytes of device memory that are free now.
    pub(super) fn free_bytes(&self) -> Result<u64, ExecError> {
        let (free, _total) = self.context.mem_get_info().map_err(|e| cuda("asking for free device memory", &e))?;
        Ok(free as u64)
    }
}

/// Checks that the driver is there and new enough, before anything else asks for one of its functions: the binding
/// panics where a library or a function is missing.
fn check_driver() -> Result<(), ExecError> {
    // SAFETY: loading NVIDIA's driver library runs its initialisers and nothing else.
    if !unsafe { sys::is_culib_present() } {
        return Err(ExecError::NoGpu("no NVIDIA driver on this machine (libcuda.so.1 not found)".to_owned()));
    }
    let mut version = 0;
    // SAFETY: writes one integer, which outlives the call; every driver has this function, and it needs no context.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(|e| no_gpu(&e))?;
    if version < MIN_DRIVER_VERSION {
        return Err(ExecError::NoGpu(format!(
            "the NVIDIA driver supports CUDA {}.{}, expected {}.{} or newer (update the driver)",
            version / 1000,
            version % 1000 / 10,
            MIN_DRIVER_VERSION / 1000,
            MIN_DRIVER_VERSION % 1000 / 10
        )));
    }
    // Where a driver is installed but no GPU is plugged in, this is what fails.
    cudarc::driver::result::init().map_err(|e| no_gpu(&e))
}

fn no_gpu(error: &DriverError) -> ExecError {
    ExecError::NoGpu(describe(error))
}

/// The error of a failed call. `doing` names the call, the kernels and the query.
pub(super) fn cuda(doing: impl Into<String>, error: &DriverError) -> ExecError {
    ExecError::Cuda { doing: doing.into(), message: describe(error) }
}

/// The driver's name for an error, and its explanation.
fn describe(error: &DriverError) -> String {
    let text = |text: Result<&std::ffi::CStr, DriverError>| text.map(|t| t.to_string_lossy().into_owned());
    match (text(error.error_name()), text(error.error_string())) {
        (Ok(name), Ok(explanation)) => format!("{name} ({explanation})"),
        _ => format!("CUDA error {}", error.0 as u32),
    }
}
