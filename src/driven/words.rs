//! The answer as three lines, and as tables for `--verbose`.

use std::collections::BTreeMap;

use serde::Serialize;
use tandem_drive::lab::{Answer, Disagreement, Driven, DrivenRun, GpuSource, LiveCapacity, Node, Side};
use tandem_model::base::machine::{Class, PerClass};
use tandem_model::base::time::Nanos;
use tandem_model::study::{Criterion, Forecast, Verdict, driven_pairs};
use tandem_report::number::{counted, rate, significant, text};
use tandem_report::table::Table;

/// Other processes that take more cores than this cause a warning.
const BUSY_CORES: f64 = 0.1;

/// What is asked: `1 CPU worker on AMD EPYC, 2 cores; no GPU; 2000 queries`.
pub(crate) fn machine(node: &Node) -> String {
    let gpu = match node.gpu() {
        GpuSource::Real(device) => device.clone(),
        GpuSource::Replay(source) => format!("REPLAYED GPU ({source})"),
        GpuSource::Declined | GpuSource::Missing => String::from("no GPU"),
    };
    let workers = workers(node);
    let instead = node.estimates_instead().map_or(String::new(), |why| format!("; estimates: oracle ({why})"));
    format!("{workers} on {}; {gpu}; {} queries{instead}", node.cpu_name(), node.workload().rows.len())
}

pub(crate) fn workers(node: &Node) -> String {
    counted(node.machine().count(Class::CPU), "CPU worker", "CPU workers")
}

/// The half-width of an interval, in whole per cent and never 0.
fn percent(half_width: f64) -> String {
    format!("{:.0} %", (100.0 * half_width).ceil())
}

/// The delays of a run and its use of the lanes: `p99 12 ms, p99.9 31 ms, longest 64 ms, 0.2 % late, cpu 91 % busy`.
pub(crate) fn delays(run: &DrivenRun, criterion: &Criterion) -> String {
    let Verdict { p99, p999, longest, .. } = run.verdict;
    let ms = |time: Nanos| text(time.as_ms(), 3);
    let late = text(100.0 * run.verdict.late_share(), 2);
    let mut words = format!("p99 {} ms, p99.9 {} ms, longest {} ms, {late} % late", ms(p99), ms(p999), ms(longest));
    for (class, busy) in utilisation(run) {
        words += &format!(", {class} {:.0} % busy", 100.0 * busy);
    }
    let untested = criterion.untested(run.verdict.planned);
    if untested.is_empty() { words } else { format!("{words}, {untested}") }
}

/// The share of the time in which the lanes of each class worked.
fn utilisation(run: &DrivenRun) -> impl Iterator<Item = (Class, f64)> + use<> {
    let utilisation = run.summary.map_or_else(PerClass::default, |summary| summary.utilisation);
    Class::ALL.into_iter().filter_map(move |class| Some((class, utilisation[class]?)))
}

/// What is known of a machine whose pauses miss the objective at any rate; `None` of others.
fn pause_limited(driven: &Driven) -> Option<String> {
    let kept = driven.pause_limited?;
    let lowest = driven.runs.iter().filter(|run| run.is_paused).map(|run| run.qps).reduce(f64::min)?;
    let p99 = text(driven.typical_run(lowest)?.verdict.p99.as_ms(), 2);
    Some(format!("pause-limited: p99 {p99} ms at any rate; throughput to {} q/s", rate(kept, 0.0)))
}

/// The answer in four lines, with its uncertainty. The words say what was driven and what disturbed it.
pub(crate) fn answer(
    driven: &Driven,
    capacity: LiveCapacity,
    [what, disturbed]: [&str; 2],
    criterion: &Criterion,
    arrivals: &str,
) -> String {
    let LiveCapacity { qps, missed_qps, half_width } = capacity;
    let rate = |qps| rate(qps, half_width.unwrap_or(0.0));
    let sure =
        half_width.map_or(String::from("(interval not known)"), |half_width| format!("+- {}", percent(half_width)));
    let runs_of = |side: Option<Side>| side.map_or(0, |side| side.runs());
    let runs = match driven.precision {
        Some(_) => driven.runs.len() as u32,
        None => runs_of(driven.held) + runs_of(driven.missed),
    };
    let seconds = driven.runs.last().map_or(0.0, |run| run.seconds);
    let (held, missed) = (driven.held.unwrap_or_default(), driven.missed.unwrap_or_default());
    let at = if held.qps == qps { String::new() } else { format!("{} ", rate(held.qps)) };
    format!(
        "{} q/s {sure}, {runs} runs of {} s, {disturbed}\n{what}, {criterion}, {arrivals}\n{at}held in {} of {}; {} missed in {} of {}; predicted {} +- {}\n{}\n",
        rate(qps),
        text(seconds, 3),
        held.held,
        held.runs(),
        rate(missed_qps),
        missed.missed,
        missed.runs(),
        rate(driven.predicted.qps()),
        percent(driven.predicted.half_width()),
        driven.typical_run(held.qps).map_or(String::new(), |run| delays(run, criterion)),
    ) + &speed(driven).map_or(String::new(), |words| format!("{words}\n"))
}

