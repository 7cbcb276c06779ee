//! The index in device memory, in a layout for searching.
//!
//! The file's blocks save every bit by gaps, groups with their own widths, and bitsets. On a GPU these cost more
//! instructions than they save bandwidth. So kernels convert each block at [upload](super::upload): documents are
//! differences from the block's first, in one width, so that any thread reads any of them alone; one byte per posting
//! bounds its impact; a directory locates documents. `kernels/lists.cuh` describes the form.

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};

use super::arguments::{BlockArgument, DirectoryEntry, ListsArgument};
use super::terms::TermTable;
use super::tiered::Rows;
use crate::index::{Bm25, Index};
use crate::search::UploadReport;

#[derive(Debug)]
pub(crate) struct Uploaded {
    pub(crate) d_blocks: CudaSlice<BlockArgument>,
    pub(crate) rows: Rows,
    pub(crate) d_directory: CudaSlice<DirectoryEntry>,
    pub(crate) d_norms: CudaSlice<u32>,
    /// Directory entries per block.
    pub(crate) directory_stride: u32,
    pub(crate) report: UploadReport,
}

/// All lists of an index in device memory, read only, with the norms of its documents for one set of BM25 parameters.
#[derive(Debug)]
pub(crate) struct DeviceLists {
    pub(crate) terms: TermTable,
    pub(crate) uploaded: Uploaded,
    /// Whether frequencies are impacts.
    pub(crate) has_impacts: bool,
}

impl DeviceLists {
    pub(crate) fn new(index: &Index, bm25: Bm25, uploaded: Uploaded) -> Self {
        let has_impacts = bm25 == Bm25::IMPACTS && index.is_quantised();
        Self { terms: TermTable::new(index, bm25, uploaded.directory_stride), uploaded, has_impacts }
    }

