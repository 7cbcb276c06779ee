//! Whole builds of small and real collections.

use std::fs;
use std::path::PathBuf;

use super::accumulator::Accumulator;
use super::*;
use crate::corpus::{Tokenizer, Words};
use crate::index::{Bm25, Index, IndexFolder};
use crate::indexing::{BuildSummary, build_from_text};

fn build(input: &Path, dir: &Path, words: Words, threads: usize) -> Result<BuildSummary, String> {
    build_within(input, dir, words, threads, None)
}

fn build_within(
    input: &Path,
    dir: &Path,
    words: Words,
    threads: usize,
    memory_bytes: Option<u64>,
) -> Result<BuildSummary, String> {
    let options = BuildOptions { tokenizer: Tokenizer::new(words), bm25: Bm25::default(), threads, memory_bytes };
    let collection = Collection::open(input, threads).map_err(|e| e.to_string())?;
    build_from_text(collection, dir, &options, &|_| ()).map_err(|e| e.to_string())
}

#[test]
fn a_collection_is_indexed_in_its_order() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("c.jsonl");
    let lines = r#"{"id":"x","title":"Red","text":"red fox"}
{"id":"y","text":""}
{"id":"z","text":"a fox"}"#;
    fs::write(&input, lines).unwrap();
    let summary = build(&input, dir.path(), Words::Unicode, 2).unwrap();
    assert_eq!((summary.documents, summary.tokens), (3, 5));
    let index = Index::open(dir.path()).unwrap();
    let list = |term| index.list(index.term(term).unwrap()).postings().collect::<Vec<_>>();
    assert_eq!(list("red"), [(0, 2)]);
    assert_eq!(list("fox"), [(0, 1), (2, 1)]);
    assert_eq!(index.doc_lengths(), [3, 0, 2]);
    assert_eq!(index.external_id(tandem_base::base::ids::DocId(2)), "z");
}

#[test]
fn repeated_ids_and_empty_collections_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("c.jsonl");
    fs::write(&input, "{\"id\":\"x\",\"text\":\"a\"}\n\n{\"id\":\"x\",\"text\":\"b\"}\n").unwrap();
    let message = build(&input, dir.path(), Words::Ascii, 1).unwrap_err();
    assert!(message.contains("c.jsonl:3: ") && message.contains("line 1"), "{message}");
    for (text, expected) in [("\n", "empty"), ("{\"id\":\"x\",\"text\":\" \"}\n", "no terms")] {
        fs::write(&input, text).unwrap();
        let message = build(&input, dir.path(), Words::Ascii, 1).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
    assert!(Index::open(dir.path()).is_err());
}

/// Writes a collection of several batches: documents of pseudo-random words, about 8 MB per batch.
fn write_large(path: &Path, documents: usize) {
    let mut state = 1_u64;
    let mut out = String::new();
    for id in 0..documents {
        out.push_str(&format!("{{\"id\":{id},\"text\":\""));
        for _ in 0..3_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let spread = (state >> 60) * 4;
            out.push_str(&format!("w{} ", (state >> 33) % (1 << spread.min(16))));
        }
        out.push_str("\"}\n");
    }
    fs::write(path, out).unwrap();
}

fn index_bytes(input: &Path, out: &Path, threads: usize, memory_bytes: Option<u64>, is_on_disk: bool) -> Vec<u8> {
    let summary = build_within(input, out, Words::Ascii, threads, memory_bytes).unwrap();
    assert_eq!(summary.runs_on_disk > 0, is_on_disk, "{summary:?}");
    assert_eq!(fs::read_dir(out).unwrap().count(), 1, "nothing but the index stays");
    fs::read(out.join(crate::index::FILE_NAME)).unwrap()
}

#[test]
fn threads_and_memory_do_not_change_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("c.jsonl");
    write_large(&input, 1_800);
    let whole = index_bytes(&input, &dir.path().join("0"), 1, None, false);
    for (number, (threads, memory_bytes)) in
        (1..).zip([(3, None), (1, Some(0)), (3, Some(0)), (2, Some(4 << 20)), (2, Some(1 << 30))])
    {
        let out = dir.path().join(number.to_string());
        let bytes = index_bytes(&input, &out, threads, memory_bytes, memory_bytes.is_some_and(|bytes| bytes < 5 << 20));
        assert!(bytes == whole, "{threads} threads, memory {memory_bytes:?}");
    }
    assert!(fs::metadata(&input).unwrap().len() > 16 << 20, "several batches");
}

