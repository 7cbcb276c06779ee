use tandem_base::base::random::Random;

use super::super::lists::tests::{HostCopy, open};
use super::super::tiered::{DIRECTORY_PARTS, LEAST_DIRECTORY_STRIDE, directory_stride};
use super::*;
use crate::index::OwnedSections;

/// The most documents of an index.
const NUM_DOCS: u32 = (1 << 31) - 1;
/// The least document of the test lists, so that few norms are needed.
const FIRST_DOC: u32 = NUM_DOCS - (1 << 20);

/// Lists of the largest documents with lengths around a block's, all widths of frequencies and most widths of gaps.
fn lists() -> Vec<Vec<(u32, u32)>> {
    let mut random = Random::new(11, 0);
    let mut lists = vec![vec![(NUM_DOCS - 1, 1)], vec![(NUM_DOCS - 1, u32::MAX)]];
    for len in [1, 2, 127, 128, 129, 255, 256, 257, 1100] {
        for width in 0..=32_u32 {
            let mut doc = FIRST_DOC + random.below(1000);
            let mut list = Vec::new();
            while list.len() < len && doc < NUM_DOCS {
                // The widest value of a group has the width, and some others are narrower.
                let narrower = if list.len() % 16 < 8 { random.below(5) } else { 0 };
                let count_width = width.saturating_sub(narrower);
                let count = if count_width == 0 { 0 } else { random.below(u32::MAX) >> (32 - count_width) };
                list.push((doc, count.min(u32::MAX - 1) + 1));
                // The gaps give bitsets, equal widths, and exceptions.
                let gap = match width % 4 {
                    0 => u32::from(list.len() % 8 == 3) * 3,
                    1 => random.below(1 << (width % 9)),
                    2 if random.below(10 + width) == 0 => random.below(1 << 12),
                    2 => random.below(4),
                    _ if random.below(100) == 0 => random.below(1 << 12),
                    _ => 0,
                };
                doc += 1 + gap;
            }
            lists.push(list);
        }
    }
    lists
}

#[test]
fn gpu_reads_blocks_of_the_largest_documents() {
    let lists = lists();
    let mut owned = OwnedSections::default();
    for list in &lists {
        let (docs, freqs): (Vec<u32>, Vec<u32>) = list.iter().copied().unzip();
        owned.add(&docs, &freqs);
    }
    let sections = owned.sections(NUM_DOCS);
    let widths: Vec<u32> = (0..sections.blocks.len()).map(|block| sections.blocks[block].packing >> 7 & 63).collect();
    assert!((0..=32).all(|width| widths.contains(&width)), "{widths:?}");
    assert!(sections.blocks.iter().any(|block| block.packing & 127 == 63), "no bitset");

    let Some((_device, stream, kernels)) = open() else { return };
    let mut staging = Staging::new(&stream, 1000).unwrap();
    let norms: Vec<f32> = (0..=NUM_DOCS - FIRST_DOC).map(|i| 0.5 + (i % 64) as f32).collect();
    let d_norms = staging.upload(bytemuck::cast_slice(&norms)).unwrap();
    // The address that the norm of document 0 would have. No norm below FIRST_DOC is read.
    let norms_at = address(&stream, &d_norms).wrapping_sub(4 * u64::from(FIRST_DOC));
    let mut on_device = vec![DevicePart::terms(&mut staging, &sections).unwrap()];
    for part in parts(&sections, 20_000) {
        on_device.push(DevicePart::long_lists(&mut staging, &sections, &part).unwrap());
    }
    assert!(on_device.len() > 5);

    let mut counts = RowCounts::new(&stream, num_blocks(&sections) as u32).unwrap();
    let arguments: Vec<_> = on_device.iter().map(|part| part.argument(&stream, &sections, norms_at)).collect();
    for argument in &arguments {
        // SAFETY: the parts hold valid lists, and all blocks have counts.
        unsafe { kernels.measure_blocks(&stream, argument, &mut counts) }.unwrap();
    }
    let num_rows = kernels.scan_rows(&stream, &mut counts).unwrap();
    // The initial content differs from any correct output.
    let poison = |words: usize| stream.clone_htod(&vec![0xa5a5_a5a5_u32; words]).unwrap();
    for directory_stride in [DIRECTORY_STRIDE, LEAST_DIRECTORY_STRIDE as u32] {
        let mut rows = Rows::all_resident(poison(4 * num_rows as usize));
        let mut d_directory =
            stream.alloc_zeros::<DirectoryEntry>(directory_len(&sections, directory_stride) as usize).unwrap();
        let mut d_blocks = stream.clone_htod(&vec![BlockArgument::default(); num_blocks(&sections) as usize]).unwrap();
        for argument in &arguments {
            let argument = &PartArgument { directory_stride, ..*argument };
            let targets = (&mut d_blocks, &mut rows, &mut d_directory);
            // SAFETY: the parts hold valid lists, and the targets have the measured sizes.
            unsafe { kernels.write_blocks(&stream, argument, &counts, targets) }.unwrap();
        }
        let copy = HostCopy::new(&stream, &d_blocks, &rows, &d_directory);
        let norm = |doc: u32| norms[(doc - FIRST_DOC) as usize];
        let mut long_lists = sections.long_lists.iter();
        for (term, list) in lists.iter().enumerate() {
            let what = format!("list {term}, of {} postings", list.len());
            if list.len() < BLOCK_LEN {
                copy.assert_list(&what, (sections.blocks.len() + term) as u32, list, norm);
            } else {
                let first_block = long_lists.next().unwrap().first_block;
                copy.assert_list(&what, first_block, list, norm);
                copy.assert_directory(&what, directory_stride, first_block, list, NUM_DOCS);
            }
        }
    }
}

