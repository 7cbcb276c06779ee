//! Comparison of predictions with measurements, and with the errors that were accepted last.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tandem_model::base::quantile::nearest_rank;
use tandem_model::files::{CsvReader, Digits, InputError, Provenance, Record, open_text, write_csv};

use super::cell::RecordedCell;

/// The file of accepted errors in the folder of a record.
pub const BASELINE: &str = "baseline.csv";
/// A machine whose fixed loop takes less than this share longer at one time than at another counts as steady. On machines beyond
/// it, cores paused for tens of milliseconds, which no profile of a minute predicts.
pub const STEADY: f64 = 0.2;
/// By how much a median error may grow: one point.
const TOLERANCE: f64 = 0.01;

/// A predicted quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// The capacity of a policy, in queries per second.
    Capacity,
    /// The mean delay of a run, in milliseconds.
    Mean,
    /// The 99th percentile of the delays of a run, in milliseconds.
    P99,
    /// Whether a run holds: 1 or 0.
    Held,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Capacity, Self::Mean, Self::P99, Self::Held];

    /// The name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Mean => "mean",
            Self::P99 => "p99",
            Self::Held => "held",
        }
    }
}

/// A prediction of a cell, and what others predicted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predicted {
    pub(super) value: f64,
    pub(super) half_width: f64,
    pub(super) recorded: Option<f64>,
    pub(super) rehearsal: Option<f64>,
    pub(super) linear: Option<f64>,
    /// The factor on all service times that makes the prediction equal to the measurement.
    pub(super) slower: Option<f64>,
}

/// A prediction next to its measurement: a row of `baseline.csv`. Errors are relative to the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the columns of the file")]
pub struct Compared {
    /// The cell's file and line.
    pub cell: String,
    pub what: Quantity,
    pub machine: String,
    pub gpu: String,
    pub cpus: usize,
    pub index_name: String,
    pub mode: String,
    pub policy: String,
    pub arrivals: String,
    pub rate_qps: Digits<6>,
    /// The rate as a share of the measured capacity.
    pub load: Option<Digits<3>>,
    pub measured: Digits<6>,
    pub predicted: Digits<6>,
    /// The 90 % interval of the prediction.
    pub low: Digits<6>,
    pub high: Digits<6>,
    pub half_width: Digits<3>,
    /// Whether the interval contains the measurement; for `held`, whether the prediction is right.
    pub inside: bool,
    pub error: Digits<4>,
    /// The error of the prediction at the time of the run.
    pub recorded_error: Option<Digits<4>>,
    pub rehearsal_error: Option<Digits<4>>,
    pub linear_error: Option<Digits<4>>,
    /// The speed-equivalent error: the factor on all service times that makes the prediction equal to the measurement, or its
    /// inverse, less 1. It is positive if the machine was slower than predicted.
    pub speed_error: Option<Digits<4>>,
    /// The same of the prediction that the run before, of the same policy in this file, would have had right.
    pub before_error: Option<Digits<4>>,
    /// `pauses` if the machine's pauses limit this policy, and `load` otherwise.
    pub limit: String,
    pub fitted: String,
    /// The format version of the machine file; 0 without one.
    pub profile: u64,
    /// How much the fixed loop's time changed during the file's runs.
    pub drift: Digits<3>,
    /// `yes` if that is less than [`STEADY`], else `no`.
    pub steady: String,
}

impl Record for Compared {}

/// A factor as an error: how much larger than 1 it or its inverse is, negative for the inverse.
pub(super) fn factor_error(factor: f64) -> Digits<4> {
    Digits(if factor >= 1.0 { factor - 1.0 } else { 1.0 - 1.0 / factor })
}

