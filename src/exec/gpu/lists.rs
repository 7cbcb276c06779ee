//! The index in device memory, in a layout made for searching there.
//!
//! The file's blocks save every bit: gaps, exceptions, bitsets. On a GPU those cost more in instructions than they save in
//! bandwidth, so that kernels turn each block into another form when the index is uploaded: documents as differences from
//! the block's first, all of one width, so that any thread reads any of them alone; a byte a posting that bounds its impact; a
//! directory that tells where a document would be. `kernels/lists.cuh` describes the form.
//!
//! Lists go up in parts, twice: once to measure what they will take, then to be written where they belong. So device
//! memory never holds more than the result and two parts, and an index that does not fit is refused before anything is lost.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError};

use super::arguments::{
    BlockArgument, DIRECTORY_STRIDE, IndexArgument, ListsArgument, NO_DIRECTORY, SourceArgument, TermArgument,
    TermEntry,
};
use super::device::{Device, cuda};
use super::kernels::Kernels;
use super::staging::{STAGING_WORDS, Staging};
use crate::exec::ExecError;
use crate::ids::TermId;
use crate::index::{BLOCK_LEN, BlockBuffer, Bm25, DeviceLists as PackedLists, Index, PostingList};
use crate::query::QueryTerm;

/// Words of payload that a part holds at least, unless it is the last: 128 MiB.
const PART_WORDS: u64 = 32 << 20;
/// Lists that a part holds at most.
const PART_LISTS: usize = 1 << 20;

/// All lists of an index in device memory, read only, with the norms of its documents for one set of BM25 parameters.
#[derive(Debug)]
pub(super) struct DeviceLists {
    pub(super) host: Arc<Index>,
    pub(super) bm25: Bm25,
    d_blocks: CudaSlice<BlockArgument>,
    d_rows: CudaSlice<u32>,
    d_directory: CudaSlice<u32>,
    d_norms: CudaSlice<u32>,
}

/// Consecutive terms whose lists are transcoded together.
#[derive(Debug, Default)]
struct Part {
    sources: Vec<SourceArgument>,
    num_units: u32,
    /// What long lists take of the payload and of the blocks: from, to.
    words: (u64, u64),
    blocks: (u64, u64),
}

