//! Page-locked host memory, which the GPU accesses directly.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED as WRITE_COMBINED,
};
use cudarc::driver::{CudaContext, DeviceRepr, DriverError, PinnedHostSlice, ValidAsZeroBits};
use tandem_base::base::prefetch::prefetch_line;

use super::handle::Device;
use super::wait::has_hung;

/// Numbers in page-locked memory.
///
/// The driver's wrapper would wait 1.2 us for an unused event at each access. Users of this type know when a kernel or
/// copy has ended.
#[derive(Debug)]
pub struct Pinned<T> {
    context: Arc<CudaContext>,
    memory: ManuallyDrop<PinnedHostSlice<T>>,
    address: u64,
}

impl<T: Pod + DeviceRepr + ValidAsZeroBits> Pinned<T> {
    /// Memory of `len` times `value`, which the GPU writes and the host reads.
    pub fn for_results(device: &Device, len: usize, value: T) -> Result<Self, DriverError> {
        Self::filled(&device.context, len, value, 0)
    }

    /// Memory of `len` zeros, which the host writes in order and the GPU reads.
    pub fn for_input(device: &Device, len: usize) -> Result<Self, DriverError> {
        Self::filled(&device.context, len, T::zeroed(), WRITE_COMBINED)
    }

    fn filled(context: &Arc<CudaContext>, len: usize, value: T, flags: u32) -> Result<Self, DriverError> {
        let mut pinned = Self::uninitialised(context, len, flags)?;
        pinned.memory.as_mut_slice()?.fill(value);
        Ok(pinned)
    }

    /// Memory of `len` undefined numbers, whose user writes each before it is read.
    pub(crate) fn uninitialised(context: &Arc<CudaContext>, len: usize, flags: u32) -> Result<Self, DriverError> {
        let flags = flags | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: every bit pattern is a number, and users write each before it is read.
        let mut memory = unsafe { context.alloc_pinned_with_flags::<T>(len, flags) }?;
        let address = memory.as_mut_ptr()? as u64;
        Ok(Self { context: Arc::clone(context), memory: ManuallyDrop::new(memory), address })
    }

    /// The address for host and GPU.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The numbers.
    ///
    /// # Safety
    /// No kernel may write them during the borrow, and no copy to the device may read them.
    pub unsafe fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: the caller excludes concurrent access, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.address as *mut T, self.memory.len()) }
    }

    /// The number at a place that a kernel may be writing, each with a single store. Panics if there is no such place.
    pub(crate) fn read_now(&self, place: usize) -> T {
        assert!(place < self.memory.len());
        // SAFETY: the place was checked, lives as long as `self`, and every bit pattern is valid.
        unsafe { (self.address as *const T).add(place).read_volatile() }
    }

    /// Prefetches the cache line of a place, if it exists.
    #[inline]
    pub(crate) fn prefetch(&self, place: usize) {
        prefetch_line((self.address as *const T).wrapping_add(place));
    }

    /// Like [`read_now`](Self::read_now), and replaces a different number by `value`. A kernel must write each word
    /// once only.
    #[inline]
    pub(crate) fn replace_now(&mut self, place: usize, value: T) -> T
    where
        T: PartialEq,
    {
        let found = self.read_now(place);
        if found != value {
            // SAFETY: the place was checked, and the kernel that wrote it does not write it again.
            unsafe { (self.address as *mut T).add(place).write_volatile(value) };
        }
        found
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        // Freeing would wait for running kernels.
        if !has_hung(&self.context) {
            // SAFETY: the memory is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
