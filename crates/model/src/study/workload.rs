//! Selection of the queries of a run, with their recorded costs.

use std::path::Path;

use super::StudyError;
use crate::cost::{Workload, shipped};
use crate::files::InputError;
use crate::traffic::Mode;

/// The workload of this name: a file, or else a shipped workload. Without a name it is the first shipped one.
///
/// # Errors
/// If it cannot be read, or no workload of this name ships.
pub fn named_workload(name: Option<&str>) -> Result<(String, Workload), InputError> {
    let Some(name) = name else {
        return shipped::default_workload().map(|(name, workload)| (name.to_owned(), workload));
    };
    let path = Path::new(name);
    if path.exists() {
        return Ok((name.to_owned(), Workload::read(path)?));
    }
    // A name with an extension means a file, so its absence is reported.
    let shipped = shipped::workload(name);
    let workload = shipped.or_else(|e| if path.extension().is_some() { Workload::read(path) } else { Err(e) });
    Ok((name.to_owned(), workload?))
}

/// The rows of `mode` of the [named workload](named_workload): at least one. Without a mode, it is the only one of the workload,
/// else OR.
///
/// # Errors
/// If the workload cannot be read, or has no rows of this mode.
pub fn named_workload_in(name: Option<&str>, mode: impl Into<Option<Mode>>) -> Result<(String, Workload), StudyError> {
    let (name, workload) = named_workload(name)?;
    let is_only = workload.rows.iter().all(|row| row.mode == workload.mode());
    let mode = mode.into().unwrap_or(if is_only { workload.mode() } else { Mode::Or });
    let rows = rows_in(&name, &workload, mode)?;
    Ok((name, rows))
}

/// The rows of `mode` of a workload of this name: at least one.
///
/// # Errors
/// If it has no rows of this mode.
pub fn rows_in(name: &str, workload: &Workload, mode: Mode) -> Result<Workload, StudyError> {
    let rows = workload.only(mode);
    if rows.rows.is_empty() {
        let has = Mode::ALL.into_iter().filter(|mode| workload.rows.iter().any(|row| row.mode == *mode)).collect();
        return Err(StudyError::NoQueries { workload: name.to_owned(), mode, has });
    }
    Ok(rows)
}
