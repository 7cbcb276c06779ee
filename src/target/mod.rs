//! `tandem capacity`, `profile`, `live` and `validate` with `--target URL`: they drive a search server behind HTTP instead of this
//! machine's executors.
//!
//! The options differ from those for an index. The commands therefore form a group: `tandem capacity --target URL` is short for
//! `tandem target capacity URL`.

mod server;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tandem_drive::lab::{Answer, Effort, Question};
use tandem_engine::corpus::Tokenizer;
use tandem_engine::index::Index;
use tandem_engine::query::look_up;
use tandem_model::base::ids::QueryId;
use tandem_model::base::machine::{Class, PerClass};
use tandem_model::cost::{Measured, Workload, WorkloadRow};
use tandem_model::files::Provenance;
use tandem_model::sim::Arrivals;
use tandem_model::traffic::Mode;

use self::server::{Opened, ProfileArguments, Server};
use super::defaults::Bars;
use super::driven::{LOADS, files, words};
use super::result_writer::ResultWriter;
use super::settings::Settings;
use super::{interrupts, output};
use crate::failure::Failure;
use crate::options::arrivals::ProcessArguments;
use crate::options::question::{EffortArguments, ObjectiveArguments};
use serde_json::json;
use tandem_http::{
    Ending, Front, Gate, HttpError, Outcome, PERCENTILES, Record, Run, RunReport, ServerAnswer, ServerProfile,
    check_rate, find_answer, percentile_ms, warm_up, write_histograms, write_profile, write_requests, write_runs,
};
use tandem_report::number::{counted, grouped, significant, text};
use tandem_report::table::Table;

/// Measure and drive a search server behind HTTP (also `tandem capacity --target URL`)
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tandem capacity --target http://127.0.0.1:9200/wiki --dialect opensearch \\\n    --queries log.tsv"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// The rate that the server sustains within a deadline: profile, prediction, and open-loop runs around the answer
    #[command(
        after_help = "Example:\n  tandem capacity --target http://127.0.0.1:9200/wiki --dialect opensearch \\\n    --queries log.tsv --deadline-ms 100"
    )]
    Capacity(Searched),
    /// Service times per query, number of servers, slowdown, queue limit, and pauses of the server
    #[command(
        after_help = "Example:\n  tandem profile --target http://127.0.0.1:9200/wiki --dialect opensearch \\\n    --queries log.tsv"
    )]
    Profile(Profiled),
    /// One open-loop run at a rate
    #[command(
        after_help = "Example:\n  tandem live --target http://127.0.0.1:9200/wiki --dialect opensearch \\\n    --queries log.tsv --rate 200"
    )]
    Live(Driven),
    /// Predictions compared with open-loop runs, also at half and at four fifths of the predicted capacity
    #[command(
        after_help = "Example:\n  tandem validate --target http://127.0.0.1:9200/wiki --dialect opensearch \\\n    --queries log.tsv"
    )]
    Validate(Searched),
}

