//! `tandem index synth`: makes a synthetic index of any size.

use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

use serde_json::json;
use tandem_engine::index::FILE_NAME;
use tandem_engine::indexing::BuildError;
use tandem_engine::indexing::synth::{SynthOptions, TextOptions, build_synthetic, write_text};
use tandem_model::files::{check_writable, write_atomically};

use super::IndexOut;
use crate::defaults::progress;
use crate::failure::Failure;
use crate::output::{is_json, result};

/// `SynthOptions::FITTED_CLUSTERING` and `FITTED_CORRELATION` as options.
const FITTED_CLUSTERING: &str = "0.1";
const FITTED_CORRELATION: &str = "1";

/// Make a synthetic index, with the statistics of real text, or synthetic text.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem index synth --docs 1000000 --num-queries 1000 -o synthetic\n  tandem index synth --text --bytes 1GB -o text.jsonl"
)]
pub(super) struct Arguments {
    /// Number of documents, at least 1000; Ding et al. 2009 used 25.2 million. With --text any number [default with --text: no
    /// limit]
    #[arg(long, value_name = "N", required_unless_present = "text")]
    docs: Option<u64>,
    /// Make text instead, as JSON lines; --out is then a file, or - for the standard output
    #[arg(long, conflicts_with_all = ["num_queries", "vocabulary"])]
    text: bool,
    /// With --text: size of the text, such as 50GB
    #[arg(long, value_name = "BYTES", requires = "text", value_parser = super::parameters::bytes)]
    bytes: Option<u64>,
    #[command(flatten)]
    out: IndexOut,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mean number of tokens per document, 20 to 5000; postings per document are 0.46 times this
    #[arg(long, value_name = "L", default_value_t = SynthOptions::MEAN_LENGTH)]
    mean_length: f64,
    /// Number of terms [default: 200 N^0.6 for N documents]
    #[arg(long, value_name = "V")]
    vocabulary: Option<u32>,
    /// Unevenness of the places of a term's documents, 0 to 0.3 [without a value: as in the English Wikipedia; default: as in the shipped
    /// workloads, about 0.2]
    #[arg(long, value_name = "C", num_args = 0..=1, default_missing_value = FITTED_CLUSTERING, conflicts_with = "text")]
    clustering: Option<f64>,
    /// Correlation of the terms of a topic, in documents and in queries, 0 to 1 [without a value: as in the English Wikipedia]
    #[arg(long, value_name = "R", num_args = 0..=1, default_value_t = 0.0, default_missing_value = FITTED_CORRELATION, conflicts_with = "text")]
    correlation: f64,
    /// Number of queries to draw; their lists have 0.148 N postings on average, as in Ding et al. 2009
    #[arg(long, value_name = "M", default_value_t = 0)]
    num_queries: usize,
    /// File of the queries [default: queries.tsv in the folder of the index]
    #[arg(long, value_name = "FILE", requires = "num_queries")]
    queries_out: Option<PathBuf>,
    /// Number of CPU cores to use; the index does not depend on it [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let out = &arguments.out.out;
    if arguments.queries_out.as_ref().is_some_and(|path| path == out || *path == out.join(FILE_NAME)) {
        return Err(Failure::input("--queries-out and -o name the same file"));
    }
    if arguments.text {
        return text(arguments);
    }
    arguments.out.check()?;
    if let Some(path) = &arguments.queries_out {
        check_writable(path)?;
    }
    let options = SynthOptions {
        num_docs: num_docs(arguments)?,
        seed: arguments.seed,
        mean_length: arguments.mean_length,
        num_terms: arguments.vocabulary,
        num_queries: arguments.num_queries,
        queries_path: arguments.queries_out.clone(),
        clustering: arguments.clustering,
        correlation: arguments.correlation,
        threads: arguments.cpus.and_then(|threads| NonZeroUsize::new(threads.into())),
    };
    let style = ProgressStyle::with_template("{wide_bar} {human_pos} of about {human_len} postings, {eta} left");
    let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let made = build_synthetic(&options, &arguments.out.out, &|done, expected| {
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
    outln!("size        {:>15}, {bits:.2} bits per posting in all", HumanBytes(report.index_bytes).to_string());
    let rate = HumanCount((postings / report.seconds) as u64);
    outln!("time        {:>15.2} s, {rate} postings/s", report.seconds);
    if let Some((queries, path)) = &report.queries {
        outln!("queries     {queries:>15} in {}", path.display());
        outln!("            {:>15.0} postings in the lists of a query, on average", report.mean_query_postings);
    }
    outln!("index       {}", arguments.out.out.display());
    let (queries, queries_path) = report.queries.as_ref().map(|(n, path)| (n, path.display().to_string())).unzip();
    let made = json!({
        "path": arguments.out.out.display().to_string(),
        "documents": report.num_docs,
        "terms": report.num_terms,
        "postings": report.num_postings,
        "occurrences": report.num_occurrences,
        "queries": queries,
        "queries_path": queries_path,
        "mean_query_postings": report.mean_query_postings,
        "index_bytes": report.index_bytes,
        "time_s": report.seconds,
    });
    result("index", made);
    Ok(())
}

/// Documents of an index.
fn num_docs(arguments: &Arguments) -> Result<u32, Failure> {
    let docs = arguments.docs.unwrap_or_default();
    let range = SynthOptions::DOCS;
    let fits = u32::try_from(docs).ok().filter(|docs| range.contains(docs));
    fits.ok_or_else(|| Failure::input(format!("--docs is {docs}, expected {} to {}", range.start(), range.end())))
}

/// Writes synthetic text.
fn text(arguments: &Arguments) -> Result<(), Failure> {
    if !(1.0..=1e6).contains(&arguments.mean_length) {
        return Err(Failure::input(format!("--mean-length is {}, expected 1 to 1000000", arguments.mean_length)));
    }
    let options = TextOptions {
        seed: arguments.seed,
        first_doc: 0,
        num_docs: arguments.docs,
        max_bytes: arguments.bytes,
        mean_length: arguments.mean_length,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(arguments.cpus.map_or(0, usize::from)).build();
    let pool = pool.map_err(|e| BuildError::Threads(e.to_string()))?;
    let bar = progress("bytes of text", arguments.bytes.unwrap_or(0));
    let report = |_: u64, bytes: u64| bar.set_position(bytes);
    if arguments.out.out == Path::new("-") {
        if is_json() {
            return Err(Failure::input("--format json and -o - both take the standard output: name a file"));
        }
        let written = pool.install(|| write_text(&options, &mut std::io::stdout(), &report));
        bar.finish_and_clear();
        return match written {
            // The reader has closed its end.
            Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other.map(|_| ())?),
        };
    }
    if options.num_docs.is_none() && options.max_bytes.is_none() {
        return Err(Failure::input("--text into a file needs an end: --docs N or --bytes BYTES"));
    }
    let (docs, bytes) =
        write_atomically(&arguments.out.out, |out| pool.install(|| write_text(&options, out, &report)))?;
    bar.finish_and_clear();
    outln!("documents   {docs:>15}");
    outln!("text        {:>15}", HumanBytes(bytes).to_string());
    outln!("file        {}", arguments.out.out.display());
    let path = arguments.out.out.display().to_string();
    result("text", json!({"path": path, "documents": docs, "text_bytes": bytes}));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_a_value_have_the_fitted_ones() {
        assert_eq!(FITTED_CLUSTERING.parse(), Ok(SynthOptions::FITTED_CLUSTERING));
        assert_eq!(FITTED_CORRELATION.parse(), Ok(SynthOptions::FITTED_CORRELATION));
    }
}
