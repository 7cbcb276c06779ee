//! The device: its memory, and the kernel `index_slots`.

use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, PushKernelArg};
use tandem_engine::search::device::{Device, GpuError, Images, Module, shape, wait};
use tandem_model::base::ids::DeviceId;

use super::backend::{Backend, Counters, Input, Output, Posting, Task, WINDOW_BYTES, worst_case};
use crate::wei::trie::dictionary::{Dictionary, FIRST_STRING, NO_NODE, Term};
use crate::wei::trie::node::Node;
use crate::wei::trie::slots::NUM_SLOTS;

const IMAGES: Images = Images {
    what: "the indexer's kernel",
    ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/wei.ptx")),
    cubin_sm_90: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/wei.sm_90.cubin")),
};

/// Thread blocks of a warp each, as many as in the paper.
const BLOCKS: u32 = 480;
const THREADS: u32 = 32;

/// `State` in wei.cuh.
const STATE_BYTES: usize = 8;

/// Defines the arrays in device memory, and the kernel's argument with their addresses in the same order.
macro_rules! arrays {
    ($($name:ident),*) => {
        #[derive(Debug)]
        struct Arrays {
            $($name: Array,)*
        }

        /// `Trie` in wei.cuh.
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        struct TrieArgument {
            $($name: u64,)*
            num_tasks: u32,
            first_doc: u32,
        }

        impl Arrays {
            fn new(device: &Device, stream: &Arc<CudaStream>) -> Result<Self, GpuError> {
                Ok(Self { $($name: Array::new(device, stream)?,)* })
            }

            fn argument(&self, stream: &CudaStream, num_tasks: u32, first_doc: u32) -> TrieArgument {
                TrieArgument { $($name: self.$name.bytes.device_ptr(stream).0,)* num_tasks, first_doc }
            }
        }
    };
}

arrays!(nodes, roots, strings, terms, states, postings, task_postings, task_ns, counters, input, tasks);

// SAFETY: it is plain numbers in C layout.
unsafe impl DeviceRepr for TrieArgument {}

/// A GPU with the trees of its slots.
#[derive(Debug)]
pub(crate) struct DeviceBackend {
    device: Device,
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    _module: Module,
    arrays: Arrays,
    before: Counters,
    after: Counters,
    num_tasks: u32,
    num_tokens: usize,
    first_doc: u32,
}

/// A growing array of bytes in device memory.
#[derive(Debug)]
struct Array {
    bytes: CudaSlice<u8>,
}

impl DeviceBackend {
    pub(crate) fn open(ordinal: DeviceId) -> Result<Self, GpuError> {
        let device = Device::open(ordinal)?;
        let stream = device.new_stream()?;
        let module = Module::load(&device, IMAGES)?;
        let layout = [
            THREADS as usize,
            WINDOW_BYTES,
            size_of::<Node>(),
            size_of::<Term>(),
            STATE_BYTES,
            size_of::<Posting>(),
            size_of::<Task>(),
            size_of::<Counters>(),
            size_of::<TrieArgument>(),
        ];
        module.check_layout(&stream, "trie_layout", &layout)?;
        let kernel = module.function("index_slots")?;
        let before = Counters { strings: FIRST_STRING as u32, ..Counters::default() };
        let mut backend = Self {
            arrays: Arrays::new(&device, &stream)?,
            before,
            after: before,
            num_tasks: 0,
            num_tokens: 0,
            first_doc: 0,
            device,
            stream,
            kernel,
            _module: module,
        };
        let Self { device, stream, arrays, .. } = &mut backend;
        arrays.roots.upload(device, stream, &vec![NO_NODE; NUM_SLOTS])?;
        backend.wait("copying to the device")?;
        Ok(backend)
    }

    fn wait(&self, doing: &'static str) -> Result<(), GpuError> {
        wait(&self.stream).map_err(|e| GpuError::of(doing, &e))
    }
}

impl Backend for DeviceBackend {
    fn prepare(&mut self, input: &Input) -> Result<(), GpuError> {
        self.before = self.after;
        let [nodes, strings, terms] = worst_case(self.before, input);
        let Self { device, stream, before, arrays, .. } = self;
        let grow = |array: &mut Array, used: u32, needed: u64, bytes: usize| {
            // Numbers of nodes and terms, and places of strings, have 32 bits.
            if needed > u64::from(u32::MAX) {
                let needed_bytes = needed * bytes as u64;
                return Err(GpuError::DoesNotFit { needed_bytes, free_bytes: u64::from(u32::MAX) * bytes as u64 });
            }
            array.grow(device, stream, used as usize * bytes, needed as usize * bytes)
        };
        grow(&mut arrays.nodes, before.nodes, nodes, size_of::<Node>())?;
        grow(&mut arrays.strings, before.strings, strings, 1)?;
        grow(&mut arrays.terms, before.terms, terms, size_of::<Term>())?;
        grow(&mut arrays.states, before.terms, terms, STATE_BYTES)?;
        grow(&mut arrays.postings, 0, input.num_tokens as u64, size_of::<Posting>())?;
        grow(&mut arrays.task_postings, 0, input.tasks.len() as u64, size_of::<u32>())?;
        grow(&mut arrays.task_ns, 0, input.tasks.len() as u64, size_of::<u32>())?;
        arrays.input.upload(device, stream, &input.bytes)?;
        arrays.tasks.upload(device, stream, &input.tasks)?;
        arrays.counters.upload(device, stream, &[*before])?;
        (self.num_tasks, self.num_tokens, self.first_doc) =
            (input.tasks.len() as u32, input.num_tokens, input.first_doc);
        self.wait("copying to the device")
    }

