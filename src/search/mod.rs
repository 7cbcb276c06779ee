//! `tandem search`: answers queries and reports their times.

mod answers;
mod input;
mod output;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tandem_engine::index::{Bm25, Idf, Index};
use tandem_engine::query::{Query, read_log};
use tandem_engine::search::cpu::{Algorithm, CpuExecutor};
use tandem_model::base::ids::DocId;
use tandem_model::base::machine::Class;
use tandem_model::files::{InputError, check_writable};
use tandem_model::traffic::Mode;

use self::answers::{answer_on_cpu, answer_on_gpu, timed};
use self::input::{Input, input};
use self::output::{summarise, write};
use super::defaults::gpu_executor;
use super::output::{begin_json, result};
use super::settings::SetArguments;
use crate::failure::Failure;
use crate::options::input::LogForm;
use crate::options::machine::{GpuMemoryArguments, MAX_PROCESSORS};
use crate::options::names::choice;
use crate::options::question::check_k;
use tandem_report::effectiveness::{Effectiveness, Qrels};
use tandem_report::number::counted;
use tandem_report::trec::Ranking;

/// Answer queries, and print the best documents.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem search my-index work stealing --mode and-or\n  tandem search my-index --queries topics.tsv -k 1000 --format trec > run.txt"
)]
pub(super) struct Arguments {
    /// Folder of the index [default: a synthetic index, made in `out/` on first use]
    index: Option<PathBuf>,
    /// Words of the query
    words: Vec<String>,
    /// Query log in any common form, plain or compressed: one query per line, columns, JSON, TREC topics, slow logs
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    queries: Option<PathBuf>,
    #[command(flatten)]
    form: LogForm,
    /// How the terms of a query combine
    #[arg(long, value_parser = choice::<Mode>(), default_value = Mode::AndOr.name())]
    mode: Mode,
    /// Algorithm by which the CPU finds the best documents with any of the terms; all give the same result
    #[arg(long, value_parser = choice::<Algorithm>(), default_value = Algorithm::Auto.name())]
    algorithm: Algorithm,
    /// Processor that searches
    #[arg(long, value_enum, default_value_t = On::Cpu)]
    on: On,
    /// Number of documents that a query asks for, 1 to 10000; GPUs return at most 1000
    #[arg(short, value_name = "K", default_value_t = 10)]
    k: usize,
    /// BM25: saturation of the term frequency [default: as in the index]
    #[arg(long)]
    k1: Option<f32>,
    /// BM25: share of the length normalisation, 0 to 1 [default: as in the index]
    #[arg(long)]
    b: Option<f32>,
    /// BM25: form of the inverse document frequency [default: as in the index]
    #[arg(long, value_parser = choice::<Idf>())]
    idf: Option<Idf>,
    /// Format of the results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Name of the run in the TREC format, one word
    #[arg(long, default_value = "tandem")]
    tag: String,
    /// Number of CPU workers, each of which answers whole queries
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: usize,
    #[command(flatten)]
    gpu_memory: GpuMemoryArguments,
    #[command(flatten)]
    settings: SetArguments,
    /// Number of queries that a GPU gets at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// Relevance judgements in the TREC format: also print MAP, reciprocal rank and recall (to depth k) and nDCG@10
    #[arg(long, value_name = "FILE", requires = "queries")]
    qrels: Option<PathBuf>,
    /// File for the results instead of the terminal
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum On {
    Cpu,
    Gpu,
}

impl On {
    fn kind(self) -> Class {
        match self {
            Self::Cpu => Class::CPU,
            Self::Gpu => Class::GPU,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text for people
    Table,
    /// `query Q0 doc rank score tag`
    Trec,
    /// `query_id,rank,doc_id,score`
    Csv,
    /// One JSON document: queries with their documents, times, effectiveness
    Json,
}

/// The largest batch: its results are held until all are there.
const MAX_BATCH: usize = 1 << 20;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check(arguments)?;
    if arguments.format == Format::Json {
        begin_json(arguments.out.as_deref());
    }
    let qrels = arguments.qrels.as_deref().map(Qrels::read).transpose()?;
    let Input { index, index_dir, queries } = input(arguments)?;
    check_names(arguments, &queries, qrels.as_ref())?;
    let bm25 = parameters(arguments, index.built_with())?;

    let (answers, wall_s) = match arguments.on {
        On::Cpu => {
            let cpu = CpuExecutor::new(Arc::clone(&index), bm25).with_algorithm(arguments.algorithm);
            timed(|| answer_on_cpu(cpu, &queries, arguments))?
        }
        On::Gpu => {
            let memory = arguments.gpu_memory.open(&arguments.settings, &index, &queries)?;
            let gpu = gpu_executor(&index, bm25, memory.as_ref())?;
            timed(|| answer_on_gpu(gpu, &queries, arguments))?
        }
    };
    let rankings = &answers.rankings;
    write(arguments, &index, &index_dir, bm25, rankings)?;
    summarise(arguments, &answers, wall_s);
    if let (Some(mut qrels), Some(log)) = (qrels, &arguments.queries) {
        warn_of_another_collection(arguments, &index, &qrels, rankings);
        // A query without a term in the index was asked as well, and found nothing.
        let entries = read_log(log, &arguments.form.options())?.entries;
        let asked: HashSet<&str> = entries.iter().map(|entry| entry.label.as_str()).collect();
        let left_out = qrels.keep_asked(|query| asked.contains(query));
        if left_out > 0 {
            let queries = counted(left_out, "judged query is", "judged queries are");
            errln!("{queries} not in {} and left out of the means", log.display());
        }
        let ids: Vec<_> = rankings.iter().map(|ranking| ranking.external_ids(&index)).collect();
        let found = qrels.judge(rankings.iter().map(|r| r.label.as_str()).zip(ids.iter().map(Vec::as_slice)));
        let Effectiveness { queries, map, ndcg_at_10, reciprocal_rank, recall } = found;
        let judged = counted(queries, "judged query", "judged queries");
        errln!(
            "{judged}: MAP {map:.4}, nDCG@10 {ndcg_at_10:.4}, reciprocal rank {reciprocal_rank:.4}, recall {recall:.4} \
             (depth {})",
            arguments.k
        );
        result(
            "effectiveness",
            json!({
                "queries": queries,
                "depth": arguments.k,
                "map": map,
                "ndcg_at_10": ndcg_at_10,
                "reciprocal_rank": reciprocal_rank,
                "recall": recall,
            }),
        );
    }
    Ok(())
}

/// Warns if the index has none of the judged documents: zeros then say nothing about the ranking.
fn warn_of_another_collection(arguments: &Arguments, index: &Index, qrels: &Qrels, rankings: &[Ranking]) {
    let judged = qrels.documents();
    let is_judged = |doc: DocId| judged.contains(&*index.external_id(doc));
    // Mostly one of the documents that were found is judged, and the index need not be gone through.
    let mut found = rankings.iter().flat_map(|ranking| &ranking.hits);
    if !found.any(|hit| is_judged(hit.doc)) && !(0..index.num_docs()).map(DocId).any(is_judged) {
        let documents = counted(judged.len(), "document", "documents");
        let path = arguments.qrels.as_deref().unwrap_or(Path::new("")).display();
        errln!(
            "warning: {path}: none of the {documents} that it judges is in this index: is it of another collection?"
        );
    }
}

/// Refuses what makes no sense before anything is opened.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    check_k(arguments.k)?;
    if !(1..=MAX_PROCESSORS).contains(&arguments.cpus) {
        return Err(Failure::input(format!("--cpus is {}, expected 1 to {MAX_PROCESSORS}", arguments.cpus)));
    }
    if arguments.on == On::Gpu && arguments.cpus > 1 {
        return Err(Failure::input("--cpus is for --on cpu; the GPU is driven by one thread"));
    }
    if !(1..=MAX_BATCH).contains(&arguments.batch) {
        return Err(Failure::input(format!("--batch is {}, expected 1 to {MAX_BATCH}", arguments.batch)));
    }
    if arguments.on == On::Cpu && arguments.batch > 1 {
        return Err(Failure::input("--batch is for --on gpu; the --cpus take one query each"));
    }
    if arguments.qrels.is_some() && !arguments.words.is_empty() {
        return Err(Failure::input("--qrels is for --queries FILE: words have no name that is judged"));
    }
    if arguments.on == On::Cpu {
        arguments.gpu_memory.refuse("the CPU searches (--on gpu)")?;
    }
    if arguments.tag.is_empty() || arguments.tag.contains(char::is_whitespace) {
        return Err(Failure::input(format!("--tag is \"{}\", expected one word", arguments.tag)));
    }
    if let Some(path) = &arguments.out {
        check_writable(path)?;
    }
    Ok(())
}

/// Refuses a log whose query names are not unique, or of which none is judged.
fn check_names(arguments: &Arguments, queries: &[Query], qrels: Option<&Qrels>) -> Result<(), Failure> {
    let Some(log) = &arguments.queries else { return Ok(()) };
    if arguments.format == Format::Trec || qrels.is_some() {
        let mut seen = HashSet::new();
        if let Some(twice) = queries.iter().find(|query| !seen.insert(query.label.as_str())) {
            let what = format!("two queries are named \"{}\", expected a name for each in a TREC run", twice.label);
            return Err(InputError::file(log, what).into());
        }
    }
    if let (Some(qrels), Some(path)) = (qrels, &arguments.qrels)
        && !queries.iter().any(|query| qrels.has(&query.label))
    {
        let what = format!("judges no query of {}: do their names differ?", log.display());
        return Err(InputError::file(path, what).into());
    }
    Ok(())
}

/// The index's parameters, with what the user gave instead.
fn parameters(arguments: &Arguments, built_with: Bm25) -> Result<Bm25, Failure> {
    if built_with.is_impacts() {
        if arguments.k1.is_some() || arguments.b.is_some() || arguments.idf.is_some() {
            return Err(Failure::input("--k1, --b and --idf are for an index of frequencies; this one holds impacts"));
        }
        return Ok(built_with);
    }
    let bm25 = Bm25 {
        k1: arguments.k1.unwrap_or(built_with.k1),
        b: arguments.b.unwrap_or(built_with.b),
        idf: arguments.idf.unwrap_or(built_with.idf),
    };
    bm25.check().map_err(|what| Failure::input(format!("--{what}")))?;
    Ok(bm25)
}
