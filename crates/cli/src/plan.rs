//! `tandem plan`: the machines that serve a demand at the least cost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::defaults::Bars;
use super::output::{result, say, say_screen};
use super::result_writer::ResultWriter;
use super::{Failure, origin};
use crate::options::machine::mismatches;
use crate::options::names::choice;
use crate::options::question::{DeadlineArgument, ObjectiveArguments};
use tandem_core::base::machine::Class;
use tandem_core::base::time::Nanos;
use tandem_core::cost::{MachineProfile, Workload};
use tandem_core::files::{Digits, InputError, Provenance, Record, check_writable, write_csv};
use tandem_core::lab::plan::{
    Candidate, Demand, HOURS_PER_MONTH, MachineType, NUM_DRAWS, Plan, Plans, Question, plan, read_catalogue,
    shipped_catalogue,
};
use tandem_core::lab::{Estimates, in_pieces};
use tandem_core::query::{Mode, Recording, Replay};
use tandem_core::sched::{PolicyKind, PolicyOptions};
use tandem_report::number::{counted, text};
use tandem_report::plot::{LineChart, Point, Series, looks_of};
use tandem_report::table::Table;

/// Policies that are compared by default: the best ones with and without batches.
const POLICIES: [PolicyKind; 4] =
    [PolicyKind::CpuOnly, PolicyKind::StealingAdaptive, PolicyKind::Greedy, PolicyKind::Combined];
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
    /// Policies to choose from, separated by commas
    #[arg(long, value_name = "NAME", value_parser = choice::<PolicyKind>(), value_delimiter = ',', default_values = POLICIES.map(PolicyKind::name))]
    policy: Vec<PolicyKind>,
    /// Cost estimates that policies see, as in `simulate`
    #[arg(long, value_name = "WHAT", default_value = "model")]
    estimates: String,
    /// Deviation of the logarithm of machine speed between machines and days
    #[arg(long, value_name = "SHARE", default_value_t = 0.07)]
    speed_spread: f64,
    /// Charge for a draw that a plan does not serve, as a multiple of the lowest price that serves it
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
    machines: usize,
    shards: usize,
    groups: usize,
    spare: usize,
    deadline_ms: Digits<6>,
    typical_qps: Digits<4>,
    group_qps: Digits<4>,
    served_share: Digits<4>,
    price_per_hour: Digits<6>,
    price_per_month: Digits<6>,
    price_per_million: Digits<6>,
    regret_per_month: Digits<6>,
    p99_ms: Option<Digits<4>>,
    p99_low_ms: Option<Digits<4>>,
    p99_high_ms: Option<Digits<4>>,
    watts: Option<Digits<4>>,
    joules_per_query: Option<Digits<4>>,
    gpu_mj_per_query: Option<Digits<4>>,
}

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
        result("nearest", plans.nearest.as_ref().map(|(deadline, of)| nearest_row(&question, &plans, *deadline, of)));
        warnings.iter().for_each(|warning| errln!("warning: {warning}"));
        return Err(Failure::no_answer(no_plan(arguments, &plans)));
    };
    let rows: Vec<PlanRow> = plans.ranking.iter().map(|of| row(&question, &plans, of)).collect();
    result("gpu_pays_from_qps", plans.gpu_pays_from_qps);
    let provenance = Provenance::new().with_command_and_machine().with("workload", &workload_name);
    let provenance = warnings.iter().fold(provenance, |all, warning| all.with("warning", warning));
    let mut kept = ResultWriter::new();
    let file = arguments.out.join("plan.csv");
    result("answer", &rows[0]);
    kept.rows("plan", &file, write_csv(&file, &provenance, rows));
    kept.files(figure(&plans, &question).write(&arguments.out.join("plan")).map(|file| vec![file]));
    let mut answer = headline(&question, &plans, best);
    answer.push_str(&format!("\n{}", table(&question, &plans)));
    answer.push_str(&format!(
        "prices: in the catalogue's currency; per 10^6: per million queries at {} q/s\nserved: share of the draws; q/s each: \
         capacity of a machine, or of a group with all shards\n\n",
        text(plans.typical_qps, 4)
    ));
    answer.push_str(&reasons(&question, &plans));
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
    match candidates.iter().find(|of| of.workload.rows.iter().any(|row| row.measured[Class::CPU].is_none())) {
        Some(of) => Err(Failure::input(format!("{}: its workload has no CPU times", of.machine.name))),
        None => Ok((name, candidates)),
    }
}

fn row(question: &Question, plans: &Plans, of: &Plan) -> PlanRow {
    let interval = of.p99_ms.and_then(|(_, interval)| interval);
    PlanRow {
        machine: of.machine.name.clone(),
        policy: of.policy.clone(),
        machines: of.machines(),
        shards: of.shards,
        groups: of.groups,
        spare: question.spare,
        deadline_ms: Digits(question.deadline.as_ms()),
        typical_qps: Digits(plans.typical_qps),
        group_qps: Digits(of.group_qps),
        served_share: Digits(of.served_share),
        price_per_hour: Digits(of.price_per_hour),
        price_per_month: Digits(of.price_per_hour * HOURS_PER_MONTH),
        price_per_million: Digits(per_million(of, plans)),
        regret_per_month: Digits(of.regret_per_hour * HOURS_PER_MONTH),
        p99_ms: of.p99_ms.map(|(mean, _)| Digits(mean)),
        p99_low_ms: interval.map(|interval| Digits(interval.low.max(0.0))),
        p99_high_ms: interval.map(|interval| Digits(interval.high)),
        watts: of.watts.map(Digits),
        joules_per_query: of.watts.map(|watts| Digits(watts / plans.typical_qps)),
        gpu_mj_per_query: of.gpu_mj_per_query.map(Digits),
    }
}

