//! Workloads: what is known of each query before it runs, and what it cost when measured.
//!
//! A workload stands between measuring and everything that uses measurements: `profile` writes one, `train` fits models
//! to it, `simulate` draws arrivals from it. It holds one row a query and mode; its file form is in `workload_csv.rs`
//! and, for people, in `traces/README.md`.

use std::collections::{BTreeMap, BTreeSet};

use super::batches::BatchModels;
use super::{Contention, Cost, Inputs};
use crate::base::ids::QueryId;
use crate::base::machine::PerClass;
use crate::files::Provenance;
use crate::query::{Features, IndexFeatures, Mode};

/// A service time measured on one kind of processor, alone and warm: the median of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Median service time as a scheduler experiences it, in microseconds (GPU: submission to results on the host).
    pub median_us: f64,
    /// Spread: the interquartile range of the runs, in microseconds; 0 where it was not recorded.
    pub spread_us: f64,
    /// The device's own time (GPU events), median, in microseconds, where there is one.
    pub device_us: Option<f64>,
}

/// One query in one mode.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadRow {
    /// Unique in the file.
    pub query_id: QueryId,
    /// The query's number in its log: the same in the rows of all modes.
    pub log_id: u32,
    /// How its terms combine.
    pub mode: Mode,
    /// What is known before it runs.
    pub features: Features,
    /// What the index knows besides, where that was noted.
    pub index_features: Option<IndexFeatures>,
    /// What it cost on each kind of processor, where measured.
    pub measured: PerClass<Option<Measured>>,
    /// Documents returned (at most k).
    pub results: u32,
}

impl WorkloadRow {
    /// What a model is asked with.
    #[must_use]
    pub fn inputs(&self) -> Inputs {
        Inputs::of(&self.features, self.index_features.as_ref())
    }
}

/// A workload: rows with distinct query ids, and where they come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The comment lines of its file.
    pub provenance: Provenance,
    /// The queries.
    pub rows: Vec<WorkloadRow>,
    /// What batches of them cost, where that was measured.
    pub batches: BatchModels,
    /// What queries take while the machine is busy with their like, where that was measured.
    pub contention: Option<Contention>,
}

impl Workload {
    /// What each row costs on each class, as measured; [`Cost::NEVER`] where it was not.
    #[must_use]
    pub fn costs(&self) -> Vec<PerClass<Cost>> {
        let measured_us = |row: &WorkloadRow| row.measured.map(|measured| measured.map(|measured| measured.median_us));
        self.rows.iter().map(|row| self.batches.costs(row.mode, measured_us(row))).collect()
    }

    /// Whether its queries have features. Files of service times only have none: a model can't be fitted to them.
    #[must_use]
    pub fn has_features(&self) -> bool {
        self.rows.iter().all(|row| row.features.terms > 0)
    }

    /// How many queries a model can tell apart, in the mode that has the fewest.
    #[must_use]
    pub fn distinct_queries(&self) -> usize {
        let mut by_mode: BTreeMap<Mode, BTreeSet<Vec<u64>>> = BTreeMap::new();
        for row in &self.rows {
            by_mode.entry(row.mode).or_default().insert(row.inputs().0.iter().map(|input| input.to_bits()).collect());
        }
        by_mode.values().map(BTreeSet::len).min().unwrap_or(0)
    }

    /// The rows in `mode` only.
    #[must_use]
    pub fn only(&self, mode: Mode) -> Self {
        let rows = self.rows.iter().filter(|row| row.mode == mode).cloned().collect();
        Self {
            provenance: self.provenance.clone(),
            rows,
            batches: self.batches.clone(),
            contention: self.contention.clone(),
        }
    }
}
