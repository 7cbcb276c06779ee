//! Reading and writing files so that nothing is lost, half-written or silently misread.
//!
//! - [`InputError`]: what is wrong with a text file, and where: `path:line:column: message`.
//! - [`write_atomically`], [`PendingFile`]: beside, sync, rename. A reader sees the old file or the new one.
//! - [`check_writable`]: whether a file could be written, asked before the work whose result it will hold.
//! - [`protect_input`]: no output replaces a file that is read.
//! - [`free_disk_bytes`], [`free_memory_bytes`]: whether there will be room for it, where the system tells.
//! - [`open_text`], [`open_bytes`], [`read_line`], [`read_lines`]: plain, in gzip or in zstd, streamed. [`Text`]: whole, in any encoding.
//! - [`read_exact_at`], [`write_all_at`]: any place of a file that threads share.
//! - [`CsvReader`], [`write_csv`]: CSV files whose rows are structs ([`Record`]), each value with its place in errors.
//! - [`Provenance`]: the `#` lines that open every CSV file we write; [`this_machine`] says what it runs on,
//!   [`set_commit`] what it was built from.

mod at;
mod atomic;
mod csv;
mod input;
mod inputs;
mod packing;
mod provenance;
mod room;
mod text;

pub use at::{read_exact_at, write_all_at};
pub use atomic::{PendingFile, check_writable, write_atomically};
pub use csv::{CsvReader, Decimals, Digits, Record, Row, Us, parsed, write_csv};
pub use input::{
    InputError, json_message, open_bytes, open_stdin, open_text, packing_of, read_line, read_lines, unpacked,
};
pub use inputs::protect_input;
pub use packing::{Frame, Packing, skip_padding};
pub use provenance::{Provenance, set_commit, this_machine};
pub use room::{free_disk_bytes, free_memory_bytes};
pub use text::Text;
