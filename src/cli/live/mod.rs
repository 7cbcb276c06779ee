//! `tandem live`: drives the real executors with the same scheduler code that `simulate` plays.

mod lab;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::lab::Lab;
use super::choices::{self, GpuChoice, Multicore};
use super::output::say;
use super::traced::traced;
use super::{Failure, estimates};
use crate::exec::cpu::Algorithm;
use crate::files::{Provenance, check_writable};
use crate::ids::{PerKind, ProcessorKind, QueryId};
use crate::live::{self, Ending, GpuLane, LiveOutcome, LiveRun, catch_interrupts};
use crate::query::{ArrivalProcess, Mode, Trace, at_rate, draw_queries, unit_arrivals};
use crate::report::live::{LiveSummaryRow, write_live_summaries};
use crate::report::number;
use crate::report::rates::parse_rates;
use crate::report::source::Source;
use crate::report::summary::{Summary, SummaryRow};
use crate::report::table::Table;
use crate::sched::{LogRow, PolicyKind, PolicyOptions};
use crate::sim::{Arrivals, bounds};
use crate::time::Nanos;

/// Options of `live`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folder of the index; left out, the one of the last `validate`, or a synthetic one made in `out/`
    index: Option<PathBuf>,
    /// Query log: one query a line, `id<TAB>query`; plain, .gz or .zst
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// What `profile` measured of these queries on this index; left out, some of them are measured now
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Policies, between commas; left out, all that the machine can run
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    /// Rates in queries per second: numbers and FROM:TO:COUNT, between commas; left out, three below what this machine
    /// could sustain, or with --trace the rate of the trace
    #[arg(long, value_name = "QPS")]
    rate: Option<String>,
    /// How long queries arrive in each run
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    seconds: f64,
    /// Queries in each run, whatever time they take [default: those of --seconds]
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    queries_count: Option<usize>,
    /// Draws arrivals and queries
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Time from a query's arrival to its deadline, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500.0)]
    deadline_ms: f64,
    /// CPU cores that work; the driver needs one of its own besides
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: usize,
    /// How these cores share queries
    #[arg(long, value_name = "METHOD", value_enum, default_value_t = Multicore::Inter)]
    multicore: Multicore,
    /// What stands in the GPU's place
    #[arg(long, value_enum, default_value_t = GpuChoice::Auto)]
    gpu: GpuChoice,
    /// How the terms of queries combine
    #[arg(long, value_enum, default_value_t = Mode::Or)]
    mode: Mode,
    /// How the CPU finds the best documents with any of the words; all give the same result
    #[arg(long, value_enum, default_value_t = Algorithm::Auto)]
    algorithm: Algorithm,
    /// What policies know of costs: `model` (a tree per processor fitted to the workload, each query
    /// estimated by one that has not seen it), `oracle` (the measured times), a model file, or the name of a
    /// model that ships with Tandem
    #[arg(long, value_name = "WHAT", default_value = "model")]
    estimates: String,
    /// Play the arrivals and queries of this trace file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["queries_count", "seconds", "arrivals", "seed"])]
    trace: Option<PathBuf>,
    /// How queries arrive: poisson, bursty, uniform, or a file of recorded arrivals
    #[arg(long, value_name = "PROCESS", default_value = "poisson")]
    arrivals: String,
    /// Where the results go
    #[arg(long, value_name = "DIR", default_value = "out/live")]
    out: PathBuf,
    /// Write every run's log as well: log.csv, or the folder `log` for several runs
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    options: PolicyOptions,
}

