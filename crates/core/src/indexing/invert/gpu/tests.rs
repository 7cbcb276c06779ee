//! Builds with a device against builds with CPUs, byte for byte, with the kernels' twin and with a GPU.
//!
//! Tests on a GPU are skipped with a message if there is none; with `TANDEM_REQUIRE_GPU` set they fail.

use std::fs;
use std::path::Path;

use super::backend::{Backend, DistinctWords, InvertedRun};
use super::twin::{Fault, Twin};
use crate::base::random::Random;
use crate::corpus::{Collection, Tokenizer};
use crate::index::Bm25;
use crate::indexing::invert::HashIndexer;
use crate::indexing::{BuildOptions, BuildSummary, GpuReport, build_by};
use crate::search::device::{GpuError, list_gpus};

const TOKENIZERS: [&str; 5] =
    ["ascii", "unicode", "unicode+stem=english+stop=english", "ascii+stop= red w1 w2", "unicode+stem=porter"];

/// Streams of a twin, which may fail.
fn twins(streams: usize, piece_bytes: usize, fault: Option<Fault>) -> HashIndexer {
    let twin = |_| Box::new(Twin::new(piece_bytes, fault)) as Box<dyn Backend>;
    HashIndexer { streams: (0..streams).map(twin).collect(), ..HashIndexer::default() }
}

/// Streams of the first GPU, or `None` if there is none.
fn gpu(streams: usize) -> Option<HashIndexer> {
    if let Err(GpuError::NoGpu(reason)) = list_gpus() {
        assert!(std::env::var_os("TANDEM_REQUIRE_GPU").is_none(), "TANDEM_REQUIRE_GPU is set, but: {reason}");
        crate::skipped::skipped("no GPU");
        return None;
    }
    Some(HashIndexer::on_gpu(Some(streams), streams).unwrap())
}

/// Builds an index. Returns its bytes and the reports of the build.
fn build(
    mut indexer: HashIndexer,
    input: &Path,
    tokenizer: &str,
    threads: usize,
    memory_bytes: Option<u64>,
) -> (Vec<u8>, BuildSummary, GpuReport) {
    let dir = tempfile::tempdir().unwrap();
    let tokenizer = Tokenizer::from_name(tokenizer).unwrap();
    let options = BuildOptions { tokenizer, bm25: Bm25::default(), threads, memory_bytes };
    let collection = Collection::open(input, threads).unwrap();
    let summary = build_by(&mut indexer, collection, dir.path(), &options, &|_| ()).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing but the index stays");
    (fs::read(dir.path().join(crate::index::FILE_NAME)).unwrap(), summary, indexer.gpu_report())
}

/// Writes documents of all kinds, about `bytes` in all: empty ones, one word only, words of hundreds of bytes, marks
/// within words, other scripts, and documents of common words between them.
fn write_documents(path: &Path, bytes: usize, seed: u64) {
    let mut random = Random::new(seed, 0);
    let mut texts: Vec<String> =
        ["", " .—  ", "___ _a_ a_b_ __1__", "The U.S.A's 3.14 1,000.5;2 a.b.c:d'e -x- x:1 1:x ''a''"]
            .map(str::to_owned)
            .to_vec();
    texts.push("Zoë’s CAFÉ, don't 3.14 Straße привет \u{212a}m İx Cafe\u{301} \u{1100}\u{1161} Σίσυφος".to_owned());
    texts.push("x".repeat(300) + " " + &"Ab1".repeat(100) + " " + &"é".repeat(200) + &"y".repeat(70_000));
    texts.push("red ".repeat(20_000));
    texts.push("\u{1e}red\u{7f}fox\u{0}den\tx\r\ny\u{b}z".to_owned());
    let mut written = 0;
    while written < bytes {
        let words = random.below(400);
        let mut text = String::new();
        for _ in 0..words {
            match random.below(60) {
                0 => text.push_str("Überall "),
                1 => text.push_str("e.g., "),
                2 => text.push_str("it's "),
                3 => text.push_str("Running_out "),
                4 => text.push_str("12,345.67 — "),
                _ => {
                    let bits = 1 + random.below(17);
                    text.push_str(&format!("w{} ", random.below(1 << bits)));
                }
            }
        }
        written += text.len();
        texts.push(text);
    }
    let line = |(id, text): (usize, &String)| {
        serde_json::json!({"id": id.to_string(), "title": format!("Title {}", id % 7), "text": text}).to_string() + "\n"
    };
    fs::write(path, texts.iter().enumerate().map(line).collect::<String>()).unwrap();
}

