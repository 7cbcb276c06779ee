//! Predictions and repeated live runs, as `validation_runs.csv`, `validation_validity.csv` and `validation_queries.csv`.

use std::io;
use std::path::Path;

use tandem_core::base::ids::QueryId;
use tandem_core::base::machine::Class;
use tandem_core::files::{Digits, Provenance, Record, write_csv};
use tandem_core::lab::{Compared, ComparedRun, Repeated, Summary};

use crate::row::{Text, row};
use crate::table::Table;

row! {
    /// A run, or the prediction of all runs at its rate, which has number 0.
    struct RunLine of (compared: &Compared, run: &ComparedRun, number: u32) with {
        ComparedRun { summary, parts, interference, .. } = run;
        speed = |speed: f64| (speed > 0.0).then_some(Digits(speed));
    } {
        policy: String = compared.policy.clone(),
        rate_qps: Digits<6> = Digits(compared.rate_qps),
        load: Digits<3> = Digits(compared.load),
        source: Text = if number == 0 { "simulated" } else { "live" }.into(),
        run: u32 = number,
        // This column is empty for runs that count.
        disturbed: Text = run.disturbed.unwrap_or_default().into(),
        queries: usize = summary.queries,
        throughput_qps: Digits<6> = Digits(summary.throughput_qps),
        mean_ms: Digits<6> = Digits(summary.mean_ms),
        p50_ms: Digits<6> = Digits(summary.p50_ms),
        p95_ms: Digits<6> = Digits(summary.p95_ms),
        p99_ms: Digits<6> = Digits(summary.p99_ms),
        missed: usize = summary.missed,
        cpu_utilisation: Option<Digits<4>> = summary.utilisation[Class::CPU].map(Digits),
        gpu_utilisation: Option<Digits<4>> = summary.utilisation[Class::GPU].map(Digits),
        release_us: Digits<4> = Digits(parts.release_us),
        wait_us: Digits<4> = Digits(parts.wait_us),
        cpu_lane_us: Digits<4> = Digits(parts.lane_us[Class::CPU]),
        gpu_lane_us: Digits<4> = Digits(parts.lane_us[Class::GPU]),
        cpu_work_us: Option<Digits<4>> = parts.work_us[Class::CPU].map(Digits),
        gpu_work_us: Option<Digits<4>> = parts.work_us[Class::GPU].map(Digits),
        cpu_handoff_us: Option<Digits<4>> = parts.handoff_us[Class::CPU].map(Digits),
        gpu_handoff_us: Option<Digits<4>> = parts.handoff_us[Class::GPU].map(Digits),
        distance: Digits<4> = Digits(run.distance),
        steal: Option<Digits<4>> = interference.steal.map(Digits),
        others: Option<Digits<4>> = interference.others.map(Digits),
        lag_p99_us: Digits<4> = Digits(interference.lag_p99.as_us()),
        cpu_speed_before: Option<Digits<4>> = speed(interference.before[Class::CPU]),
        cpu_speed_after: Option<Digits<4>> = speed(interference.after[Class::CPU]),
    }
}

row! {
    /// A number of a policy at a load, and whether its prediction can be trusted.
    struct ValidityLine of (compared: &Compared, validity: &Validity, counted: usize) {
        policy: String = compared.policy.clone(),
        load: Digits<3> = Digits(compared.load),
        rate_qps: Digits<6> = Digits(compared.rate_qps),
        what: Text = validity.what.into(),
        predicted: Digits<6> = Digits(validity.predicted),
        measured: Digits<6> = Digits(validity.measured.middle),
        error: Digits<4> = Digits(validity.error()),
        // The spread is the greatest minus the least of the runs that count, over their median.
        spread: Digits<4> = Digits(validity.measured.spread()),
        runs: usize = compared.runs.len(),
        disturbed: usize = compared.runs.len() - counted,
        at_speed: Option<Digits<6>> = validity.at_speed.map(Digits),
        verdict: Text = validity.verdict(counted).into(),
    }
}

