//! How all reports that are CSV files are written: provenance, columns, a line a row.

use std::io::{self, Write};
use std::path::Path;

use crate::files::{Provenance, write_atomically};

/// Writes a CSV file, whole or not at all; `line` gives a row's fields under `columns`.
///
/// # Errors
/// Those of the file system.
pub(super) fn write_rows<R>(
    path: &Path,
    provenance: &Provenance,
    columns: &str,
    rows: &[R],
    line: impl Fn(&R) -> String,
) -> io::Result<()> {
    write_atomically(path, |out| {
        provenance.write_to(out)?;
        writeln!(out, "{columns}")?;
        rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))
    })
}