/// More arrivals in a run than this are surely a slip.
const MAX_ARRIVALS: usize = 10_000_000;
/// More CPU workers than this are surely a slip.
const MAX_CPUS: usize = 1024;
/// The longest run, a day.
const MAX_SECONDS: f64 = 86_400.0;
/// Rates that are tried where none are named, as shares of the rate above which no scheduler is stable.
const DEFAULT_SHARES: [f64; 3] = [0.3, 0.6, 0.9];
/// A run is given up when its oldest query is older than this many deadlines.
const HOPELESS_DEADLINES: f64 = 4.0;
/// Workers run queries for this long before the first run: caches fill, clocks rise.
const WARM_UP: Duration = Duration::from_millis(500);

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check(arguments)?;
    let mut lab = Lab::set_up(arguments)?;
    let machine = lab.fleet.machine().clone();
    let policies = choices::policies(&arguments.policy, &arguments.options, &machine)?;
    let queries = estimates::sim_queries(&lab.workload, &arguments.estimates, &machine)?;
    let services = queries.iter().map(|query| query.service);
    let region_qps = bounds::region(services, &machine).map(|region| region.rate_qps);
    let estimates: Vec<(QueryId, PerKind<Nanos>)> = queries.iter().map(|query| (query.id, query.estimate)).collect();
    let traced = arguments.trace.as_deref().map(|path| traced(path, &lab.workload, arguments.mode));
    let (traced, traced_qps) = traced.transpose()?.unzip();
    let rates = named_rates(arguments)?
        .or(traced_qps.map(|rate_qps| vec![rate_qps]))
        .or_else(|| default_rates(region_qps))
        .ok_or_else(|| Failure::input("all queries of the workload cost nothing: name rates with --rate"))?;
    let plans = plans(arguments, &lab, &rates, traced)?;
    let runs = policies.len() * plans.len();

    catch_interrupts();
    lab.fleet.warm_up(WARM_UP)?;
    let mut session = Session { arguments, lab, rows: Vec::new(), notes: Vec::new(), is_single: runs == 1 };
    say(&format!("driving {runs} runs; Ctrl-C ends them and keeps what was measured\n"))?;
    let driven = session.drive_all(&policies, &plans, &estimates);
    // Whatever has happened, what was measured is kept.
    let summary_path = arguments.out.join("summary.csv");
    write_live_summaries(&summary_path, &session.provenance(), &session.rows)?;
    session.print(&summary_path)?;
    driven
}

/// Checks what can be before anything is opened.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { cpus, seconds, queries_count, .. } = *arguments;
    if cpus > MAX_CPUS {
        return Err(Failure::input(format!("--cpus is {cpus}, expected at most {MAX_CPUS}")));
    }
    if cpus == 0 && matches!(arguments.gpu, GpuChoice::None | GpuChoice::Replay) {
        return Err(Failure::input("nothing real to drive: with --cpus 0 take --gpu real, or use `tandem simulate`"));
    }
    if !(seconds > 0.0 && seconds <= MAX_SECONDS) {
        return Err(Failure::input(format!("--seconds is {seconds}, expected above 0 and at most {MAX_SECONDS}")));
    }
    choices::deadline(arguments.deadline_ms)?;
    arguments.gpu.check()?;
    if queries_count == Some(0) {
        return Err(Failure::input("--queries-count is 0, expected at least 1"));
    }
    arguments.options.check()?;
    estimates::check(&arguments.estimates)?;
    ArrivalProcess::named(&arguments.arrivals)?;
    arguments.trace.as_deref().map(Trace::read).transpose()?;
    check_writable(&arguments.out.join("summary.csv"))?;
    named_rates(arguments).map(|_| ())
}

fn named_rates(arguments: &Arguments) -> Result<Option<Vec<f64>>, Failure> {
    let rates = arguments.rate.as_deref().map(parse_rates).transpose();
    rates.map_err(|why| Failure::input(format!("--rate: {why}")))
}

fn default_rates(region_qps: Option<f64>) -> Option<Vec<f64>> {
    region_qps.map(|top| DEFAULT_SHARES.map(|share| number::significant(top * share, 2)).to_vec())
}

/// One rate's arrivals, which all policies share.
struct Plan {
    rate_qps: f64,
    arrivals: Arrivals,
}

