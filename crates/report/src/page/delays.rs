//! Delays by rate, their percentiles, and their distributions.

use std::collections::BTreeMap;

use tandem_model::base::quantile::median;
use tandem_model::base::stats::mean_interval;

use super::folder::{Folder, Kind, Log};
use super::html::{self, Cell, HtmlTable, folded, number};
use crate::figure::{LineChart, Look, Point, Series, Signs, look_of, with_looks};
use crate::sheet::{Sheet, SheetRow};

/// Statistics of delays: column and name.
const METRICS: [(&str, &str); 4] = [("mean_ms", "mean"), ("p50_ms", "median"), ("p95_ms", "p95"), ("p99_ms", "p99")];
const CONFIDENCE: f64 = 0.95;
/// Percentiles of a summary, with the share of slower queries.
const PERCENTILES: [(&str, f64); 5] =
    [("p50_ms", 0.5), ("p95_ms", 0.05), ("p99_ms", 0.01), ("p999_ms", 0.001), ("max_ms", 0.0)];
/// Ratio of rates above which the axis is logarithmic.
const WIDE: u64 = 25;
/// Columns of queries that were answered too late or never.
const NOT_IN_TIME: [&str; 4] = ["missed", "unfinished", "unreleased", "shed"];
const CURVE_POINTS: usize = 240;

/// The runs of a policy at a rate, one per seed.
#[derive(Debug, Default)]
pub(crate) struct Runs<'a> {
    rows: Vec<SheetRow<'a>>,
    /// Whether the rate is above the stability limit of a simulated policy, so that delays grow with the run.
    is_unstable: bool,
}

impl Runs<'_> {
    fn mean(&self, column: &str) -> Option<f64> {
        let values: Vec<f64> = self.rows.iter().filter_map(|line| line.number(column)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn interval(&self, column: &str) -> Option<(f64, f64)> {
        let values: Vec<f64> = self.rows.iter().filter_map(|line| line.number(column)).collect();
        // Runs that did not play all of what changes in their arrivals say nothing of how far they are off.
        if self.rows.iter().filter_map(|line| line.number("covered_share")).any(|share| share < 1.0) {
            return None;
        }
        let interval = mean_interval(&values, CONFIDENCE)?;
        Some((interval.low.max(0.0), interval.high))
    }

    pub(crate) fn median(&self, column: &str) -> Option<f64> {
        let values: Vec<f64> = self.rows.iter().filter_map(|line| line.number(column)).collect();
        (!values.is_empty()).then(|| median(values))
    }

    pub(crate) fn most(&self, column: &str) -> Option<f64> {
        self.rows.iter().filter_map(|line| line.number(column)).reduce(f64::max)
    }

    /// Queries of all seeds that were late, unanswered or dropped.
    pub(crate) fn missed(&self) -> f64 {
        let of_run = |line: &SheetRow<'_>| NOT_IN_TIME.map(|column| line.number(column).unwrap_or(0.0));
        self.rows.iter().flat_map(of_run).sum()
    }

    /// Whether no query missed its deadline, and longer runs would show the same.
    pub(crate) fn is_kept(&self) -> bool {
        !self.is_unstable && self.missed() == 0.0
    }
}

/// Lines of the charts: a look, policy and source, with runs by rate in thousandths, which can be ordered.
pub(crate) type Curves<'a> = BTreeMap<(Look, String, String), BTreeMap<u64, Runs<'a>>>;

pub(crate) fn curves(folder: &Folder) -> Curves<'_> {
    let capacities = folder.of(Kind::Capacity).flat_map(Sheet::lines);
    let limits: BTreeMap<String, f64> =
        capacities.filter_map(|line| Some((line.text("policy").to_owned(), line.number("stable_qps")?))).collect();
    let mut curves = Curves::new();
    for line in folder.of(Kind::Summary).flat_map(Sheet::lines) {
        let (policy, source) = (line.text("policy").to_owned(), line.text("source").to_owned());
        let Some(rate) = line.number("rate_qps") else { continue };
        // Both numbers are rounded to six digits.
        let is_unstable = source == "simulated" && limits.get(&policy).is_some_and(|limit| rate > limit * (1.0 + 1e-5));
        let curve = curves.entry((look_of(&policy), policy, source)).or_default();
        let runs: &mut Runs<'_> = curve.entry((rate * 1e3) as u64).or_default();
        runs.rows.push(line);
        runs.is_unstable = is_unstable;
    }
    curves
}

