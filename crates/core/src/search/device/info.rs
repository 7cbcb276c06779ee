//! Description of a GPU.

use crate::base::ids::DeviceId;

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// The ordinal. `CUDA_VISIBLE_DEVICES` selects and renumbers GPUs.
    pub ordinal: DeviceId,
    /// The driver's name of the GPU.
    pub name: String,
    /// Device memory in bytes.
    pub memory_bytes: u64,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
}
