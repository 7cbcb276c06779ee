//! `tandem reproduce`: tables and figures of five papers, measured on this machine.
//!
//! The experiments are in [`papers`](tandem_papers). This command turns options into their inputs. The default input is a
//! synthetic index, fitted to the statistics of the papers' collections. `INDEX` and `--queries` name a real one (`inputs.rs`).

mod claims;
mod inputs;

use std::path::PathBuf;

use serde_json::json;
use tandem_engine::search::device::list_gpus;
use tandem_model::files::{Provenance, check_writable, this_machine};
use tandem_model::traffic::Mode;

use super::defaults::Bars;
use super::output::{is_verbose, result, result_file, say, say_screen};
use crate::failure::Failure;
use crate::options::input::LogForm;
use crate::options::names::choice;
use crate::options::question::{check_k, check_seconds};
use tandem_papers::{
    Availability, Claim, Context, EXPERIMENTS, Experiment, ExperimentError, Findings, GpuUse, PageRank, Run,
    SharedSetup, foreign_rows, judge, write_claims,
};
use tandem_report::table::Table;

/// Measure a table or figure of the papers, next to the published numbers.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tandem reproduce --list\n  tandem reproduce ding-fig7")]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    /// Names of tables and figures, separated by commas, such as tatikonda-fig4. Consecutive ones of a paper share their inputs
    #[arg(required_unless_present_any = ["list", "claims"], value_name = "NAME,...")]
    names: Option<String>,
    /// List all tables and figures of the papers
    #[arg(long, conflicts_with = "names")]
    list: bool,
    /// List every statement of the papers about their tables and figures, and whether recorded results confirm it; write
    /// claims.csv into the output folder
    #[arg(long, conflicts_with_all = ["names", "list"])]
    claims: bool,
    /// Folder of the recorded results of --claims
    #[arg(long, value_name = "DIR", requires = "claims", default_value = "docs/reproduced")]
    results: PathBuf,
    /// Fail unless the claims.csv of --claims follows from the recorded results, and all of them are of this version
    #[arg(long, requires = "claims")]
    check: bool,
    /// Folder of the index, with --queries [default: a synthetic index, made in the output folder]
    #[arg(requires = "queries")]
    index: Option<PathBuf>,
    /// Query log in any common form, plain or compressed
    #[arg(long, value_name = "FILE", requires = "index")]
    queries: Option<PathBuf>,
    #[command(flatten)]
    form: LogForm,
    /// Folder of real collections (corpus/, queries/), which add results on real lists [default: the folder that TANDEM_DATA
    /// names]
    #[arg(long, value_name = "DIR", conflicts_with = "index")]
    data: Option<PathBuf>,
    /// Number of documents of the synthetic index or text [default: set by each experiment, at most 2,000,000 on fewer than
    /// eight cores]
    #[arg(long, value_name = "N", conflicts_with = "index", value_parser = clap::value_parser!(u32).range(1000..))]
    docs: Option<u32>,
    /// Files of text for tables and figures on indexing, as in `index build` [default: synthetic text]
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "docs")]
    text: Vec<PathBuf>,
    /// Number of queries, from the beginning of the log [default: set by each experiment]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Largest number of CPU cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
    /// How the terms of a query combine [default: as in the paper]
    #[arg(long, value_parser = choice::<Mode>())]
    mode: Option<Mode>,
    /// Number of documents that a query asks for
    #[arg(short, value_name = "K", default_value_t = 10)]
    k: usize,
    /// Length of each measurement of a figure, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.3)]
    seconds: f64,
    /// Seed of the synthetic index, queries and arrivals
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// PageRanks of the documents for the figures of Wang et al.: drawn (logarithms of the law of the web), uniform, or a file
    /// with one number per line, at least 0, in the order of the index
    #[arg(long, value_name = "drawn|uniform|FILE", default_value = "drawn")]
    page_rank: PathBuf,
    /// Folder of the results and the synthetic index
    #[arg(short, long, value_name = "DIR", default_value = "out/reproduce")]
    out: PathBuf,
}

/// The longest measurement: an hour.
const MAX_SECONDS: f64 = 3600.0;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.claims {
        return claims::list(&arguments.results, arguments.check, &arguments.out);
    }
    let Some(names) = &arguments.names else {
        let known = |e: &Experiment| {
            json!({
                "name": e.name, "is_here": matches!(e.availability, Availability::Measured(_)), "what": e.what, "paper": e.paper, "gpu": e.gpu.name(),
                "runs_on": e.runs_on,
            })
        };
        result("experiments", EXPERIMENTS.iter().map(known).collect::<Vec<_>>());
        return say(&list());
    };
    let experiments: Vec<(&Experiment, Run)> = names.split(',').map(named).collect::<Result<_, Failure>>()?;
    check_k(arguments.k)?;
    check_seconds(arguments.seconds, MAX_SECONDS)?;
    for (experiment, _) in &experiments {
        check_writable(&arguments.out.join(format!("{}.csv", experiment.name)))?;
    }
    let cores = cores(arguments);
    let source =
        |docs, limit| inputs::chosen(arguments, docs, limit).map_err(|e| ExperimentError::Input(e.to_string()));
    let real = |log, limit| inputs::real(arguments, log, limit).map_err(|e| ExperimentError::Input(e.to_string()));
    let bars = Bars::default();
    let context = Context {
        source: &source,
        is_source_real: arguments.index.is_some(),
        real: &real,
        progress: &bars,
        cores,
        mode: arguments.mode,
        k: arguments.k,
        seconds: arguments.seconds,
        seed: arguments.seed,
        docs: arguments.docs,
        text: arguments.text.clone(),
        scratch: arguments.out.clone(),
        page_rank: page_rank(arguments)?,
        shared: SharedSetup::default(),
    };
    let (mut paper, mut claims) = (None, Vec::new());
    for (experiment, run) in experiments {
        if paper.replace(experiment.paper).is_some_and(|before| before != experiment.paper) {
            context.shared.clear();
        }
        claims.extend(reproduce(arguments, experiment, run, &context)?);
    }
    Ok(write_claims(&arguments.out, &claims, &Provenance::new().with_command_and_machine())?)
}

