//! Predictions and measurements: `live_runs.csv`, `validation_capacity.csv`, `service.csv`, and their figure.

use std::io;
use std::path::Path;

use tandem_model::base::machine::Class;
use tandem_model::files::{Digits, Provenance, write_csv};

use super::figure::{LineChart, Point, Series, look_of};
use crate::row::{Text, row};
use tandem_drive::lab::{Driven, DrivenRun, ServiceRow};
use tandem_drive::live::GapOf;
use tandem_model::study::Forecast;
use tandem_model::study::{Criterion, Summary};

row! {
    /// A line of `live_runs.csv`, as it is written.
    struct Line of (driven: &Driven, run: &DrivenRun, criterion: &Criterion) with {
        digits = |summary: Option<Summary>, of: fn(&Summary) -> f64| summary.as_ref().map(of).map(Digits);
        forecast = run.predicted.as_ref();
        predicted = forecast.map(|forecast| forecast.summary);
        [driver, lanes] = [GapOf::Driver, GapOf::Lanes].map(|of| run.course.gaps(of));
        work = |class, thirds| run.course.work_ratio(class, thirds).map(Digits);
    } {
        policy: String = driven.policy.clone(),
        rate_qps: Digits<6> = Digits(run.qps),
        seed: u64 = run.seed,
        seconds: Digits<4> = Digits(run.seconds),
        queries: usize = run.verdict.sent,
        unsent: usize = run.verdict.planned - run.verdict.sent,
        late: usize = run.verdict.late,
        late_allowed: usize = run.verdict.allowed,
        verdict: String = run.words(),
        predicted_held: Option<bool> = Some(run.qps <= driven.predicted.qps()),
        predicted_mean_ms: Option<Digits<6>> = digits(predicted, |summary| summary.mean_ms),
        measured_mean_ms: Option<Digits<6>> = digits(run.summary, |summary| summary.mean_ms),
        predicted_mean_half_width: Option<Digits<3>> = forecast.map(|forecast| Digits(forecast.mean_half_width)),
        predicted_p50_ms: Option<Digits<6>> = digits(predicted, |summary| summary.p50_ms),
        measured_p50_ms: Option<Digits<6>> = digits(run.summary, |summary| summary.p50_ms),
        predicted_p99_ms: Option<Digits<6>> = digits(predicted, |summary| summary.p99_ms),
        measured_p99_ms: Option<Digits<6>> = digits(run.summary, |summary| summary.p99_ms),
        predicted_p99_half_width: Option<Digits<3>> = forecast.map(|forecast| Digits(forecast.p99_half_width)),
        measured_missed: usize = run.verdict.missed,
        lag_p99_ms: Digits<4> = Digits(run.lag_p99.as_ms()),
        others_cores: Option<Digits<3>> = run.load.others.map(Digits),
        steal_cores: Option<Digits<3>> = run.load.steal.map(Digits),
        fixed_loop_us: Digits<5> = Digits(run.fixed_loop_us()),
        covered_share: Digits<3> = Digits(run.covered_share),
        gpu: Text = driven.gpu.into(),
        objective: String = criterion.to_string(),
        measured_p999_ms: Option<Digits<6>> = digits(run.summary, |summary| summary.p999_ms),
        measured_max_ms: Option<Digits<6>> = digits(run.summary, |summary| summary.max_ms),
        late_share: Option<Digits<4>> = Some(Digits(run.verdict.late_share())),
        cpu_utilisation: Option<Digits<4>> = run.summary.and_then(|summary| summary.utilisation[Class::CPU]).map(Digits),
        gpu_utilisation: Option<Digits<4>> = run.summary.and_then(|summary| summary.utilisation[Class::GPU]).map(Digits),
        throughput_qps: Option<Digits<6>> = digits(run.summary, |summary| summary.throughput_qps),
        paused: Option<bool> = Some(run.is_paused),
        driver_gaps: Option<u32> = Some(driver.count),
        driver_gaps_ms: Option<Digits<4>> = Some(Digits(driver.time.as_ms())),
        lane_gaps: Option<u32> = Some(lanes.count),
        lane_gaps_ms: Option<Digits<4>> = Some(Digits(lanes.time.as_ms())),
        lag_max_ms: Option<Digits<4>> = Some(Digits(run.course.lag_max().as_ms())),
        busy_share: Option<Digits<4>> = run.course.busy_share().map(Digits),
        work_ratio_cpu: Option<Digits<4>> = work(Class::CPU, 0..3),
        work_ratio_gpu: Option<Digits<4>> = work(Class::GPU, 0..3),
        work_ratio_cpu_1: Option<Digits<4>> = work(Class::CPU, 0..1),
        work_ratio_cpu_2: Option<Digits<4>> = work(Class::CPU, 1..2),
        work_ratio_cpu_3: Option<Digits<4>> = work(Class::CPU, 2..3),
        work_ratio_gpu_1: Option<Digits<4>> = work(Class::GPU, 0..1),
        work_ratio_gpu_2: Option<Digits<4>> = work(Class::GPU, 1..2),
        work_ratio_gpu_3: Option<Digits<4>> = work(Class::GPU, 2..3),
        pair: Option<u32> = run.pair,
    }
}

