//! Predicted beside measured: `validation.csv`, `validation_capacity.csv`, `validation_service.csv`, and their picture.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

#[cfg(feature = "plots")]
use super::plot::{LineChart, Point, Series, Stroke, look_of};
use tandem_core::base::machine::Class;
use tandem_core::files::{Digits, Provenance, Record, write_csv};
use tandem_core::lab::{Criterion, ServiceRow, ValidationCapacityRow, ValidationRow};

/// A line of `validation.csv`, as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    policy: String,
    rate_qps: Digits<6>,
    predicted_mean_ms: Digits<6>,
    measured_mean_ms: Digits<6>,
    predicted_p99_ms: Digits<6>,
    measured_p99_ms: Digits<6>,
    predicted_missed: usize,
    measured_missed: usize,
    queries: usize,
    unanswered: usize,
    attempts: u32,
    gpu: Cow<'static, str>,
    predicted_p50_ms: Digits<6>,
    measured_p50_ms: Digits<6>,
    measured_lag_max_ms: Digits<6>,
    objective: String,
    predicted_late: usize,
    measured_late: usize,
    late_allowed: usize,
    predicted_held: bool,
    measured_held: bool,
}

/// A line of `validation_capacity.csv`.
#[derive(Debug, Serialize, Deserialize)]
struct CapacityLine {
    policy: String,
    deadline_ms: Digits<6>,
    predicted_qps: Digits<6>,
    measured_qps: Digits<6>,
    error: Option<Digits<4>>,
    measured_high_qps: Option<Digits<6>>,
    queries: usize,
    gpu: Cow<'static, str>,
    cpu_slowdown: Digits<4>,
    gpu_slowdown: Digits<4>,
    cpu_handoff_us: Digits<4>,
    gpu_handoff_us: Digits<4>,
    profiled_qps: Option<Digits<6>>,
    hindsight_qps: Option<Digits<6>>,
    objective: String,
    backlog_qps: Option<Digits<6>>,
}

/// A line of `validation_service.csv`.
#[derive(Debug, Serialize, Deserialize)]
struct ServiceLine {
    policy: String,
    at_s: Digits<6>,
    run: Cow<'static, str>,
    rate_qps: Digits<6>,
    queries: usize,
    cpu_slowdown: Digits<4>,
    gpu_slowdown: Digits<4>,
    cpu_handoff_us: Digits<4>,
    gpu_handoff_us: Digits<4>,
    gpu_device_slowdown: Digits<4>,
    gpu_host_slowdown: Digits<4>,
    decision_us: Digits<4>,
}

impl Record for Line {}
impl Record for CapacityLine {}
impl Record for ServiceLine {}

/// Writes `validation.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_validation(
    path: &Path,
    provenance: &Provenance,
    criterion: &Criterion,
    rows: &[ValidationRow],
) -> io::Result<()> {
    let line = |row: &ValidationRow| {
        let (p, m) = (&row.predicted, &row.measured);
        Line {
            policy: row.policy.clone(),
            rate_qps: Digits(row.rate_qps),
            predicted_mean_ms: Digits(p.mean_ms),
            measured_mean_ms: Digits(m.mean_ms),
            predicted_p99_ms: Digits(p.p99_ms),
            measured_p99_ms: Digits(m.p99_ms),
            predicted_missed: p.missed,
            measured_missed: m.missed,
            queries: p.queries,
            unanswered: row.unanswered,
            attempts: row.attempts,
            gpu: row.gpu.into(),
            predicted_p50_ms: Digits(p.p50_ms),
            measured_p50_ms: Digits(m.p50_ms),
            measured_lag_max_ms: Digits(m.lag_max_ms),
            objective: criterion.to_string(),
            predicted_late: row.predicted_verdict.late,
            measured_late: row.verdict.late,
            late_allowed: row.verdict.allowed,
            predicted_held: row.predicted_verdict.holds(),
            measured_held: row.passed(),
        }
    };
    write_csv(path, provenance, rows.iter().map(line))
}

