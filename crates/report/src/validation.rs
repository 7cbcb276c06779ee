//! Predictions and measurements: `live_runs.csv`, `validation_capacity.csv`, `service.csv`, and their figure.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use tandem_model::base::machine::Class;
use tandem_model::files::{Digits, Provenance, Record, write_csv};

use super::plot::{LineChart, Point, Series, Stroke, look_of};
use tandem_drive::lab::{Driven, DrivenRun, ServiceRow};
use tandem_drive::live::GapOf;
use tandem_model::study::Forecast;
use tandem_model::study::{Criterion, Summary};

/// A line of `live_runs.csv`, as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct LiveRunLine {
    policy: String,
    rate_qps: Digits<6>,
    seed: u64,
    seconds: Digits<4>,
    queries: usize,
    unsent: usize,
    late: usize,
    late_allowed: usize,
    verdict: String,
    predicted_held: Option<bool>,
    predicted_mean_ms: Option<Digits<6>>,
    measured_mean_ms: Option<Digits<6>>,
    predicted_mean_half_width: Option<Digits<3>>,
    predicted_p50_ms: Option<Digits<6>>,
    measured_p50_ms: Option<Digits<6>>,
    predicted_p99_ms: Option<Digits<6>>,
    measured_p99_ms: Option<Digits<6>>,
    predicted_p99_half_width: Option<Digits<3>>,
    measured_missed: usize,
    lag_p99_ms: Digits<4>,
    others_cores: Option<Digits<3>>,
    steal_cores: Option<Digits<3>>,
    fixed_loop_us: Digits<5>,
    covered_share: Digits<3>,
    gpu: Cow<'static, str>,
    objective: String,
    measured_p999_ms: Option<Digits<6>>,
    measured_max_ms: Option<Digits<6>>,
    late_share: Option<Digits<4>>,
    cpu_utilisation: Option<Digits<4>>,
    gpu_utilisation: Option<Digits<4>>,
    throughput_qps: Option<Digits<6>>,
    paused: Option<bool>,
    driver_gaps: Option<u32>,
    driver_gaps_ms: Option<Digits<4>>,
    lane_gaps: Option<u32>,
    lane_gaps_ms: Option<Digits<4>>,
    lag_max_ms: Option<Digits<4>>,
    busy_share: Option<Digits<4>>,
    work_ratio_cpu: Option<Digits<4>>,
    work_ratio_gpu: Option<Digits<4>>,
    work_ratio_cpu_1: Option<Digits<4>>,
    work_ratio_cpu_2: Option<Digits<4>>,
    work_ratio_cpu_3: Option<Digits<4>>,
    work_ratio_gpu_1: Option<Digits<4>>,
    work_ratio_gpu_2: Option<Digits<4>>,
    work_ratio_gpu_3: Option<Digits<4>>,
}

/// A line of `validation_capacity.csv`.
#[derive(Debug, Serialize, Deserialize)]
struct CapacityLine {
    policy: String,
    deadline_ms: Digits<6>,
    predicted_qps: Digits<6>,
    predicted_half_width: Digits<3>,
    measured_qps: Option<Digits<6>>,
    measured_high_qps: Option<Digits<6>>,
    half_width: Option<Digits<3>>,
    error_low: Option<Digits<4>>,
    error_high: Option<Digits<4>>,
    queries: usize,
    gpu: Cow<'static, str>,
    hindsight_qps: Option<Digits<6>>,
    rehearsal_qps: Option<Digits<6>>,
    linear_qps: Option<Digits<6>>,
    objective: String,
}

/// A line of `service.csv`.
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

impl Record for LiveRunLine {}
impl Record for CapacityLine {}
impl Record for ServiceLine {}

