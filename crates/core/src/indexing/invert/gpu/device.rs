//! The device's memory, and the kernels of `kernels/indexing`.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::{
    CudaEvent, CudaFunction, CudaSlice, CudaStream, DevicePtrMut, DeviceRepr, DriverError, PushKernelArg,
    ValidAsZeroBits,
};
use rayon::prelude::*;

use super::accumulator::ROW_BYTES;
use super::backend::{Backend, Counts, DistinctWords, InvertedRun, Room, WordPlace, most_tokens, most_words};
use crate::base::ids::DeviceId;
use crate::corpus::Words;
use crate::search::device::wait::{wait, wait_for};
use crate::search::device::{Device, GpuError, Images, Module, Pinned, offsets, shape};

const IMAGES: Images = Images {
    what: "the kernels that invert text",
    ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/indexing.ptx")),
    cubin_sm_90: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/indexing.sm_90.cubin")),
};

// These sizes equal those in indexing.cuh.
const THREADS: u32 = 256;
const TEXT_TILE: u32 = 4_096;
const SORT_TILE: u32 = 4_096;
const LIST_TILE: u32 = 2_048;
const DIGITS: u32 = 256;
const DIGIT_BITS: u32 = DIGITS.trailing_zeros();
const SCAN_THREADS: u32 = 1_024;
const ROW: usize = 16;

/// A piece has room for a batch of twice the usual size.
const PIECE_BYTES: usize = 4 << 20;
const PIECE_DOCS: usize = PIECE_BYTES / 16;
/// Text of a run. More text means fewer lists to merge, but a run's batches wait in the host's memory.
const TEXT_BYTES: usize = 128 << 20;
const DOCS: usize = TEXT_BYTES / 64;
/// Tokens of a run. A token takes five to six bytes of English text.
const TOKENS: usize = TEXT_BYTES / 4;
const SLOTS: usize = 1 << 23;
/// Three quarters of the slots, because lookups are slow in a fuller table.
const WORDS: usize = SLOTS / 4 * 3;

const ROOM: Room = Room {
    piece_bytes: PIECE_BYTES,
    piece_docs: PIECE_DOCS,
    text_bytes: TEXT_BYTES,
    docs: DOCS,
    tokens: TOKENS,
    words: WORDS,
};
// The first piece always fits.
const _: () = assert!(2 * most_words(PIECE_BYTES) <= WORDS && 2 * most_tokens(PIECE_BYTES) <= TOKENS);

/// Thread blocks of a pass over the table.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 8;
/// Sixteenths of the GPU's free memory that streams may take if their number is not given.
const MOST_SIXTEENTHS: u64 = 14;

/// Words of `Totals` in indexing.cuh.
const TOTALS: usize = 8;
const TOTAL_TOKENS: usize = 0;
const TOTAL_WORDS: usize = 1;
const TOTAL_LISTED_WORDS: usize = 2;
const TOTAL_LISTED_BYTES: usize = 3;
const TOTAL_POSTING_BYTES: usize = 4;

/// Defines `Kernels` and its loading by the kernels' names.
macro_rules! define_kernels {
    ($($name:ident),*) => {
        #[derive(Clone, Debug)]
        struct Kernels {
            _module: Arc<Module>,
            $($name: CudaFunction,)*
        }

        impl Kernels {
            fn load(module: Module) -> Result<Self, GpuError> {
                Ok(Self { $($name: module.function(stringify!($name))?,)* _module: Arc::new(module) })
            }
        }
    };
}
define_kernels!(
    count_words,
    scan_counts,
    number_words,
    list_words,
    set_terms,
    map_tokens,
    count_digits,
    scan_digits,
    scatter,
    measure_postings,
    encode_postings
);

