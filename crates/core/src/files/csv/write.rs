//! Atomic writing of CSV files.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::read::Record;
use super::row::columns;
use crate::files::{Provenance, write_atomically};

/// Writes a CSV file: provenance, the columns, the rows. Names that end in `.gz` or `.zst` are compressed.
///
/// # Errors
/// Those of the file system.
pub fn write_csv<T: Serialize + Record>(
    path: &Path,
    provenance: &Provenance,
    rows: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    write_atomically(path, |out| match path.extension().and_then(|e| e.to_str()) {
        Some("gz") => {
            let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            write_rows(&mut encoder, provenance, rows)?;
            encoder.finish().map(drop)
        }
        Some("zst") => {
            let mut encoder = zstd::stream::write::Encoder::new(out, 19)?;
            write_rows(&mut encoder, provenance, rows)?;
            encoder.finish().map(drop)
        }
        _ => write_rows(out, provenance, rows),
    })
}

fn write_rows<T: Serialize + Record>(
    out: &mut impl Write,
    provenance: &Provenance,
    rows: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    provenance.write_to(out)?;
    let mut rows = rows.into_iter().peekable();
    let mut csv = ::csv::Writer::from_writer(out);
    if rows.peek().is_none() {
        csv.write_record(columns::<T>())?;
    }
    // The first row writes the header, from the names of its fields.
    rows.try_for_each(|row| csv.serialize(row))?;
    csv.flush()
}