pub(crate) fn section(id: &str, folder: &Folder, deadline_ms: Option<f64>) -> String {
    let curves = curves(folder);
    let has_both = curves.keys().any(|(_, _, source)| source == "simulated")
        && curves.keys().any(|(_, _, source)| source != "simulated");
    let seeds = curves.values().flat_map(|curve| curve.values().map(|runs| runs.rows.len())).max().unwrap_or(0);
    let is_single_rate = curves.values().all(|curve| curve.len() < 2);
    let mut html = String::new();
    if !is_single_rate {
        html += "<div class=\"tabs\">";
        for (column, name) in METRICS {
            let chart = delay_chart(&curves, column, name, deadline_ms, has_both, seeds);
            html += &chart.html(&format!("{id}-{}", column.trim_end_matches("_ms")));
        }
        html += "</div>\n";
    }
    if !curves.is_empty() {
        html += &percentiles(id, &curves, deadline_ms, has_both);
    }
    html += &distribution(id, &folder.logs, deadline_ms);
    for sheet in folder.of(Kind::Summary) {
        html += &folded(
            &format!("All {} runs in numbers ({})", sheet.rows.len(), sheet.name),
            &HtmlTable::of_sheet(&format!("Runs: {}", sheet.name), sheet),
        );
    }
    html::section(id, "delays", "Delays", &html)
}

fn delay_chart(
    curves: &Curves<'_>,
    column: &str,
    name: &str,
    deadline_ms: Option<f64>,
    has_both: bool,
    seeds: usize,
) -> LineChart {
    let rates = || curves.values().flat_map(|curve| curve.keys().copied());
    let series = curves.iter().map(|((look, policy, source), curve)| {
        let point = |(rate, runs): (&u64, &Runs<'_>)| {
            let (x, y) = (*rate as f64 / 1e3, runs.mean(column)?);
            Some(Point { x, y, interval: runs.interval(column), is_hollow: !runs.is_kept() })
        };
        Series {
            name: series_name(policy, source, has_both),
            look: Some(*look),
            points: curve.iter().filter_map(point).collect(),
            is_dashed: has_both && source == "simulated",
            ..Series::default()
        }
    });
    let bars = if seeds > 1 {
        format!(". Bars: {:.0} % intervals of the mean over {seeds} seeds", 100.0 * CONFIDENCE)
    } else {
        String::new()
    };
    let dashed = if has_both { ". Dashed: simulated" } else { "" };
    let chart = LineChart {
        title: format!("Delay by arrival rate: {name}"),
        x_label: String::from("arrival rate (queries/s)"),
        y_label: format!("{name} delay (ms)"),
        is_x_log: rates().max() > rates().min().map(|least| least.saturating_mul(WIDE)),
        is_y_log: true,
        series: series.collect(),
        horizontal: deadline_ms.map(|ms| (ms, String::from("deadline"))),
        note: format!("Hollow: a query missed its deadline, or the rate is not stable{bars}{dashed}"),
        ..LineChart::default()
    };
    chart.with_best("those without a miss up to the highest rates", Series::highest_kept)
}

fn series_name(policy: &str, source: &str, has_both: bool) -> String {
    if has_both { format!("{policy}, {source}") } else { policy.to_owned() }
}

/// The rate at which each curve is compared: the highest common one at which at least half of the policies are stable and miss
/// nothing. Without such a rate it is each policy's highest rate below the first miss.
fn rates_shown(curves: &Curves<'_>) -> (Vec<u64>, bool) {
    let mut rates: Vec<u64> = curves.values().flat_map(|curve| curve.keys().copied()).collect();
    rates.sort_unstable();
    let holds = |rate: &u64| {
        let runs = || curves.values().filter_map(|curve| curve.get(rate));
        runs().count() == curves.len() && 2 * runs().filter(|runs| runs.is_kept()).count() >= curves.len()
    };
    if let Some(&rate) = rates.iter().rev().find(|rate| holds(rate)) {
        return (vec![rate; curves.len()], true);
    }
    let own = |curve: &BTreeMap<u64, Runs<'_>>| {
        let good = curve.iter().take_while(|(_, runs)| runs.is_kept()).last();
        good.or_else(|| curve.iter().next()).map_or(0, |(rate, _)| *rate)
    };
    (curves.values().map(own).collect(), false)
}

