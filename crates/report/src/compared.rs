//! Predictions beside repeated live runs: `validation_runs.csv`, `validation_validity.csv`, `validation_queries.csv`.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::table::Table;
use tandem_core::base::ids::QueryId;
use tandem_core::base::machine::Class;
use tandem_core::files::{Digits, Provenance, Record, write_csv};
use tandem_core::lab::{Compared, ComparedRun, Repeated};

/// A line of `validation_runs.csv`: a run, or the prediction of all runs at its rate.
#[derive(Debug, Serialize, Deserialize)]
struct RunLine {
    policy: String,
    rate_qps: Digits<6>,
    load: Digits<3>,
    source: Cow<'static, str>,
    run: u32,
    /// Empty where the run counts.
    disturbed: Cow<'static, str>,
    queries: usize,
    throughput_qps: Digits<6>,
    mean_ms: Digits<6>,
    p50_ms: Digits<6>,
    p95_ms: Digits<6>,
    p99_ms: Digits<6>,
    missed: usize,
    cpu_utilisation: Option<Digits<4>>,
    gpu_utilisation: Option<Digits<4>>,
    release_us: Digits<4>,
    wait_us: Digits<4>,
    cpu_lane_us: Digits<4>,
    gpu_lane_us: Digits<4>,
    cpu_work_us: Option<Digits<4>>,
    gpu_work_us: Option<Digits<4>>,
    cpu_handoff_us: Option<Digits<4>>,
    gpu_handoff_us: Option<Digits<4>>,
    distance: Digits<4>,
    steal: Option<Digits<4>>,
    others: Option<Digits<4>>,
    lag_p99_us: Digits<4>,
    cpu_speed_before: Option<Digits<4>>,
    cpu_speed_after: Option<Digits<4>>,
}

/// A line of `validation_validity.csv`: a number of a policy at a load, and whether its prediction is to be trusted.
#[derive(Debug, Serialize, Deserialize)]
struct ValidityLine {
    policy: String,
    load: Digits<3>,
    rate_qps: Digits<6>,
    what: Cow<'static, str>,
    predicted: Digits<6>,
    measured: Digits<6>,
    error: Digits<4>,
    /// Greatest less least of the runs that count, over their median.
    spread: Digits<4>,
    runs: usize,
    disturbed: usize,
    at_speed: Option<Digits<6>>,
    verdict: Cow<'static, str>,
}

/// A line of `validation_queries.csv`.
#[derive(Debug, Serialize, Deserialize)]
struct QueryLine {
    policy: String,
    rate_qps: Digits<6>,
    query_id: QueryId,
    class: Cow<'static, str>,
    predicted_us: Digits<4>,
    measured_us: Digits<4>,
}

impl Record for RunLine {}
impl Record for ValidityLine {}
impl Record for QueryLine {}

/// Errors up to this are as good as predictions of this machine get; up to twice as much they are of use.
const GOOD: f64 = 0.06;

/// One number of a rate, with what is said of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Validity {
    /// `mean_ms`, for example.
    pub what: &'static str,
    /// The prediction.
    pub predicted: f64,
    /// What was measured.
    pub measured: Repeated,
    /// The prediction at the speed that the machine had meanwhile, where that is known.
    pub at_speed: Option<f64>,
}

impl Validity {
    /// All numbers of a rate; none if there was no live run.
    #[must_use]
    pub fn of(compared: &Compared) -> Vec<Self> {
        type Of = fn(&tandem_core::lab::Summary) -> f64;
        let numbers: [(&'static str, Of); 7] = [
            ("throughput_qps", |summary| summary.throughput_qps),
            ("mean_ms", |summary| summary.mean_ms),
            ("p50_ms", |summary| summary.p50_ms),
            ("p95_ms", |summary| summary.p95_ms),
            ("p99_ms", |summary| summary.p99_ms),
            ("cpu_utilisation", |summary| summary.utilisation[Class::CPU].unwrap_or(0.0)),
            ("gpu_utilisation", |summary| summary.utilisation[Class::GPU].unwrap_or(0.0)),
        ];
        let one = |(what, of): (&'static str, Of)| {
            let measured = compared.repeated(|run| of(&run.summary))?;
            let at_speed = compared.at_speed.as_ref().map(of);
            Some(Self { what, predicted: of(&compared.predicted.summary), measured, at_speed })
        };
        numbers.into_iter().filter_map(one).collect()
    }

    /// In a word: whether a planner may trust it. Utilisation is compared in points, all else in shares.
    #[must_use]
    pub fn verdict(&self, counted: usize) -> &'static str {
        let error = self.error().abs();
        let is_share = self.what.ends_with("utilisation");
        let spread = if is_share { self.measured.high - self.measured.low } else { self.measured.spread() };
        let good = if is_share { 0.03 } else { GOOD };
        match counted {
            0 => "unknown: every run was disturbed",
            _ if error <= good => "good",
            _ if error <= spread => "within the spread of runs",
            _ if error <= 2.0 * good => "fair",
            _ => "not to be trusted",
        }
    }

    /// How far the prediction is off: in points for utilisation, else as a share.
    #[must_use]
    pub fn error(&self) -> f64 {
        if self.what.ends_with("utilisation") {
            self.predicted - self.measured.middle
        } else {
            self.measured.error(self.predicted)
        }
    }
}

/// Writes `validation_runs.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_runs(path: &Path, provenance: &Provenance, all: &[Compared]) -> io::Result<()> {
    let lines = all.iter().flat_map(|compared| {
        let live = compared.runs.iter().zip(1..).map(|(run, number)| (run, number, "live"));
        let runs = std::iter::once((&compared.predicted, 0, "simulated")).chain(live);
        runs.map(|(run, number, source)| line(compared, run, number, source)).collect::<Vec<_>>()
    });
    write_csv(path, provenance, lines)
}

