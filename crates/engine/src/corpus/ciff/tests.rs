//! Tests of written and read files, and of files with one error.

use std::io::Write;

use super::wire::put_varint;
use super::*;
use crate::corpus::{ListSource, TermList};

fn header(num_lists: u32, num_docs: u32) -> CiffHeader {
    CiffHeader {
        version: 1,
        num_lists,
        num_docs,
        total_lists: num_lists,
        total_docs: num_docs,
        total_tokens: 9,
        average_length: 3.0,
        description: "d".into(),
    }
}

/// A file of two lists over three documents of 4, 5 and 0 tokens.
fn sample() -> Vec<u8> {
    let mut writer = CiffWriter::new(Vec::new(), &header(2, 3)).unwrap();
    writer.list("apple", &[0, 1], &[4, 1]).unwrap();
    writer.list("pear", &[1], &[4]).unwrap();
    for (name, length) in [("a", 4), ("b", 5), ("c", 0)] {
        writer.document(name, length).unwrap();
    }
    writer.into_inner()
}

/// A file of these messages, each after its length.
fn file_of(messages: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for message in messages {
        put_varint(&mut bytes, message.len() as u64);
        bytes.extend_from_slice(message);
    }
    bytes
}

fn list(term: &str, docs: &[u32], freqs: &[u32]) -> TermList {
    TermList { term: term.into(), docs: docs.into(), freqs: freqs.into() }
}

fn read(bytes: &[u8]) -> Result<(Vec<TermList>, Vec<String>), String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.ciff");
    std::fs::write(&path, bytes).unwrap();
    let all = || {
        let mut reader = CiffReader::open(&path)?;
        let mut lists = Vec::new();
        let mut list = TermList::default();
        while reader.next_list(&mut list)? {
            lists.push(list.clone());
        }
        Ok((lists, reader.notes()))
    };
    all().map_err(|e: tandem_base::files::InputError| e.to_string().split_once("x.ciff: ").unwrap().1.to_owned())
}

#[test]
fn what_is_written_is_read() {
    let expected = vec![list("apple", &[0, 1], &[4, 1]), list("pear", &[1], &[4])];
    assert_eq!(read(&sample()), Ok((expected.clone(), vec![])));
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&sample()).unwrap();
    assert_eq!(read(&gz.finish().unwrap()), Ok((expected, vec![])), "gzip is told by its first bytes, not by its name");
}

#[test]
fn lists_in_any_order_come_in_byte_order() {
    let mut writer = CiffWriter::new(Vec::new(), &header(3, 2)).unwrap();
    for (term, docs) in [("b\u{0}\n", &[0_u32, 1][..]), ("ß", &[1]), ("", &[0])] {
        writer.list(term, docs, &vec![2; docs.len()]).unwrap();
    }
    writer.document("", 4).unwrap();
    writer.document("", 4).unwrap();
    let bytes = writer.into_inner();
    let expected = vec![list("", &[0], &[2]), list("b\u{0}\n", &[0, 1], &[2, 2]), list("ß", &[1], &[2])];
    let (lists, notes) = read(&bytes).unwrap();
    assert_eq!(lists, expected);
    assert!(notes[0].contains("9 tokens, the documents' lengths sum to 8"), "{notes:?}");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&bytes).unwrap();
    assert_eq!(read(&gz.finish().unwrap()).unwrap().0, expected);
}

