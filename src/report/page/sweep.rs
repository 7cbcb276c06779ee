//! Sweeps: the answer along what varies.

use super::chart::{Chart, Place, Scale, Series, Unit, look_of};
use super::folder::{Folder, Kind};
use super::html::{HtmlTable, folded, number, rounded};
use super::sheet::{Line, Sheet};

/// Axes that are numbers, the likeliest to be drawn along first: column, name, and whether they are best seen as ratios.
const AXES: [(&str, &str, bool); 8] = [
    ("rate_qps", "arrival rate", true),
    ("replicas", "replicas of each shard", false),
    ("cpus", "CPU workers", true),
    ("gpus", "GPUs", false),
    ("streams", "streams of each GPU", false),
    ("deadline_ms", "deadline", true),
    ("noise", "error of estimates (deviation of their logarithm)", false),
    ("shards", "shards", true),
];
/// A chart of more lines than this tells nobody anything.
const MAX_LINES: usize = 12;

/// A sweep's answers in words, for the story; `None` where the folder has none.
pub(super) fn answer(folder: &Folder) -> Option<(String, String)> {
    let lines: Vec<Line<'_>> = folder.of(Kind::Sweep).flat_map(Sheet::lines).collect();
    let kept = lines.first()?.text("objective").to_owned();
    let best = lines.iter().filter_map(|line| Some((line.number("capacity_qps")?, line)));
    let varying: Vec<&(&str, &str, bool)> = AXES.iter().filter(|axis| varies(&lines, axis.0)).collect();
    let at = |line: &Line<'_>| {
        let of = |axis: &&(&str, &str, bool)| format!("{} {}", axis.1, line.text(axis.0));
        varying.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let question = format!("What is sustained over {} points ({kept})?", lines.len());
    if let Some((qps, line)) = best.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let text =
            format!("At most {} queries a second, under {}: {}.", rounded(qps, 4), line.text("policy"), at(line));
        return Some((question, text));
    }
    let holds = |line: &&Line<'_>| {
        line.number("held").zip(line.number("seeds")).is_some_and(|(held, seeds)| 2.0 * held > seeds)
    };
    let held = lines.iter().filter(holds).count();
    Some((question, format!("{held} of {} points keep it in most of their runs.", lines.len())))
}

fn varies(lines: &[Line<'_>], column: &str) -> bool {
    lines.iter().any(|line| line.text(column) != lines[0].text(column))
}

/// Picture and table.
pub(super) fn section(id: &str, folder: &Folder) -> String {
    let mut html = String::new();
    for (number_of_sheet, sheet) in folder.of(Kind::Sweep).enumerate() {
        let lines: Vec<Line<'_>> = sheet.lines().collect();
        html += &chart(&format!("{id}-sweep{number_of_sheet}"), &lines).map_or_else(String::new, |chart| chart.html());
        let title = format!("All {} points in numbers ({})", sheet.rows.len(), sheet.name);
        html += &folded(&title, &HtmlTable::of_sheet(&format!("Points: {}", sheet.name), sheet));
    }
    if html.is_empty() { html } else { format!("<section id=\"{id}-s-sweep\"><h3>Sweep</h3>\n{html}</section>\n") }
}

/// Along the first axis that varies, a line for each policy and each combination of the others.
fn chart(id: &str, lines: &[Line<'_>]) -> Option<Chart> {
    let first = lines.first()?;
    let (along, label, is_ratio) = AXES.iter().find(|(column, ..)| varies(lines, column))?;
    let mode = [("mode", "mode", false)];
    let others: Vec<&(&str, &str, bool)> =
        mode.iter().chain(&AXES).filter(|(column, ..)| column != along && varies(lines, column)).collect();
    let tells_capacity = first.number("capacity_qps").is_some();
    let mut series: Vec<Series> = Vec::new();
    for line in lines {
        let policy = line.text("policy");
        let others = others.iter().map(|(column, ..)| format!("{column} {}", line.text(column)));
        let name = std::iter::once(policy.to_owned()).chain(others).collect::<Vec<_>>().join(", ");
        let (value, low, high) = if tells_capacity {
            ("capacity_qps", "low_qps", "high_qps")
        } else {
            ("mean_ms", "mean_low_ms", "mean_high_ms")
        };
        let (Some(x), Some(y)) = (line.number(along), line.number(value)) else { continue };
        let is_hollow = line.number("held").zip(line.number("seeds")).is_some_and(|(held, seeds)| 2.0 * held <= seeds);
        let unit = if tells_capacity { "q/s" } else { "ms" };
        let tip = format!("{name} at {} {}: {} {unit}", label, number(x), number(y));
        let interval = line.number(low).zip(line.number(high)).map(|(low, high)| (low.max(0.0), high));
        let place = Place { x, y, interval, is_hollow, tip };
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(place),
            None => series.push(Series { name, look: look_of(policy), points: vec![place], ..Series::default() }),
        }
    }
    if series.len() > MAX_LINES {
        return None;
    }
    // Lines of one policy differ by what else varies, not by colour alone.
    let policies = series.iter().map(|series| series.look).collect::<std::collections::BTreeSet<_>>().len();
    if policies < series.len() {
        series.iter_mut().enumerate().for_each(|(look, series)| series.look = look % 9);
    }
    let (what, y) = if tells_capacity {
        ("What is sustained", Scale::new("capacity", Unit::Qps, true))
    } else {
        ("Mean delay", Scale::new("mean delay", Unit::Plain("ms"), true))
    };
    let unit = match *along {
        "rate_qps" => Unit::Qps,
        "deadline_ms" => Unit::Plain("ms"),
        _ => Unit::Plain(""),
    };
    let is_log = *is_ratio && lines.iter().all(|line| line.number(along).is_some_and(|x| x > 0.0));
    let mut chart = Chart::new(id, &format!("{what}, by {label}"), Scale::new(label, unit, is_log), y);
    chart.description = format!("{what} along {label}, {} lines; the table has the same numbers.", series.len());
    chart.note = String::from(if tells_capacity {
        "Bars: intervals of the median over seeds."
    } else {
        "Hollow: the objective is not kept in most runs. Bars: 95 % intervals of the mean over seeds."
    });
    chart.series = series;
    Some(chart)
}
