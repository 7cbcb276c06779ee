//! Capacities from simulations and from live runs.

use super::folder::{Folder, Kind};
use super::html::{self, Cell, HtmlTable, folded, number, percent, rounded};
use crate::figure::{LineChart, Look, Point, Series, Signs, look_of};
use crate::number;
use crate::sheet::{Sheet, SheetRow};

/// The look of a bound among bars.
const BOUND: Look = (6, 3);
/// Rates of a larger ratio have a logarithmic axis. Small ones would vanish on a linear axis.
const LINEAR_RATIO: f64 = 12.0;

/// The highest rate that a policy sustains.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Capacity {
    pub(crate) policy: String,
    /// `simulated`, `live` or `replay`.
    pub(crate) source: String,
    pub(crate) deadline_ms: Option<f64>,
    pub(crate) qps: f64,
    /// The interval over seeds if the file has one, else from the highest rate that passed to the lowest that failed.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) bound_qps: Option<f64>,
    pub(crate) region_qps: Option<f64>,
    /// The prediction of a measured capacity.
    pub(crate) predicted_qps: Option<f64>,
    /// The 90 % interval of the prediction.
    pub(crate) predicted: Option<(f64, f64)>,
    pub(crate) queries: Option<f64>,
    pub(crate) seeds: Option<f64>,
    pub(crate) flips: Option<f64>,
    /// The objective in words; empty if the file has none, and no query may miss.
    pub(crate) objective: String,
    /// The confidence of an interval over repeats.
    pub(crate) confidence: Option<f64>,
    /// The lowest rate that failed.
    pub(crate) failing_qps: Option<f64>,
    /// Live runs at the rate and beyond it: where, and whether they held.
    pub(crate) live: Vec<LiveRun>,
    /// Live runs, and how long each was.
    pub(crate) live_runs: Option<(f64, f64)>,
    /// Delays, late share and utilisation at the rate, as text with their names.
    pub(crate) at_rate: Vec<(&'static str, String)>,
}

/// What is told next to a rate: its name, its column, and whether it is a share.
const AT_RATE: [(&str, &str, bool); 6] = [
    ("p99", "p99_ms", false),
    ("p99.9", "p999_ms", false),
    ("Longest wait", "longest_ms", false),
    // Of a live run.
    ("Longest wait", "max_ms", false),
    ("Late", "late_share", true),
    ("Utilisation", "utilisation", true),
];

/// The largest values of some runs at a rate, of the columns that begin with `prefix`.
fn at_rate(lines: &[SheetRow<'_>], prefix: &str) -> Vec<(&'static str, String)> {
    let value = |column| lines.iter().filter_map(|line| line.number(&format!("{prefix}{column}"))).reduce(f64::max);
    let told = |&(name, column, is_share): &(&'static str, &'static str, bool)| {
        let value = value(column)?;
        let text = if is_share { number::text(100.0 * value, 3) + " %" } else { rounded(value, 3) + " ms" };
        Some((name, text))
    };
    AT_RATE.iter().filter_map(told).collect()
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LiveRun {
    pub(crate) qps: f64,
    pub(crate) held: bool,
    /// Number of queries, followed by the number that were late or never answered.
    pub(crate) queries: Option<f64>,
    pub(crate) late: Option<f64>,
}

/// The text of a number with groups of digits.
fn grouped(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), number)
}

impl LiveRun {
    /// The run whose columns begin with `what`.
    fn of(line: SheetRow<'_>, what: &str) -> Option<Self> {
        let column = |name: &str| format!("{what}_{name}");
        Some(Self {
            qps: line.number(&column("qps"))?,
            held: line.text(&column("held")) == "true",
            queries: line.number(&column("queries")),
            late: line.number(&column("late")),
        })
    }
}

impl Capacity {
    /// Relative error: (predicted - measured) / measured.
    pub(crate) fn error(&self) -> Option<f64> {
        self.predicted_qps.filter(|_| self.qps > 0.0).map(|predicted| (predicted - self.qps) / self.qps)
    }

