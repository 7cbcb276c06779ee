//! Query logs of one query a line, perhaps behind an id, a number or a time.

use std::borrow::Cow;

use tandem_base::files::InputError;

use super::form::{Form, Source};
use super::table::{Kind, Row, Table};
use super::{LogFormat, LogOptions, foreign};
use crate::query::log::table::{self};

pub(super) const PLAIN: Form = Form { format: LogFormat::Plain, likeness: |_| 1.0, read };

fn read(log: &Source<'_>, options: &LogOptions) -> Result<Table, InputError> {
    let (path, lines) = (log.path, &log.lines);
    if options.format.is_none() && has_ids(lines) {
        let rows = lines.iter().map(|&(line, text)| {
            let (id, query) = text.trim().split_once(char::is_whitespace).unwrap_or_default();
            Row { line, cells: vec![Cow::Borrowed(id), Cow::Borrowed(query)] }
        });
        return table::read(path, rows.collect(), "an id and a query a line", None, &options.or_column(2));
    }
    let drop = if options.format.is_none() { leading_columns(lines) } else { 0 };
    let rows = lines.iter().map(|&(line, text)| {
        let text = (0..drop)
            .fold(text.trim(), |text, _| text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim()));
        Row { line, cells: vec![Cow::Borrowed(text)] }
    });
    let rows: Vec<Row<'_>> = rows.collect();
    let records = rows.iter().filter(|row| foreign::is_record(&row.cells[0])).count();
    if options.format.is_none() && 2 * records > rows.len() {
        let message = format!(
            "{records} of its {} lines are records of requests, with times, `key=value` or HTTP, expected queries alone \
             (--log-format plain reads them nevertheless)",
            rows.len()
        );
        return Err(InputError::file(path, message));
    }
    let form = if drop > 0 { "one query a line behind numbers or times" } else { "one query a line" };
    table::read(path, rows, form, None, &LogOptions { column: options.format.map(|_| 1), ..*options })
}

/// Whether each line begins with an id of its own: letters that all ids share, and a number, as in `TEST01 portia`.
fn has_ids(lines: &[(u64, &str)]) -> bool {
    let id = |line: &str| -> Option<(String, String)> {
        let (id, _) = line.trim().split_once(char::is_whitespace)?;
        let (letters, digits) = id.split_at(id.find(|c: char| c.is_ascii_digit())?);
        let is_id = letters.chars().all(char::is_alphabetic) && digits.chars().all(|c| c.is_ascii_digit());
        (is_id && !letters.is_empty()).then(|| (letters.to_owned(), digits.to_owned()))
    };
    let ids: Option<Vec<(String, String)>> = lines.iter().map(|(_, line)| id(line)).collect();
    ids.is_some_and(|ids| {
        let distinct: std::collections::HashSet<&str> = ids.iter().map(|(_, digits)| digits.as_str()).collect();
        // Two queries may begin with names such as `ps4` and `ps5`.
        let is_telling = ids.len() > 2 || ids.len() == 2 && ids.iter().all(|(_, digits)| digits.len() > 1);
        is_telling && distinct.len() == ids.len() && ids.iter().all(|(letters, _)| *letters == ids[0].0)
    })
}

/// Number of lines from which a number in the same place of each of them is an id, a frequency or a time.
const MANY: usize = 20;

/// The number of leading words on each line that end in a line count, a frequency or a time.
fn leading_columns(lines: &[(u64, &str)]) -> usize {
    let word = |line: &str, at: usize| line.split_whitespace().nth(at).map(str::to_owned);
    let is_time = |at: usize| {
        lines
            .iter()
            .all(|(_, line)| word(line, at).is_some_and(|word| word.len() >= 4 && Kind::of(&word) == Kind::Time))
    };
    let mut times = 0;
    while is_time(times) {
        times += 1;
    }
    let numbers = |at: usize| lines.iter().map(|(_, line)| word(line, at)?.parse().ok()).collect::<Option<Vec<f64>>>();
    let is_more = |at: usize| lines.iter().all(|(_, line)| word(line, at).is_some());
    // Of many queries, not all have a number in the same place.
    let is_field = |at: usize| numbers(at).is_some_and(|numbers| numbers.iter().any(|number| *number != numbers[0]));
    if lines.len() >= MANY
        && let Some(last) = (times..times + 3).rev().find(|&at| is_field(at) && is_more(at + 1))
    {
        return last + 1;
    }
    let counts = numbers(times)
        .is_some_and(|numbers| numbers.len() > 2 && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1.0));
    times + usize::from((counts || times == 0 && has_frequencies(lines)) && is_more(times + 1))
}

/// Whether each line begins with the frequency of its query, right-aligned as by `uniq -c`.
fn has_frequencies(lines: &[(u64, &str)]) -> bool {
    let end = |line: &str| {
        let digits = line.trim_start().split(char::is_whitespace).next().filter(|word| word.parse::<u64>().is_ok())?;
        Some(line.len() - line.trim_start().len() + digits.len())
    };
    let ends: Option<Vec<usize>> = lines.iter().map(|(_, line)| end(line)).collect();
    ends.is_some_and(|ends| ends.len() > 1 && ends.iter().all(|end| *end == ends[0]))
        && lines.iter().any(|(_, line)| line.starts_with(' '))
}