/// The machine's speed during the runs: `cpu work 1.13 times as profiled, 1.08 to 1.21 by run`.
fn speed(driven: &Driven) -> Option<String> {
    let of_class = |class: Class| {
        let ratios: Vec<f64> = driven.runs.iter().filter_map(|run| run.course.work_ratio(class, 0..3)).collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let (least, most) = ratios.iter().fold((f64::MAX, 0.0_f64), |(least, most), &of| (least.min(of), most.max(of)));
        (!ratios.is_empty())
            .then(|| format!("{class} work {mean:.2} times as profiled, {least:.2} to {most:.2} by run"))
    };
    Class::ALL.into_iter().filter_map(of_class).reduce(|all, one| format!("{all}; {one}"))
}

/// The reason for the lack of an answer, with both bounds.
pub(crate) fn no_answer(found: &Answer) -> String {
    if let Some(limited) = found.driven.iter().find_map(pause_limited) {
        return limited;
    }
    let runs = || found.driven.iter().flat_map(|driven| &driven.runs);
    let lowest = runs().map(|run| run.qps).reduce(f64::min);
    let why = match (bounds(found), lowest) {
        ([Some(held), missed], _) => {
            let side = |words: &str, side: Side, count| {
                format!("{words} {} q/s (in {count} of {} runs)", rate(side.qps, 0.0), side.runs())
            };
            let stable =
                found.capacities.iter().map(|one| one.region_qps).filter(|qps| qps.is_finite()).reduce(f64::max);
            let limit = stable.map_or(String::new(), |qps| format!("at most {} q/s by simulation: ", rate(qps, 0.0)));
            let rest = missed.map_or(format!("{limit}no higher rate is known to miss"), |missed| {
                format!("{}: there was no time for enough runs that agree", side("at most", missed, missed.missed))
            });
            format!("{}, {rest}", side("at least", held, held.held))
        }
        (_, Some(lowest)) => format!("no rate held, down to {} q/s: at least 0, at most that", rate(lowest, 0.0)),
        (_, None) if found.driven.iter().any(|driven| driven.predicted.qps() > 0.0) => {
            String::from("no live run counts: there was no time, or the client was late")
        }
        (_, None) => String::from("no rate is low enough in simulation"),
    };
    let load = found.driven.last().map_or(String::new(), |driven| format!("; {}", driven.load().words()));
    format!("no answer: {why}{load}")
}

/// The bounds of the policy whose lower one is the highest.
fn bounds(found: &Answer) -> [Option<Side>; 2] {
    let lower = |bounds: &[Option<Side>; 2]| bounds[0].map_or(0.0, |side| side.qps);
    let all = found.driven.iter().map(Driven::bounds);
    all.max_by(|one, two| lower(one).total_cmp(&lower(two))).unwrap_or_default()
}

/// The answer for programs.
#[derive(Debug, Serialize)]
pub(crate) struct JsonAnswer {
    rate: Option<f64>,
    interval: Option<[f64; 2]>,
    confidence: f64,
    /// `live` or `unknown`.
    how: &'static str,
    policy: Option<String>,
    missed_at: Option<f64>,
    /// The highest rate at which half of the runs held, and the lowest higher one that failed, if the sides are not known for certain.
    at_least: Option<f64>,
    at_most: Option<f64>,
    /// The machine's speed during the runs, in words.
    speed: Option<String>,
    /// The delays at the rate, as measured.
    measured: Option<JsonDelays>,
    /// What is known if pauses of the machine miss the objective at any rate.
    pause_limited: Option<String>,
    /// The predicted capacity, mean delay and 99th percentile at the rate, each with its 90 % interval.
    predicted: Option<JsonPrediction>,
    warnings: Vec<String>,
}

impl JsonAnswer {
    /// The answer as JSON.
    pub(crate) fn of(found: &Answer) -> Self {
        let best = found.best();
        let digits = |qps: f64| significant(qps, 4);
        let [at_least, at_most] =
            bounds(found).map(|side| side.filter(|_| best.is_none()).map(|side| digits(side.qps)));
        Self {
            rate: best.map(|(_, capacity)| digits(capacity.qps)),
            interval: best.and_then(|(_, capacity)| capacity.interval()).map(|(low, high)| [digits(low), digits(high)]),
            confidence: 0.9,
            how: match best {
                Some(_) => "live",
                None => "unknown",
            },
            policy: best.map(|(driven, _)| driven.policy.clone()),
            missed_at: best.map(|(_, capacity)| digits(capacity.missed_qps)),
            at_least,
            at_most,
            speed: best.and_then(|(driven, _)| speed(driven)),
            measured: best.and_then(|(driven, _)| Some(JsonDelays::of(driven.typical_run(driven.held?.qps)?))),
            pause_limited: found.driven.iter().find_map(pause_limited),
            predicted: best.and_then(|(driven, _)| Some(JsonPrediction::of(driven, driven.held?.qps))),
            warnings: warnings(found),
        }
    }
}

