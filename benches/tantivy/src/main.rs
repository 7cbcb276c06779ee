//! Indexes a file of JSON lines (`id`, `title`, `text`; plain or `.zst`) with Tantivy, and prints how long it took.
//!
//! ```sh
//! cargo run --release --manifest-path benches/tantivy/Cargo.toml -- articles.jsonl.zst FOLDER THREADS [freqs|positions]
//! ```
//!
//! As close as possible to `tandem index build --tokenizer ascii`: one field of text, words in lower case, lists with
//! frequencies and without positions, lengths kept, text not stored, names stored. It ends when all is on disk and Tantivy has
//! ended its merges.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Instant;

use tantivy::schema::{IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{LowerCaser, SimpleTokenizer, TextAnalyzer};
use tantivy::{Index, IndexWriter, doc};

/// Bytes of memory for each writer's thread.
const MEMORY: usize = 1 << 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, folder, threads, rest @ ..] = &arguments[..] else {
        return Err("expected FILE FOLDER THREADS [freqs|positions]".into());
    };
    let option = match rest.first().map(String::as_str) {
        None | Some("freqs") => IndexRecordOption::WithFreqs,
        Some("positions") => IndexRecordOption::WithFreqsAndPositions,
        Some(other) => return Err(format!("{other}: expected freqs or positions").into()),
    };
    let mut schema = Schema::builder();
    let id = schema.add_text_field("id", STRING | STORED);
    let words = TextFieldIndexing::default().set_tokenizer("words").set_index_option(option).set_fieldnorms(true);
    let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(words));
    std::fs::create_dir_all(folder)?;
    let index = Index::create_in_dir(Path::new(folder), schema.build())?;
    index.tokenizers().register("words", TextAnalyzer::builder(SimpleTokenizer::default()).filter(LowerCaser).build());
    let started = Instant::now();
    let threads: usize = threads.parse()?;
    let mut writer: IndexWriter = index.writer_with_num_threads(threads, MEMORY * threads)?;
    let input = std::fs::File::open(file)?;
    let input: Box<dyn Read> =
        if file.ends_with(".zst") { Box::new(zstd::Decoder::new(input)?) } else { Box::new(input) };
    let (mut documents, mut bytes) = (0u64, 0u64);
    for line in BufReader::with_capacity(1 << 20, input).lines() {
        let line = line?;
        bytes += line.len() as u64 + 1;
        let document: serde_json::Value = serde_json::from_str(&line)?;
        let part = |name: &str| document[name].as_str().unwrap_or_default();
        writer.add_document(doc!(id => part("id"), text => format!("{} {}", part("title"), part("text"))))?;
        documents += 1;
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    let seconds = started.elapsed().as_secs_f64();
    println!("{documents} documents, {bytes} bytes, {seconds:.2} s, {:.1} MB/s", bytes as f64 / 1e6 / seconds);
    Ok(())
}