    /// A rate with the digits that are known of this capacity, as on the terminal.
    pub(crate) fn rate(&self, qps: f64) -> String {
        let half = self.interval.filter(|_| self.confidence.is_some()).map(|(low, high)| 0.5 * (high - low));
        match half {
            _ if self.is_measured() => number::rate(qps, half.map_or(0.0, |half| half / self.qps)),
            Some(half) => grouped(&number::known(qps, half)),
            None => rounded(qps, 4),
        }
    }

    /// The ends of its interval, likewise.
    pub(crate) fn ends(&self, (low, high): (f64, f64)) -> [String; 2] {
        let known = number::known_interval(low, high);
        match known.split_once(" to ").filter(|_| !self.is_measured() && self.confidence.is_some()) {
            Some((low, high)) => [low, high].map(grouped),
            None => [low, high].map(|end| self.rate(end)),
        }
    }

    /// The predicted rate, likewise.
    pub(crate) fn predicted_rate(&self) -> Option<String> {
        let qps = self.predicted_qps?;
        Some(number::rate(qps, self.predicted.map_or(0.0, |(_, high)| high / qps - 1.0)))
    }

    pub(crate) fn is_measured(&self) -> bool {
        self.source != "simulated"
    }

    /// A capacity from a line of `capacity.csv`. A rate that held live is the capacity, and the simulated rate its prediction.
    fn of_capacity(line: SheetRow<'_>) -> Option<Self> {
        let simulated = Self::of_simulation(line)?;
        let Some(held_qps) = line.number("held_qps") else { return Some(simulated) };
        let failing_qps = line.number("beyond_qps");
        let interval = line.number("answer_low_qps").zip(line.number("answer_high_qps"));
        Some(Self {
            source: live(line).to_owned(),
            qps: held_qps,
            interval,
            bound_qps: None,
            region_qps: None,
            predicted_qps: Some(simulated.qps),
            predicted: predicted_interval(line, simulated.qps),
            queries: line.number("live_queries"),
            seeds: None,
            flips: None,
            confidence: interval.map(|_| 0.9),
            failing_qps,
            ..simulated
        })
    }

    fn of_simulation(line: SheetRow<'_>) -> Option<Self> {
        let (qps, seeds) = (line.number("max_rate_qps")?, line.number("seeds"));
        let (low, high) = (line.number("low_qps"), line.number("high_qps"));
        let confidence = line.number("confidence").filter(|_| seeds.is_some_and(|seeds| seeds > 1.0));
        // Files without an objective have no interval beyond the lowest rate that failed.
        let failing_qps = if line.text("objective").is_empty() { high } else { line.number("failing_qps") };
        let is_covered = line.number("covered_share").is_none_or(|share| share >= 1.0);
        let interval = match confidence {
            Some(_) => low.zip(high),
            None => failing_qps.map(|failing| (qps, failing)).filter(|_| is_covered),
        };
        Some(Self {
            policy: line.text("policy").to_owned(),
            source: match line.text("source") {
                "" => String::from("simulated"),
                source => source.to_owned(),
            },
            deadline_ms: line.number("deadline_ms"),
            qps,
            interval,
            bound_qps: line.number("bound_qps"),
            region_qps: line.number("region_qps"),
            queries: line.number("queries"),
            seeds,
            flips: line.number("flips"),
            objective: line.text("objective").to_owned(),
            confidence,
            failing_qps,
            live: ["live", "beyond"].into_iter().filter_map(|what| LiveRun::of(line, what)).collect(),
            live_runs: line.number("live_runs").zip(line.number("live_run_s")),
            at_rate: at_rate(&[line], ""),
            ..Self::default()
        })
    }