/// The delays of a live run.
#[derive(Debug, Serialize)]
struct JsonDelays {
    p99_ms: f64,
    p999_ms: f64,
    longest_ms: f64,
    late_share: f64,
    /// By class.
    utilisation: BTreeMap<String, f64>,
}

impl JsonDelays {
    fn of(run: &DrivenRun) -> Self {
        let ms = |time: Nanos| significant(time.as_ms(), 4);
        let busy = |(class, busy): (Class, f64)| (class.to_string(), significant(busy, 3));
        Self {
            p99_ms: ms(run.verdict.p99),
            p999_ms: ms(run.verdict.p999),
            longest_ms: ms(run.verdict.longest),
            late_share: significant(run.verdict.late_share(), 4),
            utilisation: utilisation(run).map(busy).collect(),
        }
    }
}

/// A predicted value.
#[derive(Debug, Serialize)]
struct JsonValue {
    value: f64,
    interval: [f64; 2],
}

impl JsonValue {
    fn of(value: f64, half_width: f64) -> Self {
        let interval = [value / (1.0 + half_width), value * (1.0 + half_width)];
        Self { value: significant(value, 4), interval: interval.map(|end| significant(end, 4)) }
    }
}

/// The prediction for a policy before it was driven.
#[derive(Debug, Serialize)]
struct JsonPrediction {
    rate: JsonValue,
    mean_ms: Option<JsonValue>,
    p99_ms: Option<JsonValue>,
}

impl JsonPrediction {
    /// The predictions for a rate that was driven.
    fn of(driven: &Driven, qps: f64) -> Self {
        let at_rate = driven.runs.iter().find(|run| run.qps == qps).and_then(|run| run.predicted.as_ref());
        Self {
            rate: JsonValue::of(driven.predicted.qps(), driven.predicted.half_width()),
            mean_ms: at_rate.map(|one| JsonValue::of(one.summary.mean_ms, one.mean_half_width)),
            p99_ms: at_rate.map(|one| JsonValue::of(one.summary.p99_ms, one.p99_half_width)),
        }
    }
}

/// Warnings that limit the answer, for the terminal and for result files.
pub(crate) fn warnings(found: &Answer) -> Vec<String> {
    let disagree = |(policy, Disagreement { class, least, most }): &(String, Disagreement)| {
        let (least, most) = (text(*least, 3), text(*most, 3));
        format!("{policy}: queries of a backlog cost {least} to {most} times their time alone on the {class}")
    };
    let shown = |policy: &str| found.driven.iter().any(|driven| driven.policy == policy);
    let mut all = found.caveats.clone();
    all.extend(found.disagreements.iter().filter(|(policy, _)| shown(policy)).map(disagree));
    for driven in &found.driven {
        if driven.held.is_none() || driven.missed.is_none() {
            let policy = &driven.policy;
            all.push(format!("{policy}: no capacity was measured, since no rate held twice or none was missed twice"));
        }
        let load = driven.load();
        if load.others.is_some_and(|cores| cores > BUSY_CORES) || load.steal.is_some_and(|cores| cores > BUSY_CORES) {
            all.push(format!("{}: {} while it was driven", driven.policy, load.words()));
        }
        if let (Some(precision), Some(reached)) = (driven.precision, driven.capacity().and_then(|one| one.half_width))
            && reached > precision
        {
            let [reached, asked] = [reached, precision].map(percent);
            let runs = driven.runs.len();
            all.push(format!("{}: {reached} reached of the {asked} asked for, in {runs} runs", driven.policy));
        }
        let scatter = driven.machine_scatter();
        if scatter > 0.05 {
            let percent = text(100.0 * scatter, 2);
            all.push(format!("{}: the machine's speed varied by {percent} % between live runs", driven.policy));
        }
    }
    all
}

