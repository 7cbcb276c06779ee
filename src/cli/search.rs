//! `tandem search`: answers queries and says how long it took.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::defaults::{beyond_most_terms, default_index, gpu_executor, read_queries};
use super::{Failure, choices};
use crate::bench::Times;
use crate::corpus::Tokenizer;
use crate::exec::cpu::{Algorithm, CpuExecutor};
use crate::exec::gpu::GpuExecutor;
use crate::exec::{ExecError, Executor, Hit};
use crate::files::{InputError, Provenance, check_writable, write_atomically};
use crate::ids::{ProcessorKind, QueryId};
use crate::index::{Bm25, Idf, Index};
use crate::query::{Mode, Query};
use crate::report::effectiveness::Qrels;
use crate::report::number::counted;
use crate::report::trec::{Ranking, write_run_csv, write_run_trec};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folder of the index; without one, the index of the last `validate`, or a small synthetic one made in `out/`
    index: Option<PathBuf>,
    /// Words to look for, in quotes
    words: Option<String>,
    /// Query log: one query a line, `id<TAB>query`, PISA's `id:query`, JSON lines with a `query`, or TREC
    /// topics; plain, .gz or .zst
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    queries: Option<PathBuf>,
    /// Which documents match: with all words, with any, or with any where too few have all
    #[arg(long, value_enum, default_value_t = Mode::AndOr)]
    mode: Mode,
    /// How the CPU finds the best documents with any of the words; all give the same result
    #[arg(long, value_enum, default_value_t = Algorithm::Auto)]
    algorithm: Algorithm,
    /// The processor that searches
    #[arg(long, value_enum, default_value_t = On::Cpu)]
    on: On,
    /// How many documents a query gets, 1 to 1000
    #[arg(short, value_name = "K", default_value_t = 10)]
    k: usize,
    /// BM25's saturation of the frequency [default: that of the index]
    #[arg(long)]
    k1: Option<f32>,
    /// BM25's share of the length normalisation, 0 to 1 [default: that of the index]
    #[arg(long)]
    b: Option<f32>,
    /// BM25's form of the inverse document frequency [default: that of the index]
    #[arg(long, value_enum)]
    idf: Option<Idf>,
    /// How results are written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Name of the run in TREC's form, one word
    #[arg(long, default_value = "tandem")]
    tag: String,
    /// CPU threads, each answering whole queries
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Queries that go to the GPU together
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// Judgements in TREC's form: also print MAP (to depth k) and nDCG@10
    #[arg(long, value_name = "FILE", requires = "queries")]
    qrels: Option<PathBuf>,
    /// File for the results instead of the terminal
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum On {
    Cpu,
    Gpu,
}

impl On {
    fn kind(self) -> ProcessorKind {
        match self {
            Self::Cpu => ProcessorKind::Cpu,
            Self::Gpu => ProcessorKind::Gpu,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Table,
    /// `query Q0 doc rank score tag`
    Trec,
    /// `query_id,rank,doc_id,score`
    Csv,
}

/// What is searched, and for what.
struct Input {
    index: Arc<Index>,
    index_dir: PathBuf,
    /// At least one.
    queries: Vec<Query>,
}

/// One query's results and how long it took.
struct Answer {
    ranking: Ranking,
    us: f64,
}

/// All queries' results, and the microseconds that each submission took: of a query, or of a batch of them.
struct Answers {
    rankings: Vec<Ranking>,
    us: Vec<f64>,
    device: String,
}

impl Answers {
    fn new(answers: Vec<Answer>, device: String) -> Self {
        let (rankings, us) = answers.into_iter().map(|answer| (answer.ranking, answer.us)).unzip();
        Self { rankings, us, device }
    }
}

/// Queries of the default log that are answered where none are given: a screenful.
const SHOWN_QUERIES: usize = 3;

/// The most threads that a user can mean.
const MAX_THREADS: usize = 1024;
/// The largest batch: its results are held until all are there.
const MAX_BATCH: usize = 1 << 20;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check(arguments)?;
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
            let gpu = gpu_executor(&index, bm25)?;
            timed(|| answer_on_gpu(gpu, &queries, arguments))?
        }
    };
    let rankings = &answers.rankings;
    write(arguments, &index, &index_dir, bm25, rankings)?;
    summarise(arguments, &answers, wall_s);
    if let Some(qrels) = qrels {
        let ids: Vec<_> = rankings.iter().map(|ranking| ranking.external_ids(&index)).collect();
        let found = qrels.judge(rankings.iter().map(|r| r.label.as_str()).zip(ids.iter().map(Vec::as_slice)));
        let (queries, map, ndcg) = (found.queries, found.map, found.ndcg_at_10);
        let queries = counted(queries, "judged query", "judged queries");
        errln!("{queries}: MAP {map:.4} (depth {}), nDCG@10 {ndcg:.4}", arguments.k);
    }
    Ok(())
}