/// The plan for a longer deadline than that of the question.
fn nearest_row(question: &Question, plans: &Plans, deadline: Nanos, of: &Plan) -> PlanRow {
    row(&Question { deadline, ..question.clone() }, plans, of)
}

/// The price of a million queries at the typical rate.
fn per_million(of: &Plan, plans: &Plans) -> f64 {
    of.price_per_hour / (plans.typical_qps * 3600.0) * 1e6
}

/// The machines of a plan and their policy.
fn machines(of: &Plan) -> String {
    let name = &of.machine.name;
    let machines = counted(of.machines(), &format!("machine {name}"), &format!("machines {name}"));
    format!("{machines} under {}", of.policy)
}

/// The answer in three lines.
fn headline(question: &Question, plans: &Plans, best: &Plan) -> String {
    let spare = if question.spare > 0 {
        format!(", {} of {} groups spare", question.spare, best.groups)
    } else {
        String::new()
    };
    let shards = if best.shards > 1 { format!(", {} shards each", best.shards) } else { String::new() };
    let p99 = best.p99_ms.map_or(String::from("unknown"), |(mean, interval)| {
        // An interval below the printed digits says nothing.
        let half = interval.map(|interval| (interval.high - interval.low) / 2.0).filter(|&half| half >= 0.005 * mean);
        let half = half.map_or(String::new(), |half| format!(" +- {}", text(half, 2)));
        format!("{}{half} ms", text(mean, 3))
    });
    format!(
        "{}{shards}{spare}\n{} per month, {} per million queries at {} q/s; p99 {p99}\n{} % of {NUM_DRAWS} draws of demand, query costs and machine speed are served\n",
        machines(best),
        text(best.price_per_hour * HOURS_PER_MONTH, 4),
        text(per_million(best, plans), 3),
        text(plans.typical_qps, 4),
        text(100.0 * best.served_share, 3),
    )
}

fn table(question: &Question, plans: &Plans) -> Table {
    let mut table = Table::new([
        "machine",
        "policy",
        "machines",
        "per month",
        "per 10^6",
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
            row.machines.to_string(),
            text(row.price_per_month.0, 4),
            text(row.price_per_million.0, 3),
            format!("{} %", text(100.0 * row.served_share.0, 3)),
            optional(row.p99_ms.map(|ms| ms.0)),
            text(row.group_qps.0, 3),
            optional(row.joules_per_query.map(|joules| joules.0)),
            optional(row.gpu_mj_per_query.map(|joules| joules.0)),
        ]);
    }
    table.without_empty_columns().with_keys(2)
}

/// Why the next two plans lost, which types were left out, and from which rate a GPU pays.
fn reasons(question: &Question, plans: &Plans) -> String {
    let mut lines = Vec::new();
    if let [best, others @ ..] = &plans.ranking[..] {
        for other in others.iter().take(2) {
            let price = (other.price_per_hour - best.price_per_hour) * HOURS_PER_MONTH;
            let served = 100.0 * (other.served_share - best.served_share);
            let why = match (price > 0.0, served < 0.0) {
                (true, _) => format!("it costs {} more per month", text(price, 3)),
                (false, true) => format!("it serves {} % fewer of the draws", text(-served, 3)),
                (false, false) => String::from("its expected regret is higher"),
            };
            lines.push(format!("{} loses to {}: {why}", other.machine.name, best.machine.name));
        }
    }
    lines.extend(plans.left_out.iter().map(|(name, why)| format!("{name} is left out: {why}")));
    lines.push(match plans.gpu_pays_from_qps {
        Some(rate_qps) if rate_qps <= 1.1 => String::from("a machine with GPUs is the cheapest at every rate"),
        Some(rate_qps) => format!("a machine with GPUs is the cheapest from {} q/s on", text(rate_qps, 3)),
        None => String::from("no rate makes a machine with GPUs of this catalogue the cheapest"),
    });
    let shortage = text(question.shortage, 3);
    lines.push(format!("a draw that is not served is charged {shortage} times the lowest price that serves it"));
    lines.join("\n")
}

fn no_plan(arguments: &Arguments, plans: &Plans) -> String {
    let why: Vec<String> = plans.left_out.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let nearest = match &plans.nearest {
        Some((deadline, best)) => format!(
            "; nearest: {} within {} ms, {} per month",
            machines(best),
            text(deadline.as_ms(), 4),
            text(best.price_per_hour * HOURS_PER_MONTH, 4)
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
    let mut series: Vec<Series> = lines
        .map(|(name, prices)| Series {
            name: name.clone(),
            points: prices
                .iter()
                .map(|&(x, price)| Point { x, y: price * HOURS_PER_MONTH, is_hollow: false, interval: None })
                .collect(),
            ..Series::default()
        })
        .collect();
    let looks = looks_of(&series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>());
    for (series, (colour, marker)) in series.iter_mut().zip(looks) {
        (series.colour, series.marker) = (Some(colour), Some(marker));
    }
    LineChart {
        title: String::from("Price of the machines that serve a rate"),
        subtitle: format!("{}, {} spare", question.objective.within(question.deadline), question.spare),
        x_label: String::from("rate (queries/s)"),
        y_label: String::from("price per month"),
        is_x_log: true,
        is_y_log: true,
        series,
        vertical: Some((plans.typical_qps, String::from("demand"))),
        ..LineChart::default()
    }
}