/// Defines the arrays of a run by their items and lengths, and the kernels' argument `Arrays` in indexing.cuh.
macro_rules! define_arrays {
    ($($name:ident: [$item:ty; $len:expr],)*) => {
        struct Arrays {
            $($name: CudaSlice<$item>,)*
        }

        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        struct ArraysArgument {
            $($name: u64,)*
            slot_mask: u32,
            is_unicode: u32,
        }

        impl Arrays {
            fn field_offsets() -> &'static [usize] {
                offsets!(ArraysArgument: $($name,)* slot_mask, is_unicode)
            }

            fn bytes() -> u64 {
                [$(size_of::<$item>() * $len),*].into_iter().sum::<usize>() as u64
            }

            fn new(stream: &Arc<CudaStream>) -> Result<Self, DriverError> {
                Ok(Self { $($name: stream.alloc_zeros($len)?,)* })
            }

            fn argument(&mut self, stream: &Arc<CudaStream>, words: Words) -> ArraysArgument {
                ArraysArgument {
                    $($name: self.$name.device_ptr_mut(stream).0,)*
                    slot_mask: SLOTS as u32 - 1,
                    is_unicode: u32::from(words == Words::Unicode),
                }
            }
        }
    };
}
define_arrays! {
    text: [u8; TEXT_BYTES],
    doc_ends: [u32; DOCS],
    slots: [u64; SLOTS],
    tokens: [u64; TOKENS],
    others: [u64; TOKENS],
    tile_counts: [u32; DIGITS as usize * TOKENS.div_ceil(SORT_TILE as usize)],
    digit_totals: [u32; DIGITS as usize],
    word_slots: [u32; WORDS],
    word_places: [WordPlace; WORDS],
    word_terms: [u32; WORDS],
    list_starts: [u32; WORDS],
    doc_lengths: [u32; DOCS],
    totals: [u32; TOTALS],
}

// SAFETY: plain numbers, laid out as C does.
unsafe impl DeviceRepr for ArraysArgument {}
// SAFETY: plain numbers, laid out as C does.
unsafe impl DeviceRepr for WordPlace {}
// SAFETY: zeros are a place.
unsafe impl ValidAsZeroBits for WordPlace {}

/// Page-locked memory of a piece, and the event after which it has been read and counted.
struct PieceMemory {
    text: Pinned<u8>,
    doc_ends: Pinned<u32>,
    totals: Pinned<u32>,
    done: CudaEvent,
}

struct DeviceBackend {
    device: Device,
    stream: Arc<CudaStream>,
    kernels: Kernels,
    arrays: Arrays,
    pieces: [PieceMemory; 2],
    /// The piece that is written next, or being written.
    next: usize,
    num_pieces: usize,
    text_end: usize,
    num_docs: usize,
    words: Words,
}

impl fmt::Debug for DeviceBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBackend").field("device", &self.device.info).finish_non_exhaustive()
    }
}

pub(crate) fn open(streams: Option<usize>, threads: usize) -> Result<Vec<Box<dyn Backend>>, GpuError> {
    let device = Device::open(DeviceId(0))?;
    let module = Module::load(&device, IMAGES)?;
    let stream = device.new_stream()?;
    module.check_layout(&stream, "indexing_layout", &sizes())?;
    module.check_layout(&stream, "indexing_offsets", &field_offsets())?;
    let kernels = Kernels::load(module)?;
    let needed_bytes = Arrays::bytes();
    let fit = device.free_bytes()? / 16 * MOST_SIXTEENTHS / needed_bytes;
    let streams = streams.unwrap_or(threads.min(fit as usize).max(1));
    device.check_room(streams as u64 * needed_bytes)?;
    // Locking pages is slow, and works for several streams at once.
    let opened = (0..streams).into_par_iter().map(|_| DeviceBackend::new(&device, &kernels));
    let opened: Vec<DeviceBackend> = opened.collect::<Result<_, _>>()?;
    Ok(opened.into_iter().map(|backend| Box::new(backend) as Box<dyn Backend>).collect())
}

/// Sizes that the kernels share with the host, `indexing_layout` in indexing.cuh.
fn sizes() -> Vec<usize> {
    let sizes = [THREADS, TEXT_TILE, SORT_TILE, LIST_TILE, DIGITS, SCAN_THREADS].map(|size| size as usize);
    [&sizes[..], &[ROW, 4 * TOTALS, size_of::<WordPlace>(), size_of::<ArraysArgument>()]].concat()
}

/// Offsets of all fields, `indexing_offsets` in indexing.cuh.
fn field_offsets() -> Vec<usize> {
    let totals = [TOTAL_TOKENS, TOTAL_WORDS, TOTAL_LISTED_WORDS, TOTAL_LISTED_BYTES, TOTAL_POSTING_BYTES];
    [&totals.map(|word| 4 * word)[..], offsets!(WordPlace: start, len), Arrays::field_offsets()].concat()
}

impl Drop for DeviceBackend {
    fn drop(&mut self) {
        // Kernels may still read its pieces. An error is only recorded.
        self.stream.context().record_err(wait(&self.stream));
    }
}

