//! Tests of written and read collections, and of files with one error.

use std::fs;
use std::path::Path;

use super::*;
use crate::corpus::{ListSource, TermList};

fn list(term: &str, docs: &[u32], freqs: &[u32]) -> TermList {
    TermList { term: term.into(), docs: docs.into(), freqs: freqs.into() }
}

fn numbers(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn write_sample(path: &Path) {
    let mut writer = PisaWriter::create(path, &[4, 5, 0]).unwrap();
    writer.list("apple", &[0, 1], &[4, 1]).unwrap();
    writer.list("pear", &[1], &[4]).unwrap();
    ["a", "b b", ""].iter().for_each(|name| writer.document(name).unwrap());
    writer.finish().unwrap();
}

fn read(path: &Path) -> Result<(Vec<String>, Vec<TermList>), String> {
    let all = || {
        let mut reader = PisaReader::open(path)?;
        let mut lists = Vec::new();
        let mut list = TermList::default();
        while reader.next_list(&mut list)? {
            lists.push(list.clone());
        }
        assert_eq!(reader.num_lists(), lists.len() as u64);
        Ok((reader.take_documents().external_ids, lists))
    };
    all().map_err(|e: crate::files::InputError| {
        let message = e.to_string();
        message.split_once("x.").map_or(message.clone(), |(_, rest)| rest.to_owned())
    })
}

#[test]
fn what_is_written_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.docs");
    write_sample(&path);
    assert_eq!(fs::read(&path).unwrap(), numbers(&[1, 3, 2, 0, 1, 1, 1]));
    assert_eq!(fs::read(dir.path().join("x.freqs")).unwrap(), numbers(&[2, 4, 1, 1, 4]));
    assert_eq!(fs::read(dir.path().join("x.sizes")).unwrap(), numbers(&[3, 4, 5, 0]));
    assert_eq!(fs::read(dir.path().join("x.terms")).unwrap(), b"apple\npear\n");
    let lists = vec![list("apple", &[0, 1], &[4, 1]), list("pear", &[1], &[4])];
    assert_eq!(read(&path), Ok((vec!["a".into(), "b b".into(), String::new()], lists)));
}

#[test]
fn terms_in_any_order_come_in_byte_order_and_numbers_stand_in_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.docs");
    write_sample(&path);
    fs::write(dir.path().join("x.terms"), "z\na").unwrap();
    let (z, a) = (list("z", &[0, 1], &[4, 1]), list("a", &[1], &[4]));
    assert_eq!(read(&path).unwrap().1, [a, z]);

    fs::remove_file(dir.path().join("x.terms")).unwrap();
    fs::remove_file(dir.path().join("x.documents")).unwrap();
    fs::write(&path, numbers(&[[1, 3].as_slice(), &[1, 0].repeat(11)].concat())).unwrap();
    fs::write(dir.path().join("x.freqs"), numbers(&[1, 2].repeat(11))).unwrap();
    let (names, lists) = read(&path).unwrap();
    assert!(names.is_empty());
    let terms: Vec<&str> = lists.iter().map(|list| list.term.as_str()).collect();
    assert_eq!(terms, ["0", "1", "10", "2", "3", "4", "5", "6", "7", "8", "9"]);
}

#[test]
fn refusals_name_file_and_place() {
    for (file, bytes, expected) in [
        ("docs", vec![1, 0, 0], "docs: 3 bytes, expected 32-bit numbers"),
        ("docs", numbers(&[]), "docs: byte 0: the file ends"),
        ("docs", numbers(&[2, 3, 2, 0, 1, 1, 1]), "docs: byte 0: expected a sequence of one number"),
        ("docs", numbers(&[1, 0, 2, 0, 1, 1, 1]), "docs: byte 4: 0 documents"),
        ("docs", numbers(&[1, 3, 2, 0, 1, 1]), "freqs: 20 bytes, expected 8 less than the 24 of"),
        ("docs", numbers(&[1, 3, 2, 0, 1, 9, 1]), "docs: byte 20: a sequence of 9 numbers where 1 are left"),
        ("docs", numbers(&[1, 3, 2, 0, 1, u32::MAX, 1]), "docs: byte 20: a sequence of 4294967295 numbers"),
        ("docs", numbers(&[1, 3, 2, 1, 1, 1, 1]), "docs: byte 16: the list of \"apple\" has document 1 after 1"),
        ("docs", numbers(&[1, 3, 2, 0, 3, 1, 1]), "docs: byte 16: the list of \"apple\" has document 3 of 3"),
        ("docs", numbers(&[1, 3, 0, 3, 0, 1, 2]), "docs: byte 8: the list of \"apple\" is empty"),
        ("freqs", numbers(&[1, 4, 2, 1, 4]), "freqs: byte 0: the list of \"apple\" has 1 frequencies for 2 documents"),
        ("freqs", numbers(&[2, 4, 1, 1, 0]), "freqs: byte 16: the list of \"pear\" has frequency 0"),
        ("sizes", numbers(&[2, 4, 5]), "sizes: byte 0: expected one sequence of 3 lengths"),
        ("sizes", numbers(&[3, 4, 5, 0, 1]), "sizes: byte 0: expected one sequence of 3 lengths"),
        ("terms", b"apple\n".to_vec(), "docs: byte 20: continues after the lists of all 1 terms"),
        ("terms", b"apple\npear\nplum\n".to_vec(), "docs: byte 28: the file ends, expected another sequence"),
        ("terms", b"pear\npear\n".to_vec(), "terms: term \"pear\" is on two lines"),
        ("terms", b"pear\n\n\n".to_vec(), "terms: 3 terms for the 2 lists of"),
        ("terms", b"apple\np\xff\n".to_vec(), "terms:2: is not UTF-8"),
        ("documents", b"a\nb\n".to_vec(), "documents: 2 lines, expected a name for each of the 3"),
        ("documents", b"a\nb\nc\nd".to_vec(), "documents:4: more lines than the 3 documents"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.docs");
        write_sample(&path);
        fs::write(dir.path().join("x").with_extension(file), bytes).unwrap();
        let message = read(&path).unwrap_err();
        assert!(message.starts_with(expected), "{message:?}, expected {expected:?}");
    }
}

#[test]
fn a_line_break_in_a_name_is_refused_and_old_files_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.docs");
    write_sample(&path);
    let mut writer = PisaWriter::create(&path, &[1]).unwrap();
    let message = writer.list("a\nb", &[0], &[1]).unwrap_err().to_string();
    assert!(message.contains("term \"a\\nb\" has a line break"), "{message}");
    drop(writer);
    assert_eq!(read(&path).unwrap().1.len(), 2);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5);
}