    fn of_validation(line: SheetRow<'_>) -> Option<Self> {
        let measured = line.number("measured_qps")?;
        Some(Self {
            policy: line.text("policy").to_owned(),
            source: live(line).to_owned(),
            deadline_ms: line.number("deadline_ms"),
            qps: measured,
            interval: line.number("half_width").map(|half| (measured * (1.0 - half), measured * (1.0 + half))),
            predicted_qps: line.number("predicted_qps"),
            predicted: line.number("predicted_qps").and_then(|qps| predicted_interval(line, qps)),
            queries: line.number("queries"),
            objective: line.text("objective").to_owned(),
            confidence: line.number("half_width").map(|_| 0.9),
            failing_qps: line.number("measured_high_qps"),
            ..Self::default()
        })
    }
}

/// The 90 % interval of a predicted capacity, where the file has it.
fn predicted_interval(line: SheetRow<'_>, qps: f64) -> Option<(f64, f64)> {
    line.number("predicted_half_width").map(|half| (qps / (1.0 + half), qps * (1.0 + half)))
}

/// Whether the live runs of a rate had a replayed GPU, in words.
fn live(line: SheetRow<'_>) -> &'static str {
    if line.text("gpu") == "replay" { "live, GPU replayed" } else { "live" }
}

/// The capacities of each file of a folder under the file's first objective, which is the question. Its other objectives
/// are in the table.
pub(crate) fn by_file(folder: &Folder) -> Vec<(&Sheet, Vec<Capacity>)> {
    let of = |sheet: &Sheet, of_line: fn(SheetRow<'_>) -> Option<Capacity>| {
        let mut all: Vec<Capacity> = sheet.lines().filter_map(of_line).collect();
        let asked = all.first().map(|capacity| capacity.objective.clone()).unwrap_or_default();
        all.retain(|capacity| capacity.objective == asked);
        all.sort_by(|a, b| b.qps.total_cmp(&a.qps));
        all
    };
    let simulated = folder.of(Kind::Capacity).map(|sheet| (sheet, of(sheet, Capacity::of_capacity)));
    let validated = folder.of(Kind::ValidationCapacity).map(|sheet| (sheet, of(sheet, Capacity::of_validation)));
    simulated.chain(validated).filter(|(_, all)| !all.is_empty()).collect()
}

/// All capacities of a folder under the objective of its first file: the measured ones first, each from the highest on.
pub(crate) fn capacities(folder: &Folder) -> Vec<Capacity> {
    let mut all: Vec<Capacity> = by_file(folder).into_iter().flat_map(|(_, all)| all).collect();
    let asked = by_file(folder).first().and_then(|(_, all)| all.first()).map(|first| first.objective.clone());
    all.retain(|capacity| Some(&capacity.objective) == asked.as_ref());
    all.sort_by(|a, b| b.is_measured().cmp(&a.is_measured()).then(b.qps.total_cmp(&a.qps)));
    for capacity in all.iter_mut().filter(|capacity| capacity.is_measured()) {
        let lines = folder.of(Kind::Validation).flat_map(Sheet::lines);
        let held = lines.filter(|line| {
            let is_there = line.text("policy") == capacity.policy && line.number("rate_qps") == Some(capacity.qps);
            is_there && line.text("verdict") == "held"
        });
        capacity.at_rate = at_rate(&held.collect::<Vec<_>>(), "measured_");
    }
    all
}

/// The file of a capacity.
pub(crate) fn file_of<'a>(folder: &'a Folder, of: &Capacity) -> Option<&'a Sheet> {
    // Live runs are added to a capacity after its file was read.
    let is_it = |one: &Capacity| one.policy == of.policy && one.source == of.source && one.qps == of.qps;
    by_file(folder).into_iter().find(|(_, all)| all.iter().any(is_it)).map(|(sheet, _)| sheet)
}