/// The PageRanks that `--page-rank` names.
fn page_rank(arguments: &Arguments) -> Result<PageRank<'_>, Failure> {
    match arguments.page_rank.to_str() {
        Some("drawn") => Ok(PageRank::Drawn),
        Some("uniform") => Ok(PageRank::Uniform),
        _ if arguments.index.is_none() => {
            Err(Failure::input("--page-rank FILE needs the INDEX whose documents it numbers; or drawn, or uniform"))
        }
        _ => Ok(PageRank::File(&arguments.page_rank)),
    }
}

/// The experiment of this name.
fn named(name: &str) -> Result<(&'static Experiment, Run), Failure> {
    let experiment = EXPERIMENTS.iter().find(|experiment| experiment.name == name).ok_or_else(|| unknown(name))?;
    match experiment.availability {
        Availability::Measured(run) => Ok((experiment, run)),
        Availability::Lacks(reason) => {
            Err(Failure::input(format!("{name} cannot be re-run in this version: {reason}")))
        }
    }
}

/// Runs an experiment; returns the statements about it.
fn reproduce(
    arguments: &Arguments,
    experiment: &Experiment,
    run: Run,
    context: &Context<'_>,
) -> Result<Vec<Claim>, Failure> {
    let name = experiment.name;
    if experiment.gpu == GpuUse::Needed {
        list_gpus()?;
    }
    let machine = format!("{} ({} used at most)", this_machine(), context.cores);
    say(&format!("{name}: {}\n{}\non {machine}\n\n", experiment.what, experiment.paper))?;
    let mut findings = Findings::default();
    let outcome = run(context, &mut findings);
    context.progress.end();
    outcome?;
    let provenance = Provenance::new().with_command_and_machine().with("seed", arguments.seed);
    let written = findings.write(&arguments.out, name, &provenance)?;
    let table = arguments.out.join(format!("{name}.csv"));
    result_file(name, &table);
    let results = findings.results();
    for row in foreign_rows(name, &results) {
        errln!("warning: {name}: {row}: `--claims --check` would refuse this file");
    }
    let claims = judge(name, name, &results);
    let text = format!("{}\n{findings}", claims::table(&claims));
    say_screen(&text, &table.display().to_string())?;
    say(&format!("\nwritten: {}\n", written.join(", ")))?;
    Ok(claims)
}

/// The number of cores of the machine, or the requested number if it is lower.
fn cores(arguments: &Arguments) -> usize {
    let here = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.cpus.map_or(here, |cores| usize::from(cores).min(here))
}

impl From<ExperimentError> for Failure {
    fn from(e: ExperimentError) -> Self {
        match e {
            ExperimentError::Input(message) => Self::input(message),
            ExperimentError::Wrong(message) => Self::failed(message),
            ExperimentError::Exec(e) => e.into(),
            ExperimentError::Gpu(e) => e.into(),
            ExperimentError::Index(e) => e.into(),
            ExperimentError::Build(e) => e.into(),
            ExperimentError::Codec(e) => e.into(),
            ExperimentError::Sim(e) => e.into(),
            ExperimentError::Cache(e) => Self::input(e.to_string()),
        }
    }
}

fn unknown(name: &str) -> Failure {
    let alike =
        EXPERIMENTS.iter().find(|experiment| experiment.name.starts_with(name) || name.starts_with(experiment.name));
    let hint = alike.map(|experiment| format!(" (did you mean {}?)", experiment.name)).unwrap_or_default();
    Failure::input(format!("no table or figure is called {name:?}{hint}; see `tandem reproduce --list`"))
}

/// The names by paper or, with `--verbose`, all fields of each experiment.
fn list() -> String {
    if !is_verbose() {
        let of_paper = |experiments: &[Experiment]| {
            let names: Vec<&str> = experiments.iter().map(|experiment| experiment.name).collect();
            format!("{}\n{}\n\n", experiments[0].paper, names.join(", "))
        };
        let papers: String = EXPERIMENTS.chunk_by(|a, b| a.paper == b.paper).map(of_paper).collect();
        return format!("{papers}--list --verbose also prints contents, inputs and GPU use.\n");
    }
    let mut table = Table::new(["name", "here", "GPU", "runs on", "contents"]);
    for Experiment { name, what, runs_on, gpu, availability, .. } in &EXPERIMENTS {
        let is_here = if matches!(availability, Availability::Measured(_)) { "yes" } else { "no" };
        table.row([*name, is_here, gpu.name(), runs_on, what]);
    }
    let meanings = "GPU: adds, its columns stay empty without one; needed, nothing is measured without one. Runs on: the input that is \
                    made or read unless INDEX and --queries, or --text, name another one; with fewer than eight cores an index has 2 \
                    M documents at most. It is made on first use, and kept in the output folder.";
    format!("{table}\n{meanings}\n")
}
