//! `tandem simulate`: delay against rate, and the capacity within a deadline, for several policies.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

use super::{Failure, estimates};
use crate::cost::{Workload, shipped};
use crate::files::Provenance;
use crate::ids::Machine;
use crate::query::{ArrivalProcess, Mode, Trace, draw_queries, unit_arrivals};
use crate::report::capacity::{CapacityRow, write_capacities};
use crate::report::number;
use crate::report::plot::{LineChart, Point, Series};
use crate::report::rates::{Source, parse_rates};
use crate::report::summary::{SummaryRow, Tally, write_summaries};
use crate::report::table::Table;
use crate::sched::{PolicyKind, PolicyOptions};
use crate::sim::{Arrivals, Experiment, SimError, SimQuery, bounds, simulate};
use crate::time::Nanos;

/// Options of `simulate`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Measured queries: a workload file, or the name of one that ships with Tandem; left out, the first of those
    #[arg(long, value_name = "FILE")]
    workload: Option<String>,
    /// Policies, between commas; left out, all that the machine can run
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    /// Rates in queries per second: numbers and FROM:TO:COUNT, between commas; left out, 12 from 5 % to 105 % of what any
    /// scheduler could sustain, or with --trace the rate of the trace
    #[arg(long, value_name = "QPS")]
    rate: Option<String>,
    /// Queries in a run; left out, 10 000, or more where a machine this fast needs more to last for ten deadlines
    #[arg(long, value_name = "N")]
    queries: Option<usize>,
    /// Seeds, between commas, or FIRST:LAST; one run each at every rate
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: String,
    /// Time from a query's arrival to its deadline, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500.0)]
    deadline_ms: f64,
    /// CPU workers
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: usize,
    /// GPU streams
    #[arg(long, value_name = "N", default_value_t = 1)]
    gpus: usize,
    /// Which of the workload's rows are asked
    #[arg(long, value_enum, default_value_t = Mode::Or)]
    mode: Mode,
    /// What policies know of costs: `model` (a tree per processor fitted to the workload, each query estimated by one
    /// that has not seen it), `oracle` (the measured times), a model file, or the name of a model that ships with Tandem
    #[arg(long, value_name = "WHAT", default_value = "model")]
    estimates: String,
    /// Play the arrivals and queries of this trace file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["queries", "arrivals", "seed"])]
    trace: Option<PathBuf>,
    /// How queries arrive: poisson, bursty, uniform, or a file of recorded arrivals
    #[arg(long, value_name = "PROCESS", default_value = "poisson")]
    arrivals: String,
    /// Where the results go
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Write every run's log as well: log.csv, or the folder `log` for several runs
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    options: PolicyOptions,
}

/// More queries than this, over all seeds, would not fit an ordinary memory.
const MAX_QUERIES: usize = 100_000_000;
/// More log rows than this would fill an ordinary disk.
const MAX_LOG_ROWS: usize = 50_000_000;
/// More processors of a kind than this are surely a slip.
const MAX_PROCESSORS: usize = 1024;
/// More seeds than this are surely a slip.
const MAX_SEEDS: u64 = 1000;
/// A run is at least this long where its length is left open,
const DEFAULT_QUERIES: usize = 10_000;
/// and lasts for this many deadlines at the rate that the machine sustains: a backlog that grows by a tenth of the time
/// then reaches the deadline, so that a run tells rates of 10 % too much from sustainable ones,
const DEFAULT_DEADLINES: f64 = 10.0;
/// but it is no longer than this.
const MAX_DEFAULT_QUERIES: usize = 2_000_000;
/// A deadline of a day.
const MAX_DEADLINE_MS: f64 = 86_400_000.0;
/// How many rates are tried, and from which to which share of the bound, where none are named.
const DEFAULT_RATES: u32 = 12;
const DEFAULT_RATE_SHARES: (f64, f64) = (0.05, 1.05);

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let machine = machine(arguments)?;
    let policies = policies(arguments, &machine)?;
    let (workload_name, workload) = workload(arguments)?;
    let queries = estimates::sim_queries(&workload, &arguments.estimates, &machine)?;
    let deadline = deadline(arguments)?;
    let n = arguments.queries.unwrap_or_else(|| default_queries(&queries, &machine, deadline));
    let (arrivals, recorded_qps) = arrivals(arguments, &workload, n)?;
    let experiment = Experiment { machine, queries, deadline, arrivals, options: arguments.options };
    let bound_qps = experiment.bound_qps();
    let rates = rates(arguments, &experiment, bound_qps, recorded_qps)?;
    if arguments.log {
        check_log_rows(&experiment, policies.len() * rates.len())?;
    }
    let provenance = Provenance::new()
        .with_command_and_machine()
        .with("workload", &workload_name)
        .with("mode", arguments.mode)
        .with("estimates", &arguments.estimates);

    let progress = progress_bar((policies.len() * (rates.len() * experiment.arrivals.len() + 1)) as u64);
    let summaries = summaries(&experiment, &policies, &rates, &progress)?;
    let capacities = capacities(&experiment, &policies, bound_qps, &progress)?;
    progress.finish_and_clear();

    let mut files = vec![arguments.out.join("summary.csv"), arguments.out.join("capacity.csv")];
    write_summaries(&files[0], &provenance, &summaries)?;
    write_capacities(&files[1], &provenance, &capacities)?;
    let chart = arguments.out.join("delay");
    delay_chart(&summaries, &policies, &rates, bound_qps, arguments.deadline_ms).write(&chart)?;
    files.extend([chart.with_extension("svg"), chart.with_extension("png")]);
    if arguments.log {
        files.push(write_logs(&experiment, &policies, &rates, &provenance, &arguments.out)?);
    }
    let title = format!(
        "{workload_name}, mode {}: {} queries; {} CPU, {} GPU; {} a run, {} run(s); deadline {} ms; estimates: {}",
        arguments.mode,
        workload.rows.len(),
        arguments.cpus,
        arguments.gpus,
        experiment.arrivals[0].queries.len(),
        experiment.arrivals.len(),
        arguments.deadline_ms,
        arguments.estimates,
    );
    print(&format!("{title}\n\n{}", report(&summaries, &capacities, &policies, &rates)), &files)
}

