//! Delay against rate, percentiles, and the distribution of delays.

use std::collections::BTreeMap;

use super::chart::{Chart, Place, Scale, Series, Unit, look_of};
use super::folder::{Folder, Kind, Log};
use super::html::{Cell, HtmlTable, folded, number};
use super::sheet::{Line, Sheet};
use crate::quantile::median;
use crate::stats::mean_interval;

/// A share of the delays, and its column.
const METRICS: [(&str, &str); 4] = [("mean_ms", "mean"), ("p50_ms", "median"), ("p95_ms", "p95"), ("p99_ms", "p99")];
/// How sure intervals are.
const CONFIDENCE: f64 = 0.95;
/// Percentiles that a summary has, and the share of queries that is slower.
const PERCENTILES: [(&str, f64); 5] =
    [("p50_ms", 0.5), ("p95_ms", 0.05), ("p99_ms", 0.01), ("p999_ms", 0.001), ("max_ms", 0.0)];
/// Rates that lie further apart than this stand on a logarithmic axis.
const WIDE: u64 = 25;
/// Where runs tell of queries that were answered too late, or not at all.
const NOT_IN_TIME: [&str; 4] = ["missed", "unfinished", "unreleased", "shed"];
/// Points of a curve of a distribution.
const CURVE_POINTS: usize = 240;

/// The runs of a policy at a rate, one a seed.
#[derive(Debug, Default)]
pub(super) struct Runs<'a>(Vec<Line<'a>>);

impl Runs<'_> {
    fn mean(&self, column: &str) -> Option<f64> {
        let values: Vec<f64> = self.0.iter().filter_map(|line| line.number(column)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn interval(&self, column: &str) -> Option<(f64, f64)> {
        let values: Vec<f64> = self.0.iter().filter_map(|line| line.number(column)).collect();
        let interval = mean_interval(&values, CONFIDENCE)?;
        Some((interval.low.max(0.0), interval.high))
    }

    /// The middle one of the seeds.
    pub(super) fn median(&self, column: &str) -> Option<f64> {
        let values: Vec<f64> = self.0.iter().filter_map(|line| line.number(column)).collect();
        (!values.is_empty()).then(|| median(values))
    }

    /// The largest of the seeds.
    pub(super) fn most(&self, column: &str) -> Option<f64> {
        self.0.iter().filter_map(|line| line.number(column)).reduce(f64::max)
    }

    /// Queries that came too late, never, or were dropped, in all seeds.
    pub(super) fn missed(&self) -> f64 {
        let of_run = |line: &Line<'_>| NOT_IN_TIME.map(|column| line.number(column).unwrap_or(0.0));
        self.0.iter().flat_map(of_run).sum()
    }
}

/// A line of the charts: a policy, by what, and its runs by rate (in thousandths, which can be ordered).
pub(super) type Curves<'a> = BTreeMap<(usize, String, String), BTreeMap<u64, Runs<'a>>>;

pub(super) fn curves(folder: &Folder) -> Curves<'_> {
    let mut curves = Curves::new();
    for line in folder.of(Kind::Summary).flat_map(Sheet::lines) {
        let (policy, source) = (line.text("policy").to_owned(), line.text("source").to_owned());
        let Some(rate) = line.number("rate_qps") else { continue };
        let curve = curves.entry((look_of(&policy), policy, source)).or_default();
        curve.entry((rate * 1e3) as u64).or_default().0.push(line);
    }
    curves
}

/// Delay curves, percentiles, distributions and their tables.
pub(super) fn section(id: &str, folder: &Folder, deadline_ms: Option<f64>) -> String {
    let curves = curves(folder);
    if curves.is_empty() {
        return distribution(id, &folder.logs, deadline_ms);
    }
    let has_both = curves.keys().any(|(_, _, source)| source == "simulated")
        && curves.keys().any(|(_, _, source)| source != "simulated");
    let seeds = curves.values().flat_map(|curve| curve.values().map(|runs| runs.0.len())).max().unwrap_or(0);
    let is_single_rate = curves.values().all(|curve| curve.len() < 2);
    let mut html = format!("<section id=\"{id}-s-delays\"><h3>Delays</h3>\n");
    if !is_single_rate {
        html += "<div class=\"tabs\">";
        for (column, name) in METRICS {
            html += &delay_chart(id, &curves, column, name, deadline_ms, has_both, seeds).html();
        }
        html += "</div>\n";
    }
    html += &percentiles(id, &curves, deadline_ms, has_both);
    html += &distribution(id, &folder.logs, deadline_ms);
    for sheet in folder.of(Kind::Summary) {
        html += &folded(
            &format!("All {} runs in numbers ({})", sheet.rows.len(), sheet.name),
            &HtmlTable::of_sheet(&format!("Runs: {}", sheet.name), sheet),
        );
    }
    html + "</section>\n"
}

