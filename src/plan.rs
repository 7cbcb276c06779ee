//! `tandem plan`: the machines that serve a demand at the least cost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tandem_model::base::machine::Class;
use tandem_model::base::time::Nanos;
use tandem_model::cost::{MachineProfile, Workload};
use tandem_model::files::{Digits, InputError, Provenance, Record, check_writable, write_csv};
use tandem_model::sched::{PolicyKind, PolicyOptions};
use tandem_model::study::plan::{
    Candidate, Demand, HOURS_PER_MONTH, MachineType, Plan, Plans, Question, Row, plan, read_catalogue,
    shipped_catalogue,
};
use tandem_model::study::{Estimates, SPEED_SPREAD, in_pieces, never_measured};
use tandem_model::traffic::{Mode, Recording, Replay};

use super::defaults::Bars;
use super::origin;
use super::output::{result, say, say_screen};
use super::result_writer::ResultWriter;
use crate::failure::Failure;
use crate::options::machine::{RoutingArgument, mismatches};
use crate::options::names::choice;
use crate::options::question::{DeadlineArgument, ObjectiveArguments};
use tandem_report::figure::{LineChart, Point, Series, with_looks};
use tandem_report::json::row_of_file;
use tandem_report::number::{counted, text};
use tandem_report::table::Table;

/// Most spare groups.
const MOST_SPARE: usize = 100_000;
/// Seconds of a window of a recorded day.
const WINDOW_SECONDS: f64 = 60.0;

/// Find the machines that serve a rate within a deadline at the least cost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tandem plan --rate 2000:8000 --deadline-ms 100 --workload mine.csv")]
pub(super) struct Arguments {
    /// Queries per second at the busiest time: a number, or LOW:HIGH if it lies between these with 90 % probability
    #[arg(
        long,
        value_name = "QPS",
        required_unless_present = "day",
        conflicts_with = "day",
        help_heading = "Question"
    )]
    rate: Option<String>,
    /// A recorded day of arrivals or of counts per interval in place of --rate: its busiest minute counts
    #[arg(long, value_name = "FILE", help_heading = "Question")]
    day: Option<PathBuf>,
    /// Growth of demand until the plan ends, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, help_heading = "Question")]
    growth: f64,
    #[command(flatten)]
    deadline: DeadlineArgument,
    #[command(flatten)]
    objective: ObjectiveArguments,
    /// Machines (groups of shards) that may be lost while the objective still holds
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Question")]
    spare: usize,
    /// Measured queries: a workload file, a table of service times with a column such as `cpu_us`, `took` or
    /// `latency_ms`, or the name of a shipped workload [default: the shipped Wikipedia slice]
    #[arg(long, value_name = "FILE")]
    workload: Option<String>,
    /// How the terms of a query combine; selects rows of the workload [default: its only mode, else or]
    #[arg(long, value_parser = choice::<Mode>())]
    mode: Option<Mode>,
    /// Machine types: a CSV file [default: the catalogue that ships, with example prices]
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// Size of the index in gigabytes; an index that exceeds a machine's memory is sharded
    #[arg(long, value_name = "GB")]
    index_gb: Option<f64>,
    /// Policies to choose from, separated by commas [default: cpu-only on machines without GPU, which serves queries first come,
    /// first served; else gpu-only, cpu-only, best-of, stealing and combined]
    #[arg(long, value_name = "NAME", value_parser = choice::<PolicyKind>(), value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    #[command(flatten)]
    routing: RoutingArgument,
    /// Cost estimates that policies see, as in `simulate`
    #[arg(long, value_name = "WHAT", default_value = "model")]
    estimates: String,
    /// Deviation of the logarithm of machine speed between machines and days; 0 plans without a margin, as `simulate` and `sweep`
    #[arg(long, value_name = "SHARE", default_value_t = SPEED_SPREAD)]
    speed_spread: f64,
    /// Cost of demand that is not served, as a multiple of the cost of serving it; a plan serves a share of 1 - 1/FACTOR
    #[arg(long, value_name = "FACTOR", default_value_t = 10.0, help_heading = "Question")]
    shortage: f64,
    /// Folder of the results
    #[arg(short, long, value_name = "DIR", default_value = "out/plan")]
    out: PathBuf,
}