row! {
    /// A line of `validation_capacity.csv`.
    struct CapacityLine of (driven: &Driven, criterion: &Criterion) {
        policy: String = driven.policy.clone(),
        deadline_ms: Digits<6> = Digits(criterion.deadline.as_ms()),
        predicted_qps: Digits<6> = Digits(driven.predicted.qps()),
        predicted_half_width: Digits<3> = Digits(driven.predicted.half_width()),
        measured_qps: Option<Digits<6>> = driven.held.map(|held| Digits(held.qps)),
        measured_high_qps: Option<Digits<6>> = driven.missed.map(|missed| Digits(missed.qps)),
        half_width: Option<Digits<3>> = driven.capacity().and_then(|capacity| capacity.half_width).map(Digits),
        error_low: Option<Digits<4>> = driven.error().map(|(low, _)| Digits(low)),
        error_high: Option<Digits<4>> = driven.error().map(|(_, high)| Digits(high)),
        queries: usize = driven.held.map_or(0, |held| driven.totals(&held).0),
        gpu: Text = driven.gpu.into(),
        hindsight_qps: Option<Digits<6>> = driven.hindsight_qps.map(Digits),
        rehearsal_qps: Option<Digits<6>> = driven.predicted.rehearsal_qps.map(Digits),
        linear_qps: Option<Digits<6>> = driven.predicted.linear_qps.map(Digits),
        objective: String = criterion.to_string(),
    }
}

row! {
    /// A line of `service.csv`.
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

/// Writes `live_runs.csv` atomically. Fails as the file system does.
pub fn write_live_runs(
    path: &Path,
    provenance: &Provenance,
    criterion: &Criterion,
    driven: &[Driven],
) -> io::Result<()> {
    let lines = driven.iter().flat_map(|one| one.runs.iter().map(|run| Line::of(one, run, criterion)));
    write_csv(path, provenance, lines)
}

/// Writes `validation_capacity.csv` atomically. Fails as the file system does.
pub fn write_validation_capacity(
    path: &Path,
    provenance: &Provenance,
    criterion: &Criterion,
    driven: &[Driven],
) -> io::Result<()> {
    write_csv(path, provenance, driven.iter().map(|one| CapacityLine::of(one, criterion)))
}

/// Writes `service.csv` atomically. Fails as the file system does.
pub fn write_service(path: &Path, provenance: &Provenance, rows: &[ServiceRow]) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().map(ServiceLine::of))
}

/// Mean delay against rate: predicted as dashes, measured as markers on a line, a colour a policy.
pub fn delay_chart(driven: &[Driven], criterion: &Criterion, what: &str) -> LineChart {
    // A mean with its interval, and whether the objective is met.
    type Mean = (f64, Option<(f64, f64)>, bool);
    let line = |driven: &Driven, what: &str, is_dashed, of: &dyn Fn(&DrivenRun) -> Option<Mean>| {
        let point = |run: &DrivenRun| {
            let (y, interval, holds) = of(run)?;
            Some(Point { x: run.qps, y, is_hollow: !holds, interval })
        };
        let mut points: Vec<Point> = driven.runs.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let (name, look) = (format!("{}, {what}", driven.policy), Some(look_of(&driven.policy)));
        Series { name, points, is_dashed, look, ..Series::default() }
    };
    let pair = |driven: &Driven| {
        [
            line(driven, "predicted", true, &|run| {
                let Forecast { summary, mean_half_width, .. } = run.predicted.as_ref()?;
                let (mean_ms, most) = (summary.mean_ms, 1.0 + mean_half_width);
                Some((mean_ms, Some((mean_ms / most, mean_ms * most)), run.qps <= driven.predicted.qps()))
            }),
            line(driven, "measured", false, &|run| Some((run.summary?.mean_ms, None, run.verdict.holds()))),
        ]
    };
    let chart = LineChart {
        title: String::from("Predicted and measured delay"),
        x_label: String::from("arrival rate (queries/s)"),
        y_label: String::from("mean delay (ms)"),
        is_x_log: true,
        is_y_log: true,
        series: driven.iter().flat_map(pair).collect(),
        horizontal: Some((criterion.deadline.as_ms(), String::from("deadline"))),
        note: format!("{what}; objective: {criterion}; hollow: it was not held; bars: 90 % intervals of predictions"),
        ..LineChart::default()
    };
    chart.with_best("those without a miss up to the highest rates", Series::highest_kept)
}