impl DeviceLists {
    /// Copies `index` to the device, transcodes it and waits until that is done. `reserved_bytes` must stay free for other
    /// buffers; `progress` is called with the bytes that are done, and all there are.
    ///
    /// # Errors
    /// [`ExecError::DoesNotFit`] if device memory is too small.
    pub(super) fn upload(
        device: &Device,
        stream: &Arc<CudaStream>,
        kernels: &Kernels,
        index: &Arc<Index>,
        bm25: Bm25,
        reserved_bytes: u64,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Self, ExecError> {
        let failed = |error: DriverError| cuda("copying the index to the device", &error);
        let packed = index.device_lists();
        let parts = parts(index, &packed);
        let num_long = index.blocks().len() as u64;
        let num_blocks = (num_long + u64::from(index.num_terms())).max(1);
        let directory_words = (num_long * DIRECTORY_STRIDE).max(1);
        let largest =
            |range: fn(&Part) -> (u64, u64)| parts.iter().map(range).map(|(from, to)| to - from).max().unwrap_or(0);
        let short_words = index.short_lists().len() as u64;
        let sources = parts.iter().map(|part| part.sources.len()).max().unwrap_or(0) * size_of::<SourceArgument>();
        let part_bytes = 4 * (largest(|p| p.words) + 3 * largest(|p| p.blocks) + short_words) + sources as u64;
        let fixed_bytes = num_blocks * (size_of::<BlockArgument>() as u64 + 4)
            + 4 * (directory_words + u64::from(index.num_docs()))
            + part_bytes
            + reserved_bytes;
        let check = |needed_bytes: u64| {
            let free_bytes = device.free_bytes()?;
            if needed_bytes > free_bytes { Err(ExecError::DoesNotFit { needed_bytes, free_bytes }) } else { Ok(()) }
        };
        check(fixed_bytes)?;
        let (Ok(num_block_slots), Ok(num_directory)) = (u32::try_from(num_blocks), usize::try_from(directory_words))
        else {
            return Err(ExecError::DoesNotFit { needed_bytes: fixed_bytes, free_bytes: device.free_bytes()? });
        };

        let norms = bm25.norms(index.doc_lengths(), index.average_length());
        let total_bytes = 2 * parts.iter().map(|part| 4 * (part.words.1 - part.words.0)).sum::<u64>();
        let mut done_bytes = 0;
        let measure = || {
            let mut staging = Staging::new(stream, STAGING_WORDS)?;
            let d_norms = staging.upload(bytemuck::cast_slice(&norms))?;
            let d_short_lists = staging.upload(index.short_lists())?;
            let d_counts = stream.alloc_zeros::<u32>(num_block_slots as usize)?;
            Ok((staging, d_norms, d_short_lists, d_counts))
        };
        let (mut staging, d_norms, d_short_lists, mut d_counts) = measure().map_err(failed)?;
        let source = |staging: &mut Staging<'_>, part: &Part| -> Result<UploadedPart, DriverError> {
            UploadedPart::new(staging, stream, index, &packed, part)
        };
        for part in &parts {
            let mut measure = || {
                let uploaded = source(&mut staging, part)?;
                let argument = uploaded.argument(stream, index, &d_short_lists, &d_norms);
                kernels.measure_blocks(stream, &argument, &uploaded.d_sources, part.num_units, &mut d_counts)
            };
            measure().map_err(failed)?;
            done_bytes += 4 * (part.words.1 - part.words.0);
            progress(done_bytes, total_bytes);
        }
        let rows = kernels.scan_rows(stream, &mut d_counts, num_block_slots).map_err(failed)?;
        if u32::try_from(rows).is_err() {
            return Err(ExecError::DoesNotFit { needed_bytes: 16 * rows, free_bytes: device.free_bytes()? });
        }
        // What has been allocated meanwhile is not free any more, nor needed again.
        check(fixed_bytes + 16 * rows - 4 * (num_blocks + u64::from(index.num_docs()) + short_words))?;

        let allocate = || {
            // SAFETY: kernels write what others read: every block of every list, its rows and its list's directory.
            let d_rows = unsafe { stream.alloc::<u32>(4 * rows.max(1) as usize) }?;
            // SAFETY: as above.
            let d_directory = unsafe { stream.alloc::<u32>(num_directory) }?;
            // SAFETY: as above; places of long lists among the short ones' blocks are never read.
            let d_blocks = unsafe { stream.alloc::<BlockArgument>(num_block_slots as usize) }?;
            Ok((d_rows, d_directory, d_blocks))
        };
        let (d_rows, d_directory, d_blocks) = allocate().map_err(failed)?;
        let mut lists = Self { host: Arc::clone(index), bm25, d_blocks, d_rows, d_directory, d_norms };
        for part in &parts {
            let mut write = || {
                let uploaded = source(&mut staging, part)?;
                let argument = uploaded.argument(stream, index, &d_short_lists, &lists.d_norms);
                let (d_blocks, d_rows) = (&mut lists.d_blocks, &mut lists.d_rows);
                let targets = (d_blocks, d_rows, &mut lists.d_directory);
                kernels.write_blocks(stream, &argument, &uploaded.d_sources, part.num_units, &d_counts, targets)
            };
            write().map_err(failed)?;
            done_bytes += 4 * (part.words.1 - part.words.0);
            progress(done_bytes, total_bytes);
        }
        stream.synchronize().map_err(failed)?;
        Ok(lists)
    }