#[test]
fn an_index_by_the_twin_is_the_index_by_the_cpu() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("c.jsonl");
    write_documents(&input, 9 << 20, 1);
    let bytes = fs::metadata(&input).unwrap().len();
    for tokenizer in TOKENIZERS {
        let (expected, summary, _) = build(HashIndexer::default(), &input, tokenizer, 2, None);
        // A batch of two megabytes fits always, sometimes or never.
        for (piece_bytes, least, most) in [(4 << 20, bytes, bytes), (1_900_000, 1, bytes - 1), (1 << 20, 0, 0)] {
            let (found, same, report) = build(twins(2, piece_bytes, None), &input, tokenizer, 3, Some(256 << 20));
            assert!(found == expected, "{tokenizer}, pieces of {piece_bytes}");
            assert_eq!((summary.documents, summary.tokens), (same.documents, same.tokens));
            assert!(report.streams == 2 && report.lost.is_empty());
            // The batches that a CPU's worker takes depend on chance.
            assert!(report.bytes <= most && (report.bytes >= least || piece_bytes > 1 << 20), "{report:?}");
        }
    }
}

#[test]
fn runs_that_are_full_or_on_disk_make_the_same_index() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("c.jsonl");
    write_documents(&input, 20 << 20, 2);
    let (expected, ..) = build(HashIndexer::default(), &input, "unicode", 2, None);
    let bytes = fs::metadata(&input).unwrap().len();
    // One stream alone takes all batches, in runs of several or of one.
    for (memory_bytes, is_on_disk) in [(None, false), (Some(64 << 20), true), (Some(0), true)] {
        let (found, summary, report) = build(twins(1, 3 << 20, None), &input, "unicode", 1, memory_bytes);
        assert!(found == expected, "memory {memory_bytes:?}");
        assert_eq!((report.bytes, summary.runs_on_disk > 0), (bytes, is_on_disk), "{summary:?}");
    }
}

#[test]
fn where_a_device_fails_the_cpu_goes_on_with_what_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("c.jsonl");
    write_documents(&input, 24 << 20, 3);
    let (expected, ..) = build(HashIndexer::default(), &input, "unicode+stem=english", 2, None);
    let bytes = fs::metadata(&input).unwrap().len();
    for fault in [
        Fault::Sending(0),
        Fault::Sending(3),
        Fault::Counting(2),
        Fault::Fetching(0),
        Fault::Fetching(1),
        Fault::Inverting(1),
    ] {
        let (found, _, report) = build(twins(1, 3 << 20, Some(fault)), &input, "unicode+stem=english", 1, None);
        assert!(found == expected, "{fault:?}");
        assert!(report.bytes < bytes, "{fault:?}: {report:?}");
        assert!(matches!(&report.lost[..], [reason] if reason.starts_with("a test: ")), "{report:?}");
    }
}

#[test]
fn the_first_bad_document_is_reported_by_streams_too() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("c.jsonl");
    write_documents(&input, 8 << 20, 4);
    let mut text = fs::read_to_string(&input).unwrap();
    let lines = text.lines().count();
    text.push_str("worse\n");
    fs::write(&input, text).unwrap();
    let options = BuildOptions {
        tokenizer: Tokenizer::from_name("ascii").unwrap(),
        bm25: Bm25::default(),
        threads: 2,
        memory_bytes: None,
    };
    let collection = Collection::open(&input, 2).unwrap();
    let failed = build_by(&mut twins(2, 3 << 20, None), collection, dir.path(), &options, &|_| ()).unwrap_err();
    assert!(failed.to_string().contains(&format!("c.jsonl:{}:1: ", lines + 1)), "{failed}");
}

