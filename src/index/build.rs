//! `tandem index build`: makes an index from text.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

use serde_json::json;
use tandem_engine::corpus::{Collection, Skipped, Tokenizer, Words};
use tandem_engine::index::{Index, IndexError};
use tandem_engine::indexing::{BuildError, BuildOptions, BuildSummary, Progress, Stages, build_from_text};
use tandem_model::files::{InputError, free_memory_bytes, read_lines};

use super::parameters::Bm25Arguments;
use super::{Duplicates, IndexOut, give, say_repeated};
use crate::failure::Failure;
use crate::options::names::choice;
use crate::output::is_verbose;

/// Text, and the rules that cut it into terms.
#[derive(Debug, clap::Args)]
pub(super) struct TextArguments {
    /// Files of JSON lines (`id`, `text`, optional `title`), WARC records or TREC documents, plain or compressed; or folders of
    /// such files or of text files. `-` is the standard input. Several inputs form one collection in their order. Hidden files
    /// are left out
    #[arg(required = true, value_name = "INPUT")]
    pub(super) inputs: Vec<PathBuf>,
    /// Rule that cuts text into words
    #[arg(long, value_parser = choice::<Words>(), default_value = Words::Unicode.name())]
    tokenizer: Words,
    /// Language of the stemmer (english, german, ...); porter is the original algorithm for English
    #[arg(long, value_name = "LANG")]
    stem: Option<String>,
    /// Words that are left out: `english` for a built-in list, or a file of words
    #[arg(long, value_name = "english|FILE")]
    stop_words: Option<String>,
    #[command(flatten)]
    bm25: Bm25Arguments,
}

/// Index text: JSON lines, WARC, TREC or folders of files, compressed or not.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem index build articles.jsonl.zst -o my-index\n  tandem index build crawl.warc.gz -o my-index --stem english --memory 2GiB"
)]
pub(super) struct Arguments {
    #[command(flatten)]
    text: TextArguments,
    #[command(flatten)]
    out: IndexOut,
    #[command(flatten)]
    duplicates: Duplicates,
    /// Memory limit of the process, such as 2GiB. Lists beyond it go to disk, into the folder of the index, where an interrupted
    /// build continues. A note says if more memory is needed [default: half of the free memory]
    #[arg(long, value_name = "BYTES", value_parser = super::parameters::bytes)]
    memory: Option<u64>,
    /// Number of CPU cores to use; the index does not depend on it [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let options = arguments.text.checked(arguments.memory, arguments.cpus)?;
    arguments.out.check()?;
    let mut collection = Collection::open_all(arguments.text.inputs.clone(), options.threads)?;
    if arguments.duplicates.keeps_last() {
        collection.allow_repeated_ids();
    }
    errln!("{}", collection.found());
    let (summary, repeated) = arguments.duplicates.apply(&arguments.out.out, |folder| {
        build_showing(collection, folder, &options).map_err(|e| match e {
            BuildError::Index(IndexError::Collection(what)) => InputError::file(&arguments.text.inputs[0], what).into(),
            e => Failure::from(e),
        })
    })?;
    let seconds = started.elapsed().as_secs_f64();
    // Reading the index back checks that it is complete.
    let index = Index::read_back(&arguments.out.out)?;
    let reading_back_s = started.elapsed().as_secs_f64() - seconds;
    let Stages { inverting, reader_waited, checking, merging, finishing } = summary.stages;
    let [inverting_s, reader_waited_s, checking_s, merging_s, finishing_s] =
        [inverting, reader_waited, checking, merging, finishing].map(|stage| stage.as_secs_f64());
    outln!("documents  {:>15}", index.num_docs());
    outln!("tokens     {:>15}", index.num_tokens());
    outln!("terms      {:>15}", index.num_terms());
    outln!("postings   {:>15}", index.num_postings());
    let megabytes = summary.bytes as f64 / 1e6;
    outln!("text       {megabytes:>15.1} MB");
    outln!("time       {seconds:>15.2} s, {:.1} MB/s on {} threads", megabytes / seconds, options.threads);
    if is_verbose() {
        outln!("inverting  {inverting_s:>15.2} s, of which the reader waited {reader_waited_s:.2} s");
        outln!("checking   {checking_s:>15.2} s, merging {merging_s:.2} s, finishing {finishing_s:.2} s");
        outln!("read back  {reading_back_s:>15.2} s");
    }
    if summary.runs_on_disk > 0 {
        let resumed_mb = summary.resumed_bytes as f64 / 1e6;
        let resumed = if resumed_mb > 0.0 { format!(", {resumed_mb:.1} MB done before") } else { String::new() };
        outln!("runs       {:>15} temporary files{resumed}", summary.runs_on_disk);
    }
    if summary.skipped != Skipped::default() {
        outln!("skipped    {:>15}: {}", summary.skipped.total(), summary.skipped);
    }
    say_repeated(repeated);
    outln!("tokenizer  {}", index.tokenizer_name());
    outln!("index      {}", arguments.out.out.display());
    let more = json!({
        "text_bytes": summary.bytes,
        "runs_on_disk": summary.runs_on_disk,
        "resumed_bytes": summary.resumed_bytes,
        "repeated": repeated,
        "skipped": summary.skipped.total(),
        "threads": options.threads,
        "time_s": seconds,
        "inverting_s": inverting_s,
        "reader_waited_s": reader_waited_s,
        "checking_s": checking_s,
        "merging_s": merging_s,
        "finishing_s": finishing_s,
        "reading_back_s": reading_back_s,
    });
    give(&index, &arguments.out.out, more);
    Ok(())
}

