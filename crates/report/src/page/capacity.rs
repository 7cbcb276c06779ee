//! Capacities: by simulation, measured, or both beside each other.

use super::folder::{Folder, Kind};
use super::html::{Cell, HtmlTable, folded, number, percent};
use crate::plot::{Bar, Bars, Medium, look_of};
use crate::sheet::{Line, Sheet};

/// The highest rate that a policy sustains.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Capacity {
    pub(super) policy: String,
    /// `simulated`, `live` or `replay`.
    pub(super) source: String,
    pub(super) deadline_ms: Option<f64>,
    pub(super) qps: f64,
    /// From where to where it may lie: an interval over seeds where the file has one, else from the highest rate that
    /// passed to the lowest that failed.
    pub(super) interval: Option<(f64, f64)>,
    pub(super) bound_qps: Option<f64>,
    pub(super) region_qps: Option<f64>,
    /// What was predicted of it, where this was measured.
    pub(super) predicted_qps: Option<f64>,
    pub(super) queries: Option<f64>,
    pub(super) seeds: Option<f64>,
    pub(super) flips: Option<f64>,
    /// What a rate has to keep, in words; empty where the file doesn't say, and no query may miss.
    pub(super) objective: String,
    /// How sure the interval is, where it is one of repeats.
    pub(super) confidence: Option<f64>,
    /// The lowest rate that failed.
    pub(super) failing_qps: Option<f64>,
    /// Live runs at the rate and beyond it: where, and whether they held.
    pub(super) live: Vec<LiveRun>,
    /// The highest rate that held live, which may be a lower one.
    pub(super) held_qps: Option<f64>,
}

/// A live run at a rate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LiveRun {
    pub(super) qps: f64,
    pub(super) held: bool,
    /// Its queries, and how many of them were late or never answered; where the file says so.
    pub(super) queries: Option<f64>,
    pub(super) late: Option<f64>,
}

impl LiveRun {
    /// The one whose columns begin with a word.
    fn of(line: Line<'_>, what: &str) -> Option<Self> {
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
    /// (predicted - measured) / measured.
    pub(super) fn error(&self) -> Option<f64> {
        self.predicted_qps.filter(|_| self.qps > 0.0).map(|predicted| (predicted - self.qps) / self.qps)
    }

    /// Whether it was driven live, and did not hold.
    pub(super) fn refuted(&self) -> bool {
        self.live.first().is_some_and(|run| !run.held)
    }

    /// Whether a rate beyond it held live, too: then the machine sustains more than was found.
    pub(super) fn is_lower_bound(&self) -> bool {
        self.live.len() > 1 && self.live.iter().all(|run| run.held)
    }

    pub(super) fn is_measured(&self) -> bool {
        self.source != "simulated"
    }

    fn of_capacity(line: Line<'_>) -> Option<Self> {
        let (qps, seeds) = (line.number("max_rate_qps")?, line.number("seeds"));
        let (low, high) = (line.number("low_qps"), line.number("high_qps"));
        let confidence = line.number("confidence").filter(|_| seeds.is_some_and(|seeds| seeds > 1.0));
        // Files without it have no other interval than up to the lowest rate that failed.
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
            predicted_qps: None,
            queries: line.number("queries"),
            seeds,
            flips: line.number("flips"),
            objective: line.text("objective").to_owned(),
            confidence,
            failing_qps,
            live: ["live", "beyond"].into_iter().filter_map(|what| LiveRun::of(line, what)).collect(),
            held_qps: line.number("held_qps"),
        })
    }

    fn of_validation(line: Line<'_>) -> Option<Self> {
        let measured = line.number("measured_qps")?;
        let is_replay = line.text("gpu") == "replay";
        Some(Self {
            policy: line.text("policy").to_owned(),
            source: String::from(if is_replay { "live, GPU replayed" } else { "live" }),
            deadline_ms: line.number("deadline_ms"),
            qps: measured,
            interval: line.number("measured_high_qps").map(|high| (measured, high)),
            bound_qps: None,
            region_qps: None,
            predicted_qps: line.number("predicted_qps"),
            queries: line.number("queries"),
            seeds: None,
            flips: None,
            objective: line.text("objective").to_owned(),
            confidence: None,
            failing_qps: line.number("measured_high_qps"),
            live: Vec::new(),
            held_qps: None,
        })
    }
}

/// All capacities of a folder, the highest first.
pub(super) fn capacities(folder: &Folder) -> Vec<Capacity> {
    let simulated = folder.of(Kind::Capacity).flat_map(Sheet::lines).filter_map(Capacity::of_capacity);
    let validated = folder.of(Kind::ValidationCapacity).flat_map(Sheet::lines).filter_map(Capacity::of_validation);
    let mut all: Vec<Capacity> = simulated.chain(validated).collect();
    // A file may have each policy by several objectives: the first is what was asked for, the table has all.
    if let Some(asked) = all.first().map(|capacity| capacity.objective.clone()) {
        all.retain(|capacity| capacity.objective == asked);
    }
    all.sort_by(|a, b| b.qps.total_cmp(&a.qps));
    all
}

