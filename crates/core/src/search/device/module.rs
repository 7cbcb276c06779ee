//! Compiled kernels, as they are embedded in this binary, on a device.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaModule, CudaStream, LaunchConfig};
use cudarc::nvrtc::Ptx;

use super::{Device, GpuError};

/// What `kernels/build.py` has made of one compile unit.
#[derive(Clone, Copy, Debug)]
pub struct Images {
    /// What they are, for an error.
    pub what: &'static str,
    /// For every GPU since Turing; the driver compiles it when it is loaded.
    pub ptx: &'static str,
    /// For compute capability 9.0 (H100, H200, GH200), ready to run.
    pub cubin_sm_90: &'static [u8],
}

/// The kernels of one compile unit, loaded on one device.
#[derive(Debug)]
pub struct Module {
    module: Arc<CudaModule>,
    what: &'static str,
}

impl Module {
    /// Loads the image that suits the device.
    ///
    /// # Errors
    /// If the driver refuses it.
    pub fn load(device: &Device, images: Images) -> Result<Self, GpuError> {
        // The driver's own variable for this purpose, so that other GPUs' way can be tried on any.
        let is_native = device.info.capability == (9, 0) && std::env::var_os("CUDA_FORCE_PTX_JIT").is_none();
        let image = if is_native { Ptx::from_binary(images.cubin_sm_90.to_vec()) } else { Ptx::from_src(images.ptx) };
        let module = device.context.load_module(image);
        let module = module.map_err(|e| GpuError::of(format!("loading {}", images.what), &e))?;
        Ok(Self { module, what: images.what })
    }

    /// A kernel by its name.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn function(&self, name: &str) -> Result<CudaFunction, GpuError> {
        let function = self.module.load_function(name);
        function.map_err(|e| GpuError::of(format!("loading {}, kernel `{name}`", self.what), &e))
    }

    /// Checks that the sizes which the kernels were compiled with, in the array `name`, are those of the host.
    ///
    /// # Errors
    /// If they differ: the kernels were compiled from another version of the sources.
    pub fn check_layout(&self, stream: &Arc<CudaStream>, name: &str, expected: &[usize]) -> Result<(), GpuError> {
        let doing = || format!("loading {}", self.what);
        let layout = self.module.get_global(name, stream).and_then(|array| stream.clone_dtoh(&array));
        let layout = layout.and_then(|bytes| stream.synchronize().map(|()| bytes));
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

/// A launch of this many thread blocks of this many threads.
pub fn shape(blocks: u32, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}