/// Refuses what makes no sense before anything is opened.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    choices::check_k(arguments.k)?;
    if !(1..=MAX_THREADS).contains(&arguments.threads) {
        return Err(Failure::input(format!("--threads is {}, expected 1 to {MAX_THREADS}", arguments.threads)));
    }
    if arguments.on == On::Gpu && arguments.threads > 1 {
        return Err(Failure::input("--threads is for --on cpu; the GPU is driven by one"));
    }
    if !(1..=MAX_BATCH).contains(&arguments.batch) {
        return Err(Failure::input(format!("--batch is {}, expected 1 to {MAX_BATCH}", arguments.batch)));
    }
    if arguments.on == On::Cpu && arguments.batch > 1 {
        return Err(Failure::input("--batch is for --on gpu; the CPU's --threads take one query each"));
    }
    if arguments.tag.is_empty() || arguments.tag.contains(char::is_whitespace) {
        return Err(Failure::input(format!("--tag is \"{}\", expected one word", arguments.tag)));
    }
    if let Some(path) = &arguments.output {
        check_writable(path)?;
    }
    Ok(())
}

/// Refuses a log whose names of queries can't tell results apart, or are none of those that are judged.
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

/// What the user names, or the defaults.
fn input(arguments: &Arguments) -> Result<Input, Failure> {
    let Some(index_dir) = arguments.index.clone() else { return default_input(arguments) };
    let index = Arc::new(Index::open(&index_dir)?);
    let queries = match (&arguments.words, &arguments.queries) {
        (Some(words), _) => vec![prepare_words(words, &index)?],
        (None, Some(path)) => prepare_log(path, &index)?,
        (None, None) => return Err(Failure::input("nothing to search for: give \"words\" or --queries FILE")),
    };
    Ok(Input { index, index_dir, queries })
}

/// The default index, with the user's queries or the first few of its own.
fn default_input(arguments: &Arguments) -> Result<Input, Failure> {
    let (index, own_queries) = default_index()?;
    let index_dir = own_queries.parent().unwrap_or(Path::new(".")).to_owned();
    errln!("no INDEX given: searching the synthetic index in {}", index_dir.display());
    let queries = match &arguments.queries {
        Some(path) => prepare_log(path, &index)?,
        None => {
            let mut queries = prepare_log(&own_queries, &index)?;
            errln!("no queries given: the first {SHOWN_QUERIES} of {}", own_queries.display());
            queries.truncate(SHOWN_QUERIES);
            queries
        }
    };
    Ok(Input { index, index_dir, queries })
}

/// The queries of a log that have terms in the index: at least one.
fn prepare_log(path: &Path, index: &Index) -> Result<Vec<Query>, Failure> {
    let queries = read_queries(path, index)?;
    if queries.is_empty() {
        return Err(InputError::file(path, "holds no query with a term that is in the index").into());
    }
    Ok(queries)
}

/// A query of words from the command line.
fn prepare_words(words: &str, index: &Index) -> Result<Query, Failure> {
    let tokenizer = Tokenizer::from_name(index.tokenizer_name()).map_err(Failure::input)?;
    let terms = tokenizer.terms(words);
    if terms.is_empty() {
        return Err(Failure::input("the query is empty: it holds no word, or only stop words"));
    }
    let query = Query::prepare(QueryId(0), "1", &terms, index)
        .ok_or_else(|| Failure::input(format!("no document holds any of these words: {}", terms.join(" "))))?;
    if query.dropped_terms > 0 {
        let beyond = beyond_most_terms(std::slice::from_ref(&query));
        errln!("{} of {} words are in no document{beyond} and ignored", query.dropped_terms, terms.len());
    }
    Ok(query)
}

/// What `work` gives, and the seconds that it took.
fn timed<T>(work: impl FnOnce() -> Result<T, ExecError>) -> Result<(T, f64), ExecError> {
    let began = Instant::now();
    let result = work()?;
    Ok((result, began.elapsed().as_secs_f64()))
}

fn answer_on_cpu(mut cpu: CpuExecutor, queries: &[Query], arguments: &Arguments) -> Result<Answers, ExecError> {
    let answers = if arguments.threads > 1 {
        answer_in_parallel(&cpu, queries, arguments)?
    } else {
        answer_in_turn(&mut cpu, queries, arguments)?
    };
    Ok(Answers::new(answers, cpu.device()))
}

fn answer_on_gpu(mut gpu: GpuExecutor, queries: &[Query], arguments: &Arguments) -> Result<Answers, ExecError> {
    let device = gpu.device();
    if arguments.batch == 1 {
        return Ok(Answers::new(answer_in_turn(&mut gpu, queries, arguments)?, device));
    }
    let mut answers = Answers { rankings: Vec::with_capacity(queries.len()), us: Vec::new(), device };
    let mut hits = Vec::new();
    for batch in queries.chunks(arguments.batch) {
        let began = Instant::now();
        gpu.search_batch(batch, arguments.mode, arguments.k, &mut hits)?;
        answers.us.push(began.elapsed().as_secs_f64() * 1e6);
        let ranking =
            |(query, hits): (&Query, &mut Vec<Hit>)| Ranking { label: query.label.clone(), hits: std::mem::take(hits) };
        answers.rankings.extend(batch.iter().zip(&mut hits).map(ranking));
    }
    Ok(answers)
}

