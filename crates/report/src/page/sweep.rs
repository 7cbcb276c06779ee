//! Results of sweeps, as a chart along the parameter that varies.

use tandem_model::study::extrapolated;

use super::folder::{Folder, Kind};
use super::html::{self, HtmlTable, folded, heading, rounded};
use crate::figure::{LineChart, Point, Series, with_looks};
use crate::number::counted;
use crate::sheet::{Sheet, SheetRow};

/// Numeric parameters in order of preference for the horizontal axis: column, name, and whether the axis is logarithmic.
const AXES: [(&str, &str, bool); 8] = [
    ("rate_qps", "arrival rate", true),
    ("replicas", "replicas of each shard", false),
    ("cpus", "CPU workers", true),
    ("gpus", "GPUs", false),
    ("streams", "streams of each GPU", false),
    ("deadline_ms", "deadline", true),
    ("noise", "error of estimates (standard deviation of their logarithm)", false),
    ("shards", "shards", true),
];

/// The question and answer of a sweep, or `None` if the folder has none.
pub(crate) fn answer(folder: &Folder) -> Option<(String, String)> {
    let lines: Vec<SheetRow<'_>> = folder.of(Kind::Sweep).flat_map(Sheet::lines).collect();
    let kept = kept(&lines)?;
    let best = lines.iter().filter_map(|line| Some((line.number("capacity_qps")?, line)));
    let varying: Vec<&(&str, &str, bool)> = AXES.iter().filter(|axis| varies(&lines, axis.0)).collect();
    let at =
        |line: &SheetRow<'_>| varying.iter().map(|axis| setting(line, axis.0, axis.1)).collect::<Vec<_>>().join(", ");
    if let Some(fewest) = fewest(&lines) {
        return Some(fewest);
    }
    let question = format!("What is sustained at {} points ({kept})?", lines.len());
    if let Some((qps, line)) = best.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let text =
            format!("At most {} queries per second, under {}: {}.", rounded(qps, 4), line.text("policy"), at(line));
        return Some((question, text));
    }
    let held = lines.iter().filter(|line| holds(line)).count();
    Some((question, format!("{held} of {} points meet the objective in most of their runs.", lines.len())))
}

/// Whether most runs of a point meet the objective.
fn holds(line: &SheetRow<'_>) -> bool {
    line.number("held").zip(line.number("seeds")).is_some_and(|(held, seeds)| 2.0 * held > seeds)
}

