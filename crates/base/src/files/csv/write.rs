//! Atomic writing of CSV files.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::read::Record;
use super::row::columns;
use crate::files::{Provenance, write_atomically};

/// Writes a CSV file: provenance, the columns, the rows. Names that end in `.gz` or `.zst` are compressed. Fails as the
/// file system does.
pub fn write_csv<T: Serialize + Record>(
    path: &Path,
    provenance: &Provenance,
    rows: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    write_atomically(path, |out| match path.extension().and_then(|e| e.to_str()) {
        #[cfg(not(feature = "gzip"))]
        Some("gz") => Err(io::Error::new(io::ErrorKind::Unsupported, "gzip is not built in (feature gzip)")),
        #[cfg(feature = "gzip")]
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
        csv.write_record(columns::<T>()).map_err(csv_error)?;
    }
    // The first row writes the header, from the names of its fields.
    rows.try_for_each(|row| csv.serialize(row)).map_err(csv_error)?;
    csv.flush()
}

/// The error of the file system itself, whose kind decides the exit code; the crate's conversion hides the kind.
pub fn csv_error(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn a_full_disk_keeps_its_kind_however_late_it_fills() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        #[derive(Serialize, Deserialize)]
        struct Line {
            number: u32,
        }
        impl Record for Line {}
        for room in [0, 10, 20_000, 200_000] {
            let lines = (0..50_000).map(|number| Line { number });
            let written = write_rows(&mut Full(room), &Provenance::new(), lines);
            assert_eq!(written.unwrap_err().kind(), io::ErrorKind::StorageFull, "{room} bytes");
        }
    }
}