fn answer_in_turn(
    executor: &mut dyn Executor,
    queries: &[Query],
    arguments: &Arguments,
) -> Result<Vec<Answer>, ExecError> {
    queries.iter().map(|query| answer(executor, query, arguments)).collect()
}

fn answer(executor: &mut dyn Executor, query: &Query, arguments: &Arguments) -> Result<Answer, ExecError> {
    let mut hits: Vec<Hit> = Vec::new();
    let began = Instant::now();
    executor.search(query, arguments.mode, arguments.k, &mut hits)?;
    let us = began.elapsed().as_secs_f64() * 1e6;
    Ok(Answer { ranking: Ranking { label: query.label.clone(), hits }, us })
}

/// Each thread takes the next unanswered query; answers come back in the log's order.
fn answer_in_parallel(cpu: &CpuExecutor, queries: &[Query], arguments: &Arguments) -> Result<Vec<Answer>, ExecError> {
    let next = AtomicUsize::new(0);
    let work = |mut executor: CpuExecutor| -> Result<Vec<(usize, Answer)>, ExecError> {
        let mut answers = Vec::new();
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            let Some(query) = queries.get(position) else { return Ok(answers) };
            answers.push((position, answer(&mut executor, query, arguments)?));
        }
    };
    let parts = std::thread::scope(|scope| {
        let start = |_| {
            let executor = cpu.clone_for_worker();
            scope.spawn(|| work(executor))
        };
        let threads: Vec<_> = (0..arguments.threads.min(queries.len())).map(start).collect();
        let results = threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        results.collect::<Result<Vec<_>, _>>()
    })?;
    let mut answers: Vec<(usize, Answer)> = parts.into_iter().flatten().collect();
    answers.sort_by_key(|(position, _)| *position);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

fn write(
    arguments: &Arguments,
    index: &Index,
    index_dir: &Path,
    bm25: Bm25,
    rankings: &[Ranking],
) -> Result<(), Failure> {
    let write_to = |out: &mut dyn Write| match arguments.format {
        Format::Table => write_table(out, index, rankings),
        Format::Trec => write_run_trec(out, index, rankings, &arguments.tag),
        Format::Csv => {
            let Bm25 { k1, b, idf } = bm25;
            let provenance = Provenance::new()
                .with_command_and_machine()
                .with("index", format!("{}, fingerprint {:016x}", index_dir.display(), index.fingerprint()))
                .with("bm25", format!("k1 {k1}, b {b}, idf {idf}"))
                .with("mode", arguments.mode);
            write_run_csv(out, index, rankings, &provenance)
        }
    };
    if let Some(path) = &arguments.output {
        return Ok(write_atomically(path, |out| write_to(out))?);
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write_to(&mut out).and_then(|()| out.flush()) {
        // The reader (`head`, say) has seen enough.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|e| Failure::input(format!("standard output: {e}"))),
    }
}

fn write_table(out: &mut dyn Write, index: &Index, rankings: &[Ranking]) -> io::Result<()> {
    for (position, ranking) in rankings.iter().enumerate() {
        if rankings.len() > 1 {
            let gap = if position > 0 { "\n" } else { "" };
            writeln!(out, "{gap}query {}", ranking.label)?;
        }
        if ranking.hits.is_empty() {
            writeln!(out, "no document matches")?;
            continue;
        }
        writeln!(out, "rank      score  document")?;
        for (rank, hit) in (1..).zip(&ranking.hits) {
            writeln!(out, "{rank:>4} {:>10.4}  {}", hit.score, index.external_id(hit.doc))?;
        }
    }
    Ok(())
}

/// Says on the error stream how long queries took: results alone go to the output.
fn summarise(arguments: &Arguments, answers: &Answers, wall_s: f64) {
    let Answers { rankings, us, device } = answers;
    let times = Times::of(us.clone());
    let quantile_ms = |q: f64| times.quantile_us(q) / 1e3;
    let documents: usize = rankings.iter().map(|ranking| ranking.hits.len()).sum();
    let threads = if arguments.threads > 1 { format!(", {} threads", arguments.threads) } else { String::new() };
    errln!(
        "{}, {}, on {} ({device}{threads}), mode {}",
        counted(rankings.len(), "query", "queries"),
        counted(documents, "document", "documents"),
        arguments.on.kind(),
        arguments.mode,
    );
    let submission = match arguments.batch {
        1 => "query".to_owned(),
        batch => format!("batch of {batch}"),
    };
    errln!(
        "time per {submission}: mean {:.3} ms, median {:.3}, p95 {:.3}, p99 {:.3}, max {:.3}; {:.0} queries/s",
        times.mean_us() / 1e3,
        quantile_ms(0.5),
        quantile_ms(0.95),
        quantile_ms(0.99),
        quantile_ms(1.0),
        rankings.len() as f64 / wall_s.max(1e-9),
    );
}
