//! `tandem index reorder`: renumbers the documents of an index.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;
use tandem_engine::index::{FILE_NAME, Index};
use tandem_engine::indexing::BuildError;
use tandem_engine::indexing::reorder::{BisectionOptions, Permutation, apply, bisect, log_gap_bits, read_scores};
use tandem_model::base::ids::DocId;
use tandem_model::files::{check_writable, write_atomically};

use super::{IndexOut, give};
use crate::defaults::progress;
use crate::failure::Failure;

/// Renumber documents: similar ones together (smaller, faster), or by a given order.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tandem index reorder my-index -o smaller")]
pub(super) struct Arguments {
    /// Folder of the index
    index: PathBuf,
    #[command(flatten)]
    out: IndexOut,
    /// New order of the documents
    #[arg(long, value_enum, default_value_t = By::Bisection)]
    by: By,
    /// File of the order. With --by permutation: the new number of each document, as 32-bit little-endian numbers (as PISA
    /// writes them) or one per line. With --by score: the score of each document, one per line. Both in the order of the index
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// With --by bisection: ignore terms in a larger share of the documents, which change little [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    max_share: Option<f64>,
    /// File for the new number of each document, in the format of PISA
    #[arg(long, value_name = "FILE")]
    permutation_out: Option<PathBuf>,
    /// Number of CPU cores to use; the order does not depend on it [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Similar documents together, by recursive graph bisection: a smaller index, faster searches
    Bisection,
    /// An order from --file
    Permutation,
    /// Highest score of --file first, for example PageRank
    Score,
    /// Longest document first
    Length,
    /// External ids in byte order: for collections whose ids are URLs or paths
    Id,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check(arguments)?;
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = arguments.cpus {
        pool = pool.num_threads(threads.into());
    }
    let pool = pool.build().map_err(|e| BuildError::Threads(e.to_string()))?;
    pool.install(|| reorder(arguments))
}

fn check(arguments: &Arguments) -> Result<(), Failure> {
    match (arguments.by, &arguments.file) {
        (By::Permutation | By::Score, None) => Err(Failure::input("--by permutation and --by score need --file FILE")),
        (By::Bisection | By::Length | By::Id, Some(_)) => {
            Err(Failure::input("--file is for --by permutation and --by score"))
        }
        _ => Ok(()),
    }?;
    if let Some(share) = arguments.max_share {
        if arguments.by != By::Bisection {
            return Err(Failure::input("--max-share is for --by bisection"));
        }
        if !(0.0..=1.0).contains(&share) {
            return Err(Failure::input(format!("--max-share is {share}, expected 0 to 1")));
        }
    }
    arguments.out.check()?;
    if let Some(path) = &arguments.permutation_out {
        if *path == arguments.out.out.join(FILE_NAME) {
            return Err(Failure::input("--permutation-out and -o name the same file"));
        }
        check_writable(path)?;
    }
    Ok(())
}

fn reorder(arguments: &Arguments) -> Result<(), Failure> {
    let index = Index::open(&arguments.index)?;
    let before = log_gap_bits(&index);
    let began = Instant::now();
    let permutation = permutation(arguments, &index)?;
    let order_s = began.elapsed().as_secs_f64();

    let began = Instant::now();
    let bar = progress("terms", index.num_terms().into());
    let applied = apply(&index, &permutation, &arguments.out.out, &|terms| bar.set_position(terms));
    bar.finish_and_clear();
    applied?;
    if let Some(path) = &arguments.permutation_out {
        write_atomically(path, |out| permutation.write_to(out))?;
    }
    let write_s = began.elapsed().as_secs_f64();

    // Reading the index back checks that it is complete.
    let reordered = Index::open(&arguments.out.out)?;
    outln!("documents  {:>15}", reordered.num_docs());
    outln!("postings   {:>15}", reordered.num_postings());
    outln!("log2(gap)  {:>15.3} bits per posting, before {before:.3}", log_gap_bits(&reordered));
    let threads = rayon::current_num_threads();
    outln!("time       {order_s:>15.2} s for the order, {write_s:.2} s to write, {threads} threads");
    outln!("index      {}", arguments.out.out.display());
    let more = json!({
        "log2_gap_bits": log_gap_bits(&reordered),
        "log2_gap_before_bits": before,
        "order_time_s": order_s,
        "write_time_s": write_s,
    });
    give(&reordered, &arguments.out.out, more);
    Ok(())
}

fn permutation(arguments: &Arguments, index: &Index) -> Result<Permutation, Failure> {
    let num_docs = index.num_docs();
    // Checked before: an order from a file has one.
    let file = arguments.file.as_deref().unwrap_or(Path::new(""));
    Ok(match arguments.by {
        By::Bisection => {
            let bar = progress("documents, all levels", 0);
            let mut options = BisectionOptions::default();
            options.max_share = arguments.max_share.unwrap_or(options.max_share);
            let permutation = bisect(index, options, &|done, of| {
                bar.set_length(of);
                bar.set_position(done);
            });
            bar.finish_and_clear();
            permutation
        }
        By::Permutation => Permutation::read(file, num_docs)?,
        By::Score => {
            let scores = read_scores(file, num_docs)?;
            Permutation::sorted_by(num_docs, |a, b| scores[b as usize].total_cmp(&scores[a as usize]))
        }
        By::Length => {
            let lengths = index.doc_lengths();
            Permutation::sorted_by(num_docs, |a, b| lengths[b as usize].cmp(&lengths[a as usize]))
        }
        By::Id => {
            let ids: Vec<_> = (0..num_docs).map(|doc| index.external_id(DocId(doc))).collect();
            Permutation::sorted_by(num_docs, |a, b| ids[a as usize].cmp(&ids[b as usize]))
        }
    })
}