/// A row of `plan.csv`: the best plan of one machine type.
#[derive(Debug, Serialize, Deserialize)]
struct PlanRow {
    machine: String,
    policy: String,
    workers: usize,
    routing: String,
    machines: usize,
    machines_without_margin: usize,
    shards: usize,
    groups: usize,
    spare: usize,
    deadline_ms: Digits<6>,
    typical_qps: Digits<4>,
    group_qps: Digits<4>,
    utilisation: Digits<4>,
    served_share: Digits<4>,
    price_per_hour: Digits<6>,
    price_per_month: Digits<6>,
    price_per_million: Digits<6>,
    p99_ms: Option<Digits<4>>,
    p99_low_ms: Option<Digits<4>>,
    p99_high_ms: Option<Digits<4>>,
    p999_ms: Option<Digits<4>>,
    watts: Option<Digits<4>>,
    joules_per_query: Option<Digits<4>>,
    gpu_mj_per_query: Option<Digits<4>>,
}

/// A row of `machines.csv`: a number of machines of the best type.
#[derive(Debug, Serialize, Deserialize)]
struct MachinesRow {
    machine: String,
    machines: usize,
    is_plan: bool,
    utilisation: Digits<4>,
    p99_ms: Option<Digits<4>>,
    p999_ms: Option<Digits<4>>,
    served_share: Digits<4>,
    price_per_month: Digits<6>,
}

impl Record for MachinesRow {}

impl Record for PlanRow {
    const OPTIONAL: &'static [&'static str] = &["gpu_mj_per_query"];
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_writable(&arguments.out.join("plan.csv"))?;
    let question = question(arguments)?;
    let types = match &arguments.catalogue {
        Some(path) => read_catalogue(path)?,
        None => shipped_catalogue()?,
    };
    let (workload_name, candidates) = candidates(arguments, types)?;
    let doubts: BTreeSet<String> = candidates.iter().filter_map(|of| of.workload.doubt()).collect();
    let other_queries = mismatches(candidates.iter().filter_map(|of| Some((of.profile.as_ref()?, &*of.workload))));
    let warnings: Vec<String> = doubts.into_iter().chain(other_queries).collect();
    result("warnings", &warnings);
    let bars = Bars::quiet();
    let plans = in_pieces(&bars, "machine types", candidates.len(), |done| plan(&question, &candidates, done))?;
    let Some(best) = plans.ranking.first() else {
        result("answer", serde_json::Value::Null);
        result(
            "nearest",
            plans.nearest.as_ref().map(|(deadline, of)| row_of_file(nearest_row(&question, &plans, *deadline, of))),
        );
        warnings.iter().for_each(|warning| errln!("warning: {warning}"));
        return Err(Failure::no_answer(no_plan(arguments, &plans)));
    };
    let parts =
        [("policy", best.policy.clone()), ("shards", best.shards.to_string()), ("replicas", best.groups.to_string())];
    let warnings: Vec<String> = warnings.into_iter().chain(never_measured(parts)).collect();
    result("warnings", &warnings);
    let rows: Vec<PlanRow> = plans.ranking.iter().map(|of| row(&question, &plans, of)).collect();
    result("gpu_pays_from_qps", plans.gpu_pays_from_qps);
    result("why", why(&question, &plans, best));
    let provenance = Provenance::new().with_command_and_machine().with("workload", &workload_name);
    let provenance = warnings.iter().fold(provenance, |all, warning| all.with("warning", warning));
    let mut kept = ResultWriter::new();
    let file = arguments.out.join("plan.csv");
    result("answer", row_of_file(&rows[0]));
    kept.rows("plan", &file, write_csv(&file, &provenance, rows));
    let numbers = arguments.out.join("machines.csv");
    kept.rows(
        "machines",
        &numbers,
        write_csv(&numbers, &provenance, best.rows.iter().map(|of| machines_row(best, of))),
    );
    kept.files(figure(&plans, &question).write(&arguments.out.join("plan")).map(|file| vec![file]));
    let mut answer = headline(&question, &plans, best);
    answer.push_str(&format!("\n{}", numbers_table(best)));
    if plans.ranking.len() > 1 {
        answer.push_str(&format!("\n{}", table(&question, &plans)));
    }
    answer.push_str(
        "served: share of the draws of demand, query costs and machine speed; q/s each: capacity of a machine, or of a group \
         with all shards; prices: in the catalogue's currency\n\n",
    );
    answer.push_str(&reasons(&plans));
    answer.push_str(&format!("\nService times: {workload_name} ({}).\n", candidates[0].workload.mode()));
    answer.extend(warnings.iter().map(|warning| format!("warning: {warning}\n")));
    let printed = say_screen(&answer, &file.display().to_string());
    let named = say(&format!("\n{}\n", kept.in_words()));
    kept.finish().and(printed).and(named)
}