fn plans(arguments: &Arguments, lab: &Lab, rates: &[f64], traced: Option<Arrivals>) -> Result<Vec<Plan>, Failure> {
    if let Some(arrivals) = traced {
        return Ok(rates.iter().map(|&rate_qps| Plan { rate_qps, arrivals: arrivals.clone() }).collect());
    }
    let process = ArrivalProcess::named(&arguments.arrivals)?;
    let plan = |&rate_qps: &f64| {
        // A float too large saturates, and is refused below.
        let count = arguments.queries_count.unwrap_or((rate_qps * arguments.seconds).ceil() as usize).max(1);
        if count > MAX_ARRIVALS {
            let fault = format!("{count} queries at {rate_qps} per second are too many, at most {MAX_ARRIVALS} a run");
            return Err(Failure::input(fault));
        }
        let seed = arguments.seed;
        let (unit, queries) =
            (unit_arrivals(&process, seed, count), draw_queries(seed, count, lab.workload.rows.len()));
        Ok(Plan { rate_qps, arrivals: Arrivals { seed, unit, queries } })
    };
    rates.iter().map(plan).collect()
}

/// The runs of one command.
struct Session<'a> {
    arguments: &'a Arguments,
    lab: Lab,
    rows: Vec<LiveSummaryRow>,
    /// What the user has to know beyond the table.
    notes: Vec<String>,
    is_single: bool,
}

