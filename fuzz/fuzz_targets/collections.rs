//! Collections of text: any file gives its documents or an error with a place, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem::corpus::{Collection, Cutter, Tokenizer, Words};

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else {
        return;
    };
    // The beginning of a file determines its form; the mutator would have to guess it.
    let (name, start): (_, &[u8]) = match kind % 6 {
        0 => ("x.jsonl", b"{\"id\":1,\"text\":\""),
        1 => ("x.warc", b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nContent-Length: "),
        2 => ("x.trec", b"<DOC>\n<DOCNO>1</DOCNO>\n"),
        3 => ("x.gz", b"\x1f\x8b\x08"),
        4 => ("x.zst", b"\x28\xb5\x2f\xfd"),
        _ => ("x", b""),
    };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join(name);
    std::fs::write(&path, [start, bytes].concat()).expect("a temporary file");
    // The file is read alone, and in a folder of text files.
    for path in [path.as_path(), dir.path()] {
        let Ok(mut collection) = Collection::open(path, 1) else { continue };
        let mut cutter = Cutter::default();
        while let Ok(Some(batch)) = collection.next_batch() {
            let read = batch.for_each(|document| {
                for words in [Words::Ascii, Words::Unicode] {
                    Tokenizer::new(words).for_each_word(&document.text, &mut cutter, |word| assert!(!word.is_empty()));
                }
            });
            if read.is_err() {
                break;
            }
        }
    }
});
