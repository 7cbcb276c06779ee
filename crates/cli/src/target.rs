//! `tandem capacity --target URL`, and `profile`, `live` and `validate` likewise: a search server behind HTTP is driven
//! in place of this machine's executors.
//!
//! The options differ from those for an index, so the commands are a group of their own: `tandem capacity --target URL`
//! is short for `tandem target capacity URL`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::defaults::Bars;
use super::driven::words;
use super::result_writer::ResultWriter;
use super::{Failure, interrupts, output};
use crate::options::arrivals::parse_seeds;
use crate::options::input::LogForm;
use crate::options::question::{DeadlineArgument, EffortArguments, ObjectiveArguments, check_k};
use tandem_core::base::ids::QueryId;
use tandem_core::base::machine::{Class, PerClass};
use tandem_core::base::time::Nanos;
use tandem_core::corpus::Tokenizer;
use tandem_core::cost::{Measured, Workload, WorkloadRow};
use tandem_core::files::{Provenance, check_writable};
use tandem_core::index::Index;
use tandem_core::lab::{Answer, Criterion, Effort, LiveCapacity, Question};
use tandem_core::query::{ArrivalProcess, Features, Mode, look_up, read_log};
use tandem_core::sim::Arrivals;
use tandem_http::{
    Client, Credentials, Dialect, Ending, Front, HttpError, Limits, Naive, Outcome, PERCENTILES, ProfilePlan, Record,
    Requests, Run, RunReport, ServerAnswer, ServerProfile, Target, find_answer, measure_server, naive_answers,
    write_histograms, write_profile, write_requests, write_runs,
};
use tandem_report::capacity::{CapacityRow, write_capacities};
use tandem_report::number::{counted, grouped, significant, text};
use tandem_report::table::Table;
use tandem_report::validation::{write_live_runs, write_validation_capacity};

/// Shares of the predicted capacity that a validation drives first.
const SHARES: [f64; 2] = [0.5, 0.8];

/// Commands against a search server behind HTTP; `tandem capacity --target URL` is short for `tandem target capacity URL`
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

/// The server and the queries.
#[derive(Debug, clap::Args)]
struct Server {
    /// URL of the server, with the path of the index if the dialect needs one. Only this machine is driven unless
    /// --allow-host names the host
    #[arg(long = "target", value_name = "URL", required_unless_present = "url", help_heading = "Server")]
    target: Option<String>,
    /// URL of the server, in place of --target
    #[arg(value_name = "URL", conflicts_with = "target")]
    url: Option<String>,
    /// Dialect of the server: opensearch, elasticsearch, msearch, anserini, seekstorm, tantivy, tandem, or a JSON file. It
    /// may be followed by variables, such as opensearch,field=body
    #[arg(long, value_name = "NAME|FILE", help_heading = "Server")]
    dialect: String,
    /// Query log in any usual form
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    #[command(flatten)]
    form: LogForm,
    /// Hits per query
    #[arg(short, value_name = "K", default_value_t = 10)]
    k: usize,
    /// Host that may be driven although it is not this machine
    #[arg(long, value_name = "HOST", help_heading = "Server")]
    allow_host: Vec<String>,
    /// File with the value of the dialect's credentials header [default: the variable TANDEM_CREDENTIALS, if it is set]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    credentials: Option<PathBuf>,
    /// Most connections
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Server")]
    connections: u16,
    /// Threads of the client
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64), help_heading = "Server")]
    threads: u8,
    /// Time limit of a query in milliseconds [default: ten deadlines, at least 1000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Server")]
    timeout_ms: Option<u32>,
    #[command(flatten)]
    deadline: DeadlineArgument,
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
    /// How queries arrive: poisson, bursty, uniform, or a CSV file of recorded arrivals
    #[arg(long, value_name = "PROCESS|FILE", default_value = "poisson")]
    arrivals: String,
    /// Seeds of the simulated arrivals, between commas, or FIRST:LAST; runs have others
    #[arg(long, value_name = "SEEDS", default_value = "1:10")]
    seeds: String,
    #[command(flatten)]
    effort: EffortArguments,
    /// Folder of the results
    #[arg(short, long, value_name = "DIR", default_value = "out/target")]
    out: PathBuf,
}

