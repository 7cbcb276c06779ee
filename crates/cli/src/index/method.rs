//! `--method`: the indexing method and its threads.

use serde_json::{Value, json};

use crate::Failure;
use tandem_core::indexing::{GpuReport, HashIndexer, Indexer};
use tandem_papers::wei::trie::{TrieIndexer, TrieOptions, TrieReport};

#[derive(Debug, clap::Args)]
pub(super) struct MethodArguments {
    /// Indexing method; the index is the same
    #[arg(long, value_enum, default_value_t = Method::Hash)]
    method: Method,
    /// With `--method trie`: number of threads that read and parse [default: five eighths of the cores, six with GPUs]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u16).range(1..=1024))]
    parsers: Option<u16>,
    /// With `--method trie`: number of threads that index [default: the remaining cores]
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u16).range(..=1024))]
    indexers: Option<u16>,
    /// Number of GPUs that index together with the CPU cores: at most one with `--method hash`
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=64))]
    gpus: u16,
    /// With `--gpus 1` and `--method hash`: number of streams of the GPU, each fed by a thread [default: as many as threads
    /// and GPU memory allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    streams: Option<u16>,
}

/// An indexing method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Method {
    /// Hash tables of words on all cores, in any memory
    Hash,
    /// Wei and JaJa 2011: parsers, a trie of B-trees, indexers on CPUs and GPUs
    Trie,
}

/// A checked method with its threads.
#[derive(Debug)]
pub(super) enum Way {
    Hash(HashIndexer),
    Trie(TrieOptions, Box<TrieIndexer>),
}

impl MethodArguments {
    /// The checked method for this number of cores.
    pub(super) fn checked(&self, cores: usize) -> Result<Way, Failure> {
        if self.method == Method::Hash {
            let given = [("--parsers", self.parsers.is_some()), ("--indexers", self.indexers.is_some())];
            if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
                return Err(Failure::input(format!("{name} is for --method trie")));
            }
            return match (self.gpus, self.streams) {
                (0, None) => Ok(Way::Hash(HashIndexer::default())),
                (0, Some(_)) => Err(Failure::input("--streams is for --gpus 1: there is no GPU to have them")),
                (1, streams) => {
                    let streams = streams.map(usize::from);
                    if let Some(feeders) = streams.filter(|&feeders| feeders > cores) {
                        return Err(Failure::input(format!(
                            "{feeders} streams of GPUs take a thread each, and there are {cores} (--streams, --cpus)"
                        )));
                    }
                    Ok(Way::Hash(HashIndexer::on_gpu(streams, cores)?))
                }
                (gpus, _) => Err(Failure::input(format!(
                    "--method hash indexes on one GPU, because two are slower than one (--gpus 1, not {gpus})"
                ))),
            };
        }
        if self.streams.is_some() {
            return Err(Failure::input("--streams is for --method hash"));
        }
        let gpus = usize::from(self.gpus);
        let papers = TrieOptions::for_cores(cores, gpus);
        let options = TrieOptions {
            parsers: self.parsers.map_or(papers.parsers, usize::from),
            cpu_indexers: self.indexers.map_or(papers.cpu_indexers, usize::from),
            ..papers
        };
        if options.cpu_indexers + gpus == 0 {
            return Err(Failure::input("--indexers is 0 and --gpus is 0: the build needs an indexer"));
        }
        Ok(Way::Trie(options, Box::new(TrieIndexer::new(options)?)))
    }
}

impl Way {
    /// The threads and devices that invert.
    pub(super) fn indexer(&mut self) -> &mut dyn Indexer {
        match self {
            Self::Hash(hash) => hash,
            Self::Trie(_, trie) => trie.as_mut(),
        }
    }

    /// Prints the facts of a completed build and returns them for programs.
    pub(super) fn describe(&self) -> Value {
        let (options, trie) = match self {
            Self::Hash(hash) => return describe_gpus(&hash.gpu_report()),
            Self::Trie(options, trie) => (options, trie),
        };
        let report = trie.report();
        for reason in &report.lost {
            errln!("warning: a GPU was lost, a CPU went on with its slots: {reason}");
        }
        let TrieOptions { parsers, cpu_indexers, gpus, .. } = options;
        outln!("method     trie: {parsers} parsers, {cpu_indexers} CPU indexers, {gpus} GPUs");
        let runs = report.runs.len();
        outln!("           {:.2} s sampling, {runs} runs in {:.2} s", report.sampling_s, report.indexers_s);
        for (name, value) in stages(report) {
            outln!("           {:.2} s {name}", value.as_f64().unwrap_or_default());
        }
        for part in &report.parts {
            let what = if part.is_gpu { "GPU" } else { "CPU" };
            outln!("           {what}: {} slots, {} tokens, {} terms", part.slots, part.tokens, part.terms);
        }
        json!({
            "method": "trie",
            "parsers": parsers,
            "cpu_indexers": cpu_indexers,
            "gpus": gpus,
            "runs": runs,
            "sampling_s": report.sampling_s,
            "pipeline_s": report.indexers_s,
            "stages_s": stages(report).into_iter().collect::<serde_json::Map<_, _>>(),
            "lost_gpus": report.lost,
        })
    }
}

/// Prints the share of GPUs in a build by hashing, and returns it for programs.
fn describe_gpus(report: &GpuReport) -> Value {
    for reason in &report.lost {
        errln!("warning: a stream of a GPU was lost, CPUs went on with its text: {reason}");
    }
    if report.streams > 0 {
        outln!("GPUs       {:>15.1} MB of the text, by {} streams", report.bytes as f64 / 1e6, report.streams);
    }
    json!({"method": "hash", "streams": report.streams, "gpu_bytes": report.bytes, "lost_gpus": report.lost})
}

/// Seconds of the stages of a build by the trie.
fn stages(report: &TrieReport) -> Vec<(String, Value)> {
    let of = |name: &str, seconds: f64| (name.to_owned(), json!((seconds * 1e4).round() / 1e4));
    vec![
        of("waiting for parsers", report.sum(|run| run.waiting_s)),
        of("preparing", report.sum(|run| run.preparing_s)),
        of("indexing", report.sum(|run| run.indexing_s)),
        of("collecting", report.sum(|run| run.collecting_s)),
        of("combining the dictionary", report.combining_s),
        of("writing the dictionary", report.writing_s),
    ]
}
