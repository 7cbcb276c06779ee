//! Workloads: known features of each query, and its measured costs.
//!
//! A workload connects measurements to their uses: `profile` writes one, `train` fits models to it, `simulate` draws arrivals
//! from it. It holds one row per query and mode. `workload_csv.rs` defines its file form, which `traces/README.md` describes
//! for users.

use std::collections::{BTreeMap, BTreeSet};

use super::batches::BatchModels;
use super::{Cost, Inputs, Parallelism, SpeedUp};
use crate::base::ids::QueryId;
use crate::base::machine::{Class, PerClass};
use crate::base::stats::significant;
use crate::base::time::Nanos;
use crate::files::Provenance;
use crate::traffic::{Features, IndexFeatures, Mode};

/// The key of the comment line that describes the columns.
pub(super) const FOUND: &str = "recognised_columns";
/// The largest time in a file, an hour. A longer one is an error in its unit.
pub(super) const MOST_US: f64 = 3.6e9;

/// A service time measured on one class of processor, alone and warm: the median of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Median service time as a scheduler experiences it, in microseconds. For a GPU it is from submission to results on the
    /// host.
    pub median_us: f64,
    /// Interquartile range of the runs, in microseconds; 0 if it was not recorded.
    pub spread_us: f64,
    /// Median of the device's own time by GPU events, in microseconds, if there is a device.
    pub device_us: Option<f64>,
}

/// One query in one mode.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadRow {
    /// The query's id, unique in the file.
    pub query_id: QueryId,
    /// The query's number in its log, shared by the rows of all modes.
    pub log_id: u32,
    /// The mode of the query.
    pub mode: Mode,
    /// Features that are known before it runs.
    pub features: Features,
    /// Features from the index, where recorded.
    pub index_features: Option<IndexFeatures>,
    /// Its cost on each class of processor, where measured.
    pub measured: PerClass<Option<Measured>>,
    /// The time on a CPU that a predictor of the user expects, in microseconds. It is read and never written.
    pub predicted_us: Option<f64>,
    /// Documents returned (at most k).
    pub results: u32,
}

impl WorkloadRow {
    /// The inputs of a model for this query.
    pub fn inputs(&self) -> Inputs {
        Inputs::of(&self.features, self.index_features.as_ref())
    }
}

/// A workload: rows with distinct query ids, and their origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The comment lines of its file.
    pub provenance: Provenance,
    /// Queries with their modes.
    pub rows: Vec<WorkloadRow>,
    /// Costs of batches, where measured.
    pub batches: BatchModels,
    /// The speed-up of queries on several CPU cores, where measured.
    pub speed_up: Option<SpeedUp>,
}

impl Workload {
    /// Measured costs of each row on each class; [`Cost::NEVER`] where not measured.
    pub fn costs(&self) -> Vec<PerClass<Cost>> {
        let measured_us = |row: &WorkloadRow| row.measured.map(|measured| measured.map(|measured| measured.median_us));
        self.rows.iter().map(|row| self.batches.costs(row.mode, measured_us(row))).collect()
    }

    /// Knowledge of schedulers that run a query on several CPU lanes. `None` without a measured speed-up or CPU times.
    pub fn parallelism(&self) -> Option<Parallelism> {
        let times = self.rows.iter().filter_map(|row| Some(Nanos::from_us(row.measured[Class::CPU]?.median_us)));
        let times: Vec<Nanos> = times.collect();
        let speed_up = self.speed_up.clone().filter(|_| !times.is_empty())?;
        Some(Parallelism::of(speed_up, times))
    }

    /// The mode of its first query, which is that of all queries [`only`](Self::only) in one mode.
    pub fn mode(&self) -> Mode {
        self.rows.first().map_or(Mode::Or, |row| row.mode)
    }

    /// The columns of a file of service times in words, unless they are named as in this program's files.
    pub fn found(&self) -> Option<&str> {
        self.provenance.get(FOUND)
    }

    /// Why the unit of service times alone is doubtful: their mean is below a microsecond or above ten seconds.
    pub fn doubt(&self) -> Option<String> {
        let times =
            self.rows.iter().flat_map(|row| row.measured.iter()).filter_map(|(_, time)| Some((*time)?.median_us));
        let (sum, count) = times.fold((0.0, 0.0), |(sum, count), us| (sum + us, count + 1.0));
        let mean_us = sum / count;
        let is_usual = self.has_features() || count == 0.0 || (1.0..=1e7).contains(&mean_us);
        (!is_usual).then(|| {
            format!("the mean service time is {} us: is the unit of its column right?", significant(mean_us, 3))
        })
    }

    /// Whether its queries have features. Files with service times alone have none, and no model can be fitted to them.
    pub fn has_features(&self) -> bool {
        self.rows.iter().all(|row| row.features.terms > 0)
    }

    /// The number of queries that a model can distinguish, in the mode with the fewest.
    pub fn distinct_queries(&self) -> usize {
        let mut by_mode: BTreeMap<Mode, BTreeSet<Vec<u64>>> = BTreeMap::new();
        for row in &self.rows {
            by_mode.entry(row.mode).or_default().insert(row.inputs().0.iter().map(|input| input.to_bits()).collect());
        }
        by_mode.values().map(BTreeSet::len).min().unwrap_or(0)
    }

    /// The rows in `mode` only.
    pub fn only(&self, mode: Mode) -> Self {
        let rows = self.rows.iter().filter(|row| row.mode == mode).cloned().collect();
        Self {
            provenance: self.provenance.clone(),
            rows,
            batches: self.batches.clone(),
            speed_up: self.speed_up.clone(),
        }
    }
}
