//! `tandem index reorder` from the user's view: equal answers in another order, and errors with their place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tandem::base::ids::DocId;
use tandem::index::{Bm25, Index, IndexBuilder};

use crate::skipped;

const NUM_DOCS: u32 = 700;

fn tandem(dir: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tandem")).current_dir(dir).args(arguments.split_whitespace()).output().unwrap()
}

#[track_caller]
fn succeeds(dir: &Path, arguments: &str) -> String {
    let output = tandem(dir, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refuses(dir: &Path, arguments: &str, expected: &str) {
    let output = tandem(dir, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
    assert_eq!(errors.trim_end(), format!("error: {expected}"), "{arguments}");
}

/// A folder with an index, whose documents have five topics in turn, and a query log.
fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut lists: BTreeMap<String, BTreeMap<u32, u32>> = BTreeMap::new();
    for doc in 0..NUM_DOCS {
        for word in 0..20 {
            // Documents have some of the topic's words, with different frequencies.
            if (doc * 31 + word * 17) % 7 < 3 {
                lists.entry(format!("w{}", doc % 5 * 20 + word)).or_default().insert(doc, 1 + (doc * word) % 4);
            }
        }
        lists.entry("the".into()).or_default().insert(doc, 1 + doc % 9);
    }
    let mut lengths = vec![0; NUM_DOCS as usize];
    lists.values().flatten().for_each(|(&doc, &freq)| lengths[doc as usize] += freq);
    let ids = (0..NUM_DOCS).map(|doc| format!("d{:03}", (doc * 11) % NUM_DOCS)).collect();
    let mut builder = IndexBuilder::new(lengths, ids, Bm25::default());
    for (term, list) in &lists {
        builder.add(term, &list.iter().map(|(&doc, &freq)| (doc, freq)).collect::<Vec<_>>()).unwrap();
    }
    builder.write(&dir.path().join("index")).unwrap();
    fs::write(dir.path().join("log.tsv"), "1\tthe w3\n2\tw25 w26 w27\n3\tw99\n4\tthe\n5\tw0 w20 w40 w60 w80\n")
        .unwrap();
    dir
}

/// Each query's scores in order, and its documents above the last score: ties there are broken by the order of documents.
type Answers = BTreeMap<String, (Vec<String>, BTreeSet<String>)>;

fn answers(run: &str) -> Answers {
    let mut answers: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for line in run.lines() {
        let columns: Vec<&str> = line.split(' ').collect();
        answers.entry(columns[0].into()).or_default().push((columns[4].into(), columns[2].into()));
    }
    let of_query = |rows: Vec<(String, String)>| {
        let last = rows[rows.len() - 1].0.clone();
        let above =
            rows.iter().filter(|(score, _)| *score != last).map(|(score, id)| format!("{id} {score}")).collect();
        (rows.into_iter().map(|(score, _)| score).collect(), above)
    };
    answers.into_iter().map(|(query, rows)| (query, of_query(rows))).collect()
}

#[track_caller]
fn assert_same_answers(dir: &Path, queries: &str, a: &str, b: &str) {
    for (mode, k) in [("or", 10), ("or", 100), ("and", 10)] {
        let run = |index: &str| {
            let options = format!("--queries {queries} --mode {mode} -k {k} --format trec");
            answers(&succeeds(dir, &format!("search {index} {options}")))
        };
        let answers = run(a);
        assert!(!answers.is_empty());
        assert!(answers == run(b), "{b}, mode {mode}, k {k}");
    }
}

fn names(index: &Path) -> Vec<String> {
    let index = Index::open(index).unwrap();
    (0..index.num_docs()).map(|doc| index.external_id(DocId(doc)).into_owned()).collect()
}

#[test]
fn every_order_gives_the_same_answers() {
    let dir = world();
    let at = dir.path();
    let permutation: Vec<u32> = (0..NUM_DOCS).map(|doc| (doc * 101 + 13) % NUM_DOCS).collect();
    let text: String = permutation.iter().map(|new| format!("{new}\n")).collect();
    let scores: String = (0..NUM_DOCS).map(|doc| format!("{}\n", doc * 37 % 100)).collect();
    fs::write(at.join("text"), text).unwrap();
    fs::write(at.join("numbers"), permutation.iter().flat_map(|new| new.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    fs::write(at.join("scores"), scores).unwrap();
    for (out, options) in [
        ("bp", "--permutation-out bp.order"),
        ("bp1", "--by bisection --cpus 1"),
        ("bp2", "--by permutation --file bp.order"),
        ("text-order", "--by permutation --file text"),
        ("number-order", "--by permutation --file numbers"),
        ("score-order", "--by score --file scores"),
        ("length-order", "--by length"),
        ("id-order", "--by id"),
    ] {
        let said = succeeds(at, &format!("index reorder index -o {out} {options}"));
        assert!(said.contains("log2(gap)"), "{said}");
        assert_same_answers(at, "log.tsv", "index", out);
    }
    let file = |name: &str| fs::read(at.join(name).join("index.tandem")).unwrap();
    assert!(file("bp") == file("bp1"), "the order depends on the threads");
    assert!(file("bp") == file("bp2"), "a permutation that was written is read otherwise");
    assert!(file("text-order") == file("number-order"));

    let (old, new) = (names(&at.join("index")), names(&at.join("text-order")));
    assert!(old.iter().zip(&permutation).all(|(name, &place)| new[place as usize] == *name));
    assert!(names(&at.join("id-order")).is_sorted());
    let lengths = Index::open(&at.join("length-order")).unwrap().doc_lengths().to_vec();
    assert!(lengths.is_sorted_by(|a, b| a >= b));
    assert_eq!(names(&at.join("score-order"))[0], old[27], "27 * 37 ends in 99");
}

#[test]
fn refusals_say_what_is_wrong_where() {
    let dir = world();
    let at = dir.path();
    fs::write(at.join("short"), "1\n0\n").unwrap();
    fs::write(at.join("twice"), "0\n".repeat(NUM_DOCS as usize)).unwrap();
    fs::write(at.join("bytes"), [0xff; 12]).unwrap();
    for (options, expected) in [
        ("--by permutation", "--by permutation and --by score need --file FILE"),
        ("--by score", "--by permutation and --by score need --file FILE"),
        ("--file short", "--file is for --by permutation and --by score"),
        ("--max-share 2", "--max-share is 2, expected 0 to 1"),
        ("--by permutation --file short", "short: 2 numbers, the index has 700 documents"),
        ("--by permutation --file twice", "twice:2: number 0 a second time; document 0 has it already"),
        (
            "--by permutation --file bytes",
            "bytes: is no permutation of 700 documents: expected 2800 bytes of 32-bit numbers, or as many lines of \
             text",
        ),
        ("--by score --file short", "short: 2 scores, the index has 700 documents"),
        ("--by score --file none", "none: cannot open: No such file or directory (os error 2)"),
    ] {
        refuses(at, &format!("index reorder index -o out {options}"), expected);
    }
    assert!(!at.join("out").exists());
}

#[test]
fn real_documents_answer_alike_after_bisection() {
    let Some(data) = std::env::var_os("TANDEM_DATA").map(PathBuf::from) else {
        skipped::skipped("TANDEM_DATA is not set");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (at, data) = (dir.path(), data.display());
    succeeds(at, &format!("index import {data}/index/vaswani.ciff -o index"));
    let said = succeeds(at, "index reorder index -o bp");
    // The line has the form "log2(gap)  AFTER bits per posting, before BEFORE".
    let line = said.lines().find(|line| line.starts_with("log2(gap)")).unwrap();
    let bits: Vec<f64> = line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    assert!(bits[0] < bits[1] - 0.4, "{line}");
    assert_same_answers(at, &format!("{data}/queries/vaswani.tsv"), "index", "bp");
}
