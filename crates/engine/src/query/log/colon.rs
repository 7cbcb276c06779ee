//! Query logs with an id, a colon and a query on each line.

use std::borrow::Cow;

use tandem_base::files::InputError;

use super::LogFormat;
use super::form::Form;
use super::table::{Kind, Row};
use crate::query::log::table::{self};

pub(super) const COLON: Form = Form {
    format: LogFormat::Colon,
    likeness: |log| match colon(log.lines[0].1) {
        // A time of day is no id.
        Some(_) if log.share(is_clock) < 1.0 => log.share(|line| colon(line).is_some()),
        _ => 0.0,
    },
    read: |log, options| {
        let has_priorities = log.share(|line| colon(after(line)).is_some_and(|(id, _)| id.len() <= 2)) == 1.0;
        let rows = log.lines.iter().map(|&(line, text)| {
            let (id, query) = colon(text)
                .ok_or_else(|| InputError::line(log.path, line, "no colon, expected `id:query` as in most lines"))?;
            let query = if has_priorities { after(query) } else { query };
            Ok(Row { line, cells: vec![Cow::Borrowed(id), Cow::Borrowed(query)] })
        });
        let rows = rows.collect::<Result<_, InputError>>()?;
        let are_numbers = log.share(|line| Kind::of(after(line)) == Kind::Number) == 1.0;
        let options = if are_numbers { *options } else { options.or_column(2) };
        table::read(log.path, rows, "colon-separated", None, &options)
    },
};

/// Whether a line begins with hours and minutes.
fn is_clock(line: &str) -> bool {
    line.split_whitespace().next().is_some_and(|word| word.len() >= 4 && Kind::of(word) == Kind::Time)
}

/// The part after the id.
fn after(line: &str) -> &str {
    colon(line).map_or("", |(_, query)| query)
}

/// The id and the query of a line `id:query`. An id is not a word of a query: `701` or `wt09-1`, but not `site` or
/// `http`.
fn colon(line: &str) -> Option<(&str, &str)> {
    let (id, query) = line.split_once(':')?;
    let (id, query) = (id.trim(), query.trim());
    let is_id = id.ends_with(|last: char| last.is_ascii_digit())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    is_id.then_some((id, query))
}