    /// The lists as kernels take them.
    pub(super) fn argument(&self, stream: &CudaStream) -> ListsArgument {
        ListsArgument {
            blocks: self.d_blocks.device_ptr(stream).0,
            rows: self.d_rows.device_ptr(stream).0,
            directory: self.d_directory.device_ptr(stream).0,
            norms: self.d_norms.device_ptr(stream).0,
            num_docs: self.host.num_docs(),
            reserved: 0,
        }
    }

    /// A term as kernels take it, with its own bound in place of the sum of those from it on.
    ///
    /// # Panics
    /// If the index has no such term.
    pub(super) fn term(&self, term: &QueryTerm) -> TermEntry {
        let list = self.host.list_position(term.term);
        let weight = self.bm25.weight(self.host.num_docs(), list.doc_freq, term.qtf);
        let max_impact = if self.has_impacts() { list.max_impact } else { self.bm25.largest_impact() };
        let is_long = list.doc_freq as usize >= BLOCK_LEN;
        TermEntry {
            first_block: if is_long { list.first_block } else { self.block_of_short(term.term) },
            doc_freq: list.doc_freq,
            shift: if is_long { shift(self.host.num_docs(), list.doc_freq) } else { NO_DIRECTORY },
            weight,
            rest: weight * max_impact,
        }
    }

    /// A score that at least `k` documents reach by this term alone; 0 where none is known.
    pub(super) fn kth_score(&self, term: &QueryTerm, weight: f32, k: usize) -> f32 {
        let list = self.host.list(term.term);
        if list.num_blocks() == 1 && (list.doc_freq() as usize) < BLOCK_LEN {
            let (lengths, average) = (self.host.doc_lengths(), self.host.average_length());
            return kth_score_of_block(&list, weight, k, |doc| self.bm25.norm(lengths[doc as usize], average));
        }
        if self.has_impacts() { weight * list.kth_impact(k) } else { 0.0 }
    }

    /// Whether what the index knows of its lists' impacts holds for these parameters.
    fn has_impacts(&self) -> bool {
        self.bm25 == self.host.built_with()
    }

    fn block_of_short(&self, term: TermId) -> u32 {
        self.host.blocks().len() as u32 + term.0
    }
}

/// An entry of the directory is for 2^this documents: 8 to 16 postings, on average over the list.
fn shift(num_docs: u32, doc_freq: u32) -> u32 {
    (16 * u64::from(num_docs) / u64::from(doc_freq)).ilog2()
}

/// Shares the terms out to parts.
fn parts(index: &Index, packed: &PackedLists) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut part = Part::default();
    let num_long = index.blocks().len() as u32;
    for term in (0..index.num_terms()).map(TermId) {
        let list = index.list_position(term);
        let mut source = TermArgument {
            start: list.start,
            first_block: list.first_block,
            num_blocks: list.doc_freq.div_ceil(BLOCK_LEN as u32),
            doc_freq: list.doc_freq,
            base: list.base,
            packing: list.packing,
            ..TermArgument::default()
        };
        let is_long = list.doc_freq as usize >= BLOCK_LEN;
        if is_long {
            let number = list.start as usize;
            let start = packed.starts[number];
            let end = packed.starts.get(number + 1).map_or(packed.payload.len() as u64, |&next| next);
            let blocks = u64::from(list.first_block);
            // Not by the words: a list of neighbours that occur once each takes none.
            if part.blocks.1 == 0 {
                part.words = (start, end);
                part.blocks = (blocks, blocks);
            }
            (part.words.1, part.blocks.1) = (end, blocks + u64::from(source.num_blocks));
            source.start = start - part.words.0;
            source.first_block -= part.blocks.0 as u32;
        }
        part.sources.push(SourceArgument {
            first_unit: part.num_units,
            first_block: if is_long { list.first_block } else { num_long + term.0 },
            shift: if is_long { shift(index.num_docs(), list.doc_freq) } else { NO_DIRECTORY },
            term: source,
            reserved: 0,
        });
        part.num_units += source.num_blocks;
        if part.words.1 - part.words.0 >= PART_WORDS || part.sources.len() >= PART_LISTS {
            parts.push(std::mem::take(&mut part));
        }
    }
    if !part.sources.is_empty() {
        parts.push(part);
    }
    parts
}