#[test]
fn gpu_scans_more_blocks_than_a_tile_has() {
    let Some((_device, stream, kernels)) = open() else { return };
    for num_blocks in [1, 1023, 1024, 1025, 3 << 20] {
        let rows: Vec<u32> = (0..num_blocks).map(|block| block * 7 % 73).collect();
        let mut counts = RowCounts::with(&stream, &rows).unwrap();
        let total = kernels.scan_rows(&stream, &mut counts).unwrap();
        let before = counts.rows_before(&stream).unwrap();
        let mut sum = 0;
        for (block, &rows) in rows.iter().enumerate() {
            assert_eq!(u64::from(before[block]), sum, "block {block} of {num_blocks}");
            sum += u64::from(rows);
        }
        assert_eq!(total, sum);
    }
}

#[test]
fn gpu_refuses_what_does_not_fit() {
    const GIB: u64 = 1 << 30;
    let Some((device, stream, kernels)) = open() else { return };
    if device.free_bytes().unwrap() < 8 * GIB {
        crate::skipped::skipped("8 GiB of device memory are not free");
        return;
    }
    let index = Index::from_lists(&[("t", (0..1000).map(|doc| (doc, 1)).collect())]).unwrap();
    let attempt = || {
        // The options reserve 4 GiB for queries. Concurrent tests need little.
        let options = UploadOptions::reserving(4 * GIB);
        upload(&device, &stream, &kernels, &index, Bm25::default(), options, &|_, _| ())
    };
    // All free memory except about 3 GiB, in units of the allocator.
    let reserved_bytes = (device.free_bytes().unwrap() - 3 * GIB) >> 25 << 25;
    // SAFETY: the memory is never read.
    let d_reserved = unsafe { stream.alloc::<u8>(reserved_bytes as usize) }.unwrap();
    stream.synchronize().unwrap();
    match attempt() {
        Err(error @ ExecError::Gpu(GpuError::DoesNotFit { needed_bytes, free_bytes })) => {
            assert!(needed_bytes > 4 * GIB && free_bytes < 4 * GIB, "{error}");
        }
        other => panic!("{other:?}, expected a refusal"),
    }
    drop(d_reserved);
    stream.synchronize().unwrap();
    let report = attempt().unwrap().report;
    assert!(report.device_bytes > 1000 && report.copied_bytes > 1000, "{report:?}");
}

#[test]
fn more_rows_than_32_bits_count_are_refused() {
    let most = u64::from(u32::MAX);
    assert_eq!(numbered("rows of 16 bytes", most).unwrap(), u32::MAX);
    let text = numbered("rows of 16 bytes", most + 1).unwrap_err().to_string();
    assert!(text.contains("4294967296 rows of 16 bytes") && text.contains("up to 4294967295"), "{text}");
}

#[test]
fn parts_hold_all_long_lists_in_order() {
    let mut owned = OwnedSections::default();
    for list in lists() {
        let (docs, freqs): (Vec<u32>, Vec<u32>) = list.into_iter().unzip();
        owned.add(&docs, &freqs);
    }
    let sections = owned.sections(NUM_DOCS);
    for part_bytes in [1, 1000, 100_000, u64::MAX] {
        let parts = parts(&sections, part_bytes);
        let lists: Vec<usize> = parts.iter().flat_map(|part| part.lists.clone()).collect();
        assert_eq!(lists, (0..sections.long_lists.len()).collect::<Vec<_>>());
        assert!(parts[..parts.len() - 1].iter().all(|part| part.bytes >= part_bytes));
    }
    assert!(parts(&OwnedSections::default().sections(1), 1).is_empty());
}

#[test]
fn directories_fit_every_budget_of_the_coarsest() {
    let mut owned = OwnedSections::default();
    for list in lists() {
        let (docs, freqs): (Vec<u32>, Vec<u32>) = list.into_iter().unzip();
        owned.add(&docs, &freqs);
    }
    let sections = owned.sections(100_000);
    let least = staying_bytes(&sections, LEAST_DIRECTORY_STRIDE as u32);
    let of_one = 8 * sections.blocks.len() as u64;
    let mut before = 0;
    for budget in (least..least + 200 * of_one).step_by(997) {
        let stride = directory_stride(&sections, budget);
        assert!(stride >= before && staying_bytes(&sections, stride) <= budget, "{stride} with {budget}");
        let part = DIRECTORY_PARTS * u64::from(stride) * of_one;
        assert!(part <= budget || u64::from(stride) == LEAST_DIRECTORY_STRIDE, "{stride} with {budget}");
        before = stride;
    }
    assert_eq!(before, DIRECTORY_STRIDE);
    assert_eq!(u64::from(directory_stride(&sections, 0)), LEAST_DIRECTORY_STRIDE);
}
