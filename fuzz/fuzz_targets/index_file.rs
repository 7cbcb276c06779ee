//! Index files: a good one with changed bytes, or arbitrary bytes. A file that opens must answer queries.

#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use tandem::base::ids::{QueryId, TermId};
use tandem::index::{Bm25, FILE_NAME, Index, IndexBuilder};
use tandem::query::Query;
use tandem::search::Executor;
use tandem::search::cpu::{Algorithm, CpuExecutor};
use tandem::traffic::Mode;
use xxhash_rust::xxh3::xxh3_64;

/// Words of a good index's smallest kinds of lists: one posting, a few, a block, a block and more,
/// nearly all documents.
const LENGTHS: [u32; 7] = [1, 2, 3, 127, 128, 300, 900];
const NUM_DOCS: u32 = 1000;

fuzz_target!(|bytes: &[u8]| {
    let Some((&mode, bytes)) = bytes.split_first() else {
        return;
    };
    let file = if mode == 0xff {
        bytes.to_vec()
    } else {
        let mut file = good().clone();
        for change in bytes.as_chunks::<5>().0 {
            let [place @ .., value] = *change;
            let place = u32::from_le_bytes(place) as usize % file.len();
            file[place] ^= value;
        }
        // Some files are also cut short.
        if mode == 1 {
            file.truncate(bytes.len() * 61 % file.len());
        }
        // Checksums protect from accidents. The checks behind them must hold without checksums.
        seal(&mut file);
        file
    };
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join(FILE_NAME), file).expect("a temporary file");
    if let Ok(index) = Index::open(dir.path()) {
        read_all(index);
    }
});

/// Corrects the checksums. The section table begins at byte 64, with rows of kind, offset, length, checksum (8 bytes
/// each); a section here is one piece of 4 MiB at most; the header's own checksum is in bytes 504 to 511.
fn seal(file: &mut [u8]) {
    if file.len() < 512 {
        return;
    }
    for row in (64..416).step_by(32) {
        let number = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().expect("inside the header")) as usize;
        let (start, len) = (number(row + 8), number(row + 16));
        let Some(section) = start.checked_add(len).and_then(|end| file.get(start..end)) else {
            continue;
        };
        let pieces: Vec<u8> = section.chunks(4 << 20).flat_map(|piece| xxh3_64(piece).to_le_bytes()).collect();
        file[row + 24..row + 32].copy_from_slice(&xxh3_64(&pieces).to_le_bytes());
    }
    let checksum = xxh3_64(&file[..504]);
    file[504..512].copy_from_slice(&checksum.to_le_bytes());
}

/// The bytes of an index with lists of all kinds.
fn good() -> &'static Vec<u8> {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let ids = (0..NUM_DOCS).map(|doc| format!("d{doc}")).collect();
        let lengths = (0..NUM_DOCS).map(|doc| 10 + doc % 90).collect();
        let mut builder = IndexBuilder::new(lengths, ids, Bm25::default());
        for (position, len) in LENGTHS.into_iter().enumerate() {
            let postings: Vec<(u32, u32)> =
                (0..len).map(|i| (i * (NUM_DOCS / len).max(1), 1 + i % 7 * (i % 50 / 49) * 40)).collect();
            builder.add(&format!("t{position}"), &postings).expect("a good list");
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        builder.write(dir.path()).expect("a good index");
        std::fs::read(dir.path().join(FILE_NAME)).expect("the index just written")
    })
}

/// Reads the whole index, and searches.
fn read_all(index: Index) {
    let index = Arc::new(index);
    for term in 0..index.num_terms().min(50) {
        let _ = index.term_text(TermId(term));
        let list = index.list(TermId(term));
        let _ = list.postings().count();
        if let Some(probe) = list.probe() {
            for doc in 0..index.num_docs().min(2000) {
                let _ = probe.freq(doc);
            }
        }
    }
    for doc in 0..index.num_docs().min(100) {
        let _ = index.external_id(tandem::base::ids::DocId(doc));
    }
    let words: Vec<String> = (0..LENGTHS.len()).map(|position| format!("t{position}")).collect();
    let first = CpuExecutor::new(Arc::clone(&index), index.built_with());
    let mut executors = Algorithm::ALL.map(|algorithm| first.clone_for_worker().with_algorithm(algorithm));
    let mut hits = Vec::new();
    for words in [&words[..], &words[3..5], &words[5..], &words[..1]] {
        let Some(query) = Query::prepare(QueryId(0), &words.join(" "), words, &index) else {
            continue;
        };
        for mode in [Mode::And, Mode::AndOr] {
            let _ = executors[0].search(&query, mode, 10, &mut hits);
        }
        for executor in &mut executors {
            let _ = executor.search(&query, Mode::Or, 10, &mut hits);
        }
    }
}