impl DeviceBackend {
    fn new(device: &Device, kernels: &Kernels) -> Result<Self, GpuError> {
        let stream = device.new_stream()?;
        let piece = || {
            Ok(PieceMemory {
                text: Pinned::for_results(device, PIECE_BYTES, 0)?,
                doc_ends: Pinned::for_results(device, PIECE_DOCS, 0)?,
                totals: Pinned::for_results(device, TOTALS, 0)?,
                done: device.context.new_event(None)?,
            })
        };
        let make = || {
            let mut backend = Self {
                arrays: Arrays::new(&stream)?,
                pieces: [piece()?, piece()?],
                device: device.clone(),
                stream: Arc::clone(&stream),
                kernels: kernels.clone(),
                next: 0,
                num_pieces: 0,
                text_end: 0,
                num_docs: 0,
                words: Words::Unicode,
            };
            backend.begin_run()?;
            wait(&stream)?;
            Ok(backend)
        };
        make().map_err(|e: DriverError| GpuError::of("allocating memory for runs", &e))
    }

    fn begin_run(&mut self) -> Result<(), DriverError> {
        let Self { arrays: Arrays { slots, doc_lengths, totals, .. }, stream, .. } = self;
        stream.memset_zeros(slots)?;
        stream.memset_zeros(doc_lengths)?;
        stream.memset_zeros(totals)?;
        (self.num_pieces, self.text_end, self.num_docs) = (0, ROW_BYTES, 0);
        Ok(())
    }

    /// Copies the piece, and launches the kernels that number its words.
    fn start(&mut self, len: usize, doc_ends: &[u32], words: Words) -> Result<(), DriverError> {
        let Self { stream, arrays, pieces, kernels, .. } = self;
        let piece = &mut pieces[self.next];
        let (from, first_doc) = (self.text_end, self.num_docs);
        let (to, end_doc) = (from + len.next_multiple_of(ROW_BYTES), first_doc + doc_ends.len());
        // SAFETY: `piece` has waited for the copies of its previous contents.
        let (text, ends) = unsafe { (piece.text.as_mut_slice(), piece.doc_ends.as_mut_slice()) };
        text[len..to - from].fill(b' ');
        ends.iter_mut().zip(doc_ends).for_each(|(place, end)| *place = from as u32 + end);
        stream.memcpy_htod(&text[..to - from], &mut arrays.text.slice_mut(from..to))?;
        stream.memcpy_htod(&ends[..doc_ends.len()], &mut arrays.doc_ends.slice_mut(first_doc..end_doc))?;

        self.words = words;
        let argument = arrays.argument(stream, words);
        let (from, to) = (from as u32, to as u32);
        let (first_doc, end_doc) = (first_doc as u32, end_doc as u32);
        let tiles = (to - from).div_ceil(TEXT_TILE);
        // SAFETY: the arguments match the kernels in kernels/indexing/cut.cu. The text between `from` and `to` is
        // copied before, and the accumulator keeps to the tokens and words that `Room` allows.
        unsafe {
            let mut launch = stream.launch_builder(&kernels.count_words);
            launch.arg(&argument).arg(&from).arg(&to).launch(shape(tiles, THREADS))?;
            kernels.scan_counts(stream, &argument, tiles, TOTAL_TOKENS)?;
            let mut launch = stream.launch_builder(&kernels.number_words);
            launch.arg(&argument).arg(&from).arg(&to).arg(&first_doc).arg(&end_doc);
            launch.launch(shape(tiles, THREADS))?;
        }
        // SAFETY: `counts` and `piece` wait for the event before they read it or let it be written again.
        let totals = unsafe { piece.totals.as_mut_slice() };
        stream.memcpy_dtoh(&arrays.totals, totals)?;
        piece.done.record(stream)?;
        (self.text_end, self.num_docs) = (to as usize, end_doc as usize);
        self.next = 1 - self.next;
        self.num_pieces += 1;
        Ok(())
    }

    fn totals(&self) -> Result<[usize; TOTALS], DriverError> {
        let mut totals = [0_u32; TOTALS];
        // A copy to pageable memory waits for the stream in the driver, without a limit.
        wait(&self.stream)?;
        self.stream.memcpy_dtoh(&self.arrays.totals, &mut totals)?;
        wait(&self.stream)?;
        Ok(totals.map(|total| total as usize))
    }

