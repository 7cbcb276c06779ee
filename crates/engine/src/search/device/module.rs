//! Compiled kernels on a device.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaStream, LaunchConfig};
use cudarc::nvrtc::Ptx;

use super::error::GpuError;
use super::handle::Device;
use super::wait::{has_hung, wait};

/// The output of `kernels/build.py` for one compile unit.
#[derive(Clone, Copy, Debug)]
pub struct Images {
    /// Their name in errors.
    pub what: &'static str,
    /// For every GPU since Turing; the driver compiles it at load.
    pub ptx: &'static str,
    /// Native code for compute capability 9.0 (H100, H200, GH200).
    pub cubin_sm_90: &'static [u8],
}

/// The kernels of one compile unit, loaded on one device. Its owner keeps it as long as its kernels, so that dropping them never
/// waits for one that hangs.
#[derive(Debug)]
pub struct Module {
    context: Arc<CudaContext>,
    module: Arc<CudaModule>,
    what: &'static str,
}

impl Module {
    /// Loads the image that fits the device. Fails if the driver refuses it.
    pub fn load(device: &Device, images: Images) -> Result<Self, GpuError> {
        // The driver's own variable lets tests use the PTX on any GPU.
        let is_native = device.info.capability == (9, 0) && std::env::var_os("CUDA_FORCE_PTX_JIT").is_none();
        let image = if is_native { Ptx::from_binary(images.cubin_sm_90.to_vec()) } else { Ptx::from_src(images.ptx) };
        Self::load_image(device, images.what, image)
    }

    /// Loads an image. Fails if the driver refuses it.
    pub(super) fn load_image(device: &Device, what: &'static str, image: Ptx) -> Result<Self, GpuError> {
        let module = device.context.load_module(image);
        let module = module.map_err(|e| GpuError::of(format!("loading {what}"), &e))?;
        Ok(Self { context: Arc::clone(&device.context), module, what })
    }

    /// A kernel by its name. Fails if there is no kernel of that name.
    pub fn function(&self, name: &str) -> Result<CudaFunction, GpuError> {
        let function = self.module.load_function(name);
        function.map_err(|e| GpuError::of(format!("loading {}, kernel `{name}`", self.what), &e))
    }

    /// Compares the kernels' compiled sizes and offsets of fields, in the device array `name`, with the host's. Fails
    /// if they differ, which means that the kernels were compiled from another version of the sources.
    pub fn check_layout(&self, stream: &Arc<CudaStream>, name: &str, expected: &[usize]) -> Result<(), GpuError> {
        let doing = || format!("loading {}", self.what);
        let layout = self.module.get_global(name, stream).and_then(|array| stream.clone_dtoh(&array));
        let layout = layout.and_then(|bytes| wait(stream).map(|()| bytes));
        let layout = layout.map_err(|e| GpuError::of(doing(), &e))?;
        let found: Vec<usize> = layout.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word) as usize).collect();
        // Markers of 64 bits are compared by their lower half.
        let expected: Vec<usize> = expected.iter().map(|&value| value as u32 as usize).collect();
        if found != expected {
            let message = format!("their layout is {found:?}, expected {expected:?} (run kernels/build.py)");
            return Err(GpuError::Failed { doing: doing(), message });
        }
        Ok(())
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Unloading would wait for running kernels.
        if has_hung(&self.context) {
            std::mem::forget(Arc::clone(&self.module));
        }
    }
}

/// The offsets of all fields of a kernel argument, in the order of the kernels' layout arrays.
macro_rules! offsets {
    ($type:ty: $($field:ident),*) => {{
        const OFFSETS: &[usize] = &[$(std::mem::offset_of!($type, $field)),*];
        OFFSETS
    }};
}
pub(crate) use offsets;

/// A layout array in a unit's PTX, for tests without a GPU.
#[cfg(test)]
pub(crate) fn layout_in_ptx(ptx: &str, name: &str) -> Vec<usize> {
    let (_, array) = ptx.split_once(&format!(" {name}[")).unwrap();
    let (size, array) = array.split_once(']').unwrap();
    let bytes = &array[array.find('{').unwrap() + 1..array.find('}').unwrap()];
    let mut bytes: Vec<u8> = bytes.split(',').map(|byte| byte.trim().parse().unwrap()).collect();
    // The compiler leaves out zeros at the end.
    bytes.resize(size.parse().unwrap(), 0);
    bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word) as usize).collect()
}

/// A launch of `blocks` thread blocks of `threads` threads.
pub fn shape(blocks: u32, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}
