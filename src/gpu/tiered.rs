//! The kernels of memory in two tiers: what reading the far one gives, and pages that come from there.

use cudarc::driver::DeviceRepr;

use super::Images;

/// What `kernels/tiered/tiered.cu` compiles to.
pub(crate) const IMAGES: Images = Images {
    what: "the kernels of tiered lists",
    ptx: include_str!("../../kernels/compiled/tiered.ptx"),
    cubin_sm_90: include_bytes!("../../kernels/compiled/tiered.sm_90.cubin"),
};
/// Threads of a block that reads pieces, and of one that moves pages.
pub(crate) const SCATTER_THREADS: u32 = 256;
pub(crate) const MOVE_THREADS: u32 = 128;
/// Bytes of a block's header.
const HEADER_BYTES: usize = 16;

/// The sizes that the kernels must have been compiled with.
pub(crate) const LAYOUT: [usize; 5] =
    [SCATTER_THREADS as usize, MOVE_THREADS as usize, size_of::<PageMove>(), size_of::<RunMove>(), HEADER_BYTES];

/// A page, and the frame that it comes to.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct PageMove {
    pub(crate) page: u32,
    pub(crate) frame: u32,
}

/// Consecutive blocks whose rows have moved so many rows on, modulo 2^32.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct RunMove {
    pub(crate) first_block: u32,
    pub(crate) num_blocks: u32,
    pub(crate) rows_on: u32,
}

// SAFETY: plain numbers, laid out as the kernels have them: `LAYOUT` is checked when they are loaded.
unsafe impl DeviceRepr for PageMove {}
// SAFETY: as above.
unsafe impl DeviceRepr for RunMove {}
