//! Host memory for scattered reads by the GPU.
//!
//! Random reads across the bus wait for address translation. With 2 MiB pages the H200 reads twice as many pieces per
//! second as with 4 KiB pages (117 and 61 million, for pieces up to 256 bytes). So large pages are tried first, then
//! page-locked memory of small pages.

use std::mem::MaybeUninit;

use cudarc::driver::DriverError;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};

use super::handle::Device;
use super::pinned::Pinned;
use super::wait::has_hung;

#[derive(Debug)]
pub(crate) enum HostMemory {
    Large(LargePages),
    Small(Pinned<u32>),
}

/// An address range backed by large host pages.
#[derive(Debug)]
pub(crate) struct LargePages {
    device: Device,
    address: u64,
    bytes: usize,
    handle: sys::CUmemGenericAllocationHandle,
}

impl HostMemory {
    /// Uninitialised memory of `words` words. Fails if the host cannot lock it.
    pub(crate) fn new(device: &Device, words: usize) -> Result<Self, DriverError> {
        if let Ok(pages) = LargePages::new(device, 4 * words) {
            return Ok(Self::Large(pages));
        }
        Ok(Self::Small(Pinned::uninitialised(&device.context, words, 0)?))
    }

    pub(crate) fn address(&self) -> u64 {
        match self {
            Self::Large(pages) => pages.address,
            Self::Small(pages) => pages.address(),
        }
    }

    pub(crate) fn has_large_pages(&self) -> bool {
        matches!(self, Self::Large(_))
    }
}

impl LargePages {
    fn new(device: &Device, bytes: usize) -> Result<Self, DriverError> {
        device.context.bind_to_thread()?;
        // Without the GPU's NUMA node, the first node is used.
        let node = device.context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID)?.max(0);
        // SAFETY: zero is valid for each field except the two that are set at once.
        let mut wanted: sys::CUmemAllocationProp = unsafe {
            let mut wanted = MaybeUninit::<sys::CUmemAllocationProp>::zeroed();
            (*wanted.as_mut_ptr()).type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
            (*wanted.as_mut_ptr()).location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA;
            wanted.assume_init()
        };
        wanted.location.id = node;
        let mut access = sys::CUmemAccessDesc {
            location: wanted.location,
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        access.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        access.location.id = device.info.ordinal.0 as i32;
        let granularity = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        let (mut page_bytes, mut address, mut handle) = (0, 0, 0);
        // SAFETY: each call gets the results of earlier ones and writes to numbers that outlive it.
        unsafe {
            sys::cuMemGetAllocationGranularity(&raw mut page_bytes, &raw const wanted, granularity).result()?;
            let bytes = bytes.max(1).next_multiple_of(page_bytes.max(1));
            sys::cuMemCreate(&raw mut handle, bytes, &raw const wanted, 0).result()?;
            let reserved = sys::cuMemAddressReserve(&raw mut address, bytes, 0, 0, 0).result();
            if let Err(error) = reserved {
                let _ = sys::cuMemRelease(handle);
                return Err(error);
            }
            // From here on `drop` frees everything.
            let pages = Self { device: device.clone(), address, bytes, handle };
            sys::cuMemMap(address, bytes, 0, handle, 0).result()?;
            sys::cuMemSetAccess(address, bytes, &raw const access, 1).result()?;
            Ok(pages)
        }
    }
}

impl Drop for LargePages {
    fn drop(&mut self) {
        if has_hung(&self.device.context) || self.device.context.bind_to_thread().is_err() {
            return;
        }
        // SAFETY: they were created and mapped together, or mapping failed and unmapping reports that. Users have
        // waited for their work.
        unsafe {
            let _ = sys::cuMemUnmap(self.address, self.bytes);
            let _ = sys::cuMemRelease(self.handle);
            let _ = sys::cuMemAddressFree(self.address, self.bytes);
        }
    }
}