impl Session<'_> {
    /// Drives every plan through every policy, up to the end or to the first run that is interrupted or fails.
    fn drive_all(
        &mut self,
        policies: &[PolicyKind],
        plans: &[Plan],
        estimates: &[(QueryId, PerKind<Nanos>)],
    ) -> Result<(), Failure> {
        let runs = policies.len() * plans.len();
        let mut done = 0;
        for &policy in policies {
            for plan in plans {
                errln!("run {} of {runs}: {policy}, {} queries a second", done + 1, number::text(plan.rate_qps, 6));
                let outcome = self.drive(policy, plan, estimates)?;
                done += 1;
                self.note(policy, plan, &outcome);
                if self.arguments.log {
                    self.write_log(policy, plan, &outcome)?;
                }
                self.rows.extend(self.row(policy, plan, &outcome));
                match outcome.ending {
                    Ending::Complete | Ending::Overloaded => {}
                    Ending::Interrupted => {
                        self.notes
                            .push(format!("interrupted in run {done} of {runs}; the table holds what was measured"));
                        return Ok(());
                    }
                    Ending::Failed(e) => return Err(Failure::failed(format!("run {done} of {runs}: {e}"))),
                }
            }
        }
        Ok(())
    }

    fn drive(
        &mut self,
        policy: PolicyKind,
        plan: &Plan,
        estimates: &[(QueryId, PerKind<Nanos>)],
    ) -> Result<LiveOutcome, Failure> {
        let deadline = self.deadline();
        let Arrivals { unit, queries, .. } = &plan.arrivals;
        let jobs = live::plan(at_rate(unit, plan.rate_qps).zip(queries.iter().copied()), estimates, deadline);
        let policy = policy.build(&self.arguments.options, self.lab.fleet.machine())?;
        let run = LiveRun { policy, jobs: &jobs, abandon_after: Some(deadline.scaled(HOPELESS_DEADLINES)) };
        Ok(live::run(&mut self.lab.fleet, run)?)
    }

    fn deadline(&self) -> Nanos {
        Nanos::from_ms(self.arguments.deadline_ms)
    }

    fn note(&mut self, policy: PolicyKind, plan: &Plan, outcome: &LiveOutcome) {
        let run = format!("{policy} at {} q/s", number::text(plan.rate_qps, 6));
        let LiveOutcome { unreleased, unfinished, .. } = *outcome;
        if unreleased + unfinished > 0 {
            let why = match outcome.ending {
                Ending::Overloaded => "given up: its backlog was hopeless; ",
                _ => "",
            };
            let lost = format!("{unfinished} queries did not finish, {unreleased} were not released");
            self.notes.push(format!("{run}: {why}{lost}; delays are those of the others"));
        }
        self.notes.extend(outcome.lag_warning(self.deadline()).map(|warning| format!("warning: {run}: {warning}")));
    }

    /// The run's line; `None` if nothing has finished.
    fn row(&self, policy: PolicyKind, plan: &Plan, outcome: &LiveOutcome) -> Option<LiveSummaryRow> {
        let summary = Summary::of_log(&outcome.log, self.lab.fleet.machine())?;
        let (rate_qps, seed) = (plan.rate_qps, plan.arrivals.seed);
        Some(LiveSummaryRow {
            row: SummaryRow { source: Source::Live, policy: policy.name(), rate_qps, seed, summary },
            lag_p50_ms: outcome.lag.p50.as_ms(),
            lag_p99_ms: outcome.lag.p99.as_ms(),
            handoff_p50_us: outcome.handoff.p50.as_us(),
            unfinished: outcome.unfinished,
            unreleased: outcome.unreleased,
            overloaded: outcome.overloaded(),
            gpu: self.lab.fleet.gpu().name(),
        })
    }

    fn provenance(&self) -> Provenance {
        Provenance::new()
            .with_command_and_machine()
            .with("workload", &self.lab.workload_name)
            .with("mode", self.arguments.mode)
            .with("estimates", &self.arguments.estimates)
            .with("gpu", &self.lab.gpu_words)
    }

    fn write_log(&self, policy: PolicyKind, plan: &Plan, outcome: &LiveOutcome) -> Result<(), Failure> {
        let gpu_is_replayed = self.lab.fleet.gpu() == GpuLane::Replay;
        let lane = |row: &LogRow| match row.kind {
            ProcessorKind::Gpu if gpu_is_replayed => GpuLane::Replay.name(),
            _ => GpuLane::Real.name(),
        };
        let seed = plan.arrivals.seed;
        let path = choices::log_path(&self.arguments.out, self.is_single, policy, plan.rate_qps, seed);
        let provenance = self
            .provenance()
            .with("policy", policy)
            .with("rate_qps", number::text(plan.rate_qps, 9))
            .with("seed", seed);
        Ok(outcome.log.write_with_lanes(&path, &provenance, lane)?)
    }

    fn print(&self, summary_path: &Path) -> Result<(), Failure> {
        let headings = [
            "policy",
            "qps",
            "finished",
            "mean ms",
            "p50 ms",
            "p99 ms",
            "max ms",
            "missed",
            "cpu busy",
            "gpu busy",
            "lag p99 ms",
        ];
        let mut table = Table::new(headings);
        let share = |share: Option<f64>| share.map_or(String::from("-"), |share| format!("{:.1} %", share * 100.0));
        for LiveSummaryRow { row, lag_p99_ms, .. } in &self.rows {
            let s = &row.summary;
            table.row([
                row.policy.to_owned(),
                number::text(row.rate_qps, 6),
                s.queries.to_string(),
                format!("{:.3}", s.mean_ms),
                format!("{:.3}", s.p50_ms),
                format!("{:.3}", s.p99_ms),
                format!("{:.3}", s.max_ms),
                s.missed.to_string(),
                share(s.utilisation.cpu),
                share(s.utilisation.gpu),
                format!("{lag_p99_ms:.3}"),
            ]);
        }
        let notes: String = self.notes.iter().map(|note| format!("{note}\n")).collect();
        let logs = match (self.arguments.log, self.is_single) {
            (false, _) => String::new(),
            (true, true) => format!(", {}", self.arguments.out.join("log.csv").display()),
            (true, false) => format!(", {}", self.arguments.out.join("log").display()),
        };
        say(&format!("\n{table}\n{notes}written: {}{logs}\n", summary_path.display()))
    }
}
