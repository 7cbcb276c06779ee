//! Whole lists decoded on the GPU, many in a launch: what the decoder can do with no search around it.

use std::sync::Arc;

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use rayon::prelude::*;

use super::device::{Device, cuda};
use super::octets::{GROUP, OctetBlock, OctetLists};
use crate::exec::ExecError;
use crate::index::BLOCK_LEN;

const PTX: &str = include_str!("../../../kernels/compiled/decode.ptx");
const CUBIN_SM_90: &[u8] = include_bytes!("../../../kernels/compiled/decode.sm_90.cubin");

const THREADS: u32 = 128;
const WARP: u32 = 32;
/// Blocks of postings that a warp takes at once.
const CHUNK_BLOCKS: usize = 4 * GROUP;
const CHUNK_LEN: usize = CHUNK_BLOCKS * BLOCK_LEN;
/// Thread blocks a multiprocessor that decode and add up: as many as it holds, each going on to its next chunk.
const SUM_RESIDENT: u32 = 7;

/// What becomes of the documents that were decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consumer {
    /// They are stored in device memory.
    Store,
    /// They are added up where they are, and one sum a thread is stored.
    Sum,
}

/// Blocks of one list that follow each other: `DecodeChunk` in decode.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct ChunkArgument {
    first_block: u32,
    len: u32,
    base: u32,
    output: u32,
}

/// All lists: `DecodeLists` in decode.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct ListsArgument {
    blocks: u64,
    last_docs: u64,
    payload: u64,
    chunks: u64,
    num_chunks: u32,
    reserved: u32,
}

// SAFETY: plain words in C layout, of the size that the kernels have (checked when they are loaded).
unsafe impl DeviceRepr for ChunkArgument {}
// SAFETY: as above.
unsafe impl DeviceRepr for ListsArgument {}

/// The kernels of decode.cu.
#[derive(Debug)]
struct Kernels {
    decode_documents: CudaFunction,
    sum_documents: CudaFunction,
}

impl Kernels {
    fn load(device: &Device, stream: &Arc<CudaStream>) -> Result<Self, ExecError> {
        let is_native = device.info.capability == (9, 0) && std::env::var_os("CUDA_FORCE_PTX_JIT").is_none();
        let image = if is_native { Ptx::from_binary(CUBIN_SM_90.to_vec()) } else { Ptx::from_src(PTX) };
        let load = |context: &Arc<CudaContext>| {
            let module = context.load_module(image)?;
            let layout = stream.clone_dtoh(&module.get_global("decode_layout", stream)?)?;
            let kernels = Self {
                decode_documents: module.load_function("decode_documents")?,
                sum_documents: module.load_function("sum_documents")?,
            };
            stream.synchronize()?;
            Ok((kernels, layout))
        };
        let (kernels, layout) = load(&device.context).map_err(|e| cuda("loading the decoder's kernels", &e))?;
        let sizes = [size_of::<OctetBlock>(), size_of::<ChunkArgument>(), size_of::<ListsArgument>()];
        let expected: Vec<u32> =
            [THREADS as usize, CHUNK_BLOCKS].into_iter().chain(sizes).map(|value| value as u32).collect();
        let found: Vec<u32> = layout.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
        if found != expected {
            return Err(ExecError::Cuda {
                doing: "loading the decoder's kernels".to_owned(),
                message: format!("their layout is {found:?}, expected {expected:?} (run kernels/build.py)"),
            });
        }
        Ok(kernels)
    }
}

/// A launch that does nothing: the decoder without lists.
#[derive(Debug)]
pub(super) struct EmptyLaunch {
    kernels: Kernels,
}

impl EmptyLaunch {
    /// Loads the kernel.
    ///
    /// # Errors
    /// If the driver refuses it.
    pub(super) fn load(device: &Device, stream: &Arc<CudaStream>) -> Result<Self, ExecError> {
        Ok(Self { kernels: Kernels::load(device, stream)? })
    }

    /// Launches one block of threads.
    ///
    /// # Errors
    /// If the launch fails.
    pub(super) fn launch(&self, stream: &Arc<CudaStream>) -> Result<(), DriverError> {
        let lists = ListsArgument { blocks: 0, last_docs: 0, payload: 0, chunks: 0, num_chunks: 0, reserved: 0 };
        let output = 0_u64;
        let mut launch = stream.launch_builder(&self.kernels.decode_documents);
        launch.arg(&lists).arg(&output);
        let shape = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the arguments are those of `decode_documents`; with no chunks it reads and writes nothing.
        unsafe { launch.launch(shape) }.map(drop)
    }
}

