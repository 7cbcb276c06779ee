//! The tables and the figure of a sweep.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tandem_model::study::sweep::SweepRow;
use tandem_model::study::{SPEED_SPREAD, extrapolated};
use tandem_report::figure::{LineChart, Point, Series, with_looks};
use tandem_report::json::row_of_file;
use tandem_report::number;
use tandem_report::policies::error_in_words;
use tandem_report::table::Table;

/// An axis as a column: its name, its unit and its value in a row.
struct Column {
    name: &'static str,
    label: &'static str,
    value: fn(&SweepRow) -> f64,
}

/// The numeric axes. The first that varies becomes the x axis of the figure.
const COLUMNS: [Column; 8] = [
    Column { name: "q/s", label: "arrival rate (queries/s)", value: |row| row.rate_qps.map_or(0.0, |rate| rate.0) },
    Column { name: "replicas", label: "replicas of each shard", value: |row| row.replicas as f64 },
    Column { name: "cpus", label: "CPU workers", value: |row| row.cpus as f64 },
    Column { name: "gpus", label: "GPUs", value: |row| row.gpus as f64 },
    Column { name: "streams", label: "streams of each GPU", value: |row| row.streams as f64 },
    Column { name: "deadline ms", label: "deadline (ms)", value: |row| row.deadline_ms.0 },
    Column { name: "noise", label: "error of estimates (deviation of their logarithm)", value: |row| row.noise.0 },
    Column { name: "shards", label: "shards", value: |row| row.shards as f64 },
];

fn varies(rows: &[SweepRow], column: &Column) -> bool {
    rows.iter().any(|row| (column.value)(row) != (column.value)(&rows[0]))
}

/// One line per point: the varying parameters and the result.
pub(super) fn table(rows: &[SweepRow]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let modes = rows.iter().any(|row| row.mode != first.mode);
    let varying: Vec<&Column> = COLUMNS.iter().filter(|column| varies(rows, column)).collect();
    let tells_capacity = first.capacity_qps.is_some();
    let answers: &[&str] = if tells_capacity {
        &["capacity q/s", "interval", "seeds", "queries", "busy"]
    } else {
        &["busy", "mean ms", "p99", "p99.9", "longest", "missed", "held"]
    };
    let keys = std::iter::once("policy").chain(modes.then_some("mode")).chain(varying.iter().map(|column| column.name));
    let num_keys = 1 + usize::from(modes) + varying.len();
    let mut table = Table::new(keys.chain(answers.iter().copied())).with_keys(num_keys);
    for row in rows {
        let mut cells = vec![row.policy.clone()];
        cells.extend(modes.then(|| row.mode.clone()));
        cells.extend(varying.iter().map(|column| number::text((column.value)(row), 6)));
        let text = |value: Option<f64>| value.map_or(String::from("-"), |value| number::text(value, 4));
        if let Some(capacity) = row.capacity_qps {
            let mark = if row.extrapolated { "*" } else { "" };
            match row.low_qps.zip(row.high_qps) {
                Some((low, high)) => {
                    cells.push(format!("{}{mark}", number::known(capacity.0, 0.5 * (high.0 - low.0))));
                    cells.push(number::known_interval(low.0, high.0));
                }
                None => cells.extend([format!("{}{mark}", text(Some(capacity.0))), String::from("not known")]),
            }
            cells.extend([row.seeds_error, row.query_error].map(|error| error_in_words(error.map(|error| error.0))));
            cells.push(busy(row));
        } else {
            let mark = if row.extrapolated { "*" } else { "" };
            cells.push(busy(row));
            cells.extend(
                [row.mean_ms, row.p99_ms, row.p999_ms, row.max_ms].map(|value| text(value.map(|value| value.0))),
            );
            cells.push(format!("{} %", number::text(100.0 * row.missed_share.map_or(0.0, |share| share.0), 3)));
            cells.push(format!("{} of {}{mark}", row.held.unwrap_or(0), row.seeds));
        }
        table.row(cells);
    }
    let mut text = format!("{}{}; {}\n\n{table}", fewest(rows), first.workload, objective_in_words(rows));
    if tells_capacity {
        let measured = number::counted(first.measured_queries, "measured query", "measured queries");
        let _ = writeln!(text, "interval: 95 %, from the seeds of arrivals and the sample of queries ({measured})");
    }
    if let Some(most) = rows.iter().filter(|row| row.extrapolated).max_by_key(|row| row.cpus) {
        let _ = writeln!(text, "*: {}", extrapolated(most.cpus, most.measured_cpus));
    }
    text
}