    fn index(&mut self) -> Result<(), GpuError> {
        let argument = self.arrays.argument(&self.stream, self.num_tasks, self.first_doc);
        let mut launch = self.stream.launch_builder(&self.kernel);
        launch.arg(&argument);
        // SAFETY: the argument is that of `index_slots` in kernels/wei/index.cu. `prepare` copied input and tasks and
        // made room for their largest output; all arrays live until the stream has been waited for.
        unsafe { launch.launch(shape(BLOCKS, THREADS)) }.map_err(|e| GpuError::of("kernel `index_slots`", &e))?;
        self.wait("kernel `index_slots`")
    }

    fn collect(&mut self, output: &mut Output) -> Result<(), GpuError> {
        let Self { stream, before, arrays, .. } = self;
        let mut counters = vec![Counters::default()];
        arrays.counters.download(stream, 0, &mut counters)?;
        let after = Counters { next_task: 0, ..counters[0] };
        output.postings.resize(self.num_tokens, Posting::default());
        output.task_postings.resize(self.num_tasks as usize, 0);
        let none = Term { slot: 0, cache: 0, rest: 0 };
        output.terms.resize((after.terms - before.terms) as usize, none);
        output.strings.resize((after.strings - before.strings) as usize, 0);
        arrays.postings.download(stream, 0, &mut output.postings)?;
        arrays.task_postings.download(stream, 0, &mut output.task_postings)?;
        arrays.terms.download(stream, before.terms as usize, &mut output.terms)?;
        arrays.strings.download(stream, before.strings as usize, &mut output.strings)?;
        self.after = after;
        Ok(())
    }

    fn dictionary(&mut self, terms: Vec<Term>, strings: Vec<u8>) -> Result<Dictionary, GpuError> {
        let mut nodes = vec![Node::new(true); self.after.nodes as usize];
        let mut roots = vec![0; NUM_SLOTS];
        self.arrays.nodes.download(&self.stream, 0, &mut nodes)?;
        self.arrays.roots.download(&self.stream, 0, &mut roots)?;
        Ok(Dictionary { roots, nodes, strings, terms })
    }
}

impl Array {
    fn new(device: &Device, stream: &Arc<CudaStream>) -> Result<Self, GpuError> {
        Ok(Self { bytes: allocate(device, stream, 0)? })
    }

    /// Makes room for `needed` bytes and keeps the first `used`. Sizes at least double, which bounds the cost of
    /// copies.
    fn grow(&mut self, device: &Device, stream: &Arc<CudaStream>, used: usize, needed: usize) -> Result<(), GpuError> {
        if needed <= self.bytes.len() {
            return Ok(());
        }
        let mut bytes = match allocate(device, stream, needed.max(2 * self.bytes.len())) {
            Err(GpuError::DoesNotFit { .. }) => allocate(device, stream, needed)?,
            allocated => allocated?,
        };
        if used > 0 {
            let copied = stream.memcpy_dtod(&self.bytes.slice(..used), &mut bytes.slice_mut(..used));
            copied.map_err(|e| GpuError::of("copying device memory", &e))?;
        }
        // The copy still reads the memory that is freed.
        wait(stream).map_err(|e| GpuError::of("copying device memory", &e))?;
        self.bytes = bytes;
        Ok(())
    }

    fn upload<T: Pod>(&mut self, device: &Device, stream: &Arc<CudaStream>, items: &[T]) -> Result<(), GpuError> {
        let bytes: &[u8] = bytemuck::cast_slice(items);
        self.grow(device, stream, 0, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let copied = stream.memcpy_htod(bytes, &mut self.bytes.slice_mut(..bytes.len()));
        copied.map_err(|e| GpuError::of("copying to the device", &e))
    }

    /// Fetches items from number `first` on.
    fn download<T: Pod>(&self, stream: &Arc<CudaStream>, first: usize, items: &mut [T]) -> Result<(), GpuError> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(items);
        if bytes.is_empty() {
            return Ok(());
        }
        let start = first * size_of::<T>();
        // A copy to pageable memory would wait for earlier work without a limit.
        let copied =
            wait(stream).and_then(|()| stream.memcpy_dtoh(&self.bytes.slice(start..start + bytes.len()), bytes));
        copied.map_err(|e| GpuError::of("copying to the host", &e))
    }
}

/// Allocates zeroed device memory, at least one byte so that it has an address.
fn allocate(device: &Device, stream: &Arc<CudaStream>, bytes: usize) -> Result<CudaSlice<u8>, GpuError> {
    device.check_room(bytes.max(1) as u64)?;
    stream.alloc_zeros(bytes.max(1)).map_err(|e| GpuError::of("allocating buffers", &e))
}