fn question(arguments: &Arguments) -> Result<Question, Failure> {
    let at_least = |option: &str, value: f64, least: f64, most: f64| match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(Failure::input(format!("--{option} is {value}, expected {least} to {most}"))),
    };
    Ok(Question {
        demand: demand(arguments)?,
        growth: 1.0 + at_least("growth", arguments.growth, -99.0, 1e6)? / 100.0,
        deadline: arguments.deadline.checked()?,
        objective: arguments.objective.checked()?,
        spare: at_least("spare", arguments.spare as f64, 0.0, MOST_SPARE as f64)? as usize,
        index_gb: arguments.index_gb.map(|gb| at_least("index-gb", gb, 1e-6, 1e9)).transpose()?,
        routing: arguments.routing.routing,
        policies: arguments.policy.iter().map(|kind| kind.with(PolicyOptions::default())).collect(),
        estimates: Estimates::named(&arguments.estimates)?,
        speed_spread: at_least("speed-spread", arguments.speed_spread, 0.0, 1.0)?,
        shortage: at_least("shortage", arguments.shortage, 1.0, 1e6)?,
        seed: 1,
    })
}

fn demand(arguments: &Arguments) -> Result<Demand, Failure> {
    if let Some(path) = &arguments.day {
        let recording = Recording::read(path, Replay::Repeat)?;
        recording.found().into_iter().for_each(|found| errln!("{}: {found}", path.display()));
        return Ok(Demand::Recorded(recording.rates_qps(WINDOW_SECONDS)));
    }
    let text = arguments.rate.as_deref().unwrap_or_default();
    let fault = |expected: &str| Failure::input(format!("--rate: {text:?}, expected {expected}"));
    let rate = |one: &str| {
        let rate_qps = one.trim().parse::<f64>().ok().filter(|rate_qps| (1e-3..=1e12).contains(rate_qps));
        rate_qps.ok_or_else(|| fault("queries per second (0.001 to 10^12), or LOW:HIGH"))
    };
    match text.split_once(':') {
        None => Ok(Demand::Rate(rate(text)?)),
        Some((low, high)) => match (rate(low)?, rate(high)?) {
            (low, high) if low < high => Ok(Demand::Between(low, high)),
            _ => Err(fault("the lower rate first, then a higher one")),
        },
    }
}