/// The work offered, as a share of the work that the machines can do.
fn busy(row: &SweepRow) -> String {
    row.utilisation.map_or(String::from("-"), |share| format!("{:.1} %", 100.0 * share.0))
}

/// The answer for programs: the fewest machines for a rate if replicas vary, and else the highest capacity.
pub(super) fn answer(rows: &[SweepRow]) -> Option<Value> {
    let sustained = |of: fn(&SweepRow) -> Option<bool>| {
        rows.iter().filter(move |row| of(row) == Some(true)).min_by_key(|row| machines(row))
    };
    if rows.iter().any(|row| row.sustained.is_some()) {
        let mut answer = row_of_file(sustained(|row| row.sustained)?);
        answer["machines"] = json!(sustained(|row| row.sustained).map(machines));
        answer["machines_with_spread"] = json!(sustained(|row| row.sustained_with_spread).map(machines));
        return Some(answer);
    }
    let highest = |row: &&SweepRow| row.capacity_qps.map_or(0.0, |qps| qps.0);
    let best = rows.iter().filter(|row| row.capacity_qps.is_some());
    best.max_by(|a, b| highest(a).total_cmp(&highest(b))).map(row_of_file)
}

/// The machines of a point.
fn machines(row: &SweepRow) -> usize {
    row.replicas * row.shards
}

fn objective_in_words(rows: &[SweepRow]) -> String {
    let seeds = rows[0].seeds;
    let same = rows.iter().all(|row| row.objective == rows[0].objective);
    let first = rows[0].objective.as_str();
    let share = first.split(" <= ").next().unwrap_or(first);
    let objective = if same { first.to_owned() } else { format!("{share} within each point's deadline") };
    let routing = rows.iter().find(|row| row.replicas > 1).map(|row| format!("; routing {}", row.routing));
    format!(
        "objective: {objective}; {}{}",
        number::counted(seeds, "run per point", "runs per point, with different seeds"),
        routing.unwrap_or_default()
    )
}

/// The fewest machines that sustain each rate, if replicas vary and rates are given.
fn fewest(rows: &[SweepRow]) -> String {
    let replicas = &COLUMNS[1];
    if rows[0].rate_qps.is_none() || !varies(rows, replicas) {
        return String::new();
    }
    // The values of all axes except replicas.
    let group = |row: &SweepRow| {
        let others = COLUMNS.iter().filter(|column| column.name != replicas.name);
        (row.mode.clone(), row.policy.clone(), others.map(|column| (column.value)(row).to_bits()).collect::<Vec<_>>())
    };
    let mut groups: Vec<Vec<&SweepRow>> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|of| group(of[0]) == group(row)) {
            Some(of) => of.push(row),
            None => groups.push(vec![row]),
        }
    }
    let mut table = Table::new(["policy", "q/s", "shards", "replicas", "machines", "busy", "with spread"]);
    let mut best: Option<(&SweepRow, Option<&SweepRow>)> = None;
    for of in &groups {
        let fewest = |is_kept: fn(&SweepRow) -> Option<bool>| {
            of.iter().filter(|row| is_kept(row) == Some(true)).min_by_key(|row| row.replicas).copied()
        };
        let (least, safe) = (fewest(|row| row.sustained), fewest(|row| row.sustained_with_spread));
        if let Some(row) = least.filter(|row| best.is_none_or(|(best, _)| machines(row) < machines(best))) {
            best = Some((row, safe));
        }
        let first = of[0];
        let counts = match least {
            Some(row) => [row.replicas.to_string(), machines(row).to_string(), busy(row)],
            None => {
                let most = of.iter().map(|row| row.replicas).max().unwrap_or(0);
                [format!("more than {most}"), String::from("-"), String::from("-")]
            }
        };
        let with_spread = safe.map_or(String::from("-"), |row| machines(row).to_string());
        let head = [first.policy.clone(), number::text(COLUMNS[0].value_of(first), 6), first.shards.to_string()];
        table.row(head.into_iter().chain(counts).chain([with_spread]));
    }
    // A single question gets a sentence; several get a table.
    let others = || COLUMNS.iter().filter(|column| column.name != replicas.name);
    let is_one_question =
        others().all(|column| !varies(rows, column)) && rows.iter().all(|row| row.mode == rows[0].mode);
    let rate = number::text(COLUMNS[0].value_of(&rows[0]), 6);
    let objective = &rows[0].objective;
    let mut text = match best {
        _ if !is_one_question => String::from("The fewest machines that meet the objective in most runs:\n"),
        Some((row, safe)) => {
            let spread = match safe {
                Some(safe) if machines(safe) == machines(row) => {
                    String::from("they also hold with the spread of machines")
                }
                Some(safe) => {
                    format!("{} hold; {} hold with the spread of machines", machines(row), machines(safe))
                }
                None => String::from("none of these numbers holds with the spread of machines"),
            };
            format!(
                "The fewest machines that meet {objective} at {rate} q/s: {}, under {}, {} busy\n{spread} (a speed deviation of \
                 {} %; one machine in ten is slower than assumed)\n\nBy policy:\n",
                machines(row),
                row.policy,
                busy(row),
                number::text(100.0 * SPEED_SPREAD, 2)
            )
        }
        None => format!("None of these numbers of machines meets {objective} at {rate} q/s.\n\nBy policy:\n"),
    };
    let _ = writeln!(text, "{table}");
    text
}

