//! Tests of twins against plain implementations, and of kernels against twins.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, DevicePtrMut};
use proptest::prelude::*;
use tandem_engine::index::Bm25;
use tandem_engine::query::Query;
use tandem_engine::search::cpu::CpuExecutor;
use tandem_engine::search::device::GpuError;
use tandem_engine::search::gpu::MAX_K;
use tandem_engine::search::{Executor, Hit, TopK};
use tandem_model::base::ids::{DocId, QueryId};
use tandem_model::base::random::Random;
use tandem_model::traffic::Mode;

use super::arena::{Arena, Source, Tree};
use super::heap::{Heap, Scores};
use super::kernels::{Count, HEAP_DEGREE};
use super::lists::HostLists;
use super::merge_find::ListIntersection;
use super::merge_find::{MAX_LEVELS, strides};
use super::rice::RiceParts;
use super::search::PublishedSearch;
use super::stages::Stage;
use super::twin;
use super::{PforBatch, PublishedGpu, RiceBatch};
use crate::codec::{Codec, Column, PForDelta, Rice};
use crate::test_support::{bits, bursty_index, freqs, gpu_or_skip, sized, with_a_hang};

/// Returns the number of elements of `b` below each of `a`, with `strides.len() - 1` levels of recursion. `strides` are
/// those of [`strides`].
fn merge_find(a: &[u32], b: &[u32], strides: &[u32]) -> Vec<u32> {
    let mut coarse: Option<(usize, Vec<u32>)> = None;
    for &stride in strides {
        let stride = stride as usize;
        let found = (0..a.len() / stride)
            .map(|i| {
                let element = (i + 1) * stride - 1;
                let (mut low, mut high) = (0, b.len());
                if let Some((coarse_stride, coarse)) = &coarse {
                    let segment = element / coarse_stride;
                    low = segment.checked_sub(1).map_or(0, |before| coarse[before] as usize);
                    high = coarse.get(segment).map_or(b.len(), |&place| place as usize);
                }
                (low + b[low..high].partition_point(|&value| value < a[element])) as u32
            })
            .collect();
        coarse = Some((stride, found));
    }
    coarse.map_or_else(Vec::new, |(_, found)| found)
}

/// Returns the best `k` keys above 0, best first, by a heap of degree 512. It holds maxima of groups and of groups of
/// groups; each extraction repairs its branch.
fn heap_top_k(keys: &[u64], k: usize) -> Vec<u64> {
    let degree = HEAP_DEGREE as usize;
    let mut levels = vec![keys.to_vec()];
    while levels.len() < 2 || levels[levels.len() - 1].len() > degree {
        let below = &levels[levels.len() - 1];
        levels.push(below.chunks(degree).map(|group| group.iter().copied().max().unwrap_or(0)).collect());
    }
    let mut best = Vec::new();
    while best.len() < k {
        let Some(&key) = levels[levels.len() - 1].iter().max().filter(|&&key| key > 0) else { break };
        best.push(key);
        // Follow the branch down, then repair it upwards.
        let mut place = 0;
        for level in levels.iter().rev() {
            let first = place * degree;
            place = first + level[first..].iter().take(degree).position(|&other| other == key).unwrap_or(0);
        }
        levels[0][place] = 0;
        for level in 1..levels.len() {
            place /= degree;
            let first = place * degree;
            levels[level][place] = levels[level - 1][first..].iter().take(degree).copied().max().unwrap_or(0);
        }
    }
    best
}

pub(crate) fn poison<T>(gpu: &PublishedGpu, buffer: &mut CudaSlice<T>) -> Result<(), GpuError> {
    let bytes = buffer.num_bytes();
    let (pointer, _guard) = buffer.device_ptr_mut(&gpu.stream);
    // SAFETY: the buffer has that many bytes and is used on this stream alone.
    unsafe { cudarc::driver::result::memset_d8_async(pointer, 0xff, bytes, gpu.stream.cu_stream()) }
        .map_err(|e| GpuError::of("poisoning a buffer", &e))
}