    fn fetch_words(&mut self, words: &mut DistinctWords) -> Result<(), DriverError> {
        let Self { stream, arrays, kernels, .. } = self;
        let argument = arrays.argument(stream, self.words);
        let blocks = BLOCKS_PER_MULTIPROCESSOR * self.device.multiprocessors;
        // SAFETY: the argument matches `list_words` in kernels/indexing/cut.cu. Words are at most as many as `Room`
        // allows, and their bytes no more than the text's, for which `others` has room.
        unsafe { stream.launch_builder(&kernels.list_words).arg(&argument).launch(shape(blocks, THREADS)) }?;
        let totals = self.totals()?;
        words.text.resize(totals[TOTAL_LISTED_BYTES], 0);
        words.places.resize(totals[TOTAL_LISTED_WORDS], WordPlace::default());
        let Self { stream, arrays, .. } = self;
        fetch_bytes(stream, &arrays.others, &mut words.text)?;
        if !words.places.is_empty() {
            let places = arrays.word_places.slice(..words.places.len());
            stream.memcpy_dtoh(&places, &mut words.places)?;
        }
        wait(stream)
    }

    fn invert_run(&mut self, terms: &[u32], num_terms: u32, run: &mut InvertedRun) -> Result<(), DriverError> {
        let Self { stream, arrays, .. } = self;
        if !terms.is_empty() {
            stream.memcpy_htod(terms, &mut arrays.word_terms.slice_mut(..terms.len()))?;
        }
        let argument = arrays.argument(stream, self.words);
        let num_words = terms.len() as u32;
        let num_tokens = self.totals()?[TOTAL_TOKENS] as u32;
        let Self { stream, kernels, .. } = self;
        let (mut from, mut to) = (argument.tokens, argument.others);
        let sort_tiles = num_tokens.div_ceil(SORT_TILE);
        let list_tiles = num_tokens.div_ceil(LIST_TILE);
        // SAFETY: the arguments match the kernels in kernels/indexing. Every slot that a token names is listed and has
        // its term before tokens get theirs. `tokens` and `others` each have room for all tokens and for their lists,
        // since a posting takes no more bytes than its tokens.
        unsafe {
            if num_words > 0 {
                let mut launch = stream.launch_builder(&kernels.set_terms);
                launch.arg(&argument).arg(&num_words).launch(shape(num_words.div_ceil(THREADS), THREADS))?;
                let mut launch = stream.launch_builder(&kernels.map_tokens);
                launch.arg(&argument).arg(&num_tokens).arg(&num_terms);
                launch.launch(shape(num_tokens.div_ceil(THREADS), THREADS))?;
            }
            if num_terms > 0 {
                let term_bits = u32::BITS - num_terms.leading_zeros();
                for bit in (0..term_bits).step_by(DIGIT_BITS as usize).map(|bit| u32::BITS + bit) {
                    kernels.sort_by(stream, &argument, (from, to), num_tokens, bit, sort_tiles)?;
                    (from, to) = (to, from);
                }
                let mut launch = stream.launch_builder(&kernels.measure_postings);
                launch.arg(&from).arg(&num_tokens).arg(&num_terms).arg(&argument.tile_counts);
                launch.launch(shape(list_tiles, THREADS))?;
                kernels.scan_counts(stream, &argument, list_tiles, TOTAL_POSTING_BYTES)?;
                let mut launch = stream.launch_builder(&kernels.encode_postings);
                launch.arg(&from).arg(&num_tokens).arg(&num_terms).arg(&argument.tile_counts);
                launch.arg(&to).arg(&argument.list_starts).launch(shape(list_tiles, THREADS))?;
            }
        }
        let totals = self.totals()?;
        run.lists.resize(totals[TOTAL_POSTING_BYTES], 0);
        run.starts.resize(num_terms as usize, 0);
        run.doc_lengths.resize(self.num_docs, 0);
        let Self { stream, arrays, .. } = self;
        let lists = if to == argument.others { &arrays.others } else { &arrays.tokens };
        fetch_bytes(stream, lists, &mut run.lists)?;
        if num_terms > 0 {
            stream.memcpy_dtoh(&arrays.list_starts.slice(..num_terms as usize), &mut run.starts)?;
        }
        stream.memcpy_dtoh(&arrays.doc_lengths.slice(..self.num_docs), &mut run.doc_lengths)?;
        wait(stream)?;
        self.begin_run()
    }
}

