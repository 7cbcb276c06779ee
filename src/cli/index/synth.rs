//! `tandem index synth`: makes an index of any size without any text.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

use super::check_out;
use crate::build::synth::{SynthOptions, build_synthetic};
use crate::cli::Failure;
use crate::files::check_writable;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Documents, 1000 or more; Ding et al. 2009 searched 25.2 million
    #[arg(long, value_name = "N")]
    docs: u32,
    /// Folder of the index
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Chooses everything that is random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mean tokens a document, 20 to 5000; postings a document are 0.46 times this
    #[arg(long, value_name = "L", default_value_t = SynthOptions::MEAN_LENGTH)]
    mean_length: f64,
    /// Terms; 200 N^0.6 unless given
    #[arg(long, value_name = "V")]
    vocabulary: Option<u32>,
    /// Queries to draw; their lists hold 0.148 N postings on average, as in Ding et al. 2009
    #[arg(long, value_name = "M", default_value_t = 0)]
    num_queries: usize,
    /// File of the queries; queries.tsv in the index's folder unless given
    #[arg(long, value_name = "FILE", requires = "num_queries")]
    queries_out: Option<PathBuf>,
    /// CPU cores to use; all unless given. The index doesn't depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_out(&arguments.out)?;
    if let Some(path) = &arguments.queries_out {
        check_writable(path)?;
    }
    let options = SynthOptions {
        num_docs: arguments.docs,
        seed: arguments.seed,
        mean_length: arguments.mean_length,
        num_terms: arguments.vocabulary,
        num_queries: arguments.num_queries,
        queries_path: arguments.queries_out.clone(),
        threads: arguments.cpus.and_then(|threads| NonZeroUsize::new(threads.into())),
    };
    let style = ProgressStyle::with_template("{wide_bar} {human_pos} of about {human_len} postings, {eta} left");
    let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let made = build_synthetic(&options, &arguments.out, &|done, expected| {
        bar.set_length(expected.max(done));
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = made?;
    let postings = report.num_postings as f64;
    outln!("documents   {:>15}", report.num_docs);
    outln!("terms       {:>15}", report.num_terms);
    outln!("postings    {:>15}", report.num_postings);
    outln!("occurrences {:>15}", report.num_occurrences);
    let bits = report.index_bytes as f64 * 8.0 / postings;
    outln!("size        {:>15}, {bits:.2} bits a posting with everything", HumanBytes(report.index_bytes).to_string());
    let rate = HumanCount((postings / report.seconds) as u64);
    outln!("time        {:>15.2} s, {rate} postings/s", report.seconds);
    if let Some((queries, path)) = &report.queries {
        outln!("queries     {queries:>15} in {}", path.display());
        outln!("            {:>15.0} postings in the lists of a query, on average", report.mean_query_postings);
    }
    outln!("index       {}", arguments.out.display());
    Ok(())
}
