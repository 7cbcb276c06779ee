//! Reading and writing files so that nothing is lost, half-written or silently misread.
//!
//! - [`InputError`]: what is wrong with a text file, and where: `path:line:column: message`.
//! - [`write_atomically`], [`PendingFile`]: beside, sync, rename. A reader sees the old file or the new one.
//! - [`check_writable`]: whether a file could be written, asked before the work whose result it will hold.
//! - [`open_text`], [`read_line`], [`read_lines`]: plain, `.gz` and `.zst` alike, streamed.
//! - [`Provenance`]: the `#` lines that open every CSV file we write.

mod atomic;
mod input;
mod provenance;

pub use atomic::{PendingFile, check_writable, write_atomically};
pub use input::{InputError, open_text, read_line, read_lines};
pub use provenance::Provenance;