/// Each type with the workload that represents it, and the name of the question's workload.
fn candidates(arguments: &Arguments, types: Vec<MachineType>) -> Result<(String, Vec<Candidate>), Failure> {
    let (name, workload) = origin::workload_in(arguments.workload.as_deref(), arguments.mode)?;
    let workload = Arc::new(workload);
    let mut read: BTreeMap<String, Arc<Workload>> = BTreeMap::new();
    let mut of = |machine: MachineType| {
        let type_fault = |fault: Failure| Failure::input(format!("machine type {}: {fault}", machine.name));
        let workload = match &machine.workload {
            None => Arc::clone(&workload),
            Some(name) => match read.get(name) {
                Some(known) => Arc::clone(known),
                None => {
                    let new = origin::workload_in(Some(name), arguments.mode).map_err(|e| type_fault(e.into()))?;
                    Arc::clone(read.entry(name.clone()).or_insert(Arc::new(new.1)))
                }
            },
        };
        let profile =
            machine.profile.as_ref().map(|path| Ok((path.display().to_string(), MachineProfile::read(path)?)));
        let profile = profile.transpose().map_err(|e: InputError| type_fault(e.into()))?;
        Ok(Candidate { machine, workload, profile })
    };
    let candidates = types.into_iter().map(&mut of).collect::<Result<Vec<Candidate>, Failure>>()?;
    candidates.iter().try_for_each(|of| of.workers().map(|_| ()).map_err(Failure::input))?;
    match candidates.iter().find(|of| of.workload.rows.iter().any(|row| row.measured[Class::CPU].is_none())) {
        Some(of) => Err(Failure::input(format!("{}: its workload has no CPU times", of.machine.name))),
        None => Ok((name, candidates)),
    }
}

fn row(question: &Question, plans: &Plans, of: &Plan) -> PlanRow {
    let interval = of.row.p99_ms.and_then(|(_, interval)| interval);
    let price_per_hour = of.row.price_per_hour;
    PlanRow {
        machine: of.machine.name.clone(),
        policy: of.policy.clone(),
        workers: of.workers,
        routing: question.routing.name().to_owned(),
        machines: of.machines(),
        machines_without_margin: (of.groups_without_margin + question.spare) * of.shards,
        shards: of.shards,
        groups: of.groups,
        spare: question.spare,
        deadline_ms: Digits(question.deadline.as_ms()),
        typical_qps: Digits(plans.typical_qps),
        group_qps: Digits(of.group_qps),
        utilisation: Digits(of.row.utilisation),
        served_share: Digits(of.row.served_share),
        price_per_hour: Digits(price_per_hour),
        price_per_month: Digits(price_per_hour * HOURS_PER_MONTH),
        price_per_million: Digits(per_million(of, plans)),
        p99_ms: of.row.p99_ms.map(|(mean, _)| Digits(mean)),
        p99_low_ms: interval.map(|interval| Digits(interval.low.max(0.0))),
        p99_high_ms: interval.map(|interval| Digits(interval.high)),
        p999_ms: of.row.p999_ms.map(Digits),
        watts: of.watts.map(Digits),
        joules_per_query: of.watts.map(|watts| Digits(watts / plans.typical_qps)),
        gpu_mj_per_query: of.gpu_mj_per_query.map(Digits),
    }
}

fn machines_row(best: &Plan, of: &Row) -> MachinesRow {
    MachinesRow {
        machine: best.machine.name.clone(),
        machines: of.machines,
        is_plan: of.machines == best.machines(),
        utilisation: Digits(of.utilisation),
        p99_ms: of.p99_ms.map(|(mean, _)| Digits(mean)),
        p999_ms: of.p999_ms.map(Digits),
        served_share: Digits(of.served_share),
        price_per_month: Digits(of.price_per_hour * HOURS_PER_MONTH),
    }
}

/// The plan for a longer deadline than that of the question.
fn nearest_row(question: &Question, plans: &Plans, deadline: Nanos, of: &Plan) -> PlanRow {
    row(&Question { deadline, ..question.clone() }, plans, of)
}

/// The price of a million queries at the typical rate.
fn per_million(of: &Plan, plans: &Plans) -> f64 {
    of.row.price_per_hour / (plans.typical_qps * 3600.0) * 1e6
}

/// The machines of a plan and their policy.
fn machines(of: &Plan) -> String {
    let name = &of.machine.name;
    let machines = counted(of.machines(), &format!("machine {name}"), &format!("machines {name}"));
    format!("{machines} under {}", of.policy)
}

