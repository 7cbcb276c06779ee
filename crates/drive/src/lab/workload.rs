//! Workloads that belong to an index, and GPU times that are not measured.

use std::path::Path;

use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_model::base::machine::Class;
use tandem_model::cost::{RecordedGpu, Workload, replay_gpu_times};
use tandem_model::files::Provenance;
use tandem_model::study::rows_in;
use tandem_model::traffic::Mode;
use xxhash_rust::xxh3::Xxh3Default;

use super::{GpuChoice, LabError};

/// The rows of `mode` in a workload file that was measured on this index.
///
/// # Errors
/// If it cannot be read, has no such rows, or belongs to another index.
pub fn workload_of_index(path: &Path, mode: Mode, index: &Index) -> Result<(String, Workload), LabError> {
    let (name, workload) = (path.display().to_string(), Workload::read(path)?);
    let here = format!("{:016x}", index.fingerprint());
    if let Some(there) = workload.provenance.get("index").filter(|&there| there != here) {
        return Err(LabError::OtherIndex { workload: name, there: there.to_owned(), here });
    }
    let rows = rows_in(&name, &workload, mode)?;
    Ok((name, rows))
}

/// The name of the log and a digest of its queries, which changes with the log.
#[must_use]
pub fn asked(log: &Path, queries: &[Query]) -> String {
    let mut digest = Xxh3Default::new();
    for query in queries {
        let numbers = [query.id.0, query.terms.len() as u32];
        let terms = query.terms.iter().flat_map(|term| [term.term.0, term.qtf]);
        numbers.into_iter().chain(terms).for_each(|number| digest.update(&number.to_le_bytes()));
    }
    format!("{} ({} queries, digest {:016x})", log.display(), queries.len(), digest.digest())
}

/// The workload that an earlier run kept in a file, unless its head differs from `same` in more than the version.
#[must_use]
pub fn kept_workload(path: &Path, same: &Provenance) -> Option<Workload> {
    let kept = Workload::read(path).ok()?;
    let agrees = same.lines().all(|(key, value)| key == "tandem" || kept.provenance.get(key) == Some(value));
    agrees.then_some(kept)
}

/// Decides the source of GPU times if no GPU is driven, and returns its name. `choice` may add recorded times to the
/// workload. `wants_gpu` is set if any option requests a GPU.
///
/// # Errors
/// If requested times do not exist, or recorded times are requested although the workload has its own.
pub fn settle_gpu_times(
    name: &str,
    workload: &mut Workload,
    choice: GpuChoice,
    wants_gpu: bool,
) -> Result<Option<RecordedGpu>, LabError> {
    let is_measured = workload.rows.iter().any(|row| row.measured[Class::GPU].is_some());
    match choice {
        GpuChoice::Replay if is_measured => Err(LabError::HasGpuTimes { workload: name.to_owned() }),
        GpuChoice::Replay => Ok(Some(replay_gpu_times(workload)?)),
        _ if !is_measured && (wants_gpu || choice == GpuChoice::Real) => {
            Err(LabError::NoGpuTimes { workload: name.to_owned() })
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::base::ids::QueryId;
    use tandem_model::base::machine::PerClass;
    use tandem_model::cost::{Measured, WorkloadRow};

    #[test]
    fn costs_of_other_queries_are_not_taken_for_those_of_a_log_that_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, log) = (dir.path().join("here.workload.csv"), Path::new("queries.tsv"));
        let index = Index::from_lists(&[("a", vec![(0, 1), (1, 1)]), ("b", vec![(0, 2), (2, 1)]), ("c", vec![(1, 1)])])
            .unwrap();
        let query = |id: u32, terms: &[&str]| Query::prepare(QueryId(id), "q", terms, &index).unwrap();
        let key = |queries: &[Query]| Provenance::new().with("queries", asked(log, queries)).with("k", 10);
        let measured = [query(0, &["a", "c"]), query(1, &["b"])];
        let time = Measured { median_us: 5.0, spread_us: 1.0, device_us: None };
        let row = |query: &Query| WorkloadRow {
            query_id: query.id,
            log_id: query.id.0,
            mode: Mode::Or,
            features: query.features(&index),
            index_features: None,
            predicted_us: None,
            measured: PerClass::two(Some(time), None),
            results: 2,
        };
        let rows = measured.iter().map(row).collect();
        Workload { provenance: key(&measured), rows, ..Workload::default() }.write(&path).unwrap();
        let is_kept = |queries: &[Query]| kept_workload(&path, &key(queries)).is_some();
        assert!(is_kept(&measured) && is_kept(&measured.clone()));
        // The variants are an equally long list, another number, another weight, a shorter and a longer list.
        let [first, second] = measured.clone();
        assert!(!is_kept(&[query(0, &["b", "c"]), second.clone()]));
        assert!(!is_kept(&[first.clone(), query(2, &["b"])]));
        assert!(!is_kept(&[first.clone(), query(1, &["b", "b"])]));
        assert!(!is_kept(std::slice::from_ref(&first)));
        assert!(!is_kept(&[first, second, query(2, &["a"])]));
        // A log of another name may hold other words for the same queries.
        assert!(
            kept_workload(&path, &Provenance::new().with("queries", asked(Path::new("q.tsv"), &measured))).is_none()
        );
    }
}