impl Column {
    fn value_of(&self, row: &SweepRow) -> f64 {
        (self.value)(row)
    }
}

/// The result along the first axis that varies, with a line per policy and combination of the other axes; `None` if no axis
/// varies.
pub(super) fn chart(rows: &[SweepRow]) -> Option<LineChart> {
    let first = rows.first()?;
    let along = COLUMNS.iter().find(|column| varies(rows, column))?;
    let others: Vec<&Column> =
        COLUMNS.iter().filter(|column| column.name != along.name && varies(rows, column)).collect();
    let modes = rows.iter().any(|row| row.mode != first.mode);
    let name = |row: &SweepRow| {
        let mode = modes.then(|| row.mode.clone());
        let others = others.iter().map(|column| format!("{} {}", column.name, number::text((column.value)(row), 4)));
        std::iter::once(row.policy.clone()).chain(mode).chain(others).collect::<Vec<_>>().join(", ")
    };
    let mut series: Vec<Series> = Vec::new();
    for row in rows {
        let (y, interval) = match (row.capacity_qps, row.p99_ms) {
            (Some(capacity), _) => (capacity.0, row.low_qps.zip(row.high_qps).map(|(low, high)| (low.0, high.0))),
            (None, Some(p99_ms)) => (p99_ms.0, None),
            (None, None) => continue,
        };
        let is_hollow = row.held.is_some_and(|held| 2 * held <= row.seeds);
        let point = Point { x: (along.value)(row), y, is_hollow, interval };
        Series::named(&mut series, name(row)).points.push(point);
    }
    let tells_capacity = first.capacity_qps.is_some();
    let chart = LineChart {
        title: String::from(if tells_capacity { "Sustained rate" } else { "99th percentile of delay" }),
        x_label: along.label.to_owned(),
        y_label: String::from(if tells_capacity { "capacity (queries/s)" } else { "p99 delay (ms)" }),
        is_x_log: tells_capacity && along.name != "noise" && rows.iter().all(|row| (along.value)(row) > 0.0),
        is_y_log: true,
        series: with_looks(series),
        note: format!(
            "{}, {}; {}",
            first.workload,
            objective_in_words(rows),
            if tells_capacity { "bars: 95 % intervals" } else { "hollow: the objective is not met" }
        ),
        ..LineChart::default()
    };
    Some(if tells_capacity {
        chart.with_best("those with the highest rates", Series::highest)
    } else {
        chart.with_best("those that meet the objective longest", Series::highest_kept)
    })
}