impl Compared {
    pub(super) fn of(
        (one, profile): (&RecordedCell, u64),
        what: Quantity,
        measured: f64,
        known: &Predicted,
        inside: bool,
    ) -> Self {
        let cell = &one.cell;
        let error = |value: f64| match what {
            Quantity::Held => Digits(value - measured),
            _ => Digits(value / measured - 1.0),
        };
        Self {
            cell: format!("{}:{}", one.file, one.line),
            what,
            machine: cell.machine.clone(),
            gpu: cell.gpu.clone(),
            cpus: cell.cpus,
            index_name: cell.index_name.clone(),
            mode: cell.mode.clone(),
            policy: cell.policy.clone(),
            arrivals: cell.arrivals.clone(),
            rate_qps: cell.rate_qps,
            load: cell.measured_qps().map(|capacity_qps| Digits(cell.rate_qps.0 / capacity_qps)),
            measured: Digits(measured),
            predicted: Digits(known.value),
            low: Digits(known.value / (1.0 + known.half_width)),
            high: Digits(known.value * (1.0 + known.half_width)),
            half_width: Digits(known.half_width),
            inside,
            error: error(known.value),
            recorded_error: known.recorded.map(error),
            rehearsal_error: known.rehearsal.map(error),
            linear_error: known.linear.map(error),
            speed_error: known.slower.map(factor_error),
            before_error: None,
            limit: String::from(if one.is_pause_limited { "pauses" } else { "load" }),
            fitted: cell.fitted.clone(),
            profile,
            drift: Digits(one.drift),
            steady: String::from(if one.drift < STEADY { "yes" } else { "no" }),
        }
    }
}

/// The median of some values; `None` without any.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    nearest_rank(&values, 0.5)
}

/// Reads the accepted errors of a record; `None` if none were accepted yet.
///
/// # Errors
/// If the file is damaged: with line and column.
pub fn read_baseline(folder: &Path) -> Result<Option<Vec<Compared>>, InputError> {
    let path = folder.join(BASELINE);
    if !path.exists() {
        return Ok(None);
    }
    let mut rows = CsvReader::<Compared, _>::new(&path, open_text(&path)?)?;
    let mut baseline = Vec::new();
    while let Some(row) = rows.next_row()? {
        baseline.push(row.value);
    }
    Ok(Some(baseline))
}

/// Accepts these errors: writes the baseline atomically.
///
/// # Errors
/// Those of the file system.
pub fn write_baseline(folder: &Path, provenance: &Provenance, compared: &[Compared]) -> io::Result<()> {
    write_csv(&folder.join(BASELINE), provenance, compared.iter().cloned())
}

/// In what today's predictions are worse than the accepted ones, in sentences: cells that are missing, runs whose
/// outcome was predicted rightly and is not any more, and median errors that grew by more than one point in size or in
/// bias. Cells that the baseline lacks do not count.
#[must_use]
pub fn worsened(baseline: &[Compared], now: &[Compared]) -> Vec<String> {
    let today: HashMap<(&str, Quantity), &Compared> =
        now.iter().map(|one| ((one.cell.as_str(), one.what), one)).collect();
    let mut worse = Vec::new();
    let mut pairs = Vec::new();
    for old in baseline {
        match today.get(&(old.cell.as_str(), old.what)) {
            Some(new) => pairs.push((old, *new)),
            None => worse.push(format!("{}: the baseline has its {}, and it is missing", old.cell, old.what.name())),
        }
    }
    for (old, new) in pairs.iter().filter(|(old, new)| old.what == Quantity::Held && old.inside && !new.inside) {
        let outcome = if new.measured.0 > 0.0 { "held" } else { "failed" };
        worse.push(format!("{}: the run {outcome}, as was predicted, and the opposite is predicted now", old.cell));
    }
    for what in [Quantity::Capacity, Quantity::Mean, Quantity::P99] {
        let both = || pairs.iter().filter(|(old, _)| old.what == what);
        for (name, of) in [("median error", f64::abs as fn(f64) -> f64), ("median bias", |error| error)] {
            let (old, new) =
                (median(both().map(|(old, _)| of(old.error.0))), median(both().map(|(_, new)| of(new.error.0))));
            if let Some((old, new)) = old.zip(new).filter(|(old, new)| new.abs() > old.abs() + TOLERANCE) {
                let percent = |share: f64| format!("{:.1} %", 100.0 * share);
                worse.push(format!("{}: {name} {}, accepted {}", what.name(), percent(new), percent(old)));
            }
        }
    }
    worse
}