fn open() -> Option<Arc<PublishedGpu>> {
    gpu_or_skip(PublishedGpu::open())
}

/// Lengths around the borders of warps, groups, blocks and tiles.
const LENGTHS: [usize; 17] = [1, 2, 31, 32, 127, 128, 129, 511, 512, 513, 640, 1023, 1024, 1025, 4096, 10_000, 70_001];

/// Makes `len` ascending documents below 2^31 with gaps of `mean_gap` on average; some gaps are far larger.
fn docs(seed: u64, len: usize, mean_gap: u32) -> Vec<u32> {
    let mut random = Random::new(seed, 0);
    let mut next = 0_u64;
    (0..len)
        .map(|_| {
            let spread = if random.below(12) == 0 { 40 } else { 1 };
            let doc = next + u64::from(random.below(2 * mean_gap)) * spread;
            next = doc + 1;
            doc
        })
        .take_while(|&doc| doc < 1 << 31)
        .map(|doc| doc as u32)
        .collect()
}

/// Makes lists that are hard for decoders: gaps of 1, documents up to 2^31, one huge gap, and random ones of all
/// lengths.
fn hard_lists() -> Vec<Vec<u32>> {
    let mut lists = vec![
        vec![],
        vec![0],
        vec![(1 << 31) - 1],
        (0..3000).collect(),
        (5..2000).chain([(1 << 31) - 2, (1 << 31) - 1]).collect(),
        (0..1500).map(|i| i * 1_400_000).collect(),
    ];
    for (seed, len) in LENGTHS.into_iter().enumerate() {
        for mean_gap in [1, 3, 100, 20_000] {
            lists.push(docs(seed as u64, len, mean_gap));
        }
    }
    // Every width of slots.
    for width in 0..=31 {
        let gap = 1_u32 << width;
        lists.push((0..600_u32).map_while(|i| i.checked_mul(gap)).take_while(|&doc| doc < 1 << 31).collect());
    }
    lists
}

/// Makes frequencies for such lists, and of every width.
fn hard_freqs(lists: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut random = Random::new(9, 0);
    let of_width = |width: u32| (0..600).map(|_| 1 + (random.bits() as u32 & !(u32::MAX << width))).collect();
    let mut all: Vec<Vec<u32>> = (0..32).map(of_width).collect();
    all.push((0..600).map(|i| if i % 3 == 0 { u32::MAX } else { 1 + i }).collect());
    all.extend(lists.iter().map(|list| freqs(7, list.len())));
    all
}

/// Decodes a tree as the kernels do.
fn decode_tree(arena: &Arena, tree: &Tree) -> Vec<u32> {
    let exceptions = |source: &Source| match source {
        Source::Nowhere => Vec::new(),
        Source::Raw(start) => arena.words[*start..*start + tree.num_exceptions as usize].to_vec(),
        Source::Packed { tree, .. } => decode_tree(arena, tree),
    };
    let (positions, overflows) = (exceptions(&tree.positions), exceptions(&tree.overflows));
    let len = tree.len as usize;
    let slots = &arena.words[tree.slots..];
    let mut values: Vec<u32> = (0..len).map(|i| twin::read_slot(slots, tree.width, len, i) + 1).collect();
    for (block, values) in values.chunks_mut(512).enumerate() {
        let starts = &arena.words[tree.starts + block..];
        for exception in starts[0]..starts[1] {
            let place = positions[exception as usize] as usize - block * 512;
            values[place] += overflows[exception as usize] << tree.width;
        }
        if let Some(bases) = tree.bases {
            let mut sum = arena.words[bases + block];
            for value in values {
                sum = sum.wrapping_add(*value);
                *value = sum;
            }
        }
    }
    values
}