fn line(compared: &Compared, run: &ComparedRun, number: u32, source: &'static str) -> RunLine {
    let ComparedRun { summary, parts, interference, .. } = run;
    let speed = |class: Class, speed: f64| (class == Class::CPU && speed > 0.0).then_some(Digits(speed));
    RunLine {
        policy: compared.policy.clone(),
        rate_qps: Digits(compared.rate_qps),
        load: Digits(compared.load),
        source: source.into(),
        run: number,
        disturbed: run.disturbed.unwrap_or_default().into(),
        queries: summary.queries,
        throughput_qps: Digits(summary.throughput_qps),
        mean_ms: Digits(summary.mean_ms),
        p50_ms: Digits(summary.p50_ms),
        p95_ms: Digits(summary.p95_ms),
        p99_ms: Digits(summary.p99_ms),
        missed: summary.missed,
        cpu_utilisation: summary.utilisation[Class::CPU].map(Digits),
        gpu_utilisation: summary.utilisation[Class::GPU].map(Digits),
        release_us: Digits(parts.release_us),
        wait_us: Digits(parts.wait_us),
        cpu_lane_us: Digits(parts.lane_us[Class::CPU]),
        gpu_lane_us: Digits(parts.lane_us[Class::GPU]),
        cpu_work_us: parts.work_us[Class::CPU].map(Digits),
        gpu_work_us: parts.work_us[Class::GPU].map(Digits),
        cpu_handoff_us: parts.handoff_us[Class::CPU].map(Digits),
        gpu_handoff_us: parts.handoff_us[Class::GPU].map(Digits),
        distance: Digits(run.distance),
        steal: interference.load.steal.map(Digits),
        others: interference.load.others.map(Digits),
        lag_p99_us: Digits(interference.lag_p99.as_us()),
        cpu_speed_before: speed(Class::CPU, interference.before[Class::CPU]),
        cpu_speed_after: speed(Class::CPU, interference.after[Class::CPU]),
    }
}

/// Writes `validation_validity.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_validity(path: &Path, provenance: &Provenance, all: &[Compared]) -> io::Result<()> {
    let lines = all.iter().flat_map(|compared| {
        let counted = compared.counted().count();
        Validity::of(compared).into_iter().map(move |validity| ValidityLine {
            policy: compared.policy.clone(),
            load: Digits(compared.load),
            rate_qps: Digits(compared.rate_qps),
            what: validity.what.into(),
            predicted: Digits(validity.predicted),
            measured: Digits(validity.measured.middle),
            error: Digits(validity.error()),
            spread: Digits(validity.measured.spread()),
            runs: compared.runs.len(),
            disturbed: compared.runs.len() - counted,
            at_speed: validity.at_speed.map(Digits),
            verdict: validity.verdict(counted).into(),
        })
    });
    write_csv(path, provenance, lines)
}

/// Writes `validation_queries.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_queries(path: &Path, provenance: &Provenance, all: &[Compared]) -> io::Result<()> {
    let lines = all.iter().flat_map(|compared| {
        compared.scatter.iter().map(|&(query_id, class, predicted_us, measured_us)| QueryLine {
            policy: compared.policy.clone(),
            rate_qps: Digits(compared.rate_qps),
            query_id,
            class: class.name().into(),
            predicted_us: Digits(predicted_us),
            measured_us: Digits(measured_us),
        })
    });
    write_csv(path, provenance, lines)
}

/// Where to trust predictions and where not, one line a policy and load.
#[must_use]
pub fn validity_table(all: &[Compared]) -> Table {
    let mut table = Table::new([
        "policy",
        "load",
        "mean ms",
        "measured",
        "error",
        "spread",
        "p99 error",
        "cpu busy",
        "runs",
        "disturbed",
        "verdict",
    ])
    .with_keys(2);
    for compared in all {
        let numbers = Validity::of(compared);
        let of = |what: &str| numbers.iter().find(|validity| validity.what == what);
        let (Some(mean), Some(p99), Some(busy)) = (of("mean_ms"), of("p99_ms"), of("cpu_utilisation")) else {
            continue;
        };
        let counted = compared.counted().count();
        table.row([
            compared.policy.clone(),
            format!("{:.0} %", 100.0 * compared.load),
            format!("{:.3}", mean.predicted),
            format!("{:.3}", mean.measured.middle),
            format!("{:+.1} %", 100.0 * mean.error()),
            format!("{:.1} %", 100.0 * mean.measured.spread()),
            format!("{:+.1} %", 100.0 * p99.error()),
            format!("{:+.1}", 100.0 * busy.error()),
            counted.to_string(),
            (compared.runs.len() - counted).to_string(),
            mean.verdict(counted).to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_trusted_as_far_as_runs_agree_with_it_or_differ_by_more_themselves() {
        let validity = |what, predicted, low, middle, high| Validity {
            what,
            predicted,
            measured: Repeated { middle, low, high },
            at_speed: None,
        };
        let verdict = |predicted| validity("mean_ms", predicted, 0.97, 1.0, 1.05).verdict(5);
        assert_eq!(
            [1.05, 1.075, 0.9, 1.3].map(verdict),
            ["good", "within the spread of runs", "fair", "not to be trusted"]
        );
        assert_eq!(validity("mean_ms", 1.0, 1.0, 1.0, 1.0).verdict(0), "unknown: every run was disturbed");
        // Five points of utilisation are many, whatever share of it they are.
        assert_eq!(validity("cpu_utilisation", 0.95, 0.9, 0.9, 0.9).verdict(5), "fair");
        assert_eq!(validity("cpu_utilisation", 0.02, 0.01, 0.01, 0.01).verdict(5), "good");
    }
}
