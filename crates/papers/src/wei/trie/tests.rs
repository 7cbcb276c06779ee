//! Tests of whole builds: the index equals that of Tandem's own indexer, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};

use tandem_engine::corpus::{Collection, Tokenizer, Words};
use tandem_engine::index::{Bm25, FILE_NAME};
use tandem_engine::indexing::{BuildOptions, BuildSummary, build_by, build_from_text};

use super::gpu::GpuIndexer;
use super::gpu::twin::Twin;
use super::indexer::SlotIndexer;
use super::pipeline::{TrieIndexer, TrieOptions};

fn options(words: Words) -> BuildOptions {
    BuildOptions { tokenizer: Tokenizer::new(words), bm25: Bm25::default(), threads: 2, memory_bytes: None }
}

fn trie(parsers: usize, cpu_indexers: usize) -> TrieIndexer {
    let options = TrieOptions { parsers, cpu_indexers, gpus: 0, buffer_bytes: Some(1 << 20) };
    TrieIndexer::new(options).unwrap()
}

fn expected(inputs: &[PathBuf], options: &BuildOptions) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let collection = Collection::open_all(inputs.to_vec(), 1).unwrap();
    build_from_text(collection, dir.path(), options, &|_| ()).unwrap();
    fs::read(dir.path().join(FILE_NAME)).unwrap()
}

fn by_trie(
    trie: &mut TrieIndexer,
    inputs: &[PathBuf],
    options: &BuildOptions,
) -> Result<(BuildSummary, Vec<u8>), String> {
    let dir = tempfile::tempdir().unwrap();
    let collection = Collection::open_all(inputs.to_vec(), 1).map_err(|e| e.to_string())?;
    let summary = build_by(trie, collection, dir.path(), options, &|_| ()).map_err(|e| e.to_string())?;
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing but the index stays");
    Ok((summary, fs::read(dir.path().join(FILE_NAME)).unwrap()))
}

/// Writes documents with words of all kinds of slots: short, long, numbers, with other letters, of 300 bytes.
fn write_documents(path: &Path, first: usize, count: usize) {
    let mut state = 1 + first as u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let mut lines = String::new();
    for id in first..first + count {
        lines += &format!("{{\"id\":\"d{id}\",\"text\":\"");
        for _ in 0..next(400) {
            let bits = next(16).max(1);
            let number = next(1 << bits);
            let word = match next(8) {
                0 => format!("{number}"),
                1 => format!("{number}d"),
                2 => format!("é{number}"),
                3 => format!("zoé{number}"),
                4 => format!("{}{number}", "x".repeat(300)),
                5 => format!("comp{number}"),
                6 => String::from_utf8(vec![b'a' + (number % 26) as u8; 1 + (number % 5) as usize]).unwrap(),
                _ => {
                    let letters = [number / 676, number / 26, number].map(|letter| b'a' + (letter % 26) as u8);
                    format!("{}x{}", String::from_utf8_lossy(&letters), number % 3)
                }
            };
            lines += &word;
            lines.push(' ');
        }
        lines += "\"}\n";
    }
    fs::write(path, lines).unwrap();
}

fn files(dir: &Path, count: usize) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = (0..count).map(|number| dir.join(format!("{number}.jsonl"))).collect();
    paths.iter().enumerate().for_each(|(number, path)| write_documents(path, number * 400, 400));
    paths
}

#[test]
fn any_parsers_and_indexers_make_the_products_index() {
    let dir = tempfile::tempdir().unwrap();
    let many = files(dir.path(), 9);
    let one = dir.path().join("one.jsonl");
    fs::write(&one, many.iter().map(|path| fs::read_to_string(path).unwrap()).collect::<String>()).unwrap();
    let options = options(Words::Unicode);
    for inputs in [&many[..], &[one]] {
        let expected = expected(inputs, &options);
        for (parsers, indexers) in [(1, 1), (3, 2), (2, 5)] {
            let mut trie = trie(parsers, indexers);
            let (summary, index) = by_trie(&mut trie, inputs, &options).unwrap();
            assert!(index == expected, "{parsers} parsers, {indexers} indexers");
            assert!(summary.runs_on_disk > 1, "{summary:?}");
            let report = trie.report();
            assert_eq!(report.tokens(), summary.tokens);
            assert_eq!(report.parts.iter().map(|part| part.tokens).sum::<u64>(), summary.tokens);
            assert_eq!(report.text_bytes(), summary.bytes);
        }
    }
}

