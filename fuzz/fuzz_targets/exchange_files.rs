//! Files of other engines: any other file gives an error with a place, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem::corpus::ciff::CiffReader;
use tandem::corpus::pisa::PisaReader;
use tandem::index::Bm25;
use tandem::indexing::exchange::{ImportOptions, import};

fuzz_target!(|bytes: &[u8]| {
    let Some((&mode, bytes)) = bytes.split_first() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("index");
    let options = ImportOptions { bm25: Bm25::default(), tokenizer: "ascii".into(), may_repeat: false };
    if mode & 1 == 0 {
        let path = dir.path().join("x.ciff");
        std::fs::write(&path, bytes).expect("a temporary file");
        if let Ok(mut source) = CiffReader::open(&path) {
            let _ = import(&mut source, &out, &options, &|_| {});
        }
        return;
    }
    // The bytes are the contents of the files, cut at the separator.
    let mut parts = bytes.split(|&byte| byte == 0xfe);
    for extension in ["docs", "freqs", "sizes", "terms", "documents"] {
        let part = parts.next().unwrap_or_default();
        std::fs::write(dir.path().join("x").with_extension(extension), part).expect("a temporary file");
    }
    if let Ok(mut source) = PisaReader::open(&dir.path().join("x.docs")) {
        let _ = import(&mut source, &out, &options, &|_| {});
    }
});
