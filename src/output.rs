//! Output of commands.
//!
//! The standard library's `println!` panics if the reader has closed its end, as in `tandem index info X | head`. Here this is no
//! failure. Other errors, such as a full disk behind `>`, end the command with exit code 2.
//!
//! Results fit one screen of 40 lines of 80 characters, with the answer first. `--verbose` prints all of them. With
//! `--format json`, text goes to standard error, and one document at the end to standard output:
//!
//! ```text
//! {"command": "tandem simulate ...", "machine": "...", "tandem": "0.1.0", "files": ["out/summary.csv", ...],
//!  "results": {"summary": [{"policy": "stealing", "rate_qps": 500, "p99_ms": 1.2, ...}, ...], "capacity": [...]}}
//! ```
//!
//! Text may hold words of servers and names of files. No control character in them reaches the terminal.
//!
//! Results are the rows of files, under the names of their columns. Commands [name](result_file) the files, or
//! [add](result) values that are in no file.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::{Map, Value, json};
use tandem_model::files::{Provenance, write_atomically};

use crate::failure::Failure;
use tandem_report::json::rows_of_csv;
use tandem_report::table::fitted;
use tandem_report::trec::harmless;

/// The first failure to print a line.
static FAILED: Mutex<Option<String>> = Mutex::new(None);
/// The document; `None` for text output.
static DOCUMENT: Mutex<Option<Document>> = Mutex::new(None);
/// Whether all results are printed.
static VERBOSE: AtomicBool = AtomicBool::new(false);
/// Lines of results on one screen. Eight more are left for titles, files and warnings.
pub(super) const SCREEN_LINES: usize = 32;

/// The results of a command in order.
#[derive(Debug, Default)]
struct Document {
    into: Option<PathBuf>,
    files: Vec<(String, PathBuf)>,
    values: Map<String, Value>,
}

/// Prints a line to standard output.
macro_rules! outln {
    () => { $crate::output::out_line(format_args!("")) };
    ($($part:tt)*) => { $crate::output::out_line(format_args!($($part)*)) };
}

/// Prints a line to standard error.
macro_rules! errln {
    () => { $crate::output::err_line(format_args!("")) };
    ($($part:tt)*) => { $crate::output::err_line(format_args!($($part)*)) };
}

/// Reserves standard output for the document, or writes that to a file.
pub(super) fn begin_json(into: Option<&Path>) {
    let into = into.map(Path::to_owned);
    with_document(|document| *document = Some(Document { into, ..Document::default() }));
}

/// Lets all results be printed from now on, for any number of lines.
pub(super) fn begin_verbose() {
    VERBOSE.store(true, Ordering::Relaxed);
}

/// Whether all results are printed.
pub(super) fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// Whether a document was requested.
pub(super) fn is_json() -> bool {
    with_document(|document| document.is_some())
}

/// Adds the rows of a CSV file under a name. The file is read at the end.
pub(super) fn result_file(name: &str, path: &Path) {
    with_document(|document| {
        if let Some(document) = document {
            document.files.push((name.to_owned(), path.to_owned()));
        }
    });
}

/// Adds a result that is in no CSV file.
pub(super) fn result(name: &str, value: impl Serialize) {
    with_document(|document| {
        if let Some(document) = document {
            document.values.insert(name.to_owned(), json!(value));
        }
    });
}

fn with_document<T>(work: impl FnOnce(&mut Option<Document>) -> T) -> T {
    work(&mut DOCUMENT.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// See `outln!`.
pub(super) fn out_line(line: fmt::Arguments<'_>) {
    if let Err(failure) = say(&format!("{line}\n"))
        && let Ok(mut first) = FAILED.lock()
    {
        first.get_or_insert(failure.to_string());
    }
}

/// See `errln!`. There is nowhere to report that standard error cannot be written to.
pub(super) fn err_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", harmless(&line.to_string()));
}

/// Prints text, with lines broken to 80 characters, to standard output; or, if that is for the document, to standard error. A
/// closed reader (`| head`) is no failure.
pub(super) fn say(text: &str) -> Result<(), Failure> {
    let text = fitted(text);
    let text = harmless(&text);
    if is_json() {
        let _ = io::stderr().write_all(text.as_bytes());
        return Ok(());
    }
    say_bytes(text.as_bytes())
}

/// Prints results, whose first lines answer: as many as fit one screen, or all with `--verbose`. `place` has all of them, too.
pub(super) fn say_screen(text: &str, place: &str) -> Result<(), Failure> {
    let text = fitted(text);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    if is_verbose() || lines.len() <= SCREEN_LINES {
        return say(&format!("{}\n", lines.join("\n")));
    }
    let (shown, left_out) = lines.split_at(SCREEN_LINES - 1);
    say(&format!("{}\n({} more lines: --verbose; {place} has all results)\n", shown.join("\n"), left_out.len()))
}

/// Prints bytes to standard output as they are.
pub(super) fn say_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

/// Prints the document, if there is one, and says whether every line could be printed. Fails with the first failure of
/// `outln!`, or what keeps a file of results from being read.
pub(super) fn finish() -> Result<(), Failure> {
    if let Some(document) = with_document(Option::take) {
        let mut results = document.values;
        for (name, path) in &document.files {
            results.insert(name.clone(), rows_of_csv(path)?);
        }
        let about = Provenance::new().with_command_and_machine();
        let mut whole: Map<String, Value> = about.lines().map(|(key, value)| (key.to_owned(), json!(value))).collect();
        let files: Vec<String> = document.files.iter().map(|(_, path)| path.display().to_string()).collect();
        whole.extend([(String::from("files"), json!(files)), (String::from("results"), Value::Object(results))]);
        let text = format!("{}\n", Value::Object(whole));
        match &document.into {
            Some(path) => write_atomically(path, |out| out.write_all(text.as_bytes()))?,
            None => say_bytes(text.as_bytes())?,
        }
    }
    match FAILED.lock().ok().and_then(|mut first| first.take()) {
        Some(message) => Err(Failure::failed(message)),
        None => Ok(()),
    }
}