#[derive(Debug, clap::Args)]
struct ProfileArguments {
    /// Seconds for the profile: half for service times with one client, half for the ladder of clients
    #[arg(long, value_name = "S", default_value_t = 60.0, help_heading = "Server")]
    profile_seconds: f64,
    /// Cores of the server; the ladder goes up to twice as many clients [default: those of this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Server")]
    cores: Option<u16>,
    /// Queries to measure at most, a random sample of the log
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(20..))]
    limit: u32,
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
    /// How queries arrive: poisson, bursty, uniform, or a CSV file of recorded arrivals
    #[arg(long, value_name = "PROCESS|FILE", default_value = "poisson")]
    arrivals: String,
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
    // Options of all commands may stand before the command, and nothing else.
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
            HttpError::Lab(e) => e.into(),
            HttpError::Input(_) | HttpError::Target(_) | HttpError::Limit(_) => Self::input(e.to_string()),
            HttpError::Interrupted => Self::interrupted(e.to_string()),
            HttpError::NoAnswer(_) | HttpError::Io(_) => Self::failed(e.to_string()),
        }
    }
}

/// A server with the prepared requests of a log.
struct Opened {
    target: Target,
    requests: Requests,
    queries: Vec<String>,
    limits: Limits,
    deadline: Nanos,
    provenance: Provenance,
}

impl Server {
    fn open(&self, out: &Path) -> Result<Opened, Failure> {
        check_k(self.k)?;
        let deadline = self.deadline.checked()?;
        let dialect = Dialect::named(&self.dialect)?;
        let credentials = Credentials::load(self.credentials.as_deref())?;
        let url = self.target.as_ref().or(self.url.as_ref()).map_or("", String::as_str);
        let target = Target::new(url, &dialect, &self.allow_host, credentials)?;
        let log = read_log(&self.queries, &self.form.options())?;
        errln!("{}: {}", self.queries.display(), log.found);
        let queries: Vec<String> = log.entries.into_iter().map(|entry| entry.text).collect();
        let requests = Requests::new(&dialect, target.path(), self.k, deadline.as_ms(), &queries)?;
        check_writable(&out.join("runs.csv"))?;
        let limits = Limits::for_deadline(deadline);
        let timeout = self.timeout_ms.map_or(limits.timeout, |ms| Duration::from_millis(ms.into()));
        let (connections, threads) = (self.connections.into(), self.threads.into());
        let limits = Limits { connections, threads, timeout, ..limits };
        let provenance = Provenance::new()
            .with_command_and_machine()
            .with("target", &target.url)
            .with("dialect", dialect.provenance())
            .with("queries", queries.len())
            .with("time limit", format!("{} s", timeout.as_secs_f64()));
        Ok(Opened { target, requests, queries, limits, deadline, provenance })
    }
}

impl Opened {
    fn name(&self) -> &str {
        self.requests.dialect_name()
    }

    fn client(&self) -> Client<'_> {
        Client { target: &self.target, requests: &self.requests, limits: self.limits }
    }
}

impl ProfileArguments {
    fn cores(&self) -> usize {
        self.cores.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
    }