/// The percentiles of each policy at a rate that it sustains.
fn percentiles(id: &str, curves: &Curves<'_>, deadline_ms: Option<f64>, has_both: bool) -> String {
    let (rates, is_common) = rates_shown(curves);
    let at = match (rates.first(), is_common) {
        (Some(&rate), true) => format!("at {} queries per second", number(rate as f64 / 1e3)),
        _ => String::from("each policy at its highest rate below the first miss"),
    };
    let columns =
        ["policy", "source", "rate_qps", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms", "missed"];
    let mut table = HtmlTable::new(&format!("Delays, {at}"), columns);
    let mut chart = tail_chart(format!("Distribution of delays, {at}"), deadline_ms);
    for (((look, policy, source), curve), rate) in curves.iter().zip(&rates) {
        let Some(runs) = curve.get(rate) else { continue };
        let text = |value: f64| crate::number::text(value, 9);
        let cell = |column: &str| Cell::of(&runs.mean(column).map_or_else(String::new, text));
        table.row(columns.iter().map(|&column| match column {
            "policy" => Cell::text(policy),
            "source" => Cell::text(source),
            "missed" => Cell::of(&text(runs.missed())),
            column => cell(column),
        }));
        let queries = runs.mean("queries").unwrap_or(1.0);
        let name = series_name(policy, source, has_both);
        let point = |&(column, slower): &(&str, f64)| {
            let slower = if slower == 0.0 { (1.0 / queries).min(0.001) } else { slower };
            let (x, y) = (runs.mean(column)?, -slower.log10());
            (y <= DECADES).then(|| Point { x, y, ..Point::default() })
        };
        chart.series.push(Series {
            name: if is_common { name } else { format!("{name}, {} q/s", number(*rate as f64 / 1e3)) },
            look: Some(*look),
            points: PERCENTILES.iter().filter_map(point).collect(),
            is_dashed: has_both && source == "simulated",
            ..Series::default()
        });
    }
    // The best line has the shortest delay that 99 % of the queries do not exceed.
    let chart =
        chart.with_best("those of the shortest p99", |series| series.points.get(2).map_or(f64::MIN, |point| -point.x));
    format!("{}{}", chart.html(&format!("{id}-tail")), table.html())
}

const DECADES: f64 = 5.0;

/// A chart of delay and of the share of queries answered by then. Each step up leaves ten times fewer unanswered.
fn tail_chart(title: String, deadline_ms: Option<f64>) -> LineChart {
    let ticks = ["0", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"];
    LineChart {
        title,
        x_label: String::from("delay (ms)"),
        y_label: String::from("share of queries answered"),
        is_x_log: true,
        y_ticks: ticks.into_iter().enumerate().map(|(i, text)| (i as f64, text.to_owned())).collect(),
        vertical: deadline_ms.map(|ms| (ms, String::from("deadline"))),
        note: String::from("Each step up is ten times fewer queries with a longer delay"),
        ..LineChart::default()
    }
}

fn distribution(id: &str, logs: &[Log], deadline_ms: Option<f64>) -> String {
    let title = String::from("Distribution of delays in the logged runs");
    let mut chart = tail_chart(title, deadline_ms);
    let logs: Vec<&Log> = logs.iter().filter(|log| !log.log.rows.is_empty()).collect();
    for Log { title, log, .. } in logs {
        let mut delays: Vec<u64> = log.rows.iter().map(|row| row.delay().0).collect();
        delays.sort_unstable();
        let n = delays.len();
        // Ranks are evenly spaced on this axis, which gives many points to the few slowest queries.
        let decades = (n as f64).log10().min(DECADES);
        let rank = |i: usize| {
            let slower = 10f64.powf(-decades * i as f64 / CURVE_POINTS as f64);
            (((1.0 - slower) * n as f64) as usize).min(n - 1)
        };
        let mut ranks: Vec<usize> = (0..=CURVE_POINTS).map(rank).collect();
        ranks.dedup();
        let point = |rank: usize| {
            let slower = 1.0 - (rank as f64 + 0.5) / n as f64;
            let y = -slower.log10();
            (y <= DECADES).then(|| Point { x: delays[rank] as f64 / 1e6, y, ..Point::default() })
        };
        chart.series.push(Series {
            name: title.clone(),
            points: ranks.into_iter().filter_map(point).collect(),
            signs: Signs::Line,
            ..Series::default()
        });
    }
    chart.series = with_looks(chart.series);
    // Runs of a policy differ in markers, which these lines do not have.
    chart.series.iter_mut().for_each(|series| series.is_dashed = series.look.is_some_and(|(c, m)| c % 2 != m % 2));
    chart.html(&format!("{id}-cdf"))
}