pub(crate) fn section(id: &str, folder: &Folder, capacities: &[Capacity]) -> String {
    if capacities.is_empty() {
        return String::new();
    }
    // Policies that were measured one after another saw different costs, so their bounds differ.
    let mut bounds = capacities.iter().filter_map(|c| c.bound_qps);
    let first = bounds.next();
    let shared_bound = first.filter(|first| bounds.all(|bound| bound == *first));
    let has_own_bounds = first.is_some() && shared_bound.is_none();
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for capacity in capacities {
        let mut mark = |x: f64, y: usize, interval, is_hollow, look, signs| {
            let points = vec![Point { x, y: y as f64, is_hollow, interval }];
            series.push(Series { points, look: Some(look), signs, ..Series::default() });
        };
        let look = look_of(&capacity.policy);
        mark(capacity.qps, rows.len(), capacity.interval, false, look, Signs::LineAndMarkers);
        if let Some(bound) = capacity.bound_qps.filter(|_| has_own_bounds) {
            mark(bound, rows.len(), None, true, BOUND, Signs::Markers);
        }
        rows.push([capacity.policy.clone(), capacity.rate(capacity.qps)]);
        if let Some(predicted) = capacity.predicted_qps {
            mark(predicted, rows.len(), None, true, look, Signs::LineAndMarkers);
            rows.push([String::from("predicted"), capacity.predicted_rate().unwrap_or_default()]);
        }
    }
    let least = |of: fn(&Capacity) -> Option<f64>| capacities.iter().filter_map(of).min_by(f64::total_cmp);
    let bound = shared_bound.map(|at| (at, String::from("bound of all schedulers")));
    let region = least(|c| c.region_qps).filter(|_| !has_own_bounds).map(|at| (at, String::from("limit of stability")));
    let deadline = capacities.iter().find_map(|c| c.deadline_ms);
    let kept = kept_in_words(&capacities[0].objective, deadline);
    let rates = || capacities.iter().flat_map(|c| [Some(c.qps), c.predicted_qps]).flatten().filter(|&qps| qps > 0.0);
    let is_x_log = rates().fold(0.0, f64::max) > LINEAR_RATIO * rates().fold(f64::INFINITY, f64::min);
    let chart = LineChart {
        title: format!("Highest rate at which {kept}"),
        x_label: String::from(if is_x_log { "queries/s, logarithmic" } else { "queries/s" }),
        is_x_log,
        rows,
        series,
        vertical: bound.or(region),
        note: format!(
            "{}{}{}{}",
            whiskers(capacities),
            if has_own_bounds {
                " Grey: upper bound of all schedulers at the costs in this policy's runs."
            } else {
                ""
            },
            if capacities.iter().any(|c| c.region_qps.is_some_and(|region| c.qps > region)) {
                " Above the dashed line no scheduler is stable in the long run, so short runs mean nothing there."
            } else {
                ""
            },
            if capacities.iter().any(|c| c.predicted_qps.is_some()) {
                " Hollow: simulated before the rate above it was measured."
            } else {
                ""
            },
        ),
        ..LineChart::default()
    };
    let figure = rates().next().map_or_else(String::new, |_| chart.html(&format!("{id}-capacity")));
    html::section(id, "capacity", "Capacity", &(figure + &tables(folder, capacities)))
}

fn whiskers(capacities: &[Capacity]) -> String {
    match capacities.iter().find_map(|c| Some((c.confidence?, c.seeds?))) {
        Some((confidence, seeds)) => format!(
            "Capacities are medians over {} seeds. Whiskers: {} % intervals.",
            number(seeds),
            number(100.0 * confidence)
        ),
        None if capacities.iter().any(|c| c.confidence.is_some()) => {
            String::from("Whiskers: the 90 % interval of the live runs.")
        }
        None => String::from("Whiskers reach from the highest rate that held to the lowest that failed."),
    }
}