fn delay_chart(
    id: &str,
    curves: &Curves<'_>,
    column: &str,
    name: &str,
    deadline_ms: Option<f64>,
    has_both: bool,
    seeds: usize,
) -> Chart {
    let title = format!("Delay against arrival rate: {name}");
    let rates = || curves.values().flat_map(|curve| curve.keys().copied());
    let is_wide = rates().max() > rates().min().map(|least| least.saturating_mul(WIDE));
    let mut chart = Chart::new(
        &format!("{id}-{}", column.trim_end_matches("_ms")),
        &title,
        Scale::new("arrival rate", Unit::Qps, is_wide),
        Scale::new(&format!("{name} delay"), Unit::Plain("ms"), true),
    );
    for ((look, policy, source), curve) in curves {
        let name = if has_both { format!("{policy}, {source}") } else { policy.clone() };
        let place = |(rate, runs): (&u64, &Runs<'_>)| {
            let (x, y) = (*rate as f64 / 1e3, runs.mean(column)?);
            let interval = runs.interval(column);
            let within =
                interval.map_or_else(String::new, |(low, high)| format!(" ({} to {})", number(low), number(high)));
            let missed = runs.missed();
            let missed_text = if missed > 0.0 { format!("; {} missed", number(missed)) } else { String::new() };
            let tip = format!("{name} at {} q/s: {} ms{within}{missed_text}", number(x), number(y));
            Some(Place { x, y, interval, is_hollow: missed > 0.0, tip })
        };
        let points = curve.iter().filter_map(place).collect();
        let is_dashed = has_both && source == "simulated";
        chart.series.push(Series { name, look: *look, points, is_dashed, is_cloud: false });
    }
    chart.horizontal = deadline_ms.map(|ms| (ms, String::from("deadline")));
    let spread = if seeds > 1 {
        format!(" Bands: 95 % confidence intervals of the mean over {seeds} seeds.")
    } else {
        String::new()
    };
    chart.note =
        format!("Hollow: a query missed its deadline.{spread}{}", if has_both { " Dashed: simulated." } else { "" });
    chart.description = describe(curves, column, name);
    chart
}

fn describe(curves: &Curves<'_>, column: &str, name: &str) -> String {
    let ends = curves.iter().filter_map(|((_, policy, _), curve)| {
        let (first, last) = (curve.iter().next()?, curve.iter().next_back()?);
        let at = |(rate, runs): (&u64, &Runs<'_>)| {
            Some(format!("{} ms at {} q/s", number(runs.mean(column)?), number(*rate as f64 / 1e3)))
        };
        Some(format!("{policy} goes from {} to {}", at(first)?, at(last)?))
    });
    format!("The {name} delay of each policy as the rate rises: {}.", ends.collect::<Vec<_>>().join("; "))
}

/// At which rate each curve is looked at: the highest common one at which at least half of the policies miss nothing,
/// so that they can be compared; where there is none, each policy's own highest rate below the first miss.
fn rates_shown(curves: &Curves<'_>) -> (Vec<u64>, bool) {
    let mut rates: Vec<u64> = curves.values().flat_map(|curve| curve.keys().copied()).collect();
    rates.sort_unstable();
    let holds = |rate: &u64| {
        let runs = || curves.values().filter_map(|curve| curve.get(rate));
        runs().count() == curves.len() && 2 * runs().filter(|runs| runs.missed() == 0.0).count() >= curves.len()
    };
    if let Some(&rate) = rates.iter().rev().find(|rate| holds(rate)) {
        return (vec![rate; curves.len()], true);
    }
    let own = |curve: &BTreeMap<u64, Runs<'_>>| {
        let good = curve.iter().take_while(|(_, runs)| runs.missed() == 0.0).last();
        good.or_else(|| curve.iter().next()).map_or(0, |(rate, _)| *rate)
    };
    (curves.values().map(own).collect(), false)
}

