//! CIFF files: any other file gives an error with a place, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem::corpus::ciff::CiffReader;
use tandem::index::Bm25;
use tandem::indexing::exchange::{ImportOptions, import};

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("index");
    let options = ImportOptions { bm25: Bm25::default(), tokenizer: "ascii".into(), may_repeat: false };
    let path = dir.path().join("x.ciff");
    std::fs::write(&path, bytes).expect("a temporary file");
    if let Ok(mut source) = CiffReader::open(&path) {
        let _ = import(&mut source, &out, &options, &|_| {});
    }
});