/// Builds an index, with progress on standard error.
pub(crate) fn build_showing(
    collection: Collection,
    out: &Path,
    options: &BuildOptions,
) -> Result<BuildSummary, BuildError> {
    let expected_bytes = collection.expected_bytes();
    let template = match expected_bytes {
        Some(_) => "{elapsed} {wide_bar} {msg}, {eta} left",
        None => "{spinner} {elapsed} {msg}",
    };
    let bar = ProgressBar::new(expected_bytes.unwrap_or(0))
        .with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(100));
    let summary = build_from_text(collection, out, options, &|progress| match progress {
        Progress::Reading { documents, bytes } => {
            bar.set_position(bytes);
            bar.set_message(format!("read {} documents, {}", HumanCount(documents), HumanBytes(bytes)));
        }
        Progress::Writing { done, of } => {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
            bar.set_message(format!("wrote {done} of {of} ranges of terms"));
        }
        Progress::Exceeding(need) => {
            let given = HumanBytes(options.memory_bytes.unwrap_or(0));
            bar.suspend(|| errln!("note: memory: {need}; the build continues with that instead of {given}"));
        }
    });
    bar.finish_and_clear();
    summary
}

impl TextArguments {
    /// The options of a build; the defaults of memory and cores are those of the machine.
    pub(super) fn checked(&self, memory: Option<u64>, cpus: Option<u16>) -> Result<BuildOptions, Failure> {
        let bm25 = self.bm25.checked()?;
        let mut tokenizer = Tokenizer::new(self.tokenizer);
        if let Some(language) = &self.stem {
            tokenizer = tokenizer.with_stem(language).map_err(|what| Failure::input(format!("--stem: {what}")))?;
        }
        match self.stop_words.as_deref() {
            None => {}
            Some("english") => tokenizer = tokenizer.with_english_stop_words(),
            Some(file) => {
                let lines = read_lines(Path::new(file))?.map(|line| line.map(|(_, text)| text));
                tokenizer = tokenizer.with_stop_words(&lines.collect::<Result<Vec<_>, _>>()?.join("\n"));
            }
        }
        let memory_bytes = memory.or_else(|| free_memory_bytes().map(|free| free / 2));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(BuildOptions { tokenizer, bm25, threads: cpus.map_or(cores, usize::from), memory_bytes })
    }
}
