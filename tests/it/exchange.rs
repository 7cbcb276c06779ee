//! `tandem index import` and `export` from the user's view: round trips, real files, and errors with their place.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tandem::base::ids::{DocId, TermId};
use tandem::index::{Bm25, Index, IndexBuilder};

use crate::skipped;

/// The sample of 3 documents made by Anserini and distributed by `pisa-engine/ciff`.
const TOY_LISTS: &str = "01 0:1
03 0:1
30 0:1
content 0:1
enough 2:1
head 0:1 1:1 2:1
simpl 1:1 2:1
text 0:1 1:1 2:3
veri 1:1
";

fn tandem(dir: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tandem")).current_dir(dir).args(arguments.split_whitespace()).output().unwrap()
}

/// Runs `tandem` and returns its output on both streams.
#[track_caller]
fn succeeds(dir: &Path, arguments: &str) -> String {
    let output = tandem(dir, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments}: {text}");
    text
}

#[track_caller]
fn refuses(dir: &Path, arguments: &str, expected: &str) {
    let output = tandem(dir, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
    assert_eq!(errors.trim_end(), format!("error: {expected}"), "{arguments}");
}

/// All lists as text, one term on each line.
fn lists(index: &Index) -> String {
    let line = |term| {
        let list = index.list(term);
        let postings = list.postings().map(|(doc, freq)| format!(" {doc}:{freq}"));
        index.term_text(term) + &postings.collect::<String>() + "\n"
    };
    (0..index.num_terms()).map(|term| line(TermId(term))).collect()
}

fn names(index: &Index) -> Vec<String> {
    (0..index.num_docs()).map(|doc| index.external_id(DocId(doc)).into_owned()).collect()
}

#[track_caller]
fn assert_same(a: &Index, b: &Index) {
    assert_eq!(a.doc_lengths(), b.doc_lengths());
    assert!(names(a) == names(b), "external ids differ");
    assert!(lists(a) == lists(b), "lists differ");
}

/// A folder with an index of three documents.
fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let ids = ["a", "b c", "d"].map(String::from).to_vec();
    let mut builder = IndexBuilder::new(vec![3, 2, 0], ids, Bm25::default()).tokenizer("unicode");
    builder.add("apple", &[(0, 1), (1, 2)]).unwrap();
    builder.add("pear", &[(0, 2)]).unwrap();
    builder.write(&dir.path().join("index")).unwrap();
    dir
}

/// The folder of real data; a test without it notes that it was skipped.
fn data() -> Option<PathBuf> {
    let data = std::env::var_os("TANDEM_DATA").map(PathBuf::from);
    if data.is_none() {
        skipped::skipped("TANDEM_DATA is not set");
    }
    data
}

#[test]
fn an_index_goes_out_and_comes_back_in_every_format() {
    let dir = world();
    let original = Index::open(&dir.path().join("index")).unwrap();
    for file in ["x.ciff", "x.ciff.gz"] {
        let said = succeeds(dir.path(), &format!("index export index -o {file}"));
        assert!(said.contains(file), "{said}");
        let said = succeeds(dir.path(), &format!("index import {file} -o back --force"));
        assert!(said.contains("tokenizer  unicode\n"), "{said}");
        assert_same(&original, &Index::open(&dir.path().join("back")).unwrap());
        succeeds(
            dir.path(),
            &format!("index import {file} -o named --force --tokenizer unicode+stem=english --k1 0.9"),
        );
        let named = Index::open(&dir.path().join("named")).unwrap();
        assert_eq!((named.tokenizer_name(), named.built_with().k1), ("unicode+stem=english", 0.9));
    }
    let found = succeeds(dir.path(), "search back apple --mode or");
    assert!(found.contains("b c"), "{found}");
}