/// Lists in device memory, packed, and room for their documents.
#[derive(Debug)]
pub(crate) struct ListDecoder {
    device: Device,
    stream: Arc<CudaStream>,
    kernels: Kernels,
    /// Where each list's documents begin in the output, and how many they are.
    lists: Vec<(usize, usize)>,
    copies: usize,
    num_blocks: usize,
    d_blocks: CudaSlice<u32>,
    d_last_docs: CudaSlice<u32>,
    d_payload: CudaSlice<u32>,
    d_chunks: CudaSlice<ChunkArgument>,
    d_output: CudaSlice<u32>,
    d_sums: CudaSlice<u32>,
}

impl ListDecoder {
    /// Packs lists of ascending documents and copies them to the machine's first GPU, `copies` times one behind the
    /// other: so few lists fill a GPU, and no cache holds them.
    ///
    /// # Errors
    /// [`ExecError::NoGpu`] if there is none to use, [`ExecError::DoesNotFit`] if its memory is too small.
    pub(crate) fn upload(lists: &[Vec<u32>], copies: usize) -> Result<Self, ExecError> {
        let device = Device::open()?;
        let stream = device.context.new_stream().map_err(|e| cuda("making a stream", &e))?;
        let kernels = Kernels::load(&device, &stream)?;
        let packed: Vec<OctetLists> = lists
            .par_iter()
            .map(|docs| {
                let mut list = OctetLists::default();
                list.push(docs, u32::MAX);
                list
            })
            .collect();
        let mut all = OctetLists::default();
        packed.iter().for_each(|list| all.append(list));
        drop(packed);
        let num_blocks = all.blocks.len();
        let places = lists.iter().scan(0, |at, docs| {
            let start = *at;
            *at += docs.len().div_ceil(BLOCK_LEN) * BLOCK_LEN;
            Some((start, docs.len()))
        });
        let places: Vec<(usize, usize)> = places.collect();
        let chunks = chunks(&places, &all.last_docs, copies);

        let threads = (device.multiprocessors * SUM_RESIDENT * THREADS) as usize;
        let block_words = (2 + 1 + BLOCK_LEN) * num_blocks;
        let words = copies * (all.payload.len() + block_words) + threads;
        let needed_bytes = (4 * words + size_of_val(chunks.as_slice())) as u64;
        let free_bytes = device.free_bytes()?;
        if needed_bytes > free_bytes {
            return Err(ExecError::DoesNotFit { needed_bytes, free_bytes });
        }
        let blocks = copied_blocks(&all, copies);
        let allocate = || {
            // SAFETY: outputs are read after a kernel has written them; every pattern of bits is a `u32`.
            let (d_output, d_sums) =
                unsafe { (stream.alloc((copies * num_blocks * BLOCK_LEN).max(1))?, stream.alloc(threads)?) };
            Ok((
                stream.clone_htod(bytemuck::cast_slice::<OctetBlock, u32>(&blocks))?,
                upload_copies(&stream, &all.last_docs, copies)?,
                upload_copies(&stream, &all.payload, copies)?,
                stream.clone_htod(&chunks)?,
                d_output,
                d_sums,
            ))
        };
        let (d_blocks, d_last_docs, d_payload, d_chunks, d_output, d_sums) =
            allocate().map_err(|e: DriverError| cuda("copying lists to the device", &e))?;
        let lists = places;
        Ok(Self {
            device,
            kernels,
            lists,
            copies,
            num_blocks,
            d_blocks,
            d_last_docs,
            d_payload,
            d_chunks,
            d_output,
            d_sums,
            stream,
        })
    }

    /// Documents of all lists, copies included.
    pub(crate) fn num_postings(&self) -> usize {
        self.copies * self.lists.iter().map(|&(_, len)| len).sum::<usize>()
    }

    /// Bytes that a kernel must move: all that lists take, and the documents where they are stored.
    pub(crate) fn bytes(&self, consumer: Consumer) -> usize {
        let read = self.d_payload.num_bytes() + 12 * self.copies * self.num_blocks + self.d_chunks.num_bytes();
        read + if consumer == Consumer::Store { 4 * self.num_postings() } else { 0 }
    }