    fn plan(&self) -> Result<ProfilePlan, Failure> {
        if !(1.0..=86_400.0).contains(&self.profile_seconds) {
            return Err(Failure::input(format!("--profile-seconds is {}, expected 1 to 86400", self.profile_seconds)));
        }
        let plan = ProfilePlan::usual(self.cores());
        let rungs = f64::from((plan.clients as u32).ilog2() + 1);
        let half = Duration::from_secs_f64(self.profile_seconds / 2.0);
        Ok(ProfilePlan { service: half, rung: half.div_f64(rungs), queries: self.limit as usize, ..plan })
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
    let Searched { server, out, .. } = searched;
    let usual = if is_validation { Effort::quick() } else { Effort::usual() };
    let effort = searched.effort.checked(usual)?;
    let (objective, plan) = (searched.objective.checked()?, searched.profile.plan()?);
    let (process, seeds) =
        (ArrivalProcess::named(&searched.arrivals, Default::default())?, parse_seeds(&searched.seeds)?);
    let opened = server.open(out)?;
    let log_queries = opened.queries.len();
    let question =
        Question { deadline: opened.deadline, objective, process, seeds, effort, log_queries, loads: SHARES.to_vec() };
    let criterion = objective.within(opened.deadline);
    interrupts::catch();
    let (client, bars) = (opened.client(), Bars::default());
    let measured = measure_server(&client, &plan, &bars)?;
    errln!("{}", profile_words(&measured));
    let simulated = measured.simulated(searched.front);
    let predicted = simulated.capacity(&question)?;
    errln!("predicted: {} q/s", grouped(significant(predicted.qps, 3)));
    let mut answer = ServerAnswer::new(opened.name(), predicted, &measured, log_queries);
    let shares: &[f64] = if is_validation { &SHARES } else { &[] };
    let done = find_answer(&client, &simulated, &question, shares, &bars, &mut answer);
    let ServerAnswer { driven, runs, last, rejected, caveats } = answer;
    let found = Answer {
        capacities: vec![driven.predicted.capacity.clone()],
        driven: vec![driven],
        caveats,
        ..Answer::default()
    };
    let naive = naive_answers(&measured, searched.profile.cores(), opened.deadline);
    let provenance = opened.provenance.clone().with("objective", criterion).with("arrivals", &searched.arrivals);
    let mut kept = ResultWriter::new();
    write_found(&mut kept, &found, &criterion, &provenance, out, is_validation);
    kept.files(write_profile(out, &provenance, &measured));
    write_driven(&mut kept, &runs, last.as_ref(), &provenance, out);
    output::result("answer", words::JsonAnswer::of(&found));
    output::result("runs", runs.iter().map(RunReport::json).collect::<Vec<_>>());
    let best = found.best();
    if is_validation {
        outln!("{}{}", words::compared(&found), words::live_runs(&found));
    } else if let Some((driven, capacity)) = best {
        outln!("{}", answer_words(driven, capacity, &opened, &measured, &criterion, &searched.arrivals));
    }
    outln!("{}", naive_table(&naive, best.map(|(_, capacity)| capacity.qps)));
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

fn write_found(
    kept: &mut ResultWriter,
    found: &Answer,
    criterion: &Criterion,
    provenance: &Provenance,
    out: &Path,
    is_validation: bool,
) {
    let path = out.join("live_runs.csv");
    kept.rows("live_runs", &path, write_live_runs(&path, provenance, criterion, &found.driven));
    if is_validation {
        let path = out.join("validation_capacity.csv");
        kept.rows("validation_capacity", &path, write_validation_capacity(&path, provenance, criterion, &found.driven));
    } else {
        let path = out.join("capacity.csv");
        let rows: Vec<CapacityRow<'_>> =
            found.capacities.iter().map(|one| CapacityRow::compared(one.clone(), &found.driven)).collect();
        kept.rows("capacity", &path, write_capacities(&path, provenance, &rows));
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

/// The answer in three lines.
fn answer_words(
    driven: &tandem_core::lab::Driven,
    capacity: LiveCapacity,
    opened: &Opened,
    profile: &ServerProfile,
    criterion: &Criterion,
    arrivals: &str,
) -> String {
    let LiveCapacity { qps, missed_qps, half_width } = capacity;
    let digits = if half_width.is_some_and(|half_width| half_width >= 0.1) { 2 } else { 3 };
    let sure = half_width
        .map_or(String::from("(interval not known)"), |half_width| format!("+- {:.0} %", (100.0 * half_width).ceil()));
    let rate = |qps| grouped(significant(qps, digits));
    let (held, missed) = (driven.held.unwrap_or_default(), driven.missed.unwrap_or_default());
    let lateness = driven.runs.iter().map(|run| run.lag_p99).max().unwrap_or_default();
    format!(
        "{} q/s {sure}, {} runs of {} s, client late by {} us (p99)\n{} at {}, {}, {criterion}, {arrivals}\nheld in {} of {}; {} missed in {} of {}; predicted {}\n",
        rate(qps),
        held.runs() + missed.runs(),
        text(driven.runs.last().map_or(0.0, |run| run.seconds), 3),
        text(lateness.as_us(), 3),
        driven.policy,
        opened.target.url,
        counted(profile.servers(), "server", "servers"),
        held.held,
        held.runs(),
        rate(missed_qps),
        missed.missed,
        missed.runs(),
        rate(driven.predicted.qps()),
    )
}

/// The profile in a line.
fn profile_words(profile: &ServerProfile) -> String {
    let servers = profile.servers();
    let slowdown = profile.slowdown().last().map_or(1.0, |&(_, times)| times);
    let limit = profile.queue_limit().map_or(String::from("none found"), |limit| limit.to_string());
    let pauses = 1e3 * profile.pauses_per_query();
    format!(
        "{} queries of {} ms on average; {}, slowdown {} if all are busy; queue limit: {limit}; {} pauses per 1000 queries",
        profile.queries.len(),
        text(profile.mean_us() / 1e3, 3),
        counted(servers, "server", "servers"),
        text(slowdown, 3),
        text(pauses, 2),
    )
}

/// Rules of thumb, with their errors if the capacity was measured.
fn naive_table(naive: &[Naive], measured_qps: Option<f64>) -> String {
    let mut table = Table::new(["rule of thumb", "q/s", "error"]);
    for one in naive {
        let error = measured_qps.and_then(|qps| one.error(qps));
        table.row([
            one.rule.to_owned(),
            one.qps.map_or(String::from("-"), |qps| grouped(significant(qps, 3))),
            error.map_or(String::from("-"), |error| format!("{:+.0} %", 100.0 * error)),
        ]);
    }
    table.to_string()
}

fn profile(profiled: &Profiled) -> Result<(), Failure> {
    let Profiled { server, out, .. } = profiled;
    let plan = profiled.profile.plan()?;
    let index = profiled.index.as_deref().map(Index::open).transpose()?;
    let opened = server.open(out)?;
    interrupts::catch();
    let measured = measure_server(&opened.client(), &plan, &Bars::default())?;
    let mut kept = ResultWriter::new();
    kept.files(write_profile(out, &opened.provenance, &measured));
    if let Some(index) = index {
        let path = out.join("server.workload.csv");
        let workload = workload(&opened, &measured, &index)?;
        kept.files(workload.write(&path).map(|()| vec![path]));
    }
    let mut table = Table::new(["clients", "q/s", "p50 ms", "p99 ms", "rejected", "failed"]);
    for rung in &measured.ladder {
        let [qps, p50, p99] = [rung.qps, rung.p50_ms, rung.p99_ms].map(|value| text(value, 3));
        table.row([rung.clients.to_string(), qps, p50, p99, rung.rejected.to_string(), rung.failed.to_string()]);
    }
    outln!("{table}\n{}", profile_words(&measured));
    errln!("{}", kept.in_words());
    kept.finish()
}

/// The service times with features of an index of the same collection.
fn workload(opened: &Opened, profile: &ServerProfile, index: &Index) -> Result<Workload, Failure> {
    let tokenizer = Tokenizer::from_name(index.tokenizer_name()).map_err(Failure::input)?;
    let entry = |(line, text): (u64, &String)| tandem_core::query::LogEntry {
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
            features: Features::of(query, index),
            index_features: None,
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
    let process = ArrivalProcess::named(&driven.arrivals, Default::default())?;
    if !(*seconds > 0.0 && *warm_up >= 0.0 && seconds.is_finite() && warm_up.is_finite()) {
        return Err(Failure::input(format!(
            "--seconds {seconds} and --warm-up {warm_up}, expected above 0 and at least 0"
        )));
    }
    let opened = server.open(out)?;
    interrupts::catch();
    let count = (rate * (seconds + warm_up)).ceil().clamp(1.0, u32::MAX.into()) as usize;
    let arrivals = Arrivals::drawn(&process, driven.seed, count, opened.requests.len());
    let run = opened.client().drive(&arrivals, *rate, *warm_up)?;
    let (report, verdict) = (RunReport::of(&run, &criterion), run.verdict(&criterion));
    let (latency, service) = (run.histogram(Record::latency), run.histogram(Record::service));
    let mut table = Table::new(["percentile", "latency ms", "service ms"]);
    for percentile in PERCENTILES {
        let ms = |histogram: &tandem_http::Times| text(histogram.value_at_percentile(percentile) as f64 / 1e6, 4);
        table.row([percentile.to_string(), ms(&latency), ms(&service)]);
    }
    let misses: Vec<String> = (Outcome::ALL.iter().filter(|&&outcome| run.count(outcome) > 0))
        .map(|&outcome| format!("{} {}", run.count(outcome), outcome.name()))
        .collect();
    outln!("{table}\n{} planned: {}, {} not sent", run.planned, misses.join(", "), run.not_sent());
    let lateness = text(run.lateness_p99().as_us(), 3);
    outln!(
        "{}; client late by {lateness} us (p99), warm-up of {}",
        verdict.words(),
        counted(run.warm_up.len(), "query", "queries")
    );
    let provenance = opened.provenance.clone().with("objective", criterion).with("arrivals", &driven.arrivals);
    output::result("run", report.json());
    let mut kept = ResultWriter::new();
    write_driven(&mut kept, &[report], Some(&run), &provenance, out);
    errln!("{}", kept.in_words());
    kept.finish()?;
    match run.ending {
        Ending::ServerGone => return Err(Failure::failed("the server was gone: no answers for some seconds")),
        Ending::Complete | Ending::Interrupted => {}
    }
    if run.is_rejected(criterion.deadline) {
        return Err(Failure::failed(format!(
            "rejected: the client was late by {lateness} us (p99), more than 1 % of the deadline (lower the rate, or leave it more processor time)"
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