fn machine(arguments: &Arguments) -> Result<Machine, Failure> {
    for (option, count) in [("--cpus", arguments.cpus), ("--gpus", arguments.gpus)] {
        if count > MAX_PROCESSORS {
            return Err(Failure::input(format!("{option} is {count}, at most {MAX_PROCESSORS} can be simulated")));
        }
    }
    if arguments.cpus + arguments.gpus == 0 {
        return Err(Failure::input("the machine has no processors: give --cpus or --gpus at least 1"));
    }
    Ok(Machine::new(arguments.cpus, arguments.gpus))
}

fn policies(arguments: &Arguments, machine: &Machine) -> Result<Vec<PolicyKind>, Failure> {
    let build = |kind: PolicyKind| kind.build(&arguments.options, machine).map_err(|e| Failure::input(e.to_string()));
    arguments.options.check().map_err(|e| Failure::input(e.to_string()))?;
    if arguments.policy.is_empty() {
        return Ok(PolicyKind::ALL.into_iter().filter(|&kind| build(kind).is_ok()).collect());
    }
    let mut policies = Vec::new();
    for &kind in &arguments.policy {
        build(kind)?;
        if !policies.contains(&kind) {
            policies.push(kind);
        }
    }
    Ok(policies)
}

/// The rows asked, and the workload's name.
fn workload(arguments: &Arguments) -> Result<(String, Workload), Failure> {
    let (name, workload) = match &arguments.workload {
        None => shipped::default_workload().map(|(name, workload)| (name.to_owned(), workload))?,
        Some(name) if Path::new(name).exists() => (name.clone(), Workload::read(Path::new(name))?),
        Some(name) if shipped::workload_names().next().is_some() => (name.clone(), shipped::workload(name)?),
        Some(name) => (name.clone(), Workload::read(Path::new(name))?),
    };
    let rows = workload.only(arguments.mode);
    if rows.rows.is_empty() {
        let mut modes: Vec<&str> = workload.rows.iter().map(|row| row.mode.name()).collect();
        modes.dedup();
        modes.sort_unstable();
        modes.dedup();
        let message = format!("{name}: no queries in mode {} (it has {})", arguments.mode, modes.join(", "));
        return Err(Failure::input(message));
    }
    Ok((name, rows))
}

fn deadline(arguments: &Arguments) -> Result<Nanos, Failure> {
    let deadline = Nanos::from_ms(arguments.deadline_ms);
    // Below a nanosecond there is no deadline to speak of; NaN fails both comparisons.
    if !(arguments.deadline_ms <= MAX_DEADLINE_MS && deadline > Nanos::ZERO) {
        let given = arguments.deadline_ms;
        return Err(Failure::input(format!(
            "--deadline-ms is {given}, expected above 0 and at most {MAX_DEADLINE_MS}"
        )));
    }
    Ok(deadline)
}