/// Writes `validation_capacity.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_validation_capacity(
    path: &Path,
    provenance: &Provenance,
    rows: &[ValidationCapacityRow],
) -> io::Result<()> {
    let line = |row: &ValidationCapacityRow| CapacityLine {
        policy: row.policy.clone(),
        deadline_ms: Digits(row.criterion.deadline.as_ms()),
        predicted_qps: Digits(row.predicted_qps),
        measured_qps: Digits(row.measured_qps),
        error: (row.measured_qps > 0.0).then(|| Digits(row.error())),
        measured_high_qps: row.measured_high_qps.map(Digits),
        queries: row.queries,
        gpu: row.gpu.into(),
        cpu_slowdown: Digits(row.slowdown[Class::CPU]),
        gpu_slowdown: Digits(row.slowdown[Class::GPU]),
        cpu_handoff_us: Digits(row.handoff[Class::CPU].as_us()),
        gpu_handoff_us: Digits(row.handoff[Class::GPU].as_us()),
        profiled_qps: row.profiled_qps.map(Digits),
        hindsight_qps: row.hindsight_qps.map(Digits),
        objective: row.criterion.to_string(),
        backlog_qps: row.backlog_qps.map(Digits),
    };
    write_csv(path, provenance, rows.iter().map(line))
}

/// Writes `validation_service.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_validation_service(path: &Path, provenance: &Provenance, rows: &[ServiceRow]) -> io::Result<()> {
    let line = |row: &ServiceRow| ServiceLine {
        policy: row.policy.clone(),
        at_s: Digits(row.at.as_secs_f64()),
        run: row.run.name().into(),
        rate_qps: Digits(row.rate_qps),
        queries: row.queries,
        cpu_slowdown: Digits(row.slowdown[Class::CPU]),
        gpu_slowdown: Digits(row.slowdown[Class::GPU]),
        cpu_handoff_us: Digits(row.handoff[Class::CPU].as_us()),
        gpu_handoff_us: Digits(row.handoff[Class::GPU].as_us()),
        gpu_device_slowdown: Digits(row.device[Class::GPU]),
        gpu_host_slowdown: Digits(row.host[Class::GPU]),
        decision_us: Digits(row.decision.as_us()),
    };
    write_csv(path, provenance, rows.iter().map(line))
}

#[cfg(feature = "plots")]
/// Mean delay against rate: predicted as dashes, measured as markers on a line, a colour a policy.
#[must_use]
pub fn delay_chart(rows: &[ValidationRow], criterion: &Criterion, what: &str) -> LineChart {
    let mut policies: Vec<&str> = Vec::new();
    for row in rows {
        if !policies.contains(&row.policy.as_str()) {
            policies.push(&row.policy);
        }
    }
    let line = |policy: &str, what: &str, stroke, of: &dyn Fn(&ValidationRow) -> (f64, usize)| {
        let point = |row: &ValidationRow| {
            let (y, missed) = of(row);
            Point { x: row.rate_qps, y, is_hollow: missed > 0, interval: None }
        };
        let mut points: Vec<Point> = rows.iter().filter(|row| row.policy == policy).map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let (name, colour) = (format!("{policy}, {what}"), Some(look_of(policy)));
        Series { name, points, stroke, colour, ..Series::default() }
    };
    let pair = |policy| {
        [
            line(policy, "predicted", Stroke::Dashed, &|row| (row.predicted.mean_ms, row.predicted.missed)),
            line(policy, "measured", Stroke::Solid, &|row| {
                (row.measured.mean_ms, row.measured.missed + row.unanswered)
            }),
        ]
    };
    LineChart {
        title: String::from("Predicted and measured delay"),
        subtitle: format!("{what}; objective: {criterion}"),
        x_label: String::from("arrival rate (queries/s)"),
        y_label: String::from("mean delay (ms)"),
        is_x_log: true,
        is_y_log: true,
        series: policies.into_iter().flat_map(pair).collect(),
        horizontal: Some((criterion.deadline.as_ms(), String::from("deadline"))),
        note: Some(String::from("hollow: a query missed its deadline")),
        ..LineChart::default()
    }
}
