//! Query logs whose columns stand between commas, semicolons or bars, perhaps in quotes.

use std::borrow::Cow;
use std::path::Path;

use tandem_base::files::InputError;

use super::form::Form;
use super::table::{Kind, Row};
use super::{LogFormat, names};
use crate::query::log::table::{self};

pub(super) const CSV: Form = Form {
    format: LogFormat::Csv,
    likeness: |log| f64::from(is_csv(log.path, &log.lines)),
    read: |log, options| {
        let separator = separator(&log.lines);
        let rows = csv_rows(log.path, log.text, log.lines[0].0, separator)?;
        let form = match separator {
            b',' => "comma-separated",
            b';' => "semicolon-separated",
            _ => "bar-separated",
        };
        table::read(log.path, rows, form, None, options)
    },
};

fn separator(lines: &[(u64, &str)]) -> u8 {
    let count = |separator: char| lines.iter().filter(|(_, line)| line.contains(separator)).count();
    [',', ';', '|']
        .into_iter()
        .rev()
        .max_by_key(|&separator| count(separator))
        .map_or(b',', |separator| separator as u8)
}

/// Whether lines are CSV and not prose with commas: equal numbers of cells, and a header or columns that prose does not
/// have.
fn is_csv(path: &Path, lines: &[(u64, &str)]) -> bool {
    let separator = separator(lines);
    let text: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
    let text = text.join("\n");
    let Ok(rows) = csv_rows(path, &text, 1, separator) else { return false };
    let width = rows.first().map_or(0, |row| row.cells.len());
    if width < 2 || rows.iter().any(|row| row.cells.len() != width) {
        return false;
    }
    let known = rows[0].cells.iter().filter(|name| names::is_known(name)).count();
    let header = usize::from(table::has_header(&rows));
    let is_quoted = |&(_, line): &(u64, &str)| {
        line.trim_start().starts_with('"') || line.contains(&format!("{}\"", separator as char))
    };
    let is_strange = |at: usize| {
        let kinds = rows[header..].iter().map(|row| Kind::of(&row.cells[at]));
        kinds.clone().all(|kind| kind != Kind::Text) && kinds.clone().any(|kind| kind != Kind::Empty)
    };
    rows.len() > 1 && 2 * known >= width || lines.iter().all(is_quoted) || (0..width).any(is_strange)
}

/// The records of CSV from line `first` on.
fn csv_rows(path: &Path, text: &str, first: u64, separator: u8) -> Result<Vec<Row<'static>>, InputError> {
    // The crate counts a line only after the second character of a line end.
    let text = text.splitn(first as usize, '\n').last().unwrap_or_default().replace("\r\n", "\n");
    let mut reader = ::csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).delimiter(separator).from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for record in reader.into_records() {
        let record = record.map_err(|e| {
            let line = e.position().map_or(first, |position| first - 1 + position.line());
            InputError::line(path, line, format!("is not CSV: {e}"))
        })?;
        let line = record.position().map_or(first, |position| first - 1 + position.line());
        rows.push(Row { line, cells: record.iter().map(|cell| Cow::Owned(cell.to_owned())).collect() });
    }
    Ok(rows)
}
