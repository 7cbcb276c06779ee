//! CSV files, read and written through one layer: a row is a struct, its fields are the columns.
//!
//! ```text
//! #[derive(Serialize, Deserialize)]                 # seed: 7            ◀── Provenance
//! struct Arrival {                                  arrival_us,query_id
//!     arrival_us: Us,             ◀── serde ──▶     812.004,17
//!     query_id: QueryId,                            1203.900,3
//! }
//! ```
//!
//! Columns are known by name and stand in any order; unknown ones are refused, since a misspelt one would be passed over
//! silently. Whatever is wrong with a value is reported with line and column, and with what was expected there, which
//! the value's own type says. Lines that begin with `#` are [`Provenance`](super::Provenance), wherever they stand.
//!
//! Writing is the `csv` crate's. Reading cuts lines itself: places in errors are what that crate does not keep, and it
//! takes a quote that is never closed for a value that goes on to the end of the file.

mod cells;
mod read;
mod row;
mod values;
mod write;

pub use read::{CsvReader, Record, Row};
pub use values::{Decimals, Digits, Us, parsed};
pub use write::write_csv;
