//! Reading and writing files so that no data are lost, half-written or silently misread.
//!
//! - [`InputError`]: an error in a text file, with its place: `path:line:column: message`.
//! - [`write_atomically`], [`PendingFile`]: a temporary file, synced and renamed. A reader sees the old file or the new
//!   one.
//! - [`check_writable`]: checks that a file can be written, before the work on its content.
//! - [`protect_input`]: no output replaces an input file. [`FolderLock`]: one process at a time writes into a result folder.
//! - [`free_disk_bytes`], [`free_memory_bytes`]: the free space, where the system reports it.
//! - [`open_text`], [`open_bytes`], [`read_line`], [`read_lines`]: streams of plain, gzip or zstd files.
//! - [`File`] and the functions that are named like those of `std::fs`: all operations on files, which tests make fail.
//!   [`read_exact_at`], [`write_all_at`]: access at an offset of a file that threads share.
//! - [`CsvReader`], [`write_csv`]: CSV files whose rows are structs ([`Record`]), with the place of each value in errors.
//!   [`Names`], [`TimeUnit`], [`normal`]: columns of tables that other programs wrote.
//! - [`Provenance`]: the `#` lines that open every CSV file we write. [`this_machine`] describes the machine,
//!   [`set_commit`] sets the program's commit.

mod atomic;
mod csv;
mod disk;
mod folder_lock;
mod input;
mod inputs;
mod packing;
mod provenance;
mod room;

pub use atomic::{PendingFile, check_writable, write_atomically};
pub use csv::{CsvReader, Decimals, Digits, Names, Record, Row, TimeUnit, Us, csv_error, normal, parsed, write_csv};
pub use disk::{File, create_dir_all, read_dir, read_exact_at, remove_dir_all, remove_file, rename, write_all_at};
pub use folder_lock::FolderLock;
pub use input::{
    InputError, json_message, open_bytes, open_stdin, open_text, packing_of, read_line, read_lines, unpacked,
};
pub use inputs::protect_input;
pub use packing::{Frame, Packing, skip_padding};
pub use provenance::{Provenance, commit, set_commit, this_machine};
pub use room::{free_disk_bytes, free_memory_bytes};
