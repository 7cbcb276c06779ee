//! GPU times for a machine without a GPU. They were measured elsewhere and are always labelled so.

use std::collections::HashMap;

use super::train::known_here;
use super::{Measured, Workload, shipped};
use crate::base::machine::Class;
use crate::files::InputError;
use crate::traffic::Features;

/// The origin of a replayed lane's GPU times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedGpu {
    /// Each query was measured, with equal lists, on the GPU that the named shipped workload names.
    Measured {
        /// The shipped workload.
        file: String,
        /// The GPU.
        device: String,
    },
    /// This index was never on a GPU. A model fitted to the named shipped workload predicts the times from the known features.
    Modelled {
        /// The shipped workload.
        file: String,
        /// The GPU of its measurements.
        device: String,
    },
}

impl std::fmt::Display for RecordedGpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Measured { file, device } => {
                write!(f, "the times that these very queries took on an {device} ({file})")
            }
            Self::Modelled { file, device } => {
                write!(f, "times that a model of an {device} predicts for these queries ({file})")
            }
        }
    }
}

/// Replaces the GPU times of `workload` by shipped ones. They are measured if a shipped workload holds all its queries on
/// equal lists, and otherwise predicted by a shipped model. Fails if no shipped file has GPU times for these modes.
pub fn replay_gpu_times(workload: &mut Workload) -> Result<RecordedGpu, InputError> {
    for name in shipped::workload_names() {
        let recorded = shipped::workload(name)?;
        if let Some(times) = matching_times(workload, &recorded) {
            set_gpu(workload, times);
            workload.batches.0[Class::GPU] = recorded.batches.0[Class::GPU].clone();
            return Ok(RecordedGpu::Measured { file: name.to_owned(), device: device(recorded.provenance.get("gpu")) });
        }
    }
    for name in shipped::workload_names() {
        let recorded = shipped::workload(name)?;
        if let Some(times) = known_here(&recorded, Class::GPU, workload) {
            let time = |median_us| Measured { median_us, spread_us: 0.0, device_us: None };
            set_gpu(workload, times.into_iter().map(time).collect());
            let device = device(recorded.provenance.get("gpu"));
            return Ok(RecordedGpu::Modelled { file: name.to_owned(), device });
        }
    }
    Err(InputError::file(
        "(shipped GPU costs)".as_ref(),
        "this build ships none for these queries; run without a GPU lane",
    ))
}

fn device(name: Option<&str>) -> String {
    name.unwrap_or("unnamed GPU").to_owned()
}

fn set_gpu(workload: &mut Workload, times: Vec<Measured>) {
    for (row, time) in workload.rows.iter_mut().zip(times) {
        row.measured[Class::GPU] = Some(time);
    }
}

/// The recorded GPU time of each row, if none is missing and the collections agree in documents and list lengths. The index
/// file may differ in form, and so in its fingerprint.
fn matching_times(workload: &Workload, recorded: &Workload) -> Option<Vec<Measured>> {
    let is_same = |key| workload.provenance.get(key).is_some_and(|value| recorded.provenance.get(key) == Some(value));
    if !is_same("docs") || !is_same("k") {
        return None;
    }
    let lists = |row: &super::WorkloadRow| {
        let Features { terms, shortest, second_shortest, postings, longest, blocks, .. } = row.features;
        (terms, shortest, second_shortest, postings, longest, blocks, row.results)
    };
    let by_query: HashMap<_, _> = recorded.rows.iter().map(|row| ((row.mode, row.log_id), row)).collect();
    let time = |row: &super::WorkloadRow| {
        by_query.get(&(row.mode, row.log_id)).filter(|other| lists(other) == lists(row))?.measured[Class::GPU]
    };
    workload.rows.iter().map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::QueryId;
    use crate::base::machine::PerClass;
    use crate::cost::WorkloadRow;
    use crate::files::Provenance;
    use crate::traffic::Mode;

    fn workload(shift: u64, log_ids: &[u32], gpu_us: Option<f64>) -> Workload {
        let measured = |us| Measured { median_us: us, spread_us: 0.0, device_us: None };
        let row = |(id, &log_id): (u32, &u32)| WorkloadRow {
            query_id: QueryId(id),
            log_id,
            mode: Mode::Or,
            features: Features::from_lengths(&[u64::from(log_id) + shift], 100),
            index_features: None,
            predicted_us: None,
            measured: PerClass::two(Some(measured(5.0)), gpu_us.map(measured)),
            results: 1,
        };
        Workload {
            provenance: Provenance::new().with("docs", 100).with("k", 10).with("index", shift),
            rows: (0..).zip(log_ids).map(row).collect(),
            ..Workload::default()
        }
    }

    #[test]
    fn recorded_times_need_the_same_complete_lists() {
        let here = workload(1, &[3, 1], None);
        let there = workload(1, &[1, 2, 3], Some(7.0));
        assert_eq!(matching_times(&here, &there).unwrap().len(), 2);
        // The lists are equal, in a file of another form.
        let other = Workload { provenance: there.provenance.clone().with("index", "another"), ..there.clone() };
        assert_eq!(matching_times(&here, &other).unwrap().len(), 2);
        assert_eq!(matching_times(&here, &workload(2, &[1, 2, 3], Some(7.0))), None);
        let larger = Workload { provenance: Provenance::new().with("docs", 101).with("k", 10), ..there.clone() };
        assert_eq!(matching_times(&here, &larger), None);
        assert_eq!(matching_times(&here, &workload(1, &[1, 2], Some(7.0))), None);
        assert_eq!(matching_times(&here, &workload(1, &[1, 3], None)), None);
    }
}