    pub(crate) fn argument(&self, stream: &CudaStream) -> ListsArgument {
        let Uploaded { d_blocks, rows, d_directory, d_norms, .. } = &self.uploaded;
        ListsArgument {
            blocks: d_blocks.device_ptr(stream).0,
            rows: rows.device_address(stream),
            directory: d_directory.device_ptr(stream).0,
            norms: d_norms.device_ptr(stream).0,
            host_rows: rows.host_address(),
            num_docs: self.terms.num_docs,
            num_resident: rows.num_resident(),
            directory_stride: self.uploaded.directory_stride,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use cudarc::driver::CudaSlice;

    use super::*;
    use crate::index::BLOCK_LEN;
    use crate::query::QueryTerm;
    use crate::search::ExecError;
    use crate::search::device::{Device, GpuError};
    use crate::search::gpu::arguments::{BlockArgument, DIRECTORY_STRIDE, DirectoryEntry};
    use crate::search::gpu::kernels::Kernels;
    use crate::search::gpu::tiered::Rows;
    use crate::search::gpu::upload::{UploadOptions, upload};
    use crate::search::placement::list_rows::directory_scale;
    use tandem_base::base::ids::DeviceId;
    use tandem_base::base::random::Random;

    /// A device with its kernels, or `None` with a note that the test was skipped.
    pub(crate) fn open() -> Option<(Device, Arc<CudaStream>, Kernels)> {
        let device = match Device::open(DeviceId(0)) {
            Ok(device) => device,
            Err(error) => {
                assert!(std::env::var_os("TANDEM_REQUIRE_GPU").is_none(), "TANDEM_REQUIRE_GPU is set, but: {error}");
                crate::skipped::skipped("no GPU");
                return None;
            }
        };
        let stream = device.context.new_stream().unwrap();
        let kernels = Kernels::load(&device, &stream).unwrap();
        Some((device, stream, kernels))
    }

    /// The host's reader of device data in the form of kernels/lists.cuh.
    #[derive(Debug)]
    pub(crate) struct HostCopy {
        pub(crate) blocks: Vec<BlockArgument>,
        pub(crate) rows: Vec<u32>,
        pub(crate) directory: Vec<DirectoryEntry>,
    }

    impl HostCopy {
        pub(crate) fn new(
            stream: &Arc<CudaStream>,
            d_blocks: &CudaSlice<BlockArgument>,
            rows: &Rows,
            d_directory: &CudaSlice<DirectoryEntry>,
        ) -> Self {
            let copy = Self {
                blocks: stream.clone_dtoh(d_blocks).unwrap(),
                rows: rows.to_host(stream),
                directory: stream.clone_dtoh(d_directory).unwrap(),
            };
            stream.synchronize().unwrap();
            copy
        }

        /// Asserts that the list from block `first_block` on is `list` and that its bounds hold.
        pub(crate) fn assert_list(&self, what: &str, first_block: u32, list: &[(u32, u32)], norm: impl Fn(u32) -> f32) {
            for (number, postings) in list.chunks(BLOCK_LEN).enumerate() {
                let block = Block { header: self.blocks[first_block as usize + number], rows: &self.rows };
                assert_eq!(block.len(), postings.len(), "{what}, block {number}");
                for (i, &(doc, freq)) in postings.iter().enumerate() {
                    assert_eq!((block.doc(i), block.freq(i)), (doc, freq), "{what}, block {number}, {i}");
                    let impact = Bm25::score(1.0, freq, norm(doc));
                    assert!(impact <= block.impact_bound(i), "{what}, block {number}, {i}");
                    assert!(impact + 0.01 >= block.impact_bound(i) - 0.01, "{what}, block {number}, {i}");
                }
            }
        }

        /// Asserts that the list's directory of `stride` entries per block locates its documents and has their parts.
        pub(crate) fn assert_directory(
            &self,
            what: &str,
            stride: u32,
            first_block: u32,
            list: &[(u32, u32)],
            num_docs: u32,
        ) {
            let scale = u64::from(directory_scale(num_docs, list.len() as u32, stride));
            let stride = u64::from(stride);
            let end = stride * list.len().div_ceil(BLOCK_LEN) as u64 - 1;
            let entries = &self.directory[(stride * u64::from(first_block)) as usize..];
            for (j, entry) in (0..=end).zip(entries) {
                let before = |j: u64| list.partition_point(|&(doc, _)| (u64::from(doc) * scale) >> 32 < j);
                let own = &list[before(j)..before(j + 1)];
                let parts = own.iter().map(|&(doc, _)| 1 << (((u64::from(doc) * scale) >> 27) & 31));
                let expected =
                    DirectoryEntry { before: before(j) as u32, parts: parts.fold(0, |all, part| all | part) };
                assert_eq!(*entry, expected, "{what}, entry {j}");
            }
        }
    }

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
        // The lists are shorter than a block, dense, or in bursts, with gaps and frequencies of many widths, and reach
        // the last document. The first list takes no payload.
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
        let Some((device, stream, kernels)) = open() else { return };
        let with_limit = |bm25, part_bytes, limit_bytes| {
            let options = UploadOptions { part_bytes, limit_bytes, ..UploadOptions::reserving(0) };
            upload(&device, &stream, &kernels, &index, bm25, options, &|_, _| ())
        };
        let bm25 = index.built_with();
        // The first refusal precedes measuring; the second states the exact need.
        let needed = |limit_bytes| match with_limit(bm25, 1, limit_bytes) {
            Err(ExecError::Gpu(GpuError::DoesNotFit { needed_bytes, free_bytes })) => {
                assert!(free_bytes == limit_bytes && needed_bytes > free_bytes);
                needed_bytes
            }
            other => panic!("{other:?}, expected a refusal"),
        };
        let least = needed(needed(0));
        assert_eq!(needed(least - 1), least);

        // All lists form one part, or each list is a part of which none, some or all stay on the device.
        let other_bm25 = Bm25 { k1: 0.9, b: 0.2, ..Bm25::default() };
        let uploads = [
            (bm25, with_limit(bm25, u64::MAX, u64::MAX)),
            (bm25, with_limit(bm25, 1, least)),
            (other_bm25, with_limit(other_bm25, 1, least + 200_000)),
            (bm25, with_limit(bm25, 1, u64::MAX)),
        ]
        .map(|(bm25, uploaded)| (bm25, uploaded.unwrap()));
        let [at_once, twice, some_twice, once] = uploads.each_ref().map(|(_, uploaded)| uploaded.report.copied_bytes);
        assert!(twice > some_twice && some_twice > once && once == at_once, "{twice} {some_twice} {once} {at_once}");
        for (bm25, uploaded) in uploads {
            let copy = HostCopy::new(&stream, &uploaded.d_blocks, &uploaded.rows, &uploaded.d_directory);
            let terms = TermTable::new(&index, bm25, DIRECTORY_STRIDE);
            let norms = bm25.norms(index.doc_lengths(), index.average_length());
            for (name, list) in &lists {
                let id = index.term(name).unwrap();
                let term = terms.entry_and_seed(&QueryTerm { term: id, doc_freq: list.len() as u32, qtf: 1 }, None).0;
                copy.assert_list(name, term.first_block, list, |doc| norms[doc as usize]);
                assert_eq!(term.scale == 0, list.len() < BLOCK_LEN);
                if term.scale != 0 {
                    copy.assert_directory(name, DIRECTORY_STRIDE, term.first_block, list, index.num_docs());
                }
            }
        }
    }
}
