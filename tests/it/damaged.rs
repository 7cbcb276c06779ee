//! Index files with a changed byte and valid checksums: they are refused, or answer every query somehow, without a panic.
//!
//! No accident makes such a file. The fuzz target `index_file` finds cases that are missing here.

use std::fs;
use std::ops::Range;
use std::sync::Arc;

use tandem::base::ids::QueryId;
use tandem::index::{Bm25, FILE_NAME, Index, IndexBuilder};
use tandem::query::Query;
use tandem::search::Executor;
use tandem::search::cpu::{Algorithm, CpuExecutor};
use tandem::traffic::Mode;
use xxhash_rust::xxh3::xxh3_64;

const NUM_DOCS: u32 = 3000;
/// Lengths of lists: one posting, a few, nearly a block, a block, some blocks; dense lists have probe forms.
const LENGTHS: [u32; 8] = [1, 3, 127, 128, 300, 900, 1500, 2900];
/// The section table: its range in bytes, and the length of a row.
const TABLE: Range<usize> = 64..416;
const ROW: usize = 32;
/// The offset of the header's checksum, which covers all bytes before it.
const HEADER_CHECKSUM: usize = 504;
/// Approximate number of bytes changed in each section.
const CHANGES: usize = 120;

/// A case found by fuzzing: documents past the last one ended a search with a panic.
#[test]
fn forged_bytes_are_refused_or_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let good = good(&dir);
    let (mut opened, mut refused) = (0, 0);
    for row in TABLE.step_by(ROW) {
        let section = section(&good, row);
        for at in section.clone().step_by(section.len().div_ceil(CHANGES).max(1)) {
            for change in [0x01, 0x80, 0xff] {
                let mut file = good.clone();
                file[at] ^= change;
                seal(&mut file, row);
                fs::write(dir.path().join(FILE_NAME), file).unwrap();
                match Index::open(dir.path()) {
                    Ok(index) => {
                        search_all(&Arc::new(index));
                        opened += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(opened > 100 && refused > 100, "{opened} opened, {refused} refused: the changes miss what they should hit");
}

fn good(dir: &tempfile::TempDir) -> Vec<u8> {
    let ids = (0..NUM_DOCS).map(|doc| format!("d{doc}")).collect();
    let mut builder = IndexBuilder::new((0..NUM_DOCS).map(|doc| 10 + doc % 90).collect(), ids, Bm25::default());
    for (position, len) in LENGTHS.into_iter().enumerate() {
        let freq = |i: u32| if i % 50 == 49 { 200 + i } else { 1 + i % 7 };
        let postings: Vec<(u32, u32)> = (0..len).map(|i| (i * (NUM_DOCS / len), freq(i))).collect();
        builder.add(&word(position), &postings).unwrap();
    }
    builder.write(dir.path()).unwrap();
    fs::read(dir.path().join(FILE_NAME)).unwrap()
}

fn word(position: usize) -> String {
    format!("t{position}")
}

fn number(file: &[u8], at: usize) -> usize {
    u64::from_le_bytes(*file[at..].first_chunk().unwrap()) as usize
}

/// The range of a section, from its row in the table.
fn section(file: &[u8], row: usize) -> Range<usize> {
    let (start, len) = (number(file, row + 8), number(file, row + 16));
    start..start + len
}

/// Corrects the checksums of a one-piece section and of the header.
fn seal(file: &mut [u8], row: usize) {
    let checksum = xxh3_64(&xxh3_64(&file[section(file, row)]).to_le_bytes());
    file[row + 24..row + ROW].copy_from_slice(&checksum.to_le_bytes());
    let checksum = xxh3_64(&file[..HEADER_CHECKSUM]);
    file[HEADER_CHECKSUM..HEADER_CHECKSUM + 8].copy_from_slice(&checksum.to_le_bytes());
}

fn search_all(index: &Arc<Index>) {
    let executor = CpuExecutor::new(Arc::clone(index), index.built_with());
    let mut executors = Algorithm::ALL.map(|algorithm| executor.clone_for_worker().with_algorithm(algorithm));
    let words: Vec<String> = (0..LENGTHS.len()).map(word).collect();
    let mut hits = Vec::new();
    for words in [&words[..], &words[3..5], &words[4..6], &words[5..], &words[6..], &words[..1]] {
        let Some(query) = Query::prepare(QueryId(0), &words.join(" "), words, index) else { continue };
        for mode in Mode::ALL {
            for executor in &mut executors {
                executor.search(&query, mode, 10, &mut hits).unwrap();
                for hit in &hits {
                    let _ = index.external_id(hit.doc);
                }
            }
        }
    }
}