/// Decodes Rice as on the device: sums and compacts the unary part, and sums the binary part.
fn decode_rice(parts: &RiceParts<'_>) -> Vec<u32> {
    let mut quotients = Vec::new();
    for block in 0..(parts.num_unary_bits as usize).div_ceil(128) {
        let mut ones = parts.unary_sums[block];
        for bit in block * 128..(block + 1) * 128 {
            if parts.unary.get(bit / 32).is_some_and(|word| word >> (bit % 32) & 1 == 1) {
                ones += 1;
            } else if quotients.len() < parts.len {
                quotients.push(ones);
            }
        }
    }
    let mut sum = 0;
    (0..parts.len)
        .map(|i| {
            if i % 128 == 0 {
                sum = parts.binary_sums[i / 128];
            }
            sum = sum.wrapping_add(twin::read_slot(parts.binary, parts.width, parts.len, i));
            sum.wrapping_add(quotients[i].checked_shl(parts.width).unwrap_or(0)).wrapping_add(i as u32)
        })
        .collect()
}

#[test]
fn device_forms_hold_what_was_encoded() {
    for list in hard_lists() {
        assert_eq!(decode_rice(&RiceParts::of_docs(&Rice.encode_list(Column::Docs, &list).unwrap())), list);
        for levels in 0..=PForDelta::MAX_LEVELS {
            let codec = PForDelta::new(levels);
            let mut arena = Arena::default();
            let tree = arena.push_list(Column::Docs, &codec.encode_list(Column::Docs, &list).unwrap());
            assert_eq!(decode_tree(&arena, &tree), list, "{} documents, {levels} levels", list.len());
            let freqs = freqs(1, list.len());
            let tree = arena.push_list(Column::Freqs, &codec.encode_list(Column::Freqs, &freqs).unwrap());
            assert_eq!(decode_tree(&arena, &tree), freqs, "{} frequencies, {levels} levels", list.len());
        }
    }
}

#[test]
fn strides_halve_at_least_down_to_one() {
    for len in [0, 1, 2, 3, 10, 1000, 5000, 16_000_000, u32::MAX] {
        for levels in 0..=MAX_LEVELS {
            let strides = strides(len, levels);
            assert_eq!(strides.last(), Some(&1));
            assert!(strides.windows(2).all(|pair| pair[0] / 2 >= pair[1]), "{len}, {levels}: {strides:?}");
            assert!(strides.iter().all(|&stride| stride == 1 || stride <= len));
        }
    }
    assert_eq!(strides(16_000_000, 1), [4096, 1]);
}

proptest! {
    #[test]
    fn merge_find_counts_the_smaller_ones_at_any_level(
        mut a in proptest::collection::vec(0_u32..5000, 0..600),
        mut b in proptest::collection::vec(0_u32..5000, 0..600),
        levels in 0..=MAX_LEVELS,
    ) {
        a.sort_unstable();
        b.sort_unstable();
        let expected: Vec<u32> = a.iter().map(|&x| b.partition_point(|&y| y < x) as u32).collect();
        prop_assert_eq!(merge_find(&a, &b, &strides(a.len() as u32, levels)), expected);
    }

    #[test]
    fn a_heap_of_degree_512_gives_the_best_in_order(
        mut keys in proptest::collection::hash_set(1_u64..1 << 40, 0..3000),
        k in 1_usize..1200,
    ) {
        let unsorted: Vec<u64> = keys.drain().collect();
        let mut expected = unsorted.clone();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        expected.truncate(k);
        prop_assert_eq!(heap_top_k(&unsorted, k), expected);
    }
}

