//! Predictions and measurements, as `validation.csv`, `validation_capacity.csv`, `validation_service.csv` and a figure.

use std::io;
use std::path::Path;

use tandem_core::base::machine::Class;
use tandem_core::files::{Digits, Provenance, Record, write_csv};
use tandem_core::lab::{Criterion, ServiceRow, ValidationCapacityRow, ValidationRow};

#[cfg(feature = "plots")]
use crate::plot::{LineChart, Point, Series, Stroke, look_of};
use crate::row::{Text, row};

row! {
    struct DelayLine of (row: &ValidationRow, criterion: &Criterion) with {
        (p, m) = (&row.predicted, &row.measured);
    } {
        policy: String = row.policy.clone(),
        rate_qps: Digits<6> = Digits(row.rate_qps),
        predicted_mean_ms: Digits<6> = Digits(p.mean_ms),
        measured_mean_ms: Digits<6> = Digits(m.mean_ms),
        predicted_p99_ms: Digits<6> = Digits(p.p99_ms),
        measured_p99_ms: Digits<6> = Digits(m.p99_ms),
        predicted_missed: usize = p.missed,
        measured_missed: usize = m.missed,
        queries: usize = p.queries,
        unanswered: usize = row.unanswered,
        attempts: u32 = row.attempts,
        gpu: Text = row.gpu.into(),
        predicted_p50_ms: Digits<6> = Digits(p.p50_ms),
        measured_p50_ms: Digits<6> = Digits(m.p50_ms),
        measured_lag_max_ms: Digits<6> = Digits(m.lag_max_ms),
        objective: String = criterion.to_string(),
        predicted_late: usize = row.predicted_verdict.late,
        measured_late: usize = row.verdict.late,
        late_allowed: usize = row.verdict.allowed,
        predicted_held: bool = row.predicted_verdict.holds(),
        measured_held: bool = row.passed(),
    }
}

row! {
    struct CapacityLine of (row: &ValidationCapacityRow) {
        policy: String = row.policy.clone(),
        deadline_ms: Digits<6> = Digits(row.criterion.deadline.as_ms()),
        predicted_qps: Digits<6> = Digits(row.predicted_qps),
        measured_qps: Digits<6> = Digits(row.measured_qps),
        error: Option<Digits<4>> = (row.measured_qps > 0.0).then(|| Digits(row.error())),
        measured_high_qps: Option<Digits<6>> = row.measured_high_qps.map(Digits),
        queries: usize = row.queries,
        gpu: Text = row.gpu.into(),
        cpu_slowdown: Digits<4> = Digits(row.slowdown[Class::CPU]),
        gpu_slowdown: Digits<4> = Digits(row.slowdown[Class::GPU]),
        cpu_handoff_us: Digits<4> = Digits(row.handoff[Class::CPU].as_us()),
        gpu_handoff_us: Digits<4> = Digits(row.handoff[Class::GPU].as_us()),
        profiled_qps: Option<Digits<6>> = row.profiled_qps.map(Digits),
        hindsight_qps: Option<Digits<6>> = row.hindsight_qps.map(Digits),
        objective: String = row.criterion.to_string(),
        backlog_qps: Option<Digits<6>> = row.backlog_qps.map(Digits),
    }
}

row! {
    struct ServiceLine of (row: &ServiceRow) {
        policy: String = row.policy.clone(),
        at_s: Digits<6> = Digits(row.at.as_secs_f64()),
        run: Text = row.run.name().into(),
        rate_qps: Digits<6> = Digits(row.rate_qps),
        queries: usize = row.queries,
        cpu_slowdown: Digits<4> = Digits(row.slowdown[Class::CPU]),
        gpu_slowdown: Digits<4> = Digits(row.slowdown[Class::GPU]),
        cpu_handoff_us: Digits<4> = Digits(row.handoff[Class::CPU].as_us()),
        gpu_handoff_us: Digits<4> = Digits(row.handoff[Class::GPU].as_us()),
        gpu_device_slowdown: Digits<4> = Digits(row.device[Class::GPU]),
        gpu_host_slowdown: Digits<4> = Digits(row.host[Class::GPU]),
        decision_us: Digits<4> = Digits(row.decision.as_us()),
    }
}

impl Record for DelayLine {}
impl Record for CapacityLine {}
impl Record for ServiceLine {}

/// Writes `validation.csv`, whole or not at all.
pub fn write_validation(
    path: &Path,
    provenance: &Provenance,
    criterion: &Criterion,
    rows: &[ValidationRow],
) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().map(|row| DelayLine::of(row, criterion)))
}

/// Writes `validation_capacity.csv`, whole or not at all.
pub fn write_validation_capacity(
    path: &Path,
    provenance: &Provenance,
    rows: &[ValidationCapacityRow],
) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().map(CapacityLine::of))
}

/// Writes `validation_service.csv`, whole or not at all.
pub fn write_validation_service(path: &Path, provenance: &Provenance, rows: &[ServiceRow]) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().map(ServiceLine::of))
}

/// Mean delay by rate, predicted (dashed) and measured (solid), with one colour per policy.
#[cfg(feature = "plots")]
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
    let chart = LineChart {
        title: String::from("Predicted and measured delay"),
        subtitle: format!("{what}; objective: {criterion}"),
        x_label: String::from("arrival rate (queries/s)"),
        y_label: String::from("mean delay (ms)"),
        is_x_log: true,
        is_y_log: true,
        series: policies.into_iter().flat_map(pair).collect(),
        horizontal: Some((criterion.deadline.as_ms(), String::from("deadline"))),
        note: Some(String::from("Hollow: a query missed its deadline")),
        ..LineChart::default()
    };
    chart.with_best("those without a miss up to the highest rates", Series::highest_kept)
}