#[derive(Debug, clap::Args)]
struct Searched {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    objective: ObjectiveArguments,
    #[command(flatten)]
    profile: ProfileArguments,
    /// What stands in front of the server, in the simulation: fcfs, limit=N (queries at once), or shed (late queries are
    /// rejected)
    #[arg(long, value_name = "FRONT", default_value = "fcfs", value_parser = Front::from_text, help_heading = "Server")]
    front: Front,
    /// Drive this rate only, and say by the exit code whether it holds: 0 held, 1 missed, 3 undecided
    #[arg(long, value_name = "QPS")]
    at_least: Option<f64>,
    #[command(flatten)]
    process: ProcessArguments,
    #[command(flatten)]
    effort: EffortArguments,
    /// Folder of the results
    #[arg(short, long, value_name = "DIR", default_value = "out/target")]
    out: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Profiled {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    profile: ProfileArguments,
    /// Folder of a Tandem index of the same collection: its features go into a workload file, for `tandem train`
    #[arg(long, value_name = "DIR", help_heading = "Input")]
    index: Option<PathBuf>,
    /// Folder of the results
    #[arg(short, long, value_name = "DIR", default_value = "out/target")]
    out: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Driven {
    #[command(flatten)]
    server: Server,
    /// Queries per second
    #[arg(long, value_name = "QPS")]
    rate: f64,
    /// Length of the run, after the warm-up
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Seconds before the run whose queries are reported apart
    #[arg(long, value_name = "S", default_value_t = 1.0, help_heading = "Arrivals")]
    warm_up: f64,
    #[command(flatten)]
    objective: ObjectiveArguments,
    #[command(flatten)]
    process: ProcessArguments,
    /// Seed of the arrivals
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Folder of the results
    #[arg(short, long, value_name = "DIR", default_value = "out/target")]
    out: PathBuf,
}

/// `tandem capacity --target URL` as `tandem target capacity --target URL`.
pub(super) fn expanded(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_target =
        |argument: &OsString| argument.to_str().is_some_and(|text| text == "--target" || text.starts_with("--target="));
    let command = arguments.iter().position(|argument| {
        argument.to_str().is_some_and(|text| ["capacity", "profile", "live", "validate"].contains(&text))
    });
    // Only options of all commands may precede the command.
    if let Some(at) = command.filter(|&at| arguments[1..at].iter().all(|text| text.to_string_lossy().starts_with('-')))
        && arguments[at..].iter().any(is_target)
    {
        arguments.insert(at, "target".into());
    }
    arguments
}

impl From<HttpError> for Failure {
    fn from(e: HttpError) -> Self {
        match e {
            HttpError::Study(e) => e.into(),
            // A server that cannot be used is named wrongly, as far as this program can tell.
            HttpError::Input(_) | HttpError::Target(_) | HttpError::Limit(_) | HttpError::NoAnswer(_) => {
                Self::input(e.to_string())
            }
            HttpError::Interrupted => Self::interrupted(e.to_string()),
            HttpError::Io(_) => Self::failed(e.to_string()),
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.what {
        What::Capacity(searched) => search(searched, false),
        What::Validate(searched) => search(searched, true),
        What::Profile(profiled) => profile(profiled),
        What::Live(driven) => drive(driven),
    }
}

fn search(searched: &Searched, is_validation: bool) -> Result<(), Failure> {
    let started = Instant::now();
    let Searched { server, process: arrivals, out, .. } = searched;
    let usual = if is_validation { Effort::quick() } else { Effort::usual() };
    let (effort, seeds) = (searched.effort.checked(usual)?, searched.effort.seeds()?);
    let (objective, plan) = (searched.objective.checked()?, searched.profile.plan()?);
    let process = arrivals.process(&Settings::default())?;
    let opened = server.open(out)?;
    let log_queries = opened.queries.len();
    let question =
        Question { deadline: opened.deadline, objective, process, seeds, effort, log_queries, loads: LOADS.to_vec() };
    let criterion = objective.within(opened.deadline);
    interrupts::catch();
    opened.probe()?;
    let (client, bars) = (opened.client(), Bars::default());
    if let Some(rate) = searched.at_least {
        warm_up(&client, &plan, &bars)?;
        return gate(&opened, &question, rate, out);
    }
    let (measured, paces) = opened.measure(&plan, &bars)?;
    errln!("{}", profile_words(&measured));
    let servers = opened.targets.len();
    let simulated = measured.simulated(searched.front).replicated(&paces, opened.routing);
    let predicted = simulated.capacity(&question)?;
    errln!("predicted: {} q/s", grouped(significant(predicted.qps, 3)));
    let mut answer = ServerAnswer::new(opened.name(), predicted, &measured, log_queries);
    let shares: &[f64] = if is_validation { &LOADS } else { &[] };
    let done = find_answer(&client, &simulated, &question, shares, &bars, &mut answer);
    let ServerAnswer { driven, runs, last, rejected, answers: (answered, empty), caveats } = answer;
    let found = Answer {
        capacities: vec![driven.predicted.capacity.clone()],
        driven: vec![driven],
        caveats,
        ..Answer::default()
    };
    let arrivals = arrivals.named(&question.process);
    let provenance = opened.provenance.clone().with("objective", criterion).with("arrivals", &arrivals);
    let mut kept = files::write(&found, &criterion, &provenance, out, is_validation);
    kept.files(write_profile(out, &provenance, &measured));
    write_driven(&mut kept, &runs, last.as_ref(), &provenance, out);
    output::result("answer", words::JsonAnswer::of(&found));
    output::result("runs", runs.iter().map(RunReport::json).collect::<Vec<_>>());
    let best = found.best();
    if is_validation {
        outln!("{}{}", words::compared(&found), words::live_runs(&found));
    } else if let Some((driven, capacity)) = best {
        let servers = counted(servers * measured.servers(), "server", "servers");
        let what = format!("{} at {}, {servers}", driven.policy, opened.urls());
        let lateness = driven.runs.iter().map(|run| run.lag_p99).max().unwrap_or_default();
        let disturbed = format!("client late by {} us (p99)", text(lateness.as_us(), 3));
        outln!("{}", words::answer(driven, capacity, [&what, &disturbed], &criterion, &arrivals));
    }
    outln!("{}", empty_words(answered, empty));
    if rejected > 0 {
        errln!("warning: {} rejected, since the client was late", counted(rejected, "run was", "runs were"));
    }
    found.caveats.iter().for_each(|caveat| errln!("warning: {caveat}"));
    errln!("{}; took {:.0} s", kept.in_words(), started.elapsed().as_secs_f64());
    kept.finish()?;
    match done {
        Err(HttpError::Interrupted) => return Ok(()),
        done => done?,
    }
    if best.is_none() && !is_validation { Err(Failure::no_answer(words::no_answer(&found))) } else { Ok(()) }
}

/// The share of answers without a hit.
fn empty_words(answered: usize, empty: usize) -> String {
    let percent = 100.0 * empty as f64 / answered.max(1) as f64;
    format!("{} % of the {} found nothing", text(percent, 3), counted(answered, "answer", "answers"))
}

/// Drives one rate: exit code 0 if it holds, 1 if it misses, 3 if the runs do not tell.
fn gate(opened: &Opened, question: &Question, rate: f64, out: &Path) -> Result<(), Failure> {
    let criterion = question.objective.within(question.deadline);
    let Gate { side, holds, runs, last } = check_rate(&opened.client(), question, rate, &Bars::default())?;
    let provenance = opened.provenance.clone().with("objective", criterion).with("at least", rate);
    let mut kept = ResultWriter::new();
    write_driven(&mut kept, &runs, last.as_ref(), &provenance, out);
    output::result("runs", runs.iter().map(RunReport::json).collect::<Vec<_>>());
    output::result("at_least", json!({ "rate": rate, "holds": holds }));
    let result = match holds {
        Some(true) => "held",
        Some(false) => "missed",
        None => "undecided",
    };
    let words = format!("{} q/s: {result}, held in {} of {}, {criterion}", text(rate, 4), side.held, side.runs());
    outln!("{words}");
    if let Some(run) = &last {
        outln!("{}", empty_words(run.count(Outcome::Answered), run.empty()));
    }
    let failure = last.and_then(|run| run.failure).map_or(String::new(), |why| format!("; the first failure: {why}"));
    errln!("{}", kept.in_words());
    kept.finish()?;
    match holds {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::failed(format!("{words}{failure}"))),
        None => Err(Failure::no_answer(format!("{words}: too few runs agree, or the client was late{failure}"))),
    }
}

/// Writes `runs.csv`, `runs.hlog`, and `requests.csv` of the last run.
fn write_driven(kept: &mut ResultWriter, runs: &[RunReport], last: Option<&Run>, provenance: &Provenance, out: &Path) {
    let path = out.join("runs.csv");
    kept.files(write_runs(&path, provenance, runs).map(|()| vec![path]));
    let path = out.join("runs.hlog");
    kept.files(write_histograms(&path, provenance, runs).map(|()| vec![path]));
    if let Some(run) = last {
        let path = out.join("requests.csv");
        kept.files(write_requests(&path, provenance, run).map(|()| vec![path]));
    }
}

/// The profile in a line.
fn profile_words(profile: &ServerProfile) -> String {
    let servers = profile.servers();
    let slowdown = profile.slowdown().last().map_or(1.0, |&(_, times)| times);
    let limit = profile.queue_limit().map_or(String::from("none found"), |limit| limit.to_string());
    let pauses = 1e3 * profile.pauses_per_query();
    let open = profile.ceiling.map_or(String::from("an overloaded open loop ended"), |share| {
        format!("an overloaded open loop {} % of it", text(100.0 * share, 3))
    });
    format!(
        "{} queries of {} ms on average; {}, slowdown {} if all are busy; queue limit: {limit}; {} pauses per 1000 queries; the \
         best closed loops serve {} q/s (drift {} %), {open}",
        profile.queries.len(),
        text(profile.mean_us() / 1e3, 3),
        counted(servers, "server", "servers"),
        text(slowdown, 3),
        text(pauses, 2),
        text(profile.most_qps(), 4),
        text(100.0 * profile.drift, 2),
    )
}

fn profile(profiled: &Profiled) -> Result<(), Failure> {
    let Profiled { server, out, .. } = profiled;
    let plan = profiled.profile.plan()?;
    let index = profiled.index.as_deref().map(Index::open).transpose()?;
    let opened = server.open(out)?;
    interrupts::catch();
    opened.probe()?;
    let (measured, _) = opened.measure(&plan, &Bars::default())?;
    let mut kept = ResultWriter::new();
    kept.files(write_profile(out, &opened.provenance, &measured));
    if let Some(index) = index {
        let path = out.join("server.workload.csv");
        let workload = workload(&opened, &measured, &index)?;
        let empty = measured.queries.iter().filter(|query| query.hits == 0).count();
        let unknown = measured.queries.len() - workload.rows.len();
        outln!("{}; {unknown} have no term of the index", empty_words(measured.queries.len(), empty));
        kept.files(workload.write(&path).map(|()| vec![path]));
    }
    let mut table = Table::new(["clients", "q/s", "p50 ms", "p99 ms", "rejected", "failed"]);
    for rung in &measured.ladder {
        let [qps, p50, p99] =
            [Some(rung.qps), rung.p50_ms, rung.p99_ms].map(|value| value.map_or(String::new(), |value| text(value, 3)));
        table.row([rung.clients.to_string(), qps, p50, p99, rung.rejected.to_string(), rung.failed.to_string()]);
    }
    outln!("{table}\n{}", profile_words(&measured));
    errln!("{}", kept.in_words());
    kept.finish()
}

/// The service times with features of an index of the same collection.
fn workload(opened: &Opened, profile: &ServerProfile, index: &Index) -> Result<Workload, Failure> {
    let tokenizer = Tokenizer::from_name(index.tokenizer_name()).map_err(Failure::input)?;
    let entry = |(line, text): (u64, &String)| tandem_engine::query::LogEntry {
        label: line.to_string(),
        text: text.clone(),
        line,
    };
    let entries: Vec<_> = (0..).zip(&opened.queries).map(entry).collect();
    let log = look_up(&entries, index, |text| tokenizer.terms(text));
    let by_query: std::collections::HashMap<u32, _> = log.queries.iter().map(|query| (query.id.0, query)).collect();
    let row = |time: &tandem_http::QueryTime| {
        let query = by_query.get(&time.query)?;
        let measured = Measured { median_us: time.median_us, spread_us: 0.0, device_us: None };
        Some(WorkloadRow {
            query_id: QueryId(time.query),
            log_id: time.query,
            mode: Mode::Or,
            features: query.features(index),
            index_features: None,
            predicted_us: None,
            measured: PerClass::from_fn(|class| (class == Class::CPU).then_some(measured)),
            results: time.hits,
        })
    };
    let rows: Vec<WorkloadRow> = profile.queries.iter().filter_map(row).collect();
    if rows.is_empty() {
        return Err(Failure::input("--index: no measured query has a term in this index"));
    }
    let provenance = opened.provenance.clone().with("docs", index.num_docs());
    Ok(Workload { provenance, rows, ..Workload::default() })
}

fn drive(driven: &Driven) -> Result<(), Failure> {
    let Driven { server, rate, seconds, warm_up, out, .. } = driven;
    let criterion = driven.objective.checked()?.within(server.deadline.checked()?);
    let process = driven.process.process(&Settings::default())?;
    if !(*seconds > 0.0 && *warm_up >= 0.0 && seconds.is_finite() && warm_up.is_finite()) {
        return Err(Failure::input(format!(
            "--seconds {seconds} and --warm-up {warm_up}, expected above 0 and at least 0"
        )));
    }
    let opened = server.open(out)?;
    interrupts::catch();
    opened.probe()?;
    let count = (rate * (seconds + warm_up)).ceil().clamp(1.0, u32::MAX.into()) as usize;
    let arrivals = Arrivals::drawn(&process, driven.seed, count, opened.requests.len());
    let run = opened.client().drive(&arrivals, *rate, *warm_up)?;
    let (report, verdict) = (RunReport::of(&run, &criterion), run.verdict(&criterion));
    let (latency, service) = (run.histogram(Record::latency), run.histogram(Record::service));
    let mut table = Table::new(["percentile", "latency ms", "service ms"]);
    for percentile in PERCENTILES {
        let times = percentile_ms(&latency, percentile).zip(percentile_ms(&service, percentile));
        if let Some((latency, service)) = times {
            table.row([percentile.to_string(), text(latency, 4), text(service, 4)]);
        }
    }
    if run.count(Outcome::Answered) == 0 {
        outln!("nothing answered");
    } else {
        outln!("{table}\n{}", empty_words(run.count(Outcome::Answered), run.empty()));
    }
    if let Some(why) = &run.failure {
        outln!("the first failure: {why}");
    }
    let misses: Vec<String> = (Outcome::ALL.iter().filter(|&&outcome| run.count(outcome) > 0))
        .map(|&outcome| format!("{} {}", run.count(outcome), outcome.name()))
        .collect();
    outln!("{} planned: {}, {} not sent", run.planned, misses.join(", "), run.not_sent());
    let lateness = run.lateness_p99().map_or(String::from("-"), |late| text(late.as_us(), 3));
    outln!(
        "{}{}; client late by {lateness} us (p99), warm-up of {}",
        verdict.words(),
        Some(criterion.untested(run.planned))
            .filter(|words| !words.is_empty())
            .map_or(String::new(), |words| format!("; {words}")),
        counted(run.warm_up.len(), "query", "queries")
    );
    let provenance =
        opened.provenance.clone().with("objective", criterion).with("arrivals", driven.process.named(&process));
    output::result("run", report.json());
    let mut kept = ResultWriter::new();
    write_driven(&mut kept, &[report], Some(&run), &provenance, out);
    errln!("{}", kept.in_words());
    kept.finish()?;
    match run.ending {
        Ending::ServerGone => return Err(Failure::failed("the server stopped answering for some seconds")),
        Ending::Complete | Ending::Interrupted => {}
    }
    if run.is_rejected(&criterion, &verdict) {
        return Err(Failure::failed(format!(
            "rejected: the client was late by {lateness} us (p99), more than 1 % of the deadline (lower the rate, leave it more \
             processor time, or let it --spin on a core of its own)"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_with_a_target_become_commands_of_the_group() {
        let of = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            expanded(words).into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("tandem capacity --target http://x"), "tandem target capacity --target http://x");
        assert_eq!(of("tandem --json live --rate 3 --target=x"), "tandem --json target live --rate 3 --target=x");
        for same in
            ["tandem capacity idx --queries q", "tandem target capacity --target x", "tandem search capacity --target"]
        {
            assert_eq!(of(same), same);
        }
    }
}
