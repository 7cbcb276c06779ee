//! What is known of a GPU before it is used.

use crate::base::ids::DeviceId;

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// Its number. `CUDA_VISIBLE_DEVICES` chooses and renumbers.
    pub ordinal: DeviceId,
    /// Its name, as the driver has it.
    pub name: String,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Its compute capability, major and minor.
    pub capability: (i32, i32),
}