#[test]
fn the_first_error_of_a_large_collection_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("c.jsonl");
    write_large(&input, 1_800);
    let mut lines: Vec<String> = fs::read_to_string(&input).unwrap().lines().map(str::to_owned).collect();
    lines[900] = "bad".to_owned();
    lines[1_500] = "worse".to_owned();
    fs::write(&input, lines.join("\n")).unwrap();
    for _ in 0..2 {
        let message = build(&input, dir.path(), Words::Ascii, 3).unwrap_err();
        assert!(message.contains("c.jsonl:901:1: "), "{message}");
    }
}

#[test]
fn small_real_collections_have_the_published_figures() {
    let Some(data) = std::env::var_os("TANDEM_DATA").map(PathBuf::from) else {
        crate::skipped::skipped("TANDEM_DATA is not set");
        return;
    };
    let figures = [
        ("cranfield", 1_400, 226_560, 7_471, 122_884),
        ("cacm", 3_204, 174_913, 9_552, 112_833),
        ("vaswani", 11_429, 479_163, 12_189, 351_590),
    ];
    for (name, documents, tokens, terms, postings) in figures {
        let dir = tempfile::tempdir().unwrap();
        let input = data.join(format!("corpus/{name}.jsonl.zst"));
        build(&input, dir.path(), Words::Ascii, 2).unwrap();
        let index = Index::open(dir.path()).unwrap();
        let got = (index.num_docs(), index.num_tokens(), index.num_terms(), index.num_postings());
        assert_eq!(got, (documents, tokens, terms, postings), "{name}");
    }
}

#[test]
fn a_build_that_was_interrupted_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("c.jsonl"), dir.path().join("out"));
    write_large(&input, 600);
    let whole = index_bytes(&input, &dir.path().join("whole"), 1, None, false);
    // A killed build leaves some runs, a torn one, and a part of the index.
    let tokenizer = Tokenizer::new(Words::Ascii);
    let options = BuildOptions { tokenizer, bm25: Bm25::default(), threads: 1, memory_bytes: Some(0) };
    let leave = |batches: usize| {
        fs::create_dir_all(&out).unwrap();
        fs::write(out.join(".tandem-index.tandem-dead.part"), "x").unwrap();
        let mut collection = Collection::open(&input, 1).unwrap();
        let key = format!("{} {}", collection.identity(), options.tokenizer.name());
        let store = Store::open(&out, &key, &options).unwrap();
        for number in 0..batches {
            let Some(batch) = collection.next_batch().unwrap() else { break };
            // Every other batch is missing, as if another thread had not finished it.
            if number % 2 == 0 {
                let mut accumulator = Accumulator::default();
                accumulator.add(number as u64, &batch, &options.tokenizer).unwrap();
                store.take_last(&mut accumulator).unwrap();
            }
        }
        fs::write(out.join(".tandem-build/run-999"), "torn").unwrap();
    };
    for batches in [1, 4, 1000] {
        leave(batches);
        let summary = build_within(&input, &out, Words::Ascii, 2, Some(0)).unwrap();
        assert!(summary.resumed_bytes > 0 && summary.resumed_bytes < summary.bytes, "{summary:?}");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "nothing but the index stays");
        assert!(fs::read(out.join(crate::index::FILE_NAME)).unwrap() == whole);
    }
    // A build of another text or tokenizer starts anew.
    leave(4);
    let summary = build_within(&input, &out, Words::Unicode, 2, Some(0)).unwrap();
    assert_eq!(summary.resumed_bytes, 0);
}

#[test]
fn the_second_of_two_writers_to_a_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("c.jsonl");
    fs::write(&input, "{\"id\":\"x\",\"text\":\"a\"}\n").unwrap();
    let folder = IndexFolder::claim(&dir.path().join("out")).unwrap();
    let message = build(&input, &dir.path().join("out"), Words::Ascii, 1).unwrap_err();
    assert!(message.contains("another process is writing it"), "{message}");
    drop(folder);
    build(&input, &dir.path().join("out"), Words::Ascii, 1).unwrap();
}
