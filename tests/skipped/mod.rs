//! Tests that this machine can't run: each notes its reason, and the end of the run counts them.
//!
//! `cargo test` hides the output of passing tests, so that a skipped test looks like one that passed. A skipped test
//! notes its name in a file next to the test programs, under the number of the process that started them. The last test
//! program, `zz_skipped`, counts the notes of its own starter and prints one line:
//!
//! ```text
//! skipped here: 26 tests (no GPU), 8 tests (TANDEM_DATA is not set)
//! ```

use std::fs::{OpenOptions, create_dir_all};
use std::io::Write;
use std::path::PathBuf;

/// Notes that the calling test is skipped, with the reason. Repeated notes count once.
#[allow(dead_code, reason = "the last test program only counts")]
pub(crate) fn skipped(why: &str) {
    println!("skipped: {why}");
    let Some(notes) = notes() else { return };
    let thread = std::thread::current();
    let program = std::env::args().next().unwrap_or_default();
    let note = format!("{program} {}\t{}\n", thread.name().unwrap_or("a test"), why.lines().next().unwrap_or_default());
    // Errors are ignored: where the folder can't be written, the run only counts fewer.
    let _ = notes.parent().map(create_dir_all);
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(notes) {
        let _ = file.write_all(note.as_bytes());
    }
}

/// The folder of this run's notes, distinguished from other runs by the process that started the test programs.
pub(crate) fn notes() -> Option<PathBuf> {
    let starter = std::os::unix::process::parent_id();
    let folder = std::env::current_exe().ok()?.parent()?.join("skipped-tests");
    Some(folder.join(starter.to_string()))
}