/// How long a run is where it is left open: see [`DEFAULT_DEADLINES`].
fn default_queries(queries: &[SimQuery], machine: &Machine, deadline: Nanos) -> usize {
    let region = bounds::region(queries.iter().map(|query| query.service), machine);
    let wanted = region.map_or(0.0, |region| DEFAULT_DEADLINES * deadline.as_secs() * region.rate_qps);
    (number::significant(wanted, 2) as usize).clamp(DEFAULT_QUERIES, MAX_DEFAULT_QUERIES)
}

/// The runs, of `n` queries each, and the rate of the trace where one is played.
fn arrivals(arguments: &Arguments, workload: &Workload, n: usize) -> Result<(Vec<Arrivals>, Option<f64>), Failure> {
    if let Some(path) = &arguments.trace {
        let (arrivals, rate_qps) = traced(path, workload, arguments.mode)?;
        return Ok((vec![arrivals], Some(rate_qps)));
    }
    let seeds = parse_seeds(&arguments.seed)?;
    if n == 0 {
        return Err(Failure::input("--queries is 0, expected at least 1"));
    }
    if n.saturating_mul(seeds.len()) > MAX_QUERIES {
        let message = format!("--queries {n} with {} seed(s) is too much: at most {MAX_QUERIES} in all", seeds.len());
        return Err(Failure::input(message));
    }
    let process = ArrivalProcess::named(&arguments.arrivals)?;
    let draw = |&seed: &u64| Arrivals {
        seed,
        unit: unit_arrivals(&process, seed, n),
        queries: draw_queries(seed, n, workload.rows.len()),
    };
    Ok((seeds.par_iter().map(draw).collect(), None))
}

/// A trace's arrivals at one query per second, and its rate: arrivals per second from time 0 to the last.
pub(super) fn traced(path: &Path, workload: &Workload, mode: Mode) -> Result<(Arrivals, f64), Failure> {
    let trace = Trace::read(path)?;
    let positions: std::collections::HashMap<_, _> =
        workload.rows.iter().enumerate().map(|(position, row)| (row.query_id, position as u32)).collect();
    let mut queries = Vec::with_capacity(trace.rows.len());
    for (_, query) in &trace.rows {
        let Some(&position) = positions.get(query) else {
            let message = format!("{}: query {query} is not in the workload in mode {mode}", path.display());
            return Err(Failure::input(message));
        };
        queries.push(position);
    }
    let span_s = trace.rows.last().map_or(0.0, |(at, _)| at.as_secs());
    if span_s == 0.0 {
        return Err(Failure::input(format!("{}: all arrivals are at time 0, so it has no rate", path.display())));
    }
    let rate_qps = trace.rows.len() as f64 / span_s;
    let unit = trace.rows.iter().map(|(at, _)| at.as_secs() * rate_qps).collect();
    let seed = trace.provenance.get("seed").and_then(|seed| seed.parse().ok()).unwrap_or(0);
    Ok((Arrivals { seed, unit, queries }, rate_qps))
}

/// `3`, `1,2,5` or `1:20`, both ends included.
fn parse_seeds(text: &str) -> Result<Vec<u64>, Failure> {
    let number = |text: &str| {
        let fault = || Failure::input(format!("--seed {text:?} is not a whole number from 0 to 18446744073709551615"));
        text.trim().parse::<u64>().map_err(|_| fault())
    };
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once(':') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last || last - first >= MAX_SEEDS || seeds.len() as u64 + (last - first) >= MAX_SEEDS {
            return Err(Failure::input(format!("--seed {text}: expected 1 to {MAX_SEEDS} seeds, ascending")));
        }
        seeds.extend(first..=last);
    }
    Ok(seeds)
}

fn rates(
    arguments: &Arguments,
    experiment: &Experiment,
    bound_qps: Option<f64>,
    recorded_qps: Option<f64>,
) -> Result<Vec<f64>, Failure> {
    if let Some(text) = &arguments.rate {
        return parse_rates(text).map_err(|why| Failure::input(format!("--rate: {why}")));
    }
    if let Some(rate_qps) = recorded_qps {
        return Ok(vec![rate_qps]);
    }
    let region_qps = experiment.region().map(|region| region.rate_qps);
    let Some(top) = bound_qps.filter(|&bound| bound > 0.0).or(region_qps) else {
        return Err(Failure::input("all queries of the workload cost nothing: name rates with --rate"));
    };
    let (from, to) = DEFAULT_RATE_SHARES;
    let share = |i: u32| from + (to - from) * f64::from(i) / f64::from(DEFAULT_RATES - 1);
    Ok((0..DEFAULT_RATES).map(|i| number::significant(top * share(i), 4)).collect())
}