row! {
    struct QueryLine of (compared: &Compared, query: (QueryId, Class, f64, f64)) {
        policy: String = compared.policy.clone(),
        rate_qps: Digits<6> = Digits(compared.rate_qps),
        query_id: QueryId = query.0,
        class: Text = query.1.name().into(),
        predicted_us: Digits<4> = Digits(query.2),
        measured_us: Digits<4> = Digits(query.3),
    }
}

impl Record for RunLine {}
impl Record for ValidityLine {}
impl Record for QueryLine {}

/// Relative error of good predictions. Predictions of up to twice this error are fair.
const GOOD: f64 = 0.06;

/// A number of a rate: its prediction and its measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Validity {
    /// Name of the number, for example `mean_ms`.
    pub what: &'static str,
    /// Predicted value.
    pub predicted: f64,
    /// Measured values.
    pub measured: Repeated,
    /// Predicted value at the machine's speed during the runs, if it is known.
    pub at_speed: Option<f64>,
}

impl Validity {
    /// All numbers of a rate, or none without a live run.
    pub fn of(compared: &Compared) -> Vec<Self> {
        type Of = fn(&Summary) -> f64;
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

    /// Whether a planner can trust the prediction. Utilisation is compared in points, other numbers in shares.
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
            _ => "unreliable",
        }
    }

    /// Error of the prediction, in points for utilisation, else relative.
    pub fn error(&self) -> f64 {
        if self.what.ends_with("utilisation") {
            self.predicted - self.measured.middle
        } else {
            self.measured.error(self.predicted)
        }
    }
}

/// Writes `validation_runs.csv`, whole or not at all.
pub fn write_runs(path: &Path, provenance: &Provenance, all: &[Compared]) -> io::Result<()> {
    let lines = all.iter().flat_map(|compared| {
        let runs = std::iter::once(&compared.predicted).chain(&compared.runs);
        runs.zip(0..).map(move |(run, number)| RunLine::of(compared, run, number))
    });
    write_csv(path, provenance, lines)
}

/// Writes `validation_validity.csv`, whole or not at all.
pub fn write_validity(path: &Path, provenance: &Provenance, all: &[Compared]) -> io::Result<()> {
    let lines = all.iter().flat_map(|compared| {
        let counted = compared.counted().count();
        Validity::of(compared).into_iter().map(move |validity| ValidityLine::of(compared, &validity, counted))
    });
    write_csv(path, provenance, lines)
}

/// Writes `validation_queries.csv`, whole or not at all.
pub fn write_queries(path: &Path, provenance: &Provenance, all: &[Compared]) -> io::Result<()> {
    let lines = all.iter().flat_map(|compared| compared.scatter.iter().map(|&query| QueryLine::of(compared, query)));
    write_csv(path, provenance, lines)
}

/// The reliability of predictions, one row per policy and load.
pub fn validity_table(all: &[Compared]) -> Table {
    #[rustfmt::skip]
    let columns = [
        "policy", "load", "mean ms", "measured", "error", "spread", "p99 error", "cpu busy", "runs", "disturbed", "verdict",
    ];
    let mut table = Table::new(columns).with_keys(2);
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
        assert_eq!([1.05, 1.075, 0.9, 1.3].map(verdict), ["good", "within the spread of runs", "fair", "unreliable"]);
        assert_eq!(validity("mean_ms", 1.0, 1.0, 1.0, 1.0).verdict(0), "unknown: every run was disturbed");
        // Five points of utilisation are many, whatever their share.
        assert_eq!(validity("cpu_utilisation", 0.95, 0.9, 0.9, 0.9).verdict(5), "fair");
        assert_eq!(validity("cpu_utilisation", 0.02, 0.01, 0.01, 0.01).verdict(5), "good");
    }
}
