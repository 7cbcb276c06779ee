//! The rate of scattered reads of host memory across the bus, which limits searches of host-resident blocks.

use cudarc::driver::PushKernelArg;

use super::error::GpuError;
use super::handle::Device;
use super::host_memory::HostMemory;
use super::module::{Images, Module, shape};
use super::wait::wait_for;

const IMAGES: Images = Images {
    what: "the kernel that reads the host's memory",
    ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/host_reads.ptx")),
    cubin_sm_90: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/host_reads.sm_90.cubin")),
};
/// Threads per block, equal to the compiled kernel's.
const THREADS: u32 = 256;
const BLOCKS: u32 = 8;
/// Bytes per read of a thread.
const THREAD_BYTES: usize = 16;
const READS: u32 = 32;
/// The range of the reads, many times larger than caches and translation buffers.
const ARRAY_BYTES: usize = 1 << 30;
/// Bytes per piece: a sector, a cache line, and several.
const PIECES: [usize; 4] = [32, 64, 128, 512];

/// Rates of scattered reads of host memory.
#[derive(Clone, Debug, PartialEq)]
pub struct HostReads {
    /// Bytes per piece, and pieces per second.
    pub pieces: Vec<(usize, f64)>,
    /// Whether the host has large pages.
    pub has_large_pages: bool,
}

impl HostReads {
    /// Measures a GPU and keeps the best of `repeats` runs. Fails if 1 GiB of host memory cannot be locked, or a call
    /// fails.
    pub(crate) fn measure(device: &Device, repeats: usize) -> Result<Self, GpuError> {
        let doing = |e| GpuError::of("reading the host's memory (kernel `read_scattered`)", &e);
        let stream = device.new_stream()?;
        let module = Module::load(device, IMAGES)?;
        module.check_layout(&stream, "host_reads_layout", &[THREADS as usize])?;
        let read = module.function("read_scattered")?;
        let memory = HostMemory::new(device, ARRAY_BYTES / 4).map_err(doing)?;
        let d_sink = stream.alloc_zeros::<u32>(1).map_err(doing)?;
        let blocks = BLOCKS * device.multiprocessors;
        let (started, finished) = (device.new_event().map_err(doing)?, device.new_event().map_err(doing)?);
        let mut pieces = Vec::new();
        for bytes in PIECES {
            let lanes = (bytes / THREAD_BYTES) as u32;
            let (address, num_pieces) = (memory.address(), (ARRAY_BYTES / bytes) as u64);
            let mut fastest_ms = f64::INFINITY;
            for run in 0..=repeats as u64 {
                let seed = run << 40;
                let mut launch = stream.launch_builder(&read);
                launch.arg(&address).arg(&num_pieces).arg(&lanes).arg(&READS).arg(&seed).arg(&d_sink);
                started.record(&stream).map_err(doing)?;
                // SAFETY: the arguments match `read_scattered` in kernels/host_reads.cu; the array has this many
                // pieces.
                unsafe { launch.launch(shape(blocks, THREADS)) }.map_err(doing)?;
                finished.record(&stream).map_err(doing)?;
                wait_for(&finished).map_err(doing)?;
                if run > 0 {
                    fastest_ms = fastest_ms.min(f64::from(started.elapsed_ms(&finished).map_err(doing)?));
                }
            }
            let reads = f64::from(blocks * THREADS / lanes) * f64::from(READS);
            pieces.push((bytes, reads / fastest_ms * 1e3));
        }
        Ok(Self { pieces, has_large_pages: memory.has_large_pages() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_base::base::ids::DeviceId;

    #[test]
    fn gpu_reads_pieces_of_all_sizes_from_the_hosts_memory() {
        let device = match Device::open(DeviceId(0)) {
            Ok(device) => device,
            Err(error) => {
                assert!(std::env::var_os("TANDEM_REQUIRE_GPU").is_none(), "TANDEM_REQUIRE_GPU is set, but: {error}");
                println!("skipped: {error}");
                return;
            }
        };
        let measured = HostReads::measure(&device, 1).unwrap();
        assert_eq!(measured.pieces.iter().map(|&(bytes, _)| bytes).collect::<Vec<_>>(), PIECES);
        assert!(measured.pieces.iter().all(|&(_, rate)| rate.is_finite() && rate > 0.0), "{measured:?}");
    }
}