/// Writes `live_runs.csv` atomically. Fails as the file system does.
pub fn write_live_runs(
    path: &Path,
    provenance: &Provenance,
    criterion: &Criterion,
    driven: &[Driven],
) -> io::Result<()> {
    let line = |driven: &Driven, run: &DrivenRun| {
        let digits = |summary: Option<Summary>, of: fn(&Summary) -> f64| summary.as_ref().map(of).map(Digits);
        let forecast = run.predicted.as_ref();
        let [driver, lanes] = [GapOf::Driver, GapOf::Lanes].map(|of| run.course.gaps(of));
        let predicted = forecast.map(|forecast| forecast.summary);
        let work = |class, thirds| run.course.work_ratio(class, thirds).map(Digits);
        LiveRunLine {
            policy: driven.policy.clone(),
            rate_qps: Digits(run.qps),
            seed: run.seed,
            seconds: Digits(run.seconds),
            queries: run.verdict.sent,
            unsent: run.verdict.planned - run.verdict.sent,
            late: run.verdict.late,
            late_allowed: run.verdict.allowed,
            verdict: run.words(),
            predicted_held: Some(run.qps <= driven.predicted.qps()),
            predicted_mean_ms: digits(predicted, |summary| summary.mean_ms),
            measured_mean_ms: digits(run.summary, |summary| summary.mean_ms),
            predicted_mean_half_width: forecast.map(|forecast| Digits(forecast.mean_half_width)),
            predicted_p50_ms: digits(predicted, |summary| summary.p50_ms),
            measured_p50_ms: digits(run.summary, |summary| summary.p50_ms),
            predicted_p99_ms: digits(predicted, |summary| summary.p99_ms),
            measured_p99_ms: digits(run.summary, |summary| summary.p99_ms),
            predicted_p99_half_width: forecast.map(|forecast| Digits(forecast.p99_half_width)),
            measured_missed: run.verdict.missed,
            lag_p99_ms: Digits(run.lag_p99.as_ms()),
            others_cores: run.load.others.map(Digits),
            steal_cores: run.load.steal.map(Digits),
            fixed_loop_us: Digits(run.fixed_loop_us()),
            covered_share: Digits(run.covered_share),
            gpu: driven.gpu.into(),
            objective: criterion.to_string(),
            measured_p999_ms: digits(run.summary, |summary| summary.p999_ms),
            measured_max_ms: digits(run.summary, |summary| summary.max_ms),
            late_share: Some(Digits(run.verdict.late_share())),
            cpu_utilisation: run.summary.and_then(|summary| summary.utilisation[Class::CPU]).map(Digits),
            gpu_utilisation: run.summary.and_then(|summary| summary.utilisation[Class::GPU]).map(Digits),
            throughput_qps: digits(run.summary, |summary| summary.throughput_qps),
            paused: Some(run.is_paused),
            driver_gaps: Some(driver.count),
            driver_gaps_ms: Some(Digits(driver.time.as_ms())),
            lane_gaps: Some(lanes.count),
            lane_gaps_ms: Some(Digits(lanes.time.as_ms())),
            lag_max_ms: Some(Digits(run.course.lag_max().as_ms())),
            busy_share: run.course.busy_share().map(Digits),
            work_ratio_cpu: work(Class::CPU, 0..3),
            work_ratio_gpu: work(Class::GPU, 0..3),
            work_ratio_cpu_1: work(Class::CPU, 0..1),
            work_ratio_cpu_2: work(Class::CPU, 1..2),
            work_ratio_cpu_3: work(Class::CPU, 2..3),
            work_ratio_gpu_1: work(Class::GPU, 0..1),
            work_ratio_gpu_2: work(Class::GPU, 1..2),
            work_ratio_gpu_3: work(Class::GPU, 2..3),
        }
    };
    write_csv(path, provenance, driven.iter().flat_map(|one| one.runs.iter().map(move |run| line(one, run))))
}

/// Writes `validation_capacity.csv` atomically. Fails as the file system does.
pub fn write_validation_capacity(
    path: &Path,
    provenance: &Provenance,
    criterion: &Criterion,
    driven: &[Driven],
) -> io::Result<()> {
    let line = |driven: &Driven| CapacityLine {
        policy: driven.policy.clone(),
        deadline_ms: Digits(criterion.deadline.as_ms()),
        predicted_qps: Digits(driven.predicted.qps()),
        predicted_half_width: Digits(driven.predicted.half_width()),
        measured_qps: driven.held.map(|held| Digits(held.qps)),
        measured_high_qps: driven.missed.map(|missed| Digits(missed.qps)),
        half_width: driven.capacity().and_then(|capacity| capacity.half_width).map(Digits),
        error_low: driven.error().map(|(low, _)| Digits(low)),
        error_high: driven.error().map(|(_, high)| Digits(high)),
        queries: driven.held.map_or(0, |held| driven.totals(&held).0),
        gpu: driven.gpu.into(),
        hindsight_qps: driven.hindsight_qps.map(Digits),
        rehearsal_qps: driven.predicted.rehearsal_qps.map(Digits),
        linear_qps: driven.predicted.linear_qps.map(Digits),
        objective: criterion.to_string(),
    };
    write_csv(path, provenance, driven.iter().map(line))
}

/// Writes `service.csv` atomically. Fails as the file system does.
pub fn write_service(path: &Path, provenance: &Provenance, rows: &[ServiceRow]) -> io::Result<()> {
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

/// Mean delay against rate: predicted as dashes, measured as markers on a line, a colour a policy.
pub fn delay_chart(driven: &[Driven], criterion: &Criterion, what: &str) -> LineChart {
    // A mean with its interval, and whether the objective is met.
    type Mean = (f64, Option<(f64, f64)>, bool);
    let line = |driven: &Driven, what: &str, stroke, of: &dyn Fn(&DrivenRun) -> Option<Mean>| {
        let point = |run: &DrivenRun| {
            let (y, interval, holds) = of(run)?;
            Some(Point { x: run.qps, y, is_hollow: !holds, interval })
        };
        let mut points: Vec<Point> = driven.runs.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let (name, colour) = (format!("{}, {what}", driven.policy), Some(look_of(&driven.policy)));
        Series { name, points, stroke, colour, ..Series::default() }
    };
    let pair = |driven: &Driven| {
        [
            line(driven, "predicted", Stroke::Dashed, &|run| {
                let Forecast { summary, mean_half_width, .. } = run.predicted.as_ref()?;
                let (mean_ms, most) = (summary.mean_ms, 1.0 + mean_half_width);
                Some((mean_ms, Some((mean_ms / most, mean_ms * most)), run.qps <= driven.predicted.qps()))
            }),
            line(driven, "measured", Stroke::Solid, &|run| Some((run.summary?.mean_ms, None, run.verdict.holds()))),
        ]
    };
    let chart = LineChart {
        title: String::from("Predicted and measured delay"),
        subtitle: format!("{what}; objective: {criterion}"),
        x_label: String::from("arrival rate (queries/s)"),
        y_label: String::from("mean delay (ms)"),
        is_x_log: true,
        is_y_log: true,
        series: driven.iter().flat_map(pair).collect(),
        horizontal: Some((criterion.deadline.as_ms(), String::from("deadline"))),
        note: Some(String::from("hollow: the objective was not held; bars: 90 % intervals of predictions")),
        ..LineChart::default()
    };
    chart.with_best("those without a miss up to the highest rates", Series::highest_kept)
}