/// The objective as a part of a sentence: `every query is answered within 50 ms`, or the file's own text.
pub(crate) fn kept_in_words(objective: &str, deadline_ms: Option<f64>) -> String {
    let within = deadline_ms.map_or_else(|| String::from("its deadline"), |ms| format!("{} ms", number(ms)));
    let percentiles: Option<Vec<_>> =
        objective.split(" and ").map(|bound| bound.strip_prefix('p')?.split_once(" <= ")).collect();
    match percentiles.as_deref() {
        Some([(share, limit), others @ ..]) => {
            let others: String =
                others.iter().map(|(share, limit)| format!(", and {share} % within {limit}")).collect();
            format!("{share} % of the queries are answered within {limit}{others}")
        }
        _ if objective.is_empty() || objective.starts_with("no miss") => {
            format!("every query is answered within {within}")
        }
        _ => objective.to_owned(),
    }
}

fn tables(folder: &Folder, capacities: &[Capacity]) -> String {
    let is_validated = capacities.iter().any(|c| c.predicted_qps.is_some());
    let is_known = |name: &str| capacities.iter().any(|c| c.at_rate.iter().any(|(known, _)| *known == name));
    let mut told: Vec<&str> = AT_RATE.iter().map(|(name, ..)| *name).filter(|name| is_known(name)).collect();
    told.dedup();
    let has_bound = capacities.iter().any(|c| c.bound_qps.is_some());
    let mut columns = vec!["policy", "source", "capacity_qps", "fails_at_qps"];
    columns.extend(if is_validated { &["predicted_qps", "error"][..] } else { &[] });
    columns.extend(if has_bound { &["share of bound"][..] } else { &[] });
    columns.extend(&told);
    columns.extend(["queries per run", "seeds"]);
    let mut table = HtmlTable::new("Capacity by policy", columns);
    let cell = |value: Option<f64>| Cell::of(&value.map_or_else(String::new, |value| value.to_string()));
    for c in capacities {
        let rate = |qps: Option<f64>| cell(qps).shown_as(qps.map(|qps| c.rate(qps)));
        let mut cells = vec![Cell::text(&c.policy), Cell::text(&c.source), rate(Some(c.qps)), rate(c.failing_qps)];
        if is_validated {
            cells.extend([cell(c.predicted_qps).shown_as(c.predicted_rate()), Cell::share(c.error(), true)]);
        }
        if has_bound {
            cells.push(Cell::share(c.bound_qps.filter(|&bound| bound > 0.0).map(|bound| c.qps / bound), false));
        }
        let at_rate =
            |name: &&str| c.at_rate.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text.as_str());
        cells.extend(told.iter().map(|name| Cell::text(at_rate(name))));
        cells.extend([cell(c.queries), cell(c.seeds)]);
        table.row(cells);
    }
    let whole =
        folder.of(Kind::Capacity).chain(folder.of(Kind::ValidationCapacity)).chain(folder.of(Kind::ValidationService));
    let whole: String = whole
        .map(|sheet| folded(&format!("All columns of {}", sheet.name), &HtmlTable::of_sheet(&sheet.name, sheet)))
        .collect();
    format!("{}{whole}", table.html())
}

/// The mean error of predicted capacities, and the worst with its policy.
pub(crate) fn errors_in_words(capacities: &[Capacity]) -> Option<String> {
    let errors: Vec<(f64, &str)> = capacities.iter().filter_map(|c| Some((c.error()?, c.policy.as_str()))).collect();
    let worst = errors.iter().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
    let mean = errors.iter().map(|(error, _)| error.abs()).sum::<f64>() / errors.len() as f64;
    Some(match errors.len() {
        1 => {
            let of_failing = |c: &Capacity| Some(c.predicted_qps? / c.failing_qps? - 1.0);
            let lower = capacities.iter().filter(|c| c.error().is_some()).find_map(of_failing);
            let from = lower.map_or_else(String::new, |lower| format!("{} to ", percent(lower, true)));
            format!("The capacity predicted before the live runs was off by {from}{}.", percent(worst.0, true))
        }
        n => format!(
            "Capacities predicted before the live runs had a mean error of {} over {n} policies, at most {} ({}).",
            percent(mean, false),
            percent(worst.0, true),
            worst.1
        ),
    })
}
