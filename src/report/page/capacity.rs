//! Capacities: by simulation, measured, or both beside each other.

use super::chart::{Intervals, Row, look_of};
use super::folder::{Folder, Kind};
use super::html::{Cell, HtmlTable, folded, number, percent};
use super::sheet::{Line, Sheet};

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
}

impl Capacity {
    /// (predicted - measured) / measured.
    pub(super) fn error(&self) -> Option<f64> {
        self.predicted_qps.filter(|_| self.qps > 0.0).map(|predicted| (predicted - self.qps) / self.qps)
    }

    pub(super) fn is_measured(&self) -> bool {
        self.source != "simulated"
    }

    fn of_capacity(line: Line<'_>) -> Option<Self> {
        let either = |first: &str, second: &str| line.number(first).or_else(|| line.number(second));
        let low = either("interval_low_qps", "low_qps");
        let high = either("interval_high_qps", "high_qps");
        Some(Self {
            policy: line.text("policy").to_owned(),
            source: match line.text("source") {
                "" => String::from("simulated"),
                source => source.to_owned(),
            },
            deadline_ms: line.number("deadline_ms"),
            qps: line.number("max_rate_qps")?,
            interval: low.zip(high),
            bound_qps: line.number("bound_qps"),
            region_qps: line.number("region_qps"),
            predicted_qps: None,
            queries: line.number("queries"),
            seeds: line.number("seeds"),
            flips: line.number("flips"),
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
        })
    }
}

/// All capacities of a folder, the highest first.
pub(super) fn capacities(folder: &Folder) -> Vec<Capacity> {
    let simulated = folder.of(Kind::Capacity).flat_map(Sheet::lines).filter_map(Capacity::of_capacity);
    let validated = folder.of(Kind::ValidationCapacity).flat_map(Sheet::lines).filter_map(Capacity::of_validation);
    let mut all: Vec<Capacity> = simulated.chain(validated).collect();
    all.sort_by(|a, b| b.qps.total_cmp(&a.qps));
    all
}

/// Picture and table.
pub(super) fn section(id: &str, folder: &Folder, capacities: &[Capacity]) -> String {
    if capacities.is_empty() {
        return String::new();
    }
    let rows = capacities.iter().flat_map(|capacity| {
        let name = || capacity.policy.clone();
        let look = look_of(&capacity.policy);
        let between = capacity
            .interval
            .map_or_else(String::new, |(low, high)| format!(", between {} and {}", number(low), number(high)));
        let found = Row {
            name: name(),
            detail: if capacity.is_measured() { String::from("measured") } else { String::new() },
            look,
            value: capacity.qps,
            interval: capacity.interval,
            is_hollow: false,
            tip: format!("{}, {}: {} q/s{between}", capacity.policy, capacity.source, number(capacity.qps)),
        };
        let predicted = capacity.predicted_qps.map(|value| Row {
            name: name(),
            detail: String::from("predicted"),
            look,
            value,
            interval: None,
            is_hollow: true,
            tip: format!("{}, predicted: {} q/s", capacity.policy, number(value)),
        });
        [Some(found), predicted].into_iter().flatten()
    });
    let least = |of: fn(&Capacity) -> Option<f64>| capacities.iter().filter_map(of).min_by(f64::total_cmp);
    let bound = least(|c| c.bound_qps).map(|at| (at, String::from("no scheduler beyond")));
    let region = least(|c| c.region_qps).map(|at| (at, String::from("stable up to here")));
    let deadline = capacities.iter().find_map(|c| c.deadline_ms);
    let within = deadline.map_or_else(|| String::from("its deadline"), |ms| format!("{} ms", number(ms)));
    let best = &capacities[0];
    let least = &capacities[capacities.len() - 1];
    let has_seeds = capacities.iter().any(|c| c.seeds.is_some_and(|seeds| seeds > 1.0));
    let chart = Intervals {
        id: format!("{id}-capacity"),
        title: format!("Highest rate at which every query is answered within {within}"),
        description: format!(
            "{} policies, from {} with {} queries a second to {} with {}.",
            capacities.len(),
            least.policy,
            number(least.qps),
            best.policy,
            number(best.qps)
        ),
        rows: rows.collect(),
        marks: bound.or(region).into_iter().collect(),
        note: format!(
            "Whiskers reach from the highest rate that passed{} to the lowest that failed.{}{}",
            if has_seeds { " with every seed" } else { "" },
            if capacities.iter().any(|c| c.region_qps.is_some_and(|region| c.qps > region)) {
                " Beyond the dashed line no scheduler is stable in the long run: runs this short tell nothing there."
            } else {
                ""
            },
            if capacities.iter().any(|c| c.predicted_qps.is_some()) {
                " Hollow: predicted by simulation before it was measured."
            } else {
                ""
            },
        ),
    };
    format!(
        "<section id=\"{id}-s-capacity\"><h3>Capacity</h3>\n{}{}</section>\n",
        chart.html(),
        tables(folder, capacities)
    )
}

fn tables(folder: &Folder, capacities: &[Capacity]) -> String {
    let is_validated = capacities.iter().any(|c| c.predicted_qps.is_some());
    let has_bound = capacities.iter().any(|c| c.bound_qps.is_some());
    let mut columns = vec!["policy", "source", "capacity_qps", "first_miss_at_qps"];
    columns.extend(if is_validated { &["predicted_qps", "error"][..] } else { &[] });
    columns.extend(if has_bound { &["share of the bound"][..] } else { &[] });
    columns.extend(["queries a run", "seeds"]);
    let mut table = HtmlTable::new("Capacity by policy", columns);
    let cell = |value: Option<f64>| Cell::of(&value.map_or_else(String::new, |value| value.to_string()));
    for c in capacities {
        let mut cells = vec![
            Cell::text(&c.policy),
            Cell::text(&c.source),
            cell(Some(c.qps)),
            cell(c.interval.map(|(_, high)| high)),
        ];
        if is_validated {
            cells.extend([cell(c.predicted_qps), Cell::share(c.error(), true, false)]);
        }
        if has_bound {
            cells.push(Cell::share(c.bound_qps.filter(|&bound| bound > 0.0).map(|bound| c.qps / bound), false, true));
        }
        cells.extend([cell(c.queries), cell(c.seeds)]);
        table.row(cells);
    }
    let whole = folder.of(Kind::ValidationCapacity).chain(folder.of(Kind::ValidationService));
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