#[test]
fn refusals_say_what_is_wrong_where() {
    let dir = world();
    let at = dir.path();
    succeeds(at, "index export index -o x.ciff");
    let whole = fs::read(at.join("x.ciff")).unwrap();
    fs::write(at.join("short.ciff"), &whole[..whole.len() - 3]).unwrap();
    fs::write(at.join("short.ciff.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    fs::write(at.join("text.ciff"), "apple pear").unwrap();
    fs::write(at.join("index.json"), "{}").unwrap();
    fs::create_dir(at.join("folder.ciff")).unwrap();
    let short = whole.len() - 3;
    for (arguments, expected) in [
        (
            "index import index.json -o out",
            "index.json: the name ends in none of .ciff, .ciff.gz and .jsonl (--format names the format)".into(),
        ),
        ("index import none.ciff -o out", "none.ciff: cannot open: No such file or directory (os error 2)".into()),
        ("index import folder.ciff -o out", "folder.ciff: is a folder, expected a file".into()),
        (
            "index import short.ciff -o out",
            format!("short.ciff: byte {short}: the file ends inside a message (truncated?)"),
        ),
        ("index import short.ciff.gz -o out", "short.ciff.gz: byte 0: cannot read: unexpected end of file".into()),
        (
            "index import text.ciff -o out",
            "text.ciff: byte 3: wire type 4, expected 0, 1, 2 or 5 (damaged, or no CIFF file?)".into(),
        ),
        (
            "index import x.ciff -o out --tokenizer porter",
            "--tokenizer: tokenizer \"porter\", expected `unicode` or `ascii`, with options".into(),
        ),
        ("index import x.ciff -o out --b 2", "--b is 2, expected 0 to 1".into()),
        ("index export index -o x.zip", "x.zip: the name ends in neither .ciff nor .ciff.gz".into()),
    ] {
        refuses(at, arguments, &expected);
    }
    assert!(!at.join("out/index.tandem").exists());
}

#[test]
fn the_toy_collection_of_another_engine_is_read() {
    let Some(data) = data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let toy = data.join("index/toy-complete-20200309.ciff");
    let said = succeeds(dir.path(), &format!("index import {} -o toy --tokenizer ascii+stem=english", toy.display()));
    assert!(!said.contains("note:"), "{said}");
    let index = Index::open(&dir.path().join("toy")).unwrap();
    assert_eq!(lists(&index), TOY_LISTS);
    assert_eq!(names(&index), ["WSJ_1", "TREC_DOC_1", "DOC222"]);
    assert_eq!(index.doc_lengths(), [6, 4, 6]);
    // A second export equals the first byte for byte, except for the description.
    succeeds(dir.path(), "index export toy -o toy.ciff");
    assert_eq!(
        after_description(&fs::read(dir.path().join("toy.ciff")).unwrap()),
        after_description(&fs::read(toy).unwrap())
    );
}

#[test]
fn vaswani_is_one_index_from_ciff_and_from_text() {
    let Some(data) = data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (at, data) = (dir.path(), data.display());
    succeeds(at, &format!("index import {data}/index/vaswani.ciff -o ciff"));
    succeeds(at, &format!("index build {data}/corpus/vaswani.jsonl.zst --tokenizer ascii -o text"));
    let [ciff, text] = ["ciff", "text"].map(|name| Index::open(&at.join(name)).unwrap());
    assert_eq!(text.num_postings(), 351_590);
    assert_same(&ciff, &text);
    assert_eq!(ciff.fingerprint(), text.fingerprint());

    succeeds(at, "index export ciff -o vaswani.ciff");
    let (ours, original) = (fs::read(at.join("vaswani.ciff")), fs::read(format!("{data}/index/vaswani.ciff")));
    let (ours, original) = (ours.unwrap(), original.unwrap());
    assert!(after_description(&ours) == after_description(&original), "vaswani.ciff differs");
}

/// A CIFF file's header up to its last field, the description, and the rest of the file.
fn after_description(file: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    let mut varint = || {
        let start = at;
        while file[at] >= 0x80 {
            at += 1;
        }
        at += 1;
        file[start..at].iter().rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f))
    };
    let length = varint();
    let (header, rest) = file[at..].split_at(length);
    // Key 0x42 is field 8, text. The fields before it are numbers, with a double of 9 bytes among them.
    let double = header.iter().position(|&byte| byte == 0x39).unwrap();
    assert_eq!(header[double + 9], 0x42);
    (&header[..double + 9], rest)
}
