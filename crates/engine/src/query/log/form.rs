//! A form of query logs, and the text of a log.

use std::path::Path;

use tandem_base::files::InputError;

use super::table::{Kind, Table};
use super::{LogFormat, LogOptions};

/// A form of query logs.
pub(super) struct Form {
    pub(super) format: LogFormat,
    /// The degree, from 0 to 1, to which a log's lines have this form; from one half on they do.
    pub(super) likeness: fn(&Source<'_>) -> f64,
    /// Reads the queries.
    pub(super) read: fn(&Source<'_>, &LogOptions) -> Result<Table, InputError>,
}

/// A log's text and its lines that are not blank, at least one, with their numbers.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
    pub(super) lines: Vec<(u64, &'a str)>,
}

impl Source<'_> {
    /// The share of lines of which `is_so` holds.
    pub(super) fn share(&self, is_so: impl Fn(&str) -> bool) -> f64 {
        self.lines.iter().filter(|(_, line)| is_so(line)).count() as f64 / self.lines.len() as f64
    }

    /// The share of lines with tabs. Rows of term numbers differ in length and count as none; as plain lines they are refused
    /// with that reason.
    pub(super) fn tabs(&self) -> f64 {
        let is_numbers = self.share(|line| Kind::of(line) == Kind::Number) == 1.0;
        if is_numbers { 0.0 } else { self.share(|line| line.contains('\t')) }
    }

    /// The text from the first line on. The number of lines stays equal, so that line numbers in errors stay right.
    pub(super) fn behind_remarks(&self) -> String {
        let first = self.lines[0].0 as usize;
        "\n".repeat(first - 1) + self.text.splitn(first, '\n').last().unwrap_or_default()
    }
}