#[test]
fn unknown_fields_are_passed_over() {
    let head = [0x08, 1, 0x10, 1, 0x18, 1, 0x50, 0x80, 1, 0x5d, 1, 2, 3, 4, 0x61, 1, 2, 3, 4, 5, 6, 7, 8];
    let postings = [0x22, 2, 0x10, 7, 0x10, 1, 0x18, 7, 0x0a, 1, b'x', 0x2a, 1, 9];
    let bytes = file_of(&[&head, &postings, &[0x18, 7]]);
    let (lists, notes) = read(&bytes).unwrap();
    assert_eq!(lists, [list("x", &[0], &[7])]);
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn every_truncated_file_is_refused() {
    let whole = sample();
    for len in 0..whole.len() {
        let message = read(&whole[..len]).unwrap_err();
        assert!(message.starts_with(&format!("byte {len}: the file ends")), "{len}: {message}");
    }
}

#[test]
fn no_byte_that_is_changed_makes_the_reader_panic() {
    let whole = sample();
    for at in 0..whole.len() {
        for flip in [1, 2, 8, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            // Some changes are legal, for example those of a name.
            let _ = read(&bytes);
        }
    }
}

#[test]
fn refusals_name_the_byte() {
    let head: &[u8] = &[0x08, 1, 0x10, 1, 0x18, 2];
    let docs: [&[u8]; 2] = [&[0x18, 7], &[0x08, 1, 0x18, 7]];
    let good: &[u8] = &[0x0a, 1, b'x', 0x10, 1, 0x18, 7, 0x22, 2, 0x10, 7];
    assert!(read(&file_of(&[head, good, docs[0], docs[1]])).is_ok());
    let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let with = |list: &[u8]| file_of(&[head, list, docs[0], docs[1]]);
    let negative = [&[0x0a, 1, b'x', 0x10, 1, 0x22, 11, 0x10][..], &minus_one].concat();
    for (bytes, expected) in [
        (vec![], "byte 0: the file ends"),
        (b"{\"id\": 1}".to_vec(), "byte 1: the collection's number of lists is text or a message, expected a number"),
        (file_of(&[&[0x08, 1, 0x0b]]), "byte 3: wire type 3, expected 0, 1, 2 or 5"),
        (file_of(&[&[0x08, 2]]), "byte 0: CIFF version 2, this build reads version 1"),
        (
            file_of(&[&[&[0x10][..], &minus_one].concat()]),
            "byte 2: the number of lists is -1, expected 0 to 2147483647",
        ),
        (file_of(&[head, good, docs[1], docs[0]]), "byte 19: document 1 where 0 was expected"),
        (file_of(&[head, good, docs[0]]), "byte 22: the file ends after 1 of the 2 documents"),
        (
            file_of(&[head, good, docs[0], docs[1], &[]]),
            "byte 27: the file continues after the last of its 2 documents",
        ),
        (file_of(&[head, good, good]), "byte 20: a document's number is text or a message, expected a number"),
        (with(&[0x0a, 1, b'x', 0x10, 1]), "byte 7: the list of \"x\" has no postings"),
        (with(&[0x0a, 1, b'x', 0x10, 2, 0x22, 2, 0x10, 7]), "byte 7: the list of \"x\" has 1 postings, its document"),
        (with(&negative), "byte 16: a posting's frequency is -1, expected 0 to 2147483647"),
        (
            with(&[0x0a, 1, b'x', 0x10, 1, 0x22, 2, 0x08, 1]),
            "byte 14: the list of \"x\" has document 1 with frequency 0",
        ),
        (with(&[0x0a, 1, b'x', 0x22, 4, 0x08, 2, 0x10, 1]), "byte 12: the list of \"x\" has document 2, the header"),
        (
            with(&[0x0a, 1, b'x', 0x10, 2, 0x22, 2, 0x10, 1, 0x22, 2, 0x10, 1]),
            "byte 18: the list of \"x\" has document 0 twice",
        ),
        (with(&[0x0a, 1, 0xff]), "byte 10: a list's term is not UTF-8"),
        (with(&[0x0a, 9, b'x']), "byte 9: a message of 9 bytes where 1 are left"),
        (with(&[0x0a, 1, b'x', 0x10]), "byte 12: a field continues past the end of its message"),
        (file_of(&[head, &[0x0a, 1, b'x', 0x0b]]), "byte 12: the file ends after 0 of the 2 documents"),
        // These sizes are impossible for a file.
        ([file_of(&[head]), vec![0xff, 0xff, 0xff, 0xff, 0x7f, 0x0a, 1, b'x']].concat(), "byte 15: the file ends"),
        (
            [file_of(&[head]), vec![0xff, 0xff, 0xff, 0xff, 0x7f, 0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat(),
            "byte 18: a list's term has 4294967295 bytes, expected at most 2147483647",
        ),
    ] {
        let message = read(&bytes).unwrap_err();
        assert!(message.starts_with(expected), "{message:?}, expected {expected:?}");
    }
}