fn progress_bar(runs: u64) -> ProgressBar {
    // Drawn only where it takes more than a moment, and only on terminals.
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left");
    let bar = ProgressBar::new(runs);
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// One row a policy, rate and seed, in this order, whichever run ends first.
fn summaries(
    experiment: &Experiment,
    policies: &[PolicyKind],
    rates: &[f64],
    progress: &ProgressBar,
) -> Result<Vec<SummaryRow>, Failure> {
    let mut runs = Vec::new();
    for &policy in policies {
        for &rate_qps in rates {
            runs.extend(experiment.arrivals.iter().map(|arrivals| (policy, rate_qps, arrivals)));
        }
    }
    let one = |&(policy, rate_qps, arrivals): &(PolicyKind, f64, &Arrivals)| {
        let tally = Tally::new(&experiment.machine, arrivals.queries.len());
        let tally = experiment.play(policy, rate_qps, arrivals, tally, |_| false)?;
        progress.inc(1);
        let row = |summary| SummaryRow {
            source: Source::Simulated,
            policy: policy.name(),
            rate_qps,
            seed: arrivals.seed,
            summary,
        };
        Ok(tally.summary().map(row))
    };
    let rows: Vec<Result<Option<SummaryRow>, SimError>> = runs.par_iter().map(one).collect();
    rows.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>().map_err(failed)
}

fn capacities(
    experiment: &Experiment,
    policies: &[PolicyKind],
    bound_qps: Option<f64>,
    progress: &ProgressBar,
) -> Result<Vec<CapacityRow>, Failure> {
    let region_qps = experiment.region().map(|region| region.rate_qps);
    let Some(grid) = experiment.grid(bound_qps) else { return Ok(Vec::new()) };
    let row = |&policy: &PolicyKind| {
        let found = experiment.capacity(policy, &grid).map_err(failed)?;
        progress.inc(1);
        Ok(CapacityRow {
            source: Source::Simulated,
            policy: policy.name(),
            deadline: experiment.deadline,
            low_qps: found.low_qps,
            high_qps: found.high_qps,
            bound_qps,
            flips: found.flips,
            region_qps,
            queries: experiment.arrivals[0].queries.len(),
            seeds: experiment.arrivals.len(),
        })
    };
    policies.iter().map(row).collect()
}

/// A broken contract is our fault, an impossible policy the user's.
fn failed(e: SimError) -> Failure {
    match e {
        SimError::Policy(e) => Failure::input(e.to_string()),
        SimError::Law(e) => Failure::failed(e.to_string()),
    }
}

/// Mean delay over the seeds and whether any query missed, for a policy at a rate.
fn delay_at(summaries: &[SummaryRow], policy: PolicyKind, rate_qps: f64) -> (f64, bool) {
    let rows = summaries.iter().filter(|row| row.policy == policy.name() && row.rate_qps == rate_qps);
    let (sum, count, missed) = rows.fold((0.0, 0, 0), |(sum, count, missed), row| {
        (sum + row.summary.mean_ms, count + 1, missed + row.summary.missed)
    });
    (sum / f64::from(count), missed > 0)
}

/// The paper's Figure 7: average delay against arrival rate, one line a policy.
fn delay_chart(
    summaries: &[SummaryRow],
    policies: &[PolicyKind],
    rates: &[f64],
    bound_qps: Option<f64>,
    deadline_ms: f64,
) -> LineChart {
    let line = |&policy: &PolicyKind| {
        let point = |&rate_qps: &f64| {
            let (y, is_hollow) = delay_at(summaries, policy, rate_qps);
            Point { x: rate_qps, y, is_hollow }
        };
        let mut points: Vec<Point> = rates.iter().map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        // Each policy keeps its colour, whichever others are drawn.
        let colour = PolicyKind::ALL.iter().position(|&other| other == policy);
        Series { name: policy.name().to_owned(), points, colour, ..Series::default() }
    };
    LineChart {
        title: String::from("Average delay against arrival rate"),
        x_label: String::from("arrival rate (queries per second)"),
        y_label: String::from("average delay (ms)"),
        is_y_log: true,
        series: policies.iter().map(line).collect(),
        vertical: bound_qps.filter(|&bound| bound > 0.0).map(|bound| (bound, String::from("no scheduler beyond"))),
        note: Some(format!("hollow: a query missed its deadline of {deadline_ms} ms")),
        ..LineChart::default()
    }
}

/// Refuses, before anything is simulated, logs that would fill the disk.
fn check_log_rows(experiment: &Experiment, runs: usize) -> Result<(), Failure> {
    let queries: usize = experiment.arrivals.iter().map(|arrivals| arrivals.queries.len()).sum();
    match queries.saturating_mul(runs) {
        0..=MAX_LOG_ROWS => Ok(()),
        rows => Err(Failure::input(format!(
            "--log would write {rows} rows, at most {MAX_LOG_ROWS}: name fewer rates or policies"
        ))),
    }
}

/// Writes the logs and gives the file, or the folder for several.
fn write_logs(
    experiment: &Experiment,
    policies: &[PolicyKind],
    rates: &[f64],
    provenance: &Provenance,
    out: &Path,
) -> Result<PathBuf, Failure> {
    let runs = policies.len() * rates.len();
    let is_single = runs * experiment.arrivals.len() == 1;
    for &policy in policies {
        for &rate_qps in rates {
            for arrivals in &experiment.arrivals {
                let log = simulate(experiment.run(policy, rate_qps, arrivals).map_err(failed)?)
                    .map_err(|e| failed(SimError::Law(e)))?;
                let rate = number::text(rate_qps, 9);
                let path = if is_single {
                    out.join("log.csv")
                } else {
                    out.join("log").join(format!("{policy}-{rate}qps-seed{}.csv", arrivals.seed))
                };
                let of_run =
                    provenance.clone().with("policy", policy).with("rate_qps", rate).with("seed", arrivals.seed);
                log.write(&path, &of_run)?;
            }
        }
    }
    Ok(out.join(if is_single { "log.csv" } else { "log" }))
}

/// What a person reads: capacities, then delays.
fn report(summaries: &[SummaryRow], capacities: &[CapacityRow], policies: &[PolicyKind], rates: &[f64]) -> String {
    let mut text = String::from("Highest rate up to which no query misses its deadline:\n");
    let mut table = Table::new(["policy", "qps", "first miss at", "of any scheduler's", "flips"]);
    for row in capacities {
        let share = row.share_of_bound().map_or(String::from("-"), |share| format!("{:.1} %", share * 100.0));
        let high = row.high_qps.map_or(String::from("-"), |high| number::text(high, 5));
        table.row([row.policy.to_owned(), number::text(row.low_qps, 5), high, share, row.flips.to_string()]);
    }
    let _ = write!(text, "{table}");
    if let Some(row) = capacities.first() {
        let bound = row.bound_qps.map_or_else(
            || String::from("a run as short as this excludes no rate"),
            |qps| format!("no scheduler can exceed {} here", number::text(qps, 5)),
        );
        let region = number::optional(row.region_qps, 5);
        let _ = writeln!(text, "{bound}; none is stable in the long run above {region}");
    }
    text.push_str("\nAverage delay in ms (*: a query missed its deadline):\n");
    let mut table = Table::new(std::iter::once("qps").chain(policies.iter().map(|policy| policy.name())));
    for &rate_qps in rates {
        let delays = policies.iter().map(|&policy| {
            let (delay_ms, is_missed) = delay_at(summaries, policy, rate_qps);
            format!("{}{}", number::text(delay_ms, 4), if is_missed { "*" } else { "" })
        });
        table.row(std::iter::once(number::text(rate_qps, 6)).chain(delays));
    }
    let _ = write!(text, "{table}");
    text
}

/// Prints the report and the names of the files; a reader that has gone away (`| head`) is no failure.
fn print(report: &str, files: &[PathBuf]) -> Result<(), Failure> {
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let text = format!("{report}\nwritten: {}\n", names.join(", "));
    match std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(e.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers_lists_and_ranges() {
        let seeds = |text: &str| parse_seeds(text).ok();
        assert_eq!(seeds("7"), Some(vec![7]));
        assert_eq!(seeds("1,5:7"), Some(vec![1, 5, 6, 7]));
        for bad in ["", "-1", "3:1", "0:18446744073709551615", "x", "1:", "0:999,5"] {
            assert_eq!(seeds(bad), None, "{bad:?}");
        }
    }
}
