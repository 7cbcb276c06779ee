//! The tables and the figure of a sweep.

use std::fmt::Write as _;

use tandem_core::lab::extrapolated;
use tandem_core::lab::sweep::SweepRow;
use tandem_report::number;
use tandem_report::plot::{LineChart, Point, Series, looks_of};
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
        &["capacity q/s", "interval", "seeds", "queries", "of limit"]
    } else {
        &["mean ms", "p50", "p95", "p99", "missed", "held"]
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
            cells.push(format!("{:.1} %", 100.0 * capacity.0 / row.region_qps.0));
        } else {
            let mark = if row.extrapolated { "*" } else { "" };
            cells.extend(
                [row.mean_ms, row.p50_ms, row.p95_ms, row.p99_ms].map(|value| text(value.map(|value| value.0))),
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

fn objective_in_words(rows: &[SweepRow]) -> String {
    let seeds = rows[0].seeds;
    let same = rows.iter().all(|row| row.objective == rows[0].objective);
    let first = rows[0].objective.as_str();
    let share = first.split(" <= ").next().unwrap_or(first);
    let objective = if same { first.to_owned() } else { format!("{share} within each point's deadline") };
    format!(
        "objective: {objective}; {}",
        number::counted(seeds, "run per point", "runs per point, with different seeds")
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
    // A finite run may hold at the stability limit.
    let is_stable = |row: &SweepRow| row.rate_qps.is_some_and(|rate| rate.0 < 0.99999 * row.region_qps.0);
    let keeps = |row: &&&SweepRow| is_stable(row) && row.held.is_some_and(|held| 2 * held > row.seeds);
    let mut table = Table::new(["policy", "q/s", "shards", "replicas", "machines"]);
    let mut best: Option<&SweepRow> = None;
    for of in &groups {
        let least = of.iter().filter(keeps).min_by_key(|row| row.replicas).copied();
        let machines = |row: &SweepRow| row.replicas * row.shards;
        best = best.into_iter().chain(least).min_by_key(|row| machines(row));
        let first = of[0];
        let counts = match least {
            Some(row) => [row.replicas.to_string(), (row.replicas * row.shards).to_string()],
            None => [format!("more than {}", of.iter().map(|row| row.replicas).max().unwrap_or(0)), String::from("-")],
        };
        let head = [first.policy.clone(), number::text(COLUMNS[0].value_of(first), 6), first.shards.to_string()];
        table.row(head.into_iter().chain(counts));
    }
    // A single question gets a sentence; several get a table.
    let others = || COLUMNS.iter().filter(|column| column.name != replicas.name);
    let is_one_question =
        others().all(|column| !varies(rows, column)) && rows.iter().all(|row| row.mode == rows[0].mode);
    let rate = number::text(COLUMNS[0].value_of(&rows[0]), 6);
    let objective = &rows[0].objective;
    let mut text = match best {
        _ if !is_one_question => String::from("The fewest machines that meet the objective in most runs:\n"),
        Some(row) => format!(
            "The fewest machines that meet {objective} at {rate} q/s: {}, under {}\n\nBy policy:\n",
            row.replicas * row.shards,
            row.policy
        ),
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
        let name = name(row);
        match series.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => series.push(Series { name, points: vec![point], ..Series::default() }),
        }
    }
    let looks = looks_of(&series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>());
    for (series, (colour, marker)) in series.iter_mut().zip(looks) {
        (series.colour, series.marker) = (Some(colour), Some(marker));
    }
    let tells_capacity = first.capacity_qps.is_some();
    let chart = LineChart {
        title: String::from(if tells_capacity { "Sustained rate" } else { "99th percentile of delay" }),
        subtitle: format!("{}, {}", first.workload, objective_in_words(rows)),
        x_label: along.label.to_owned(),
        y_label: String::from(if tells_capacity { "capacity (queries/s)" } else { "p99 delay (ms)" }),
        is_x_log: tells_capacity && along.name != "noise" && rows.iter().all(|row| (along.value)(row) > 0.0),
        is_y_log: true,
        series,
        note: Some(String::from(if tells_capacity {
            "bars: 95 % intervals"
        } else {
            "hollow: the objective is not met"
        })),
        ..LineChart::default()
    };
    let chart = chart.with_ticks_at_points();
    Some(if tells_capacity {
        chart.with_best("those with the highest rates", Series::highest)
    } else {
        chart.with_best("those that meet the objective longest", Series::highest_kept)
    })
}
