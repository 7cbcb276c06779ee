//! CSV files: a row is a struct, its fields are the columns.
//!
//! ```text
//! #[derive(Serialize, Deserialize)]                 # seed: 7            ◀── Provenance
//! struct Arrival {                                  arrival_us,query_id
//!     arrival_us: Us,             ◀── serde ──▶     812.004,17
//!     query_id: QueryId,                            1203.900,3
//! }
//! ```
//!
//! Columns have names and any order. Unknown columns are refused, since misspelt ones would be ignored silently. Tables of
//! other programs are read by [`CsvReader::recognised`]. Errors
//! in a value give line, column and the expected form, which the value's type defines. All lines that begin with `#` are
//! [`Provenance`](super::Provenance).
//!
//! The `csv` crate writes. It does not read, since it keeps no places for errors, and takes an unclosed quote for a value
//! that continues to the end of the file.

mod cells;
mod names;
mod read;
mod row;
mod values;
mod write;

pub use names::{Names, TimeUnit, normal};
pub use read::{CsvReader, Record, Row};
pub use values::{Decimals, Digits, Us, parsed};
pub use write::{csv_error, write_csv};