/// The answer in four lines.
fn headline(question: &Question, plans: &Plans, best: &Plan) -> String {
    let spare = if question.spare > 0 {
        format!(", {} of {} groups spare", question.spare, best.groups)
    } else {
        String::new()
    };
    let shards = if best.shards > 1 { format!(", {} shards each", best.shards) } else { String::new() };
    let routed = if best.groups > 1 { format!(", routing {}", question.routing.name()) } else { String::new() };
    let p99 = best.row.p99_ms.map_or(String::from("unknown"), |(mean, interval)| {
        // An interval below the printed digits says nothing.
        let half = interval.map(|interval| (interval.high - interval.low) / 2.0).filter(|&half| half >= 0.005 * mean);
        let half = half.map_or(String::new(), |half| format!(" +- {}", text(half, 2)));
        format!("{}{half} ms", text(mean, 3))
    });
    format!(
        "{}{shards}{spare}\n{} each{routed}\n{} per month, {} per million queries at {} q/s; p99 {p99}\n{}\n",
        machines(best),
        counted(best.workers, "CPU worker", "CPU workers"),
        text(best.row.price_per_hour * HOURS_PER_MONTH, 4),
        text(per_million(best, plans), 3),
        text(plans.typical_qps, 4),
        why(question, plans, best),
    )
}

/// Why the plan has its number of machines and not one less, in a sentence.
fn why(question: &Question, plans: &Plans, best: &Plan) -> String {
    let (groups, plain) = (best.groups, best.groups_without_margin + question.spare);
    let after = if question.spare > 0 { format!(" after the loss of {}", question.spare) } else { String::new() };
    let held = counted(plain * best.shards, "machine holds", "machines hold");
    let with_margin = match plain < groups {
        true => format!("; {} hold with the spread of demand and machines", groups * best.shards),
        false => String::new(),
    };
    let less = best.rows.iter().find(|of| of.machines == (groups - 1) * best.shards);
    let why_not = less.map_or(String::new(), |less| {
        let utilisation = less.utilisation * groups.saturating_sub(1) as f64
            / groups.saturating_sub(1 + question.spare).max(1) as f64;
        match (plain < groups, utilisation >= 1.0) {
            (true, _) => format!(
                ": {} would serve {} % of the draws, and {} % are wanted",
                less.machines,
                text(100.0 * less.served_share, 3),
                text(100.0 * (1.0 - 1.0 / question.shortage), 3)
            ),
            (false, true) => format!(
                ": {} would have {} % of the work that they can do",
                less.machines,
                text(100.0 * utilisation, 3)
            ),
            (false, false) => format!(
                ": {} would be {} % busy and miss {}",
                less.machines,
                text(100.0 * utilisation, 3),
                question.objective.within(question.deadline)
            ),
        }
    });
    format!("{held} {} q/s{after}{with_margin}{why_not}", text(plans.typical_qps, 4))
}

/// The best plan among other numbers of its machines.
fn numbers_table(best: &Plan) -> Table {
    let mut table = Table::new([best.machine.name.as_str(), "busy", "p99 ms", "p99.9 ms", "served", "per month"]);
    for of in &best.rows {
        let optional = |value: Option<f64>| value.map_or(String::from("grows"), |value| text(value, 3));
        let mark = if of.machines == best.machines() { "* " } else { "  " };
        table.row([
            format!("{mark}{}", of.machines),
            format!("{:.0} %", 100.0 * of.utilisation),
            optional(of.p99_ms.map(|(mean, _)| mean)),
            optional(of.p999_ms),
            format!("{} %", text(100.0 * of.served_share, 3)),
            text(of.price_per_hour * HOURS_PER_MONTH, 4),
        ]);
    }
    table
}

