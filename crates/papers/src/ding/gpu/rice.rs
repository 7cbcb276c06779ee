//! Decoding of lists coded by Rice, many per launch.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, PushKernelArg};
use tandem_engine::search::device::GpuError;

use super::arena::{Arena, take};
use super::context::{PublishedGpu, launching};
use super::kernels::{RICE_BLOCK_LEN, RiceArgument, warps_for};
use crate::codec::packed_words;

/// Blocks of 128 unary bits per warp.
const UNARY_BLOCKS_A_WARP: u32 = 8;

/// A coded list in the paper's form: each part with the sums before its blocks.
#[derive(Debug)]
pub(crate) struct RiceParts<'a> {
    pub(crate) len: usize,
    pub(crate) width: u32,
    pub(crate) num_unary_bits: u32,
    pub(crate) unary: &'a [u32],
    /// Number of ones before each block of 128 bits.
    pub(crate) unary_sums: Vec<u32>,
    pub(crate) binary: &'a [u32],
    /// Sum of remainders before each block of 128 values.
    pub(crate) binary_sums: Vec<u32>,
}

impl<'a> RiceParts<'a> {
    /// Takes apart documents that [`Rice`](crate::codec::Rice) encoded. Panics if they are not such a list.
    pub(crate) fn of_docs(encoded: &'a [u32]) -> Self {
        let (header, mut rest) = encoded.split_at(3);
        let (len, width, num_unary_bits) = (header[0] as usize, header[1], header[2]);
        let skips = take(&mut rest, len.div_ceil(RICE_BLOCK_LEN) * 2);
        let binary = take(&mut rest, packed_words(len, width));
        let unary = take(&mut rest, (num_unary_bits as usize).div_ceil(32));
        let mut ones = 0;
        let unary_sums = unary
            .chunks(4)
            .map(|words| {
                let before = ones;
                ones += words.iter().map(|word| word.count_ones()).sum::<u32>();
                before
            })
            .collect();
        // The base of a block is the sum of its quotients, remainders and a one per value before it, minus one.
        // Subtracting the others leaves the remainders.
        let binary_sums = skips
            .chunks(2)
            .enumerate()
            .map(|(block, skip)| {
                let values = (block * RICE_BLOCK_LEN) as u32;
                let quotients = skip[1].wrapping_sub(values);
                let high = quotients.checked_shl(width).unwrap_or(0);
                skip[0].wrapping_add(1).wrapping_sub(values).wrapping_sub(high)
            })
            .collect();
        Self { len, width, num_unary_bits, unary, unary_sums, binary, binary_sums }
    }
}

/// Lists in device memory with room for their documents.
#[derive(Debug)]
pub struct RiceBatch {
    gpu: Arc<PublishedGpu>,
    /// Place and number of each list's documents in the output.
    outputs: Vec<(usize, usize)>,
    num_lists: u32,
    num_unary_blocks: u32,
    num_blocks: u32,
    d_arguments: CudaSlice<RiceArgument>,
    d_output: CudaSlice<u32>,
    /// Owner of the words of the lists.
    _d_words: CudaSlice<u32>,
    _d_quotients: CudaSlice<u32>,
}

impl RiceBatch {
    /// Number of kernels that [`decode`](Self::decode) launches, for unary parts and for documents.
    pub(crate) const LAUNCHES: usize = 2;

    /// Copies documents to the device, which [`Rice`](crate::codec::Rice) encoded. Fails if device memory is too small,
    /// or if a call fails.
    pub fn upload<'a>(gpu: &Arc<PublishedGpu>, lists: impl IntoIterator<Item = &'a [u32]>) -> Result<Self, GpuError> {
        let mut arena = Arena::default();
        let (mut arguments, mut outputs) = (Vec::new(), Vec::new());
        let (mut output_len, mut num_unary_blocks, mut num_blocks) = (0, 0, 0);
        for list in lists {
            let parts = RiceParts::of_docs(list);
            arguments.push(RiceArgument {
                unary: arena.push(parts.unary) as u64,
                unary_sums: arena.push(&parts.unary_sums) as u64,
                binary: arena.push(parts.binary) as u64,
                binary_sums: arena.push(&parts.binary_sums) as u64,
                quotients: output_len as u64,
                output: output_len as u64,
                len: parts.len as u32,
                width: parts.width,
                num_unary_bits: parts.num_unary_bits,
                first_unary_block: num_unary_blocks,
                first_block: num_blocks,
                reserved: 0,
            });
            outputs.push((output_len, parts.len));
            let blocks = parts.len.div_ceil(RICE_BLOCK_LEN) as u32;
            output_len += blocks as usize * RICE_BLOCK_LEN;
            num_blocks += blocks;
            // Each list begins at a new warp.
            num_unary_blocks += parts.num_unary_bits.div_ceil(128).next_multiple_of(UNARY_BLOCKS_A_WARP);
        }
        let d_words = gpu.upload(&arena.words)?;
        let (d_quotients, d_output) = (gpu.zeros(output_len)?, gpu.zeros(output_len)?);
        let (words, quotients, output) = (gpu.address(&d_words), gpu.address(&d_quotients), gpu.address(&d_output));
        for argument in &mut arguments {
            for part in [&mut argument.unary, &mut argument.unary_sums, &mut argument.binary, &mut argument.binary_sums]
            {
                *part = words + 4 * *part;
            }
            argument.quotients = quotients + 4 * argument.quotients;
            argument.output = output + 4 * argument.output;
        }
        let mut d_arguments = gpu.zeros(arguments.len())?;
        let copied = gpu.stream.memcpy_htod(&arguments, &mut d_arguments.slice_mut(..arguments.len()));
        copied.map_err(|e| GpuError::of("copying to the device", &e))?;
        Ok(Self {
            gpu: Arc::clone(gpu),
            outputs,
            num_lists: arguments.len() as u32,
            num_unary_blocks,
            num_blocks,
            d_arguments,
            d_output,
            _d_words: d_words,
            _d_quotients: d_quotients,
        })
    }

    /// Enqueues the decoding of all lists. Fails if a launch fails.
    pub fn decode(&self) -> Result<(), GpuError> {
        let gpu = &self.gpu;
        let arguments = gpu.address(&self.d_arguments);
        let num_chunks = self.num_unary_blocks / UNARY_BLOCKS_A_WARP;
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.rice_unary);
        launch.arg(&arguments).arg(&self.num_lists).arg(&num_chunks);
        // SAFETY: the arguments are those of `rice_unary` in kernels/ding/rice.cu; `upload` described the lists, whose
        // memory lives as long as `self`.
        unsafe { launch.launch(warps_for(num_chunks)) }.map_err(launching("rice_unary"))?;
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.rice_documents);
        launch.arg(&arguments).arg(&self.num_lists).arg(&self.num_blocks);
        // SAFETY: as above, for `rice_documents`.
        unsafe { launch.launch(warps_for(self.num_blocks)) }.map_err(launching("rice_documents"))?;
        Ok(())
    }

    pub(crate) fn docs(&self, list: usize) -> Result<Vec<u32>, GpuError> {
        let (start, len) = self.outputs[list];
        self.gpu.download(&self.d_output, start, len)
    }

    /// Fills all outputs with a value that no list has, which exposes reads of unwritten memory.
    #[cfg(test)]
    pub(crate) fn poison(&mut self) -> Result<(), GpuError> {
        super::tests::poison(&self.gpu, &mut self._d_quotients)?;
        super::tests::poison(&self.gpu, &mut self.d_output)
    }
}
