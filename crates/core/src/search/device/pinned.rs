//! Page-locked memory of the host, which the GPU reads and writes by itself.

use bytemuck::Pod;
use cudarc::driver::sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED as WRITE_COMBINED,
};
use cudarc::driver::{DeviceRepr, DriverError, PinnedHostSlice, ValidAsZeroBits};

use super::Device;

/// Numbers in page-locked memory.
///
/// The driver's wrapper waits for an event of its own before it gives its memory away: 1.2 us, though nobody ever
/// records it. Who uses this knows when a kernel or a copy has ended.
#[derive(Debug)]
pub struct Pinned<T> {
    memory: PinnedHostSlice<T>,
    address: u64,
}

impl<T: Pod + DeviceRepr + ValidAsZeroBits> Pinned<T> {
    /// `len` times `value`, for the GPU to write and the host to read.
    pub fn for_results(device: &Device, len: usize, value: T) -> Result<Self, DriverError> {
        Self::new(device, len, value, 0)
    }

    /// `len` zeros, for the host to write, from first to last, and the GPU to read.
    pub fn for_input(device: &Device, len: usize) -> Result<Self, DriverError> {
        Self::new(device, len, T::zeroed(), WRITE_COMBINED)
    }

    fn new(device: &Device, len: usize, value: T, flags: u32) -> Result<Self, DriverError> {
        let flags = flags | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: every word is written before it is read.
        let mut memory = unsafe { device.context.alloc_pinned_with_flags::<T>(len, flags) }?;
        memory.as_mut_slice()?.fill(value);
        let address = memory.as_mut_ptr()? as u64;
        Ok(Self { memory, address })
    }

    /// Where they are, for the host and for the GPU.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The numbers.
    ///
    /// # Safety
    /// No kernel may write them now, and no copy to the device read them.
    pub unsafe fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, and nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(self.address as *mut T, self.memory.len()) }
    }

    /// The number at a place, which a kernel may be writing: it writes each at once.
    ///
    /// # Panics
    /// If there is no such place.
    pub(crate) fn read_now(&self, place: usize) -> T {
        assert!(place < self.memory.len());
        // SAFETY: there is such a number, it lives as long as `self`, and every pattern of bits is one.
        unsafe { (self.address as *const T).add(place).read_volatile() }
    }

    /// As [`read_now`](Self::read_now), and leaves `value` in the number's place if it was another one: for words that
    /// a kernel writes once each.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline]
    pub(crate) fn replace_now(&mut self, place: usize, value: T) -> T
    where
        T: PartialEq,
    {
        let found = self.read_now(place);
        if found != value {
            // SAFETY: there is such a number, and the kernel that has written it does so no more.
            unsafe { (self.address as *mut T).add(place).write_volatile(value) };
        }
        found
    }
}