/// A part on the device, as the index hands it out.
struct UploadedPart {
    d_sources: CudaSlice<SourceArgument>,
    d_last_docs: CudaSlice<u32>,
    d_entries: CudaSlice<u32>,
    d_payload: CudaSlice<u32>,
}

impl UploadedPart {
    fn new(
        staging: &mut Staging<'_>,
        stream: &Arc<CudaStream>,
        index: &Index,
        packed: &PackedLists,
        part: &Part,
    ) -> Result<Self, DriverError> {
        let range = |(from, to): (u64, u64)| from as usize..to as usize;
        let entries: &[u32] = bytemuck::cast_slice(&packed.blocks[range(part.blocks)]);
        Ok(Self {
            d_sources: stream.clone_htod(&part.sources)?,
            d_last_docs: staging.upload(&index.last_docs()[range(part.blocks)])?,
            d_entries: staging.upload(entries)?,
            d_payload: staging.upload(&packed.payload[range(part.words)])?,
        })
    }

    fn argument(
        &self,
        stream: &CudaStream,
        index: &Index,
        d_short_lists: &CudaSlice<u32>,
        d_norms: &CudaSlice<u32>,
    ) -> IndexArgument {
        IndexArgument {
            last_docs: self.d_last_docs.device_ptr(stream).0,
            blocks: self.d_entries.device_ptr(stream).0,
            payload: self.d_payload.device_ptr(stream).0,
            short_lists: d_short_lists.device_ptr(stream).0,
            norms: d_norms.device_ptr(stream).0,
            num_docs: index.num_docs(),
            reserved: 0,
        }
    }
}

