//! What commands do when nobody reads what they print, or it cannot be written.
#![cfg(unix)]

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};

fn tandem(dir: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.args(arguments.split_whitespace()).current_dir(dir).stderr(Stdio::piped());
    command
}

/// Commands that print, on an index in `i`.
const COMMANDS: [&str; 5] = [
    "index info i",
    "search i --queries i/queries.tsv --mode or",
    "trace --ids 200 --num-queries 100 --rate 10 -o t.trace.csv",
    "profile i --queries i/queries.tsv -o p.workload.csv --on cpu --repeats 1",
    "train p.workload.csv -o m.json",
];

#[test]
fn a_reader_that_has_gone_away_is_no_failure_and_a_full_disk_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let made =
        tandem(dir.path(), "index synth --docs 2000 --num-queries 200 -o i").stdout(Stdio::null()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for arguments in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let unread = tandem(dir.path(), arguments).stdout(writer).output().unwrap();
        let errors = String::from_utf8_lossy(&unread.stderr).into_owned();
        assert!(!errors.contains("panicked"), "{arguments}: {errors}");
        assert_eq!(unread.status.code(), Some(0), "{arguments}: {errors}");

        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let unwritten = tandem(dir.path(), arguments).stdout(full).output().unwrap();
        let errors = String::from_utf8_lossy(&unwritten.stderr).into_owned();
        assert_eq!(unwritten.status.code(), Some(2), "{arguments}: {errors}");
        assert!(errors.contains("error: standard output: No space left on device"), "{arguments}: {errors}");
    }
}
