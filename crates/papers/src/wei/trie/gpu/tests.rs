//! Tests of the host's side with the kernel's twin against the CPU indexer, and of the kernel against its twin.

use std::collections::BTreeMap;

use tandem_model::base::random::Random;

use super::backend::Backend;
use super::gpu_indexer::GpuIndexer;
use super::twin::Twin;
use crate::test_support::{gpu_or_skip, sized};
use crate::wei::trie::buffer::Buffer;
use crate::wei::trie::cpu_indexer::CpuIndexer;
use crate::wei::trie::dictionary::Dictionary;
use crate::wei::trie::indexer::SlotIndexer;
use crate::wei::trie::sections::Sections;
use crate::wei::trie::slots::NUM_SLOTS;

/// Terms and their encoded lists by slot and term, independent of the indexer.
type Lists = BTreeMap<(u16, Vec<u8>), Vec<u8>>;

/// Makes runs of documents with terms of all lengths, many in few slots and few in many.
fn runs(seed: u64, num_runs: usize, tokens: usize) -> Vec<Buffer> {
    let mut random = Random::new(seed, 0);
    let term = |random: &mut Random| -> Vec<u8> {
        let bits = random.below(16);
        let number = random.below(1 << bits);
        match random.below(40) {
            0 => vec![b'q'; 200 + random.below(120) as usize],
            1 => [&b"long"[..], &vec![b'z'; 250 + random.below(10) as usize], &number.to_be_bytes()[..]].concat(),
            2 => number.to_string().into_bytes(),
            3 => vec![b'a' + random.below(26) as u8; 1 + random.below(3) as usize],
            4..20 => format!("comp{number}").into_bytes(),
            20..24 => format!("contra{}", number % 50).into_bytes(),
            _ => (0..3 + random.below(6)).map(|_| b'a' + random.below(26) as u8).collect(),
        }
    };
    (0..num_runs)
        .map(|_| {
            let mut buffer = Buffer::default();
            let mut doc = 0;
            for _ in 0..tokens {
                doc += u32::from(random.below(20) == 0);
                buffer.push(doc, &term(&mut random));
            }
            buffer.num_docs = doc + 1;
            buffer
        })
        .collect()
}

/// Returns the lists of some runs, and the dictionary.
fn indexed(indexer: &mut dyn SlotIndexer, runs: &[Buffer]) -> (Vec<Lists>, Dictionary) {
    let slots: Vec<u16> = (0..NUM_SLOTS as u16).collect();
    let (mut all, mut first_doc) = (Vec::new(), 7);
    for buffer in runs {
        let mut sections = Sections::default();
        indexer.prepare(buffer, &slots, first_doc).unwrap();
        indexer.index(buffer, &slots).unwrap();
        indexer.collect(&mut sections).unwrap();
        first_doc += buffer.num_docs;
        all.push(sections);
    }
    let dictionary = indexer.finish().unwrap();
    let lists = all.iter().map(|sections| {
        let (mut lists, mut entries, mut at) = (Lists::new(), sections.entries.iter(), 0);
        for section in &sections.sections {
            for entry in entries.by_ref().take(section.lists as usize) {
                let mut term = Vec::new();
                dictionary.append_term(entry.term, &mut term);
                let bytes = sections.bytes[at..at + entry.len as usize].to_vec();
                at += entry.len as usize;
                assert!(lists.insert((section.slot, term), bytes).is_none(), "a term has one list a run");
            }
        }
        lists
    });
    (lists.collect(), dictionary)
}

/// Returns the terms of each slot in the order of the tree.
fn terms(dictionary: &Dictionary) -> Vec<Vec<Vec<u8>>> {
    let spelled = |&number: &u32| {
        let mut term = Vec::new();
        dictionary.append_term(number, &mut term);
        term
    };
    (0..NUM_SLOTS as u16)
        .map(|slot| {
            let mut numbers = Vec::new();
            dictionary.append_sorted(slot, &mut numbers);
            numbers.iter().map(spelled).collect()
        })
        .collect()
}

/// Compares an indexer on a device or its twin with a CPU's.
fn check(backend: Box<dyn Backend>, runs: &[Buffer]) {
    let (expected, trees) = indexed(&mut CpuIndexer::default(), runs);
    let (found, dictionary) = indexed(&mut GpuIndexer::new(backend), runs);
    assert!(terms(&dictionary) == terms(&trees), "trees");
    for (run, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert!(found == expected, "lists of run {run}");
    }
    assert_eq!(dictionary.nodes.len(), trees.nodes.len(), "nodes are split alike");
}

#[test]
fn lists_and_trees_by_the_kernels_twin_are_those_of_a_cpu() {
    check(Box::<Twin>::default(), &runs(1, 3, 20_000));
    check(Box::<Twin>::default(), &[Buffer::default(), runs(2, 1, 1).remove(0)]);
}

#[test]
fn gpu_lists_and_trees_are_those_of_a_cpu() {
    #[cfg(feature = "gpu")]
    let opened = super::device::DeviceBackend::open(tandem_model::base::ids::DeviceId(0));
    #[cfg(not(feature = "gpu"))]
    let opened: Result<Twin, _> =
        Err(tandem_engine::search::device::GpuError::NoGpu(tandem_engine::search::device::NOT_BUILT.to_owned()));
    let Some(device) = gpu_or_skip(opened) else { return };
    check(Box::new(device), &runs(3, 3, sized(300_000, 2_000)));
}

#[cfg(feature = "gpu")]
#[test]
fn a_hang_ends_a_run_in_an_error() {
    crate::test_support::with_a_hang("wei::trie::gpu::tests::a_hang_ends_a_run_in_an_error", |hang| {
        let mut gpu = super::open(0).unwrap();
        let (runs, slots) = (runs(4, 2, 2_000), (0..NUM_SLOTS as u16).collect::<Vec<_>>());
        gpu.prepare(&runs[0], &slots, 7).unwrap();
        gpu.index(&runs[0], &slots).unwrap();
        gpu.collect(&mut Sections::default()).unwrap();
        gpu.prepare(&runs[1], &slots, 7 + runs[0].num_docs).unwrap();
        hang();
        let error = gpu.index(&runs[1], &slots).unwrap_err().to_string();
        assert!(error.contains("CUDA_ERROR_TIMEOUT"), "{error}");
    });
}