    /// Decodes all lists `repeats` times, and once more before; returns the device's time of each in microseconds.
    ///
    /// # Errors
    /// If a call fails.
    pub(crate) fn time_us(&mut self, consumer: Consumer, repeats: usize) -> Result<Vec<f64>, ExecError> {
        self.try_time_us(consumer, repeats).map_err(|e| {
            let kernel = if consumer == Consumer::Store { "decode_documents" } else { "sum_documents" };
            cuda(format!("kernel `{kernel}`"), &e)
        })
    }

    fn try_time_us(&mut self, consumer: Consumer, repeats: usize) -> Result<Vec<f64>, DriverError> {
        let event = || self.device.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
        let (started, finished) = (event()?, event()?);
        let argument = ListsArgument {
            blocks: self.d_blocks.device_ptr(&self.stream).0,
            last_docs: self.d_last_docs.device_ptr(&self.stream).0,
            payload: self.d_payload.device_ptr(&self.stream).0,
            chunks: self.d_chunks.device_ptr(&self.stream).0,
            num_chunks: self.d_chunks.len() as u32,
            reserved: 0,
        };
        let resident = self.device.multiprocessors * SUM_RESIDENT;
        let mut times_us = Vec::with_capacity(repeats);
        for run in 0..=repeats {
            // A thread without a chunk leaves no sum.
            self.stream.memset_zeros(&mut self.d_sums)?;
            let grid = argument.num_chunks.div_ceil(THREADS / WARP).max(1);
            let (kernel, output, grid) = match consumer {
                Consumer::Store => (&self.kernels.decode_documents, &mut self.d_output, grid),
                Consumer::Sum => (&self.kernels.sum_documents, &mut self.d_sums, grid.min(resident)),
            };
            let shape = LaunchConfig { grid_dim: (grid, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 };
            started.record(&self.stream)?;
            let mut launch = self.stream.launch_builder(kernel);
            launch.arg(&argument).arg(output);
            // SAFETY: the arguments are those of the kernel in kernels/decode.cu, in order and type; outputs have room
            // for whole blocks of every list, and one sum for each thread of the most blocks that add up.
            unsafe { launch.launch(shape) }?;
            finished.record(&self.stream)?;
            finished.synchronize()?;
            if run > 0 {
                times_us.push(f64::from(started.elapsed_ms(&finished)?) * 1e3);
            }
        }
        Ok(times_us)
    }

    /// The documents of list `list`, which have been stored.
    ///
    /// # Errors
    /// If the copy fails.
    pub(crate) fn docs(&self, list: usize) -> Result<Vec<u32>, ExecError> {
        let (start, len) = self.lists[list];
        // The last copy: all before it were decoded alike.
        let start = start + (self.copies - 1) * self.num_blocks * BLOCK_LEN;
        self.download(&self.d_output, start, len)
    }

    /// The sum of all documents, modulo 2^32, which have been added up.
    ///
    /// # Errors
    /// If the copy fails.
    pub(crate) fn sum(&self) -> Result<u32, ExecError> {
        let sums = self.download(&self.d_sums, 0, self.d_sums.len())?;
        Ok(sums.into_iter().fold(0, u32::wrapping_add))
    }

    fn download(&self, source: &CudaSlice<u32>, start: usize, len: usize) -> Result<Vec<u32>, ExecError> {
        let copied = self.stream.clone_dtoh(&source.slice(start..start + len));
        copied.and_then(|words| self.stream.synchronize().map(|()| words)).map_err(|e| cuda("copying to the host", &e))
    }
}

/// The chunks of all copies of all lists, in the order of the output.
fn chunks(lists: &[(usize, usize)], last_docs: &[u32], copies: usize) -> Vec<ChunkArgument> {
    let mut chunks = Vec::new();
    for copy in 0..copies {
        for &(start, len) in lists {
            for first in (0..len).step_by(CHUNK_LEN) {
                let block = (start + first) / BLOCK_LEN;
                let at = (copy * last_docs.len() + block) as u32;
                chunks.push(ChunkArgument {
                    first_block: at,
                    len: CHUNK_LEN.min(len - first) as u32,
                    base: if first == 0 { u32::MAX } else { last_docs[block - 1] },
                    output: at,
                });
            }
        }
    }
    if chunks.is_empty() {
        // One without postings: an allocation must not be empty.
        chunks.push(ChunkArgument::default());
    }
    chunks
}

/// The blocks of all copies.
fn copied_blocks(lists: &OctetLists, copies: usize) -> Vec<OctetBlock> {
    let units = lists.payload.len() / 8;
    let moved = |copy: usize| {
        lists.blocks.iter().map(move |block| OctetBlock {
            offset: u32::try_from(copy * units + block.offset as usize).expect("less than 128 GiB of payload"),
            ..*block
        })
    };
    (0..copies).flat_map(moved).collect()
}

/// Copies `words` to the device once, and there to the places behind.
fn upload_copies(stream: &Arc<CudaStream>, words: &[u32], copies: usize) -> Result<CudaSlice<u32>, DriverError> {
    let d_first = stream.clone_htod(words)?;
    if copies == 1 {
        return Ok(d_first);
    }
    // SAFETY: all of it is overwritten below.
    let mut d_all = unsafe { stream.alloc(copies * words.len()) }?;
    for copy in 0..copies {
        stream.memcpy_dtod(&d_first, &mut d_all.slice_mut(copy * words.len()..(copy + 1) * words.len()))?;
    }
    stream.synchronize()?;
    Ok(d_all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn ptx_has_both_kernels_and_runs_on_turing() {
        for kernel in ["decode_documents", "sum_documents"] {
            assert!(PTX.contains(&format!(".entry {kernel}(")), "{kernel} is missing: run kernels/build.py");
        }
        assert!(PTX.contains(".target sm_75"));
        assert!(CUBIN_SM_90.starts_with(b"\x7fELF"));
    }

    #[test]
    fn gpu_decodes_whole_lists_of_all_kinds() {
        let mut random = Random::new(5, 0);
        // Gaps of every width, alone and mixed; lengths around a block, a group, a chunk; documents up to 2^31.
        let mut lists: Vec<Vec<u32>> = Vec::new();
        for width in 0..=24 {
            for len in [0, 1, 127, 128, 129, 511, 512, 513, 2047, 2048, 2049, 20_000] {
                let mut doc = u32::MAX.wrapping_add(1 + random.below(1 << width));
                let mut list = Vec::new();
                while list.len() < len && doc < 1 << 31 {
                    list.push(doc);
                    let narrow = if list.len() / 700 % 2 == 1 { random.below(width + 1) } else { 0 };
                    doc += 1 + random.below(1 << (width - narrow));
                }
                lists.push(list);
            }
        }
        lists.push(vec![(1 << 31) - 2]);
        lists.push(vec![(1 << 31) - 1]);
        // Gaps wider than documents below 2^31 have room for: modulo 2^32.
        for width in 25..=32 {
            for len in [1, 127, 128, 129, 513, 2049] {
                let mut doc = u32::MAX;
                let mut next = || {
                    doc = doc.wrapping_add((random.bits() as u32 & u32::MAX >> (32 - width)).max(1));
                    doc
                };
                lists.push((0..len).map(|_| next()).collect());
            }
        }
        let mut decoder = match ListDecoder::upload(&lists, 2) {
            Ok(decoder) => decoder,
            Err(error @ ExecError::NoGpu(_)) => {
                assert!(std::env::var_os("TANDEM_REQUIRE_GPU").is_none(), "TANDEM_REQUIRE_GPU is set, but: {error}");
                println!("skipped: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        // Poison, so that what is not written shows.
        let (output_len, sums_len) = (decoder.d_output.len(), decoder.d_sums.len());
        decoder.stream.memcpy_htod(&vec![u32::MAX; output_len], &mut decoder.d_output).unwrap();
        decoder.stream.memcpy_htod(&vec![u32::MAX; sums_len], &mut decoder.d_sums).unwrap();
        decoder.time_us(Consumer::Store, 1).unwrap();
        decoder.time_us(Consumer::Sum, 1).unwrap();
        for (number, list) in lists.iter().enumerate() {
            assert_eq!(decoder.docs(number).unwrap(), *list, "list {number}");
        }
        let sum = lists.iter().flatten().fold(0_u32, |sum, &doc| sum.wrapping_add(doc));
        assert_eq!(decoder.sum().unwrap(), sum.wrapping_mul(2));
    }
}