impl Kernels {
    /// Replaces the tiles' counts by their prefix sums, and adds their sum to total number `total`.
    ///
    /// # Safety
    /// There are counts of `tiles` tiles.
    unsafe fn scan_counts(
        &self,
        stream: &Arc<CudaStream>,
        arrays: &ArraysArgument,
        tiles: u32,
        total: usize,
    ) -> Result<(), DriverError> {
        let total_at = arrays.totals + 4 * total as u64;
        let mut launch = stream.launch_builder(&self.scan_counts);
        launch.arg(&arrays.tile_counts).arg(&tiles).arg(&total_at);
        // SAFETY: the caller's condition; the arguments match `scan_counts` in kernels/indexing/cut.cu.
        unsafe { launch.launch(shape(1, SCAN_THREADS)) }.map(|_| ())
    }

    /// Sorts tokens by eight bits from `bit` on.
    ///
    /// # Safety
    /// Both addresses have room for `num_tokens` tokens, and the first has as many, in `tiles` tiles.
    unsafe fn sort_by(
        &self,
        stream: &Arc<CudaStream>,
        arrays: &ArraysArgument,
        (from, to): (u64, u64),
        num_tokens: u32,
        bit: u32,
        tiles: u32,
    ) -> Result<(), DriverError> {
        // SAFETY: the caller's condition; the arguments match the kernels in kernels/indexing/sort.cu.
        unsafe {
            let mut launch = stream.launch_builder(&self.count_digits);
            launch.arg(&from).arg(&num_tokens).arg(&bit).arg(&arrays.tile_counts).arg(&tiles);
            launch.launch(shape(tiles, THREADS))?;
            let mut launch = stream.launch_builder(&self.scan_digits);
            launch.arg(&arrays.tile_counts).arg(&tiles).arg(&arrays.digit_totals).launch(shape(DIGITS, THREADS))?;
            let mut launch = stream.launch_builder(&self.scatter);
            launch.arg(&from).arg(&num_tokens).arg(&bit).arg(&arrays.tile_counts).arg(&tiles);
            launch.arg(&arrays.digit_totals).arg(&to).launch(shape(tiles, THREADS))?;
        }
        Ok(())
    }
}

fn fetch_bytes(stream: &Arc<CudaStream>, array: &CudaSlice<u64>, bytes: &mut [u8]) -> Result<(), DriverError> {
    if bytes.is_empty() {
        return Ok(());
    }
    // SAFETY: every pattern of bits is a byte.
    let view = unsafe { array.transmute::<u8>(bytes.len()) }.expect("the array has so many bytes");
    stream.memcpy_dtoh(&view, bytes)
}

impl Backend for DeviceBackend {
    fn room(&self) -> Room {
        ROOM
    }

    fn piece(&mut self) -> Result<&mut [u8], GpuError> {
        let piece = &mut self.pieces[self.next];
        wait_for(&piece.done).map_err(|e| GpuError::of("numbering words", &e))?;
        // SAFETY: the copies of the previous contents have ended, and the next one begins when the piece is sent.
        Ok(unsafe { piece.text.as_mut_slice() })
    }

    fn send(&mut self, len: usize, doc_ends: &[u32], words: Words) -> Result<(), GpuError> {
        self.start(len, doc_ends, words).map_err(|e| GpuError::of("sending text", &e))
    }

    fn counts(&mut self) -> Result<Counts, GpuError> {
        if self.num_pieces < 2 {
            return Ok(Counts::default());
        }
        // The other half was sent last.
        let piece = &self.pieces[self.next];
        wait_for(&piece.done).map_err(|e| GpuError::of("numbering words", &e))?;
        let total = |place: usize| piece.totals.read_now(place) as usize;
        Ok(Counts { tokens: total(TOTAL_TOKENS), words: total(TOTAL_WORDS) })
    }

    fn distinct_words(&mut self, words: &mut DistinctWords) -> Result<(), GpuError> {
        self.fetch_words(words).map_err(|e| GpuError::of("fetching distinct words", &e))
    }

    fn invert(&mut self, terms: &[u32], num_terms: u32, run: &mut InvertedRun) -> Result<(), GpuError> {
        self.invert_run(terms, num_terms, run).map_err(|e| GpuError::of("inverting a run", &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::device::layout_in_ptx;

    #[test]
    fn ptx_has_the_hosts_structures() {
        assert_eq!(layout_in_ptx(IMAGES.ptx, "indexing_layout"), sizes());
        assert_eq!(layout_in_ptx(IMAGES.ptx, "indexing_offsets"), field_offsets());
    }
}