#[test]
fn stems_and_stop_words_are_as_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = files(dir.path(), 2);
    let tokenizer = Tokenizer::new(Words::Ascii).with_stem("english").unwrap().with_stop_words("the aa 7");
    let options = BuildOptions { tokenizer, ..options(Words::Ascii) };
    assert!(by_trie(&mut trie(2, 2), &inputs, &options).unwrap().1 == expected(&inputs, &options));
}

#[test]
fn one_slot_may_hold_everything() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.jsonl");
    let line = |id: usize| format!("{{\"id\":{id},\"text\":\"comp{} comp{} comp\"}}\n", id * 7 % 1000, id);
    fs::write(&path, (0..5_000).map(line).collect::<String>()).unwrap();
    let options = options(Words::Ascii);
    assert!(by_trie(&mut trie(2, 3), std::slice::from_ref(&path), &options).unwrap().1 == expected(&[path], &options));
}

#[test]
fn the_first_error_is_reported_and_repeated_ids_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = files(dir.path(), 6);
    let mut lines: Vec<String> = fs::read_to_string(&inputs[2]).unwrap().lines().map(str::to_owned).collect();
    lines[17] = "bad".to_owned();
    fs::write(&inputs[2], lines.join("\n")).unwrap();
    fs::write(&inputs[4], "worse").unwrap();
    for _ in 0..3 {
        let message = by_trie(&mut trie(4, 1), &inputs, &options(Words::Ascii)).unwrap_err();
        assert!(message.contains("2.jsonl:18:1: "), "{message}");
    }
    write_documents(&inputs[2], 400, 3);
    write_documents(&inputs[4], 9_000, 3);
    let message = by_trie(&mut trie(2, 1), &inputs, &options(Words::Ascii)).unwrap_err();
    assert!(message.contains("2.jsonl:1: id \"d400\" is already that of line 1 of"), "{message}");
    fs::write(&inputs[0], "").unwrap();
    let message = by_trie(&mut trie(2, 1), &inputs[..1], &options(Words::Ascii)).unwrap_err();
    assert!(message.contains("empty"), "{message}");
}

/// Makes an indexer whose GPUs are twins, the first of which fails.
fn with_twins(cpu_indexers: usize, gpus: usize) -> TrieIndexer {
    let options = TrieOptions { parsers: 2, cpu_indexers, gpus, buffer_bytes: Some(1 << 20) };
    let twin = |_| -> Box<dyn SlotIndexer> { Box::new(GpuIndexer::new(Box::<Twin>::default())) };
    TrieIndexer::with_gpus(options, (0..gpus).map(twin).collect())
}

#[test]
fn gpus_beside_cpus_and_alone_make_the_same_index() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = files(dir.path(), 6);
    let options = options(Words::Unicode);
    let expected = expected(&inputs, &options);
    for (cpus, gpus) in [(0, 1), (0, 2), (2, 1), (2, 2)] {
        let mut trie = with_twins(cpus, gpus);
        assert!(by_trie(&mut trie, &inputs, &options).unwrap().1 == expected, "{cpus} CPUs, {gpus} GPUs");
        let parts = &trie.report().parts;
        assert!(parts.iter().map(|part| part.is_gpu).eq((0..cpus + gpus).map(|number| number >= cpus)), "{parts:?}");
        assert!(parts.iter().all(|part| part.terms > 0 && part.characters > part.terms), "{parts:?}");
    }
}
