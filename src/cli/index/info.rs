//! `tandem index info`: describes an index.

use std::path::PathBuf;

use crate::cli::Failure;
use crate::index::{Index, Section};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folder of the index
    index: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let index = Index::open(&arguments.index)?;
    print_counts(&index);
    print_sizes(&index);
    print_lengths(&index);
    Ok(())
}

fn print_counts(index: &Index) {
    let bm25 = index.built_with();
    let blocks = index.block_headers();
    let full = blocks.iter().filter(|block| block.len() == crate::index::BLOCK_LEN).count();
    println!("documents    {:>15}", index.num_docs());
    println!("tokens       {:>15}   {:.1} a document", index.num_tokens(), index.average_length());
    println!("terms        {:>15}", index.num_terms());
    println!("postings     {:>15}", index.num_postings());
    println!("blocks       {:>15}   {full} full ones", blocks.len());
    println!("tokenizer    {}", index.tokenizer_name());
    println!("bm25         k1 {}, b {}, idf {}", bm25.k1, bm25.b, format!("{:?}", bm25.idf).to_lowercase());
    println!("fingerprint  {:016x}", index.fingerprint());
}

fn print_sizes(index: &Index) {
    let postings = index.num_postings() as f64;
    let doc_bytes: u64 = index.block_headers().iter().map(|block| block.doc_words() as u64 * 4).sum();
    let block_bytes: u64 = index.block_headers().iter().map(|block| block.words() as u64 * 4).sum();
    let header_bytes = index.section_bytes(Section::Blocks);
    let payload_bytes = index.section_bytes(Section::Payload);
    println!("\n{:<24} {:>15} {:>18}", "part", "bytes", "bytes a posting");
    let row = |name: &str, bytes: u64| println!("{name:<24} {bytes:>15} {:>18.3}", bytes as f64 / postings);
    row("document ids", doc_bytes);
    row("frequencies", block_bytes - doc_bytes);
    row("padding", payload_bytes - block_bytes);
    row("block headers", header_bytes);
    row("term entries", index.section_bytes(Section::Terms));
    row("dictionary", index.section_bytes(Section::Dictionary));
    row("document lengths", index.section_bytes(Section::DocLengths));
    row("external ids", index.section_bytes(Section::ExternalIdEnds) + index.section_bytes(Section::ExternalIds));
    let all = payload_bytes + header_bytes + index.section_bytes(Section::Terms);
    println!("bits a posting in lists, headers and term entries: {:.2}", all as f64 * 8.0 / postings);
}

fn print_lengths(index: &Index) {
    let mut lengths: Vec<u32> = index.term_entries().iter().map(|entry| entry.doc_freq).collect();
    lengths.sort_unstable();
    let at = |share: f64| lengths[((lengths.len() - 1) as f64 * share) as usize];
    println!(
        "\nlist lengths: median {}, p90 {}, p99 {}, p99.9 {}, longest {}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    println!("{:<24} {:>15} {:>18} {:>10}", "length", "lists", "postings", "share");
    let mut rest = lengths.as_slice();
    let mut first = 1_u64;
    while !rest.is_empty() {
        let count = rest.partition_point(|&length| u64::from(length) < first * 2);
        let (these, longer) = rest.split_at(count);
        if count > 0 {
            let postings: u64 = these.iter().map(|&length| u64::from(length)).sum();
            let range = if first == 1 { "1".to_owned() } else { format!("{first} to {}", first * 2 - 1) };
            let share = 100.0 * postings as f64 / index.num_postings() as f64;
            println!("{range:<24} {count:>15} {postings:>18} {share:>8.1} %");
        }
        rest = longer;
        first *= 2;
    }
}