/// The percentiles of each policy at a rate that it sustains.
fn percentiles(id: &str, curves: &Curves<'_>, deadline_ms: Option<f64>, has_both: bool) -> String {
    let (rates, is_common) = rates_shown(curves);
    let at = match (rates.first(), is_common) {
        (Some(&rate), true) => format!("at {} queries a second", number(rate as f64 / 1e3)),
        _ => String::from("each policy at its highest rate below the first miss"),
    };
    let columns =
        ["policy", "source", "rate_qps", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms", "missed"];
    let mut table = HtmlTable::new(&format!("Delays, {at}"), columns);
    let title = format!("How many queries wait how long, {at}");
    let mut chart = tail_chart(&format!("{id}-tail"), &title, deadline_ms);
    for (((look, policy, source), curve), rate) in curves.iter().zip(&rates) {
        let Some(runs) = curve.get(rate) else { continue };
        let text = |value: f64| crate::report::number::text(value, 9);
        let cell = |column: &str| Cell::of(&runs.mean(column).map_or_else(String::new, text));
        table.row(columns.iter().map(|&column| match column {
            "policy" => Cell::text(policy),
            "source" => Cell::text(source),
            "missed" => Cell::of(&text(runs.missed())),
            column => cell(column),
        }));
        let queries = runs.mean("queries").unwrap_or(1.0);
        let name = if has_both { format!("{policy}, {source}") } else { policy.clone() };
        let point = |&(column, slower): &(&str, f64)| {
            let slower = if slower == 0.0 { (1.0 / queries).min(0.001) } else { slower };
            let y = -slower.log10();
            let x = runs.mean(column)?;
            let label = column.trim_end_matches("_ms");
            let tip = format!("{name}, {label}: {} ms", number(x));
            (y <= DECADES).then(|| Place { x, y, tip, ..Place::default() })
        };
        chart.series.push(Series {
            name: if is_common { name.clone() } else { format!("{name}, {} q/s", number(*rate as f64 / 1e3)) },
            look: *look,
            points: PERCENTILES.iter().filter_map(point).collect(),
            is_dashed: has_both && source == "simulated",
            is_cloud: false,
        });
    }
    chart.description = format!(
        "Median, p95, p99, p99.9 and longest delay of {} policies, {at}; the table has the same numbers.",
        chart.series.len()
    );
    format!("{}{}", chart.html(), table.html())
}

/// So many nines a tail chart goes down to.
const DECADES: f64 = 5.0;

/// Delay along, and up how many queries are answered by then: each step is ten times fewer that are not.
fn tail_chart(id: &str, title: &str, deadline_ms: Option<f64>) -> Chart {
    let ticks = ["0", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"];
    let y = Scale::new("share of queries answered", Unit::Plain(""), false)
        .with_ticks(ticks.into_iter().enumerate().map(|(i, text)| (i as f64, text.to_owned())));
    let mut chart = Chart::new(id, title, Scale::new("delay", Unit::Plain("ms"), true), y);
    chart.vertical = deadline_ms.map(|ms| (ms, String::from("deadline")));
    chart.note = String::from("Each step up is ten times fewer queries that wait longer.");
    chart
}

/// The delays of logged runs, all of them.
fn distribution(id: &str, logs: &[Log], deadline_ms: Option<f64>) -> String {
    let mut chart = tail_chart(
        &format!("{id}-cdf"),
        "How many queries wait how long, in the runs whose logs were kept",
        deadline_ms,
    );
    for (index, Log { title, log, .. }) in logs.iter().enumerate() {
        let mut delays: Vec<u64> = log.rows.iter().map(|row| row.delay().0).collect();
        delays.sort_unstable();
        let n = delays.len();
        if n == 0 {
            continue;
        }
        // Ranks that lie evenly on this axis: many at the end, where few queries are.
        let decades = (n as f64).log10().min(DECADES);
        let mut ranks: Vec<usize> = (0..=CURVE_POINTS)
            .map(|i| {
                let slower = 10f64.powf(-decades * i as f64 / CURVE_POINTS as f64);
                ((1.0 - slower) * n as f64) as usize
            })
            .map(|rank| rank.min(n - 1))
            .collect();
        ranks.dedup();
        let points = ranks.into_iter().filter_map(|rank| {
            let slower = 1.0 - (rank as f64 + 0.5) / n as f64;
            let y = -slower.log10();
            (y <= DECADES).then(|| Place { x: delays[rank] as f64 / 1e6, y, ..Place::default() })
        });
        let policy = title.split([' ', ',']).next().unwrap_or_default();
        let of_it = logs.iter().filter(|log| log.title.split([' ', ',']).next() == Some(policy)).count();
        let look = if of_it > 1 { index } else { look_of(policy) };
        chart.series.push(Series {
            name: title.clone(),
            look: look % 9,
            points: points.collect(),
            is_dashed: false,
            is_cloud: false,
        });
    }
    chart.description = format!("The distribution of delays of {} logged runs.", chart.series.len());
    chart.html()
}