#[test]
fn gpu_decodes_pfor_delta_at_every_level_of_recursion() {
    let Some(gpu) = open() else { return };
    let lists = hard_lists();
    for levels in 0..=PForDelta::MAX_LEVELS {
        let codec = PForDelta::new(levels);
        for column in [Column::Docs, Column::Freqs] {
            let values: Vec<Vec<u32>> = match column {
                Column::Docs => lists.clone(),
                Column::Freqs => hard_freqs(&lists),
            };
            let encoded: Vec<Vec<u32>> = values.iter().map(|list| codec.encode_list(column, list).unwrap()).collect();
            let mut batch = PforBatch::upload(&gpu, column, encoded.iter().map(Vec::as_slice)).unwrap();
            batch.poison().unwrap();
            batch.decode(true).unwrap();
            for (i, expected) in values.iter().enumerate() {
                assert_eq!(&batch.values(i).unwrap(), expected, "list {i}, {column:?}, {levels} levels");
            }
            batch.poison().unwrap();
            batch.decode(false).unwrap();
            for (i, expected) in values.iter().enumerate() {
                let mut gaps = expected.clone();
                if column == Column::Docs {
                    (0..gaps.len()).for_each(|i| {
                        gaps[i] = expected[i].wrapping_sub(if i == 0 { u32::MAX } else { expected[i - 1] })
                    });
                }
                assert_eq!(batch.values(i).unwrap(), gaps, "gaps of list {i}, {column:?}, {levels} levels");
            }
        }
    }
}

#[test]
fn gpu_decodes_rice() {
    let Some(gpu) = open() else { return };
    let lists = hard_lists();
    let encoded: Vec<Vec<u32>> = lists.iter().map(|list| Rice.encode_list(Column::Docs, list).unwrap()).collect();
    let mut batch = RiceBatch::upload(&gpu, encoded.iter().map(Vec::as_slice)).unwrap();
    batch.poison().unwrap();
    batch.decode().unwrap();
    for (i, expected) in lists.iter().enumerate() {
        assert_eq!(&batch.docs(i).unwrap(), expected, "list {i}");
    }
}

#[test]
fn gpu_intersects_lists_at_every_level_of_recursion() {
    let Some(gpu) = open() else { return };
    for (seed, (len_a, len_b)) in
        [(0, 3), (3, 0), (1, 1), (127, 129), (1, 5000), (5000, 1), (1000, 1025), (70_001, 70_001), (300, 200_000)]
            .into_iter()
            .enumerate()
    {
        for mean_gap in [1, 4, 60] {
            let (mut a, mut b) = (docs(seed as u64, len_a, mean_gap), docs(100 + seed as u64, len_b, mean_gap));
            if mean_gap == 4 {
                // Move the documents up to the largest ones.
                let end = a.iter().chain(&b).max().map_or(0, |last| (1 << 31) - 1 - last);
                a.iter_mut().chain(&mut b).for_each(|doc| *doc += end);
            }
            let expected: Vec<u32> = a.iter().copied().filter(|doc| b.binary_search(doc).is_ok()).collect();
            let mut intersection = ListIntersection::upload(&gpu, &a, &b).unwrap();
            for levels in 0..=MAX_LEVELS {
                intersection.poison().unwrap();
                intersection.run(levels).unwrap();
                let found = intersection.docs().unwrap();
                assert_eq!(found, expected, "{len_a} in {len_b}, gap {mean_gap}, {levels} levels");
            }
        }
    }
}

#[test]
fn gpu_finds_the_same_documents_as_the_cpu_in_all_modes() {
    let Some(gpu) = open() else { return };
    let mut random = Random::new(3, 0);
    let (index, terms) = bursty_index(&mut random);
    let mut cpu = CpuExecutor::new(Arc::clone(&index), Bm25::default());
    for levels in [0, 1, 3] {
        let host = HostLists::encode(&index, &terms, Bm25::default(), PForDelta::new(levels)).unwrap();
        let mut search = PublishedSearch::upload(&gpu, &Arc::new(host)).unwrap();
        for number in 0..sized(60_u32, 5) {
            let names: Vec<String> =
                (0..1 + number % 5).map(|_| format!("t{}", random.below(terms.len() as u32))).collect();
            let query = Query::prepare(QueryId(number), "q", &names, &index).unwrap();
            for mode in Mode::ALL {
                for &k in sized(&[1, 10, MAX_K][..], &[10]) {
                    let (mut expected, mut found) = (Vec::new(), Vec::new());
                    cpu.search(&query, mode, k, &mut expected).unwrap();
                    search.poison().unwrap();
                    let stages = search.search(&query, mode, k, number % 2 == 0, &mut found).unwrap();
                    assert_eq!(bits(&found), bits(&expected), "{names:?}, {mode}, k {k}, {levels} levels");
                    assert_eq!(stages[Stage::TakingOut as usize] > 0.0, number % 2 == 0);
                }
            }
        }
        let none = Query { terms: Vec::new(), ..Query::prepare(QueryId(0), "none", &["t0"], &index).unwrap() };
        for mode in Mode::ALL {
            let mut found = vec![Hit { doc: DocId(0), score: 0.0 }];
            search.search(&none, mode, 10, true, &mut found).unwrap();
            assert!(found.is_empty());
        }
    }
}