fn table(question: &Question, plans: &Plans) -> Table {
    let mut table = Table::new([
        "machine",
        "policy",
        "workers",
        "machines",
        "per month",
        "served",
        "p99 ms",
        "q/s each",
        "J/query",
        "GPU mJ/query",
    ]);
    for of in &plans.ranking {
        let row = row(question, plans, of);
        let optional = |value: Option<f64>| value.map_or(String::new(), |value| text(value, 3));
        table.row([
            row.machine,
            row.policy,
            row.workers.to_string(),
            row.machines.to_string(),
            text(row.price_per_month.0, 4),
            format!("{} %", text(100.0 * row.served_share.0, 3)),
            optional(row.p99_ms.map(|ms| ms.0)),
            text(row.group_qps.0, 3),
            optional(row.joules_per_query.map(|joules| joules.0)),
            optional(row.gpu_mj_per_query.map(|joules| joules.0)),
        ]);
    }
    table.without_empty_columns().with_keys(2)
}

/// Why the next two plans lost, what other policies would gain, which types were left out, and from which rate a GPU pays.
fn reasons(plans: &Plans) -> String {
    let mut lines = Vec::new();
    if let [best, others @ ..] = &plans.ranking[..] {
        for other in others.iter().take(2) {
            let price = (other.row.price_per_hour - best.row.price_per_hour) * HOURS_PER_MONTH;
            let why = match (price > 0.0, other.row.served_share < best.row.served_share) {
                (true, _) => format!("it costs {} more per month", text(price, 3)),
                (false, true) => String::from("it serves fewer of the draws"),
                (false, false) => String::from("it costs as much"),
            };
            lines.push(format!("{} loses to {}: {why}", other.machine.name, best.machine.name));
        }
        let gains = best.gains.iter().map(|(policy, gain)| {
            let (percent, way) = (text(100.0 * gain.abs(), 2), if *gain < 0.0 { "less" } else { "more" });
            format!(
                "{policy} would sustain {percent} % {way} than {} on one machine {}",
                best.policy, best.machine.name
            )
        });
        lines.extend(gains);
    }
    lines.extend(plans.left_out.iter().map(|(name, why)| format!("{name} is left out: {why}")));
    lines.extend(match plans.gpu_pays_from_qps {
        Some(rate_qps) if rate_qps <= 1.1 => Some(String::from("a machine with GPUs is the cheapest at every rate")),
        Some(rate_qps) => Some(format!("a machine with GPUs is the cheapest from {} q/s on", text(rate_qps, 3))),
        None if plans.ranking.iter().any(|of| of.machine.gpus > 0) => {
            Some(String::from("no rate makes a machine with GPUs of this catalogue the cheapest"))
        }
        None => None,
    });
    lines.join("\n")
}

fn no_plan(arguments: &Arguments, plans: &Plans) -> String {
    let why: Vec<String> = plans.left_out.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let nearest = match &plans.nearest {
        Some((deadline, best)) => format!(
            "; nearest: {} within {} ms, {} per month",
            machines(best),
            text(deadline.as_ms(), 4),
            text(best.row.price_per_hour * HOURS_PER_MONTH, 4)
        ),
        None => String::new(),
    };
    format!(
        "no machine of the catalogue serves any rate within {} ms ({}){nearest}",
        arguments.deadline.ms,
        why.join("; ")
    )
}

/// The figure of prices by rate, with one line for each of the eight best machine types.
fn figure(plans: &Plans, question: &Question) -> LineChart {
    const MOST: usize = 8;
    let best: Vec<&str> = plans.ranking.iter().take(MOST).map(|of| of.machine.name.as_str()).collect();
    let lines = plans.prices.iter().filter(|(name, _)| best.contains(&name.as_str()));
    let series = lines
        .map(|(name, prices)| Series {
            name: name.clone(),
            points: prices
                .iter()
                .map(|&(x, price)| Point { x, y: price * HOURS_PER_MONTH, is_hollow: false, interval: None })
                .collect(),
            ..Series::default()
        })
        .collect();
    LineChart {
        title: String::from("Price of the machines that serve a rate"),
        note: format!("{}, {} spare", question.objective.within(question.deadline), question.spare),
        x_label: String::from("rate (queries/s)"),
        y_label: String::from("price per month"),
        is_x_log: true,
        is_y_log: true,
        series: with_looks(series),
        vertical: Some((plans.typical_qps, String::from("demand"))),
        ..LineChart::default()
    }
}
