//! `tandem index info`: describes an index.

use std::path::PathBuf;

use rayon::prelude::*;

use crate::cli::Failure;
use crate::ids::TermId;
use crate::index::{BLOCK_LEN, Index};
use crate::measure::{PartSize, index_sizes};
use crate::quantile::nearest_rank;

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
    let full: u64 = index.long_lists().iter().map(|list| u64::from(list.doc_freq) / BLOCK_LEN as u64).sum();
    let probes = index.long_lists().iter().filter(|list| list.probe_row != 0).count();
    outln!("documents    {:>15}", index.num_docs());
    outln!("tokens       {:>15}   {:.1} a document", index.num_tokens(), index.average_length());
    outln!(
        "terms        {:>15}   {} long lists, {probes} with a probe form",
        index.num_terms(),
        index.long_lists().len()
    );
    outln!("postings     {:>15}", index.num_postings());
    outln!("blocks       {:>15}   {full} full ones", index.blocks().len());
    outln!("tokenizer    {}", index.tokenizer_name());
    outln!("bm25         k1 {}, b {}, idf {}", bm25.k1, bm25.b, bm25.idf);
    outln!("fingerprint  {:016x}", index.fingerprint());
}

fn print_sizes(index: &Index) {
    outln!("\n{:<24} {:>15} {:>18}", "part", "bytes", "bits a posting");
    for PartSize { name, bits } in index_sizes(index) {
        outln!("{name:<24} {:>15} {:>18.3}", bits.div_ceil(8), bits as f64 / index.num_postings() as f64);
    }
}

fn print_lengths(index: &Index) {
    let mut lengths: Vec<u32> =
        (0..index.num_terms()).into_par_iter().map(|term| index.list(TermId(term)).doc_freq()).collect();
    lengths.sort_unstable();
    let at = |share| nearest_rank(&lengths, share).unwrap_or(0);
    outln!(
        "\nlist lengths: median {}, p90 {}, p99 {}, p99.9 {}, longest {}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    outln!("{:<24} {:>15} {:>18} {:>10}", "length", "lists", "postings", "share");
    let mut rest = lengths.as_slice();
    let mut first = 1_u64;
    while !rest.is_empty() {
        let count = rest.partition_point(|&length| u64::from(length) < first * 2);
        let (these, longer) = rest.split_at(count);
        if count > 0 {
            let postings: u64 = these.iter().map(|&length| u64::from(length)).sum();
            let range = if first == 1 { "1".to_owned() } else { format!("{first} to {}", first * 2 - 1) };
            let share = 100.0 * postings as f64 / index.num_postings() as f64;
            outln!("{range:<24} {count:>15} {postings:>18} {share:>8.1} %");
        }
        rest = longer;
        first *= 2;
    }
}