/// The question and answer of a sweep over replicas and policies at one rate.
fn fewest(lines: &[SheetRow<'_>]) -> Option<(String, String)> {
    let others = AXES.iter().map(|axis| axis.0).filter(|&axis| axis != "replicas").chain(["mode"]);
    if !varies(lines, "replicas") || others.into_iter().any(|column| varies(lines, column)) {
        return None;
    }
    let (rate_qps, objective) = (lines[0].number("rate_qps")?, lines[0].text("objective"));
    let machines = |line: &SheetRow<'_>| Some((line.number("replicas")? * line.number("shards")?) as usize);
    let fewest =
        |column: &str| lines.iter().filter(|line| line.text(column) == "true").min_by_key(|line| machines(line));
    let answer = match fewest("sustained") {
        Some(line) => {
            let spread =
                fewest("sustained_with_spread").and_then(machines).filter(|&safe| machines(line) != Some(safe));
            let spread = spread.map_or(String::new(), |safe| format!(" {safe} hold with the spread of machines."));
            format!("{}, under {}.{spread}", counted(machines(line)?, "machine", "machines"), line.text("policy"))
        }
        None => String::from("None of these numbers of machines."),
    };
    let rate = rounded(rate_qps, 6);
    Some((format!("How many machines meet {objective} at {rate} queries per second?"), answer))
}

/// The machine and the workload, as far as no point varies them.
pub(crate) fn facts(folder: &Folder) -> Vec<(String, String)> {
    let lines: Vec<SheetRow<'_>> = folder.of(Kind::Sweep).flat_map(Sheet::lines).collect();
    let same = ["workload", "cpus", "gpus", "replicas", "shards"].into_iter().filter(|column| !varies(&lines, column));
    same.map(|column| (column.to_owned(), lines[0].text(column).to_owned())).collect()
}

/// The warning of points with more CPU workers than were measured.
pub(crate) fn warnings(folder: &Folder) -> Vec<String> {
    let lines = folder.of(Kind::Sweep).flat_map(Sheet::lines).filter(|line| line.text("extrapolated") == "true");
    let counts = lines.filter_map(|line| Some((line.number("cpus")? as usize, line.number("measured_cpus")? as usize)));
    counts.max().map(|(cpus, measured)| format!("Warning: {}.", extrapolated(cpus, measured))).into_iter().collect()
}

/// The objective of all points, without the deadline if deadlines differ.
fn kept(lines: &[SheetRow<'_>]) -> Option<String> {
    let first = lines.first()?.text("objective");
    let share = first.split(" <= ").next().unwrap_or(first);
    Some(if varies(lines, "objective") { format!("{share} within each point's deadline") } else { first.to_owned() })
}

/// A parameter of a row with its unit: `deadline 10 ms`. The part of the name in parentheses is left out.
fn setting(line: &SheetRow<'_>, column: &str, name: &str) -> String {
    let name = name.split(" (").next().unwrap_or(name);
    format!("{name} {} {}", line.text(column), heading(column).1).trim_end().to_owned()
}

fn varies(lines: &[SheetRow<'_>], column: &str) -> bool {
    lines.iter().any(|line| line.text(column) != lines[0].text(column))
}

pub(crate) fn section(id: &str, folder: &Folder) -> String {
    let mut html = String::new();
    for (number_of_sheet, sheet) in folder.of(Kind::Sweep).enumerate() {
        let lines: Vec<SheetRow<'_>> = sheet.lines().collect();
        let chart_id = format!("{id}-sweep{number_of_sheet}");
        html += &chart(&lines).map_or_else(String::new, |chart| chart.html(&chart_id));
        let title = format!("All {} points in numbers ({})", sheet.rows.len(), sheet.name);
        html += &folded(&title, &HtmlTable::of_sheet(&format!("Points: {}", sheet.name), sheet));
    }
    html::section(id, "sweep", "Sweep", &html)
}

/// A chart along the first parameter that varies, with a line for each policy and each combination of the others.
fn chart(lines: &[SheetRow<'_>]) -> Option<LineChart> {
    let first = lines.first()?;
    let (along, label, is_ratio) = AXES.iter().find(|(column, ..)| varies(lines, column))?;
    let mode = [("mode", "mode", false)];
    let others: Vec<&(&str, &str, bool)> =
        mode.iter().chain(&AXES).filter(|(column, ..)| column != along && varies(lines, column)).collect();
    let tells_capacity = first.number("capacity_qps").is_some();
    // The percentile of the objective, `p99.9` in the column `p999_ms`, if the sweep has it.
    let share = first.text("objective").split(" <= ").next().unwrap_or_default();
    let column = format!("{}_ms", share.replace('.', ""));
    let has_it = share.starts_with('p') && first.number(&column).is_some();
    let (share, column) = if has_it { (share, column.as_str()) } else { ("p99", "p99_ms") };
    let [value, low, high] = if tells_capacity { ["capacity_qps", "low_qps", "high_qps"] } else { [column, "", ""] };
    let mut series: Vec<Series> = Vec::new();
    for line in lines {
        let others = others.iter().map(|(column, name, _)| setting(line, column, name));
        let name = std::iter::once(line.text("policy").to_owned()).chain(others).collect::<Vec<_>>().join(", ");
        let (Some(x), Some(y)) = (line.number(along), line.number(value)) else { continue };
        let is_hollow = !tells_capacity && !holds(line);
        let interval = line.number(low).zip(line.number(high)).map(|(low, high)| (low.max(0.0), high));
        let point = Point { x, y, interval, is_hollow };
        Series::named(&mut series, name).points.push(point);
    }
    let (what, y_label, note) = if tells_capacity {
        (String::from("Capacity"), String::from("capacity (queries/s)"), "Bars: intervals of the median over seeds")
    } else {
        (format!("{share} of delays"), format!("{share} delay (ms)"), "Hollow: most runs miss the objective")
    };
    let unit = match heading(along).1 {
        "" => String::new(),
        "q/s" => String::from(" (queries/s)"),
        unit => format!(" ({unit})"),
    };
    let chart = LineChart {
        title: format!("{what}, by {label}"),
        x_label: format!("{label}{unit}"),
        y_label,
        is_x_log: *is_ratio && lines.iter().all(|line| line.number(along).is_some_and(|x| x > 0.0)),
        is_y_log: true,
        series: with_looks(series),
        note: note.to_owned(),
        ..LineChart::default()
    };
    Some(if tells_capacity {
        chart.with_best("those of the highest rates", Series::highest)
    } else {
        chart.with_best("those that meet the objective furthest", Series::highest_kept)
    })
}