#[test]
fn gpu_heap_gives_the_best_in_order() {
    let Some(gpu) = open() else { return };
    let lens = [0, 1, 127, 128, 129, 511, 512, 513, 5000, 512 * 512, 512 * 512 + 1, 300_000];
    for (number, &len) in lens.iter().enumerate() {
        let mut random = Random::new(number as u64, 2);
        // Few distinct scores give many ties, in which smaller documents come first.
        let scores: Vec<u32> = (0..len).map(|_| (random.below(1 << 12) as f32).to_bits()).collect();
        let docs: Vec<u32> = (0..len as u32).map(|i| (1 << 31) - 1 - len as u32 + i).collect();
        let (d_docs, mut heap) = (gpu.upload(&docs).unwrap(), Heap::new(&gpu, len as u32).unwrap());
        for &k in sized(&[1, 10, 513, MAX_K][..], &[20]) {
            for with_docs in [false, true] {
                // Extraction removes scores.
                let d_scores = gpu.upload(&scores).unwrap();
                heap.poison(&gpu).unwrap();
                let docs_at = if with_docs { gpu.address(&d_docs) } else { 0 };
                let count = Count::known(len as u32);
                let over = Scores { scores: gpu.address(&d_scores), docs: docs_at, count };
                let built = heap.build(&gpu, over).unwrap();
                heap.take_best(&gpu, built, k as u32).unwrap();
                let mut found = Vec::new();
                heap.keys(&gpu, k, &mut found).unwrap();
                let doc = |i: usize| if with_docs { docs[i] } else { i as u32 };
                let keys: Vec<u64> =
                    scores.iter().enumerate().map(|(i, &bits)| TopK::key(doc(i), f32::from_bits(bits))).collect();
                assert_eq!(found, heap_top_k(&keys, k), "{len} scores, k {k}");
            }
        }
    }
}

#[test]
fn a_hang_ends_queries_and_decoding_in_an_error() {
    let name = "ding::gpu::tests::a_hang_ends_queries_and_decoding_in_an_error";
    with_a_hang(name, |hang| {
        let gpu = PublishedGpu::open().unwrap();
        let mut random = Random::new(3, 0);
        let (index, terms) = bursty_index(&mut random);
        let lists = Arc::new(HostLists::encode(&index, &terms, Bm25::default(), PForDelta::new(1)).unwrap());
        let mut resident = PublishedSearch::upload(&gpu, &lists).unwrap();
        let encoded = Rice.encode_list(Column::Docs, &docs(1, 1000, 4)).unwrap();
        let batch = RiceBatch::upload(&gpu, [&encoded[..]]).unwrap();
        let query = Query::prepare(QueryId(0), "q", &["t0", "t1"], &index).unwrap();
        resident.search(&query, Mode::And, 10, false, &mut Vec::new()).unwrap();
        hang();
        let errors = [
            resident.search(&query, Mode::And, 10, false, &mut Vec::new()).unwrap_err().to_string(),
            batch.decode().and_then(|()| batch.docs(0)).unwrap_err().to_string(),
            gpu.time_us(1, || Ok(())).unwrap_err().to_string(),
            PublishedGpu::open().unwrap_err().to_string(),
        ];
        let (last, errors) = errors.split_last().unwrap();
        assert!(errors.iter().all(|error| error.contains("CUDA_ERROR_TIMEOUT")), "{errors:?}");
        assert!(last.contains("did not answer"), "{last}");
    });
}
