//! `tandem index info`: describes an index.

use std::path::PathBuf;

use rayon::prelude::*;
use serde_json::{Value, json};
use tandem_engine::index::{BLOCK_LEN, Index, PartSize, index_sizes};
use tandem_model::base::ids::TermId;
use tandem_model::base::quantile::nearest_rank;

use super::give;
use crate::failure::Failure;
use crate::output::is_verbose;

/// Describe an index: counts, sizes, bits per posting, list lengths.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tandem index info my-index")]
pub(super) struct Arguments {
    /// Folder of the index
    index: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let index = Index::open(&arguments.index)?;
    print_counts(&index);
    print_sizes(&index);
    print_lengths(&index);
    give(&index, &arguments.index, facts(&index));
    Ok(())
}

/// The facts of an index for programs.
fn facts(index: &Index) -> Value {
    let bm25 = index.built_with();
    let bits_a_posting = |bits: u64| bits as f64 / index.num_postings() as f64;
    let part = |part: PartSize| json!({"part": part.name, "size_bytes": part.bits.div_ceil(8), "bits_a_posting": bits_a_posting(part.bits)});
    let (lengths, groups) = list_lengths(index);
    let at = |share| nearest_rank(&lengths, share);
    let group = |group: &LengthGroup| {
        let LengthGroup { first, lists, postings } = *group;
        json!({"from_postings": first, "to_postings": first * 2 - 1, "lists": lists, "postings": postings})
    };
    json!({
        "mean_document_tokens": index.average_length(),
        "long_lists": index.long_lists().len(),
        "blocks": index.blocks().len(),
        "bm25": {"k1": bm25.k1, "b": bm25.b, "idf": bm25.idf.to_string()},
        "parts": index_sizes(index).into_iter().map(part).collect::<Vec<_>>(),
        "list_length_postings": {"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p999": at(0.999), "max": at(1.0)},
        "lists_by_length": groups.iter().map(group).collect::<Vec<_>>(),
    })
}

fn print_counts(index: &Index) {
    let bm25 = index.built_with();
    let full: u64 = index.long_lists().iter().map(|list| u64::from(list.doc_freq) / BLOCK_LEN as u64).sum();
    let probes = index.long_lists().iter().filter(|list| list.probe_row != 0).count();
    outln!("documents    {:>15}", index.num_docs());
    outln!("tokens       {:>15}   {:.1} per document", index.num_tokens(), index.average_length());
    outln!(
        "terms        {:>15}   {} long lists, {probes} with a probe form",
        index.num_terms(),
        index.long_lists().len()
    );
    outln!("postings     {:>15}", index.num_postings());
    outln!("blocks       {:>15}   {full} full ones", index.blocks().len());
    outln!("tokenizer    {}", index.tokenizer_name());
    match index.is_quantised() {
        true => outln!("bm25         quantised: postings hold impacts"),
        false => outln!("bm25         k1 {}, b {}, idf {}", bm25.k1, bm25.b, bm25.idf),
    }
    outln!("fingerprint  {:016x}", index.fingerprint());
}

fn print_sizes(index: &Index) {
    outln!("\n{:<24} {:>15} {:>18}", "part", "bytes", "bits per posting");
    for PartSize { name, bits } in index_sizes(index) {
        outln!("{name:<24} {:>15} {:>18.3}", bits.div_ceil(8), bits as f64 / index.num_postings() as f64);
    }
    outln!("probe form: a second copy of a dense list, in which single documents are looked up");
}

/// Lists of like lengths: from `first` postings to less than twice as many.
struct LengthGroup {
    first: u64,
    lists: usize,
    postings: u64,
}

/// The lengths of all lists, ascending, and in groups.
fn list_lengths(index: &Index) -> (Vec<u32>, Vec<LengthGroup>) {
    let mut lengths: Vec<u32> =
        (0..index.num_terms()).into_par_iter().map(|term| index.list(TermId(term)).doc_freq()).collect();
    lengths.sort_unstable();
    let mut groups = Vec::new();
    let mut rest = lengths.as_slice();
    let mut first = 1_u64;
    while !rest.is_empty() {
        let lists = rest.partition_point(|&length| u64::from(length) < first * 2);
        let (these, longer) = rest.split_at(lists);
        if lists > 0 {
            groups.push(LengthGroup { first, lists, postings: these.iter().map(|&length| u64::from(length)).sum() });
        }
        rest = longer;
        first *= 2;
    }
    (lengths, groups)
}

fn print_lengths(index: &Index) {
    let (lengths, groups) = list_lengths(index);
    let at = |share| nearest_rank(&lengths, share).unwrap_or(0);
    outln!(
        "\nlist lengths: median {}, p90 {}, p99 {}, p99.9 {}, longest {}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    if !is_verbose() {
        return;
    }
    outln!("{:<24} {:>15} {:>18} {:>10}", "length", "lists", "postings", "share");
    for LengthGroup { first, lists, postings } in groups {
        let range = if first == 1 { "1".to_owned() } else { format!("{first} to {}", first * 2 - 1) };
        let share = 100.0 * postings as f64 / index.num_postings() as f64;
        outln!("{range:<24} {lists:>15} {postings:>18} {share:>8.1} %");
    }
}