/// Picture and table.
pub(super) fn section(id: &str, folder: &Folder, capacities: &[Capacity]) -> String {
    if capacities.is_empty() {
        return String::new();
    }
    // Policies that were measured in turns saw other costs, and so have bounds of their own.
    let mut bounds = capacities.iter().filter_map(|c| c.bound_qps);
    let first = bounds.next();
    let shared_bound = first.filter(|first| bounds.all(|bound| bound == *first));
    let rows = capacities.iter().flat_map(|capacity| {
        let look = look_of(&capacity.policy);
        let found = Bar {
            name: capacity.policy.clone(),
            look,
            value: capacity.qps,
            text: number(capacity.qps),
            interval: capacity.interval,
            bound: capacity.bound_qps.filter(|_| shared_bound.is_none()),
            is_hollow: false,
        };
        let predicted = |value| Bar {
            name: String::from("predicted"),
            look,
            value,
            text: number(value),
            is_hollow: true,
            ..Bar::default()
        };
        std::iter::once(found).chain(capacity.predicted_qps.map(predicted))
    });
    let least = |of: fn(&Capacity) -> Option<f64>| capacities.iter().filter_map(of).min_by(f64::total_cmp);
    let has_own_bounds = first.is_some() && shared_bound.is_none();
    let bound = shared_bound.map(|at| (at, String::from("no scheduler beyond")));
    let region = least(|c| c.region_qps).filter(|_| !has_own_bounds).map(|at| (at, String::from("stable up to here")));
    let deadline = capacities.iter().find_map(|c| c.deadline_ms);
    let kept = kept_in_words(&capacities[0].objective, deadline);
    let best = &capacities[0];
    let least = &capacities[capacities.len() - 1];
    let chart = Bars {
        title: format!("Highest rate at which {kept}"),
        description: format!(
            "{} policies, from {} with {} queries a second to {} with {}.",
            capacities.len(),
            least.policy,
            number(least.qps),
            best.policy,
            number(best.qps)
        ),
        x_label: String::from("queries/s"),
        rows: rows.collect(),
        vertical: bound.or(region),
        note: format!(
            "{}{}{}{}",
            whiskers(capacities),
            if has_own_bounds { " Dashed: what no scheduler exceeds with the costs that this policy met." } else { "" },
            if capacities.iter().any(|c| c.region_qps.is_some_and(|region| c.qps > region)) {
                " Beyond the dashed line no scheduler is stable in the long run: runs this short tell nothing there."
            } else {
                ""
            },
            if capacities.iter().any(|c| c.predicted_qps.is_some()) {
                " Hollow: predicted by simulation before the rate above it was measured."
            } else {
                ""
            },
        ),
    };
    format!(
        "<section id=\"{id}-s-capacity\"><h3>Capacity</h3>\n{}{}</section>\n",
        chart.drawn(Medium::Page).map_or_else(String::new, |drawing| drawing.html(&format!("{id}-capacity"))),
        tables(folder, capacities)
    )
}

/// What the whiskers of these capacities are.
fn whiskers(capacities: &[Capacity]) -> String {
    match capacities.iter().find_map(|c| Some((c.confidence?, c.seeds?))) {
        Some((confidence, seeds)) => format!(
            "Each is the median over {} seeds; whiskers: its {} % interval.",
            number(seeds),
            number(100.0 * confidence)
        ),
        None => String::from("Whiskers reach from the highest rate that held to the lowest that failed."),
    }
}

/// What has to be kept, as part of a sentence: `every query is answered within 50 ms`, or the objective as its file has it.
pub(super) fn kept_in_words(objective: &str, deadline_ms: Option<f64>) -> String {
    let within = deadline_ms.map_or_else(|| String::from("its deadline"), |ms| format!("{} ms", number(ms)));
    let percentile = objective.strip_prefix('p').and_then(|rest| rest.split_once(" <= "));
    match percentile {
        Some((share, limit)) => format!("{share} % of the queries are answered within {limit}"),
        None if objective.is_empty() || objective.starts_with("no miss") => {
            format!("every query is answered within {within}")
        }
        None => objective.to_owned(),
    }
}

fn tables(folder: &Folder, capacities: &[Capacity]) -> String {
    let is_validated = capacities.iter().any(|c| c.predicted_qps.is_some());
    let has_bound = capacities.iter().any(|c| c.bound_qps.is_some());
    let mut columns = vec!["policy", "source", "capacity_qps", "fails_at_qps"];
    columns.extend(if is_validated { &["predicted_qps", "error"][..] } else { &[] });
    columns.extend(if has_bound { &["share of the bound"][..] } else { &[] });
    columns.extend(["queries a run", "seeds"]);
    let mut table = HtmlTable::new("Capacity by policy", columns);
    let cell = |value: Option<f64>| Cell::of(&value.map_or_else(String::new, |value| value.to_string()));
    for c in capacities {
        let mut cells = vec![Cell::text(&c.policy), Cell::text(&c.source), cell(Some(c.qps)), cell(c.failing_qps)];
        if is_validated {
            cells.extend([cell(c.predicted_qps), Cell::share(c.error(), true)]);
        }
        if has_bound {
            cells.push(Cell::share(c.bound_qps.filter(|&bound| bound > 0.0).map(|bound| c.qps / bound), false));
        }
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

/// What of all errors of prediction there is to say: their mean size, and the worst with its policy.
pub(super) fn errors_in_words(capacities: &[Capacity]) -> Option<String> {
    let errors: Vec<(f64, &str)> = capacities.iter().filter_map(|c| Some((c.error()?, c.policy.as_str()))).collect();
    let worst = errors.iter().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
    let mean = errors.iter().map(|(error, _)| error.abs()).sum::<f64>() / errors.len() as f64;
    Some(match errors.len() {
        1 => format!("The capacity predicted before the live runs was off by {}.", percent(worst.0, true)),
        n => format!(
            "Capacities predicted before the live runs were off by {} in the mean over {n} policies, at worst by {} ({}).",
            percent(mean, false),
            percent(worst.0, true),
            worst.1
        ),
    })
}
