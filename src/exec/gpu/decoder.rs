//! Whole lists decoded on the GPU, many in a launch: what the decoder can do with no search around it.

use std::sync::Arc;

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError, PushKernelArg};

use super::device::{Device, cuda};
use super::index::DeviceIndex;
use super::kernels::{DECODE_BLOCKS, DecodeArgument, Kernels, decode_shape};
use crate::exec::ExecError;
use crate::ids::TermId;
use crate::index::{BLOCK_LEN, Index};
use crate::query::QueryTerm;

/// What becomes of the documents that were decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consumer {
    /// They are stored in device memory.
    Store,
    /// They are added up where they are, and one sum for every four blocks is stored.
    Sum,
}

/// An index in device memory, and room for the documents of some of its lists.
#[derive(Debug)]
pub(crate) struct ListDecoder {
    device: Device,
    stream: Arc<CudaStream>,
    kernels: Kernels,
    index: DeviceIndex,
    /// Where each list's documents begin in the output, how many they are, and its first unit.
    lists: Vec<(usize, usize, usize)>,
    num_units: u32,
    d_lists: CudaSlice<DecodeArgument>,
    d_output: CudaSlice<u32>,
    d_sums: CudaSlice<u32>,
}

impl ListDecoder {
    /// Copies the index to the machine's first GPU and makes ready to decode the lists of `terms`.
    ///
    /// # Errors
    /// [`ExecError::NoGpu`] if there is none to use, [`ExecError::DoesNotFit`] if its memory is too small.
    pub(crate) fn upload(index: &Arc<Index>, terms: &[TermId]) -> Result<Self, ExecError> {
        let device = Device::open()?;
        let stream = device.context.new_stream().map_err(|e| cuda("making a stream", &e))?;
        let kernels = Kernels::load(&device, &stream)?;
        let (mut lists, mut output_len, mut num_units) = (Vec::new(), 0, 0);
        for &term in terms {
            let list = index.list(term);
            lists.push((output_len, list.doc_freq() as usize, num_units));
            output_len += list.num_blocks() * BLOCK_LEN;
            num_units += list.num_blocks().div_ceil(DECODE_BLOCKS as usize);
        }
        let reserved_bytes = 4 * (output_len + num_units) + size_of::<DecodeArgument>() * lists.len();
        let index = DeviceIndex::upload(&device, &stream, index, index.built_with(), reserved_bytes as u64)?;
        let allocate = || {
            // SAFETY: outputs are read after a kernel has written them; every pattern of bits is a `u32`.
            let (d_output, d_sums) = unsafe { (stream.alloc(output_len.max(1))?, stream.alloc(num_units.max(1))?) };
            let output = DevicePtr::<u32>::device_ptr(&d_output, &stream).0;
            let mut arguments: Vec<DecodeArgument> = terms
                .iter()
                .zip(&lists)
                .map(|(&term, &(start, len, first_unit))| DecodeArgument {
                    term: index.term(&QueryTerm { term, doc_freq: len as u32, qtf: 1 }),
                    output: output + 4 * start as u64,
                    first_unit: first_unit as u32,
                    reserved: 0,
                })
                .collect();
            if arguments.is_empty() {
                arguments.push(DecodeArgument::default());
            }
            Ok((d_output, d_sums, stream.clone_htod(&arguments)?))
        };
        let (d_output, d_sums, d_lists) = allocate().map_err(|e: DriverError| cuda("allocating buffers", &e))?;
        let num_units = num_units as u32;
        Ok(Self { device, kernels, index, lists, num_units, d_lists, d_output, d_sums, stream })
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
        let index = self.index.argument(&self.stream);
        let num_lists = self.lists.len() as u32;
        let mut times_us = Vec::with_capacity(repeats);
        for run in 0..=repeats {
            started.record(&self.stream)?;
            let (kernel, is_sum) = match consumer {
                Consumer::Store => (&self.kernels.decode_documents, false),
                Consumer::Sum => (&self.kernels.sum_documents, true),
            };
            let mut launch = self.stream.launch_builder(kernel);
            launch.arg(&index).arg(&self.d_lists).arg(&num_lists).arg(&self.num_units);
            if is_sum {
                launch.arg(&mut self.d_sums);
            }
            // SAFETY: the arguments are those of the kernel in kernels/decode.cu, in order and type; outputs have room
            // for whole blocks of every list, and one sum a unit; without lists there are no units.
            unsafe { launch.launch(decode_shape(self.num_units)) }?;
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
        let (start, len, _) = self.lists[list];
        self.download(&self.d_output, start, len)
    }

    /// The sum of the documents of list `list`, modulo 2^32, which have been added up.
    ///
    /// # Errors
    /// If the copy fails.
    pub(crate) fn sum(&self, list: usize) -> Result<u32, ExecError> {
        let end = self.lists.get(list + 1).map_or(self.num_units as usize, |next| next.2);
        let start = self.lists[list].2;
        Ok(self.download(&self.d_sums, start, end - start)?.into_iter().fold(0, u32::wrapping_add))
    }

    fn download(&self, source: &CudaSlice<u32>, start: usize, len: usize) -> Result<Vec<u32>, ExecError> {
        let copied = self.stream.clone_dtoh(&source.slice(start..start + len));
        copied.and_then(|words| self.stream.synchronize().map(|()| words)).map_err(|e| cuda("copying to the host", &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn gpu_decodes_whole_lists_of_all_kinds() {
        let num_docs = 300_000;
        let mut random = Random::new(5, 0);
        // Shorter than a block, dense, bursty, with gaps of every width, and lengths around one block and four.
        let mut lists: Vec<(String, Vec<(u32, u32)>)> = Vec::new();
        for (number, one_in) in [1, 2, 3, 9, 40, 300, 2000, 60_000].into_iter().enumerate() {
            for len in [1, 127, 128, 129, 511, 512, 513, 640, 20_000] {
                let burst = 1 + random.below(3) * 40;
                let mut doc = random.below(one_in);
                let mut list = Vec::new();
                while list.len() < len && doc < num_docs {
                    list.push((doc, 1 + random.below(9)));
                    let spread = if random.below(20) == 0 { burst } else { 1 };
                    doc += 1 + random.below(2 * one_in - 1) * spread;
                }
                lists.push((format!("t{number}-{len}"), list));
            }
        }
        let index = Arc::new(Index::from_lists(&lists).unwrap());
        let terms: Vec<TermId> = lists.iter().map(|(name, _)| index.term(name).unwrap()).collect();
        let mut decoder = match ListDecoder::upload(&index, &terms) {
            Ok(decoder) => decoder,
            Err(error @ ExecError::NoGpu(_)) => {
                assert!(std::env::var_os("TANDEM_REQUIRE_GPU").is_none(), "TANDEM_REQUIRE_GPU is set, but: {error}");
                println!("skipped: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        decoder.time_us(Consumer::Store, 1).unwrap();
        decoder.time_us(Consumer::Sum, 1).unwrap();
        for (number, (name, list)) in lists.iter().enumerate() {
            let expected: Vec<u32> = list.iter().map(|&(doc, _)| doc).collect();
            assert_eq!(decoder.docs(number).unwrap(), expected, "{name}");
            let sum = expected.iter().fold(0_u32, |sum, &doc| sum.wrapping_add(doc));
            assert_eq!(decoder.sum(number).unwrap(), sum, "sum of {name}");
        }
    }
}
