//! `--workload`: measured queries, from a file or from those that ship with Tandem.

use std::path::Path;

use crate::cli::Failure;
use crate::cost::{Workload, shipped};
use crate::files::InputError;
use crate::query::Mode;

/// A workload and its name: the file, or else the shipped one of that name; left out, the first of those that ship.
pub(in crate::cli) fn read_workload(name: Option<&str>) -> Result<(String, Workload), Failure> {
    match name {
        None => shipped::default_workload().map(|(name, workload)| (name.to_owned(), workload)).map_err(Failure::from),
        Some(name) => Ok((name.to_owned(), workload_named(name)?)),
    }
}

/// As [`read_workload`], its rows of `mode` only: at least one.
pub(in crate::cli) fn read_workload_in(name: Option<&str>, mode: Mode) -> Result<(String, Workload), Failure> {
    let (name, workload) = read_workload(name)?;
    let rows = workload.only(mode);
    if rows.rows.is_empty() {
        let has = |mode: &Mode| workload.rows.iter().any(|row| row.mode == *mode);
        let modes: Vec<&str> = Mode::ALL.into_iter().filter(has).map(Mode::name).collect();
        return Err(Failure::input(format!("{name}: no queries in mode {mode} (it has {})", modes.join(", "))));
    }
    Ok((name, rows))
}

fn workload_named(name: &str) -> Result<Workload, InputError> {
    let path = Path::new(name);
    if path.exists() {
        return Workload::read(path);
    }
    // A name with an extension is surely meant as a file: its absence is then what to report.
    shipped::workload(name).or_else(|e| if path.extension().is_some() { Workload::read(path) } else { Err(e) })
}