/// Predicted and measured capacities, one line per policy.
pub(crate) fn compared(found: &Answer) -> String {
    let columns = ["policy", "predicted", "+-", "held", "missed", "+-", "error", "hindsight", "gpu"];
    let mut table = Table::new(columns);
    for driven in &found.driven {
        let side = |side: Option<Side>| side.map_or(String::from("-"), |side| rate(side.qps, 0.0));
        let signed = |share: f64| format!("{:+.0}", 100.0 * share);
        table.row([
            driven.policy.clone(),
            rate(driven.predicted.qps(), driven.predicted.half_width()),
            percent(driven.predicted.half_width()),
            side(driven.held),
            side(driven.missed),
            driven.capacity().and_then(|one| one.half_width).map_or(String::from("-"), percent),
            driven.error().map_or(String::from("-"), |(low, high)| format!("{} to {} %", signed(low), signed(high))),
            driven.hindsight_qps.map_or(String::from("-"), |qps| rate(qps, 0.0)),
            driven.gpu.to_owned(),
        ]);
    }
    format!(
        "Capacities in queries per second:\n{table}held, missed: the rates between which the measured capacity lies; error: of the \
         prediction; hindsight: the prediction with the costs of the live runs\n{}",
        ratios(found)
    )
}

/// The predicted and the measured ratios of two policies that took turns; empty without such runs.
fn ratios(found: &Answer) -> String {
    let [first, second, ..] = &found.driven[..] else { return String::new() };
    let (measured, predicted): (Vec<_>, Vec<_>) = first.pairs(second).into_iter().map(|[a, b]| (a, b)).unzip();
    let mut table = Table::new(["ratio", "predicted", "measured", "95 % interval"]);
    for (measured, predicted) in driven_pairs(0.0, &measured).iter().zip(driven_pairs(0.0, &predicted)).take(3) {
        let ratio = |share: f64| text(1.0 + share, 3);
        let interval =
            measured.interval.map_or(String::from("-"), |(low, high)| format!("{} to {}", ratio(low), ratio(high)));
        let what = measured.what.split(' ').next().unwrap_or_default().to_owned();
        table.row([what, ratio(predicted.share), ratio(measured.share), interval]);
    }
    if measured.is_empty() {
        String::new()
    } else {
        format!("\n{} over {}, in turns:\n{table}", second.policy, first.policy)
    }
}

/// The live runs, in order: rates, verdicts, delays, and the load of other processes.
pub(crate) fn live_runs(found: &Answer) -> String {
    let both = &["sim", "+-", "live"][..];
    let mut table = Table::grouped([
        ("", &["policy", "q/s", "live"][..]),
        ("mean ms", both),
        ("p99 ms", both),
        ("ms", &["p99.9", "longest"]),
        ("%", &["late", "busy"]),
        ("cores", &["others", "steal"]),
    ])
    .with_keys(2);
    let or_dash = |value: Option<f64>, digits| value.map_or(String::from("-"), |value| text(value, digits));
    for driven in &found.driven {
        for run in &driven.runs {
            let predicted = run.predicted.as_ref();
            let known = |of: fn(&Forecast) -> (f64, f64)| {
                let words = |(ms, half_width)| [text(ms, if half_width >= 0.1 { 2 } else { 3 }), percent(half_width)];
                predicted.map(of).map_or([String::from("-"), String::from("-")], words)
            };
            let [mean, mean_width] = known(|one| (one.summary.mean_ms, one.mean_half_width));
            let [p99, p99_width] = known(|one| (one.summary.p99_ms, one.p99_half_width));
            table.row([
                driven.policy.clone(),
                rate(run.qps, 0.0),
                run.words(),
                mean,
                mean_width,
                or_dash(run.summary.map(|summary| summary.mean_ms), 3),
                p99,
                p99_width,
                or_dash(run.summary.map(|summary| summary.p99_ms), 3),
                text(run.verdict.p999.as_ms(), 3),
                text(run.verdict.longest.as_ms(), 3),
                text(100.0 * run.verdict.late_share(), 2),
                or_dash(utilisation(run).map(|(_, busy)| 100.0 * busy).reduce(f64::max), 2),
                run.load.others.map_or(String::from("-"), |cores| format!("{cores:.1}")),
                run.load.steal.map_or(String::from("-"), |cores| format!("{cores:.1}")),
            ]);
        }
    }
    format!("Live runs, in order:\n{table}")
}

/// Simulated capacities of all policies: those close to the best, which may be driven, and the others.
pub(crate) fn simulated(found: &Answer) -> String {
    let mut table = Table::new(["policy", "q/s", "interval", "of limit"]);
    for one in &found.capacities {
        table.row([
            one.policy.clone(),
            rate(one.qps, 0.0),
            format!("{} to {}", rate(one.interval.low, 0.0), rate(one.interval.high, 0.0)),
            format!("{:.1} %", 100.0 * one.share_of_bound()),
        ]);
    }
    let mut words = format!("By simulation, with query costs that were measured while others were served:\n{table}");
    if !found.out_of_reach.is_empty() {
        let others: Vec<String> =
            found.out_of_reach.iter().map(|(policy, qps)| format!("{policy} {}", rate(*qps, 0.0))).collect();
        words += &format!("further from the best, by query costs alone: {}\n", others.join(", "));
    }
    words
}