/// The exact `k`-th best score of a list of one block with at least `k` postings.
fn kth_score_of_block(list: &PostingList<'_>, weight: f32, k: usize, norm: impl Fn(u32) -> f32) -> f32 {
    let mut buffer = BlockBuffer::default();
    let len = list.decode_docs(0, &mut buffer.docs);
    list.decode_freqs(0, &mut buffer.freqs);
    let mut scores = [0.0_f32; BLOCK_LEN];
    for ((score, &doc), &freq) in scores.iter_mut().zip(&buffer.docs[..len]).zip(&buffer.freqs) {
        *score = Bm25::score(weight, freq, norm(doc));
    }
    let (_, kth, _) = scores[..len].select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    *kth
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The host's reader of a block: kernels/lists.cuh.
    struct Block<'a> {
        header: BlockArgument,
        rows: &'a [u32],
    }

    impl Block<'_> {
        fn len(&self) -> usize {
            (self.header.packing >> 12 & 127) as usize + 1
        }

        fn value(&self, row: u32, width: u32, i: usize) -> u32 {
            if width == 0 {
                return 0;
            }
            let bit = i as u32 / 4 * width;
            let word = |bit: u32| u64::from(self.rows[(4 * (row + bit / 32)) as usize + i % 4]);
            let both = word(bit) | word(bit + width - 1) << 32;
            (both >> (bit % 32)) as u32 & (u32::MAX >> (32 - width))
        }

        fn doc(&self, i: usize) -> u32 {
            self.header.first_doc + self.value(self.header.row, self.header.packing & 63, i)
        }

        fn freq(&self, i: usize) -> u32 {
            1 + self.value(self.header.row + (self.header.packing >> 19), self.header.packing >> 6 & 63, i)
        }

        fn impact_bound(&self, i: usize) -> f32 {
            let row = self.header.row + (self.header.packing >> 19) - self.len().div_ceil(16) as u32;
            let byte = self.rows[4 * row as usize + i / 4] >> (8 * (i % 4)) & 255;
            self.header.max_impact * byte as f32 / 255.0 * (1.0 + f32::EPSILON)
        }
    }

    #[test]
    fn gpu_lists_hold_what_the_file_holds() {
        let num_docs = 400_000;
        let mut random = Random::new(5, 0);
        // Shorter than a block, dense, in bursts, with gaps and frequencies of many widths; documents up to the last one.
        // The first list takes no payload.
        let mut lists: Vec<(String, Vec<(u32, u32)>)> = vec![
            ("a".to_owned(), (0..200).map(|doc| (doc, 1)).collect()),
            ("last".to_owned(), vec![(num_docs - 1, 3)]),
        ];
        for (number, one_in) in [1, 2, 3, 9, 40, 300, 2000, 60_000].into_iter().enumerate() {
            for len in [1, 2, 127, 128, 129, 255, 256, 257, 5000, 100_000] {
                let (burst, max_freq) = (1 + random.below(3) * 40, 1 << random.below(20));
                let mut doc = random.below(one_in);
                let mut list = Vec::new();
                while list.len() < len && doc < num_docs {
                    list.push((doc, 1 + random.below(max_freq)));
                    let spread = if random.below(20) == 0 { burst } else { 1 };
                    doc += 1 + random.below(2 * one_in - 1) * spread;
                }
                lists.push((format!("t{number}-{len}"), list));
            }
        }
        let index = Arc::new(Index::from_lists(&lists).unwrap());
        let device = match Device::open() {
            Ok(device) => device,
            Err(error) => {
                assert!(std::env::var_os("TANDEM_REQUIRE_GPU").is_none(), "TANDEM_REQUIRE_GPU is set, but: {error}");
                println!("skipped: {error}");
                return;
            }
        };
        let stream = device.context.new_stream().unwrap();
        let kernels = Kernels::load(&device, &stream).unwrap();
        for bm25 in [index.built_with(), Bm25 { k1: 0.9, b: 0.2, ..Bm25::default() }] {
            let uploaded = DeviceLists::upload(&device, &stream, &kernels, &index, bm25, 0, &|_, _| ()).unwrap();
            let rows = stream.clone_dtoh(&uploaded.d_rows).unwrap();
            let blocks = stream.clone_dtoh(&uploaded.d_blocks).unwrap();
            let directory = stream.clone_dtoh(&uploaded.d_directory).unwrap();
            stream.synchronize().unwrap();
            let norms = bm25.norms(index.doc_lengths(), index.average_length());
            for (name, list) in &lists {
                let id = index.term(name).unwrap();
                let term = uploaded.term(&QueryTerm { term: id, doc_freq: list.len() as u32, qtf: 1 });
                for (number, postings) in list.chunks(BLOCK_LEN).enumerate() {
                    let block = Block { header: blocks[term.first_block as usize + number], rows: &rows };
                    assert_eq!(block.len(), postings.len(), "{name}, block {number}");
                    for (i, &(doc, freq)) in postings.iter().enumerate() {
                        assert_eq!((block.doc(i), block.freq(i)), (doc, freq), "{name}, block {number}, {i}");
                        let impact = Bm25::score(1.0, freq, norms[doc as usize]);
                        assert!(impact <= block.impact_bound(i), "{name}, block {number}, {i}");
                        assert!(impact + 0.01 >= block.impact_bound(i) - 0.01, "{name}, block {number}, {i}");
                    }
                }
                if term.shift != NO_DIRECTORY {
                    let entries = &directory[(DIRECTORY_STRIDE * u64::from(term.first_block)) as usize..];
                    for j in 0..=((index.num_docs() - 1) >> term.shift) + 1 {
                        let before = list.partition_point(|&(doc, _)| u64::from(doc) < u64::from(j) << term.shift);
                        assert_eq!(entries[j as usize] as usize, before, "{name}, entry {j}");
                    }
                }
            }
        }
    }
}