/// Sends text, one piece per part, and inverts it.
fn invert(backend: &mut dyn Backend, parts: &[Vec<&[u8]>], tokenizer: &str) -> (Vec<Vec<u8>>, InvertedRun) {
    let tokenizer = Tokenizer::from_name(tokenizer).unwrap();
    for part in parts {
        let mut ends = Vec::new();
        let mut text = Vec::new();
        for document in part {
            text.extend_from_slice(document);
            text.push(b'\n');
            ends.push(text.len() as u32);
        }
        backend.piece().unwrap()[..text.len()].copy_from_slice(&text);
        backend.send(text.len(), &ends, tokenizer.words()).unwrap();
    }
    let (mut words, mut run) = (DistinctWords::default(), InvertedRun::default());
    backend.distinct_words(&mut words).unwrap();
    let mut order: Vec<Vec<u8>> = words.iter().map(<[u8]>::to_vec).collect();
    order.sort_unstable();
    order.windows(2).for_each(|pair| assert!(pair[0] < pair[1], "{:?} twice", String::from_utf8_lossy(&pair[0])));
    let terms: Vec<u32> =
        words.iter().map(|word| order.binary_search_by(|other| other[..].cmp(word)).unwrap() as u32).collect();
    backend.invert(&terms, order.len() as u32, &mut run).unwrap();
    (order, run)
}

#[test]
fn gpu_kernels_do_what_their_twin_does() {
    let Some(mut indexer) = gpu(1) else { return };
    let device = indexer.streams[0].as_mut();
    let mut random = Random::new(9, 0);
    const KINDS: &[u8] = b"aZ09_'.:,;\" -\nb\xc3\xa9";
    for round in 0..60 {
        let is_unicode = round % 2 == 0;
        let documents: Vec<Vec<u8>> = (0..1 + random.below(40))
            .map(|_| {
                let bits = random.below(14);
                let len = random.below(1 << bits);
                (0..len).map(|_| KINDS[random.below(KINDS.len() as u32) as usize]).collect()
            })
            .collect();
        let parts: Vec<Vec<&[u8]>> = documents.chunks(7).map(|part| part.iter().map(Vec::as_slice).collect()).collect();
        let tokenizer = if is_unicode { "unicode" } else { "ascii" };
        let mut twin = Twin::new(4 << 20, None);
        let (words, run) = invert(&mut twin, &parts, tokenizer);
        let (found_words, found) = invert(device, &parts, tokenizer);
        assert_eq!(found_words, words, "round {round}");
        assert_eq!(found.doc_lengths, run.doc_lengths, "round {round}");
        assert!(found.starts == run.starts && found.lists == run.lists, "round {round}");
    }
}

#[test]
fn gpu_indexes_are_those_of_the_cpu() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("c.jsonl");
    let is_sanitized = std::env::var_os("TANDEM_SANITIZER").is_some();
    write_documents(&input, if is_sanitized { 1 << 20 } else { 24 << 20 }, 5);
    let bytes = fs::metadata(&input).unwrap().len();
    for tokenizer in TOKENIZERS {
        let (expected, ..) = build(HashIndexer::default(), &input, tokenizer, 2, None);
        for (streams, threads, memory_bytes) in [(1, 1, None), (2, 3, None), (1, 1, Some(0)), (2, 2, Some(64 << 20))] {
            let Some(indexer) = gpu(streams) else { return };
            let (found, _, report) = build(indexer, &input, tokenizer, threads, memory_bytes);
            assert!(found == expected, "{tokenizer}, {streams} streams, {threads} threads, memory {memory_bytes:?}");
            assert!(report.lost.is_empty() && (report.bytes == bytes || threads > streams), "{report:?}");
        }
    }
}
