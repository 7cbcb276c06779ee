//! A CSV file as the page takes it: whatever its columns, with the comment lines at its head.

use std::io::BufRead;
use std::path::Path;

use tandem_core::files::{InputError, Provenance, open_text};

/// A table of text with named columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// The file, as a path below its folder.
    pub name: String,
    /// Its comment lines.
    pub provenance: Provenance,
    /// The columns, in the file's order.
    pub columns: Vec<String>,
    /// The rows, each with a cell a column.
    pub rows: Vec<Vec<String>>,
    /// The line of each.
    pub line_numbers: Vec<u64>,
    /// What could not be read, each with the file and its line.
    pub unread: Vec<String>,
}

/// A row, its cells by their column's name.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    sheet: &'a Sheet,
    cells: &'a [String],
}

impl Sheet {
    /// Reads a CSV file (also `.gz` or `.zst`) of any columns. A row that has more or fewer cells than there are columns is
    /// [told](Self::unread) and left out, as long as there is another.
    ///
    /// # Errors
    /// If it can't be read or is no UTF-8, or no row has as many cells as there are columns: with its line.
    pub fn read(path: &Path, name: &str) -> Result<Self, InputError> {
        let mut reader = open_text(path)?;
        let mut sheet = Self { name: name.to_owned(), ..Self::default() };
        let (mut first, mut before) = (String::new(), 0);
        loop {
            first.clear();
            let read = reader.read_line(&mut first);
            if read.map_err(|e| InputError::file(path, format!("cannot read: {e}")))? == 0 || !first.starts_with('#') {
                break;
            }
            sheet.provenance.parse_line(first.trim_end());
            before += 1;
        }
        let whole = std::io::Read::chain(first.as_bytes(), reader);
        let mut rows = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(whole);
        let at = |e: csv::Error| match e.position() {
            Some(position) => InputError::line(path, before + position.line(), e.to_string()),
            None => InputError::file(path, e.to_string()),
        };
        sheet.columns = rows.headers().map_err(at)?.iter().map(|name| name.trim().to_owned()).collect();
        let mut first_error = None;
        for row in rows.records() {
            match row {
                Ok(row) => {
                    sheet.line_numbers.push(before + row.position().map_or(0, csv::Position::line));
                    sheet.rows.push(row.iter().map(|cell| cell.trim().to_owned()).collect());
                }
                Err(e) if matches!(e.kind(), csv::ErrorKind::UnequalLengths { .. }) => {
                    let (line, message) = unequal(&e);
                    let line = before + line;
                    sheet.unread.push(format!("{name}:{line}: {message}: the row is left out"));
                    first_error.get_or_insert_with(|| InputError::line(path, line, message));
                }
                Err(e) => return Err(at(e)),
            }
        }
        match first_error {
            Some(error) if sheet.rows.is_empty() => Err(error),
            _ => Ok(sheet),
        }
    }

    /// Tells of numbers that are none: in columns that `needed` names, without which a row says nothing, and in others whose
    /// name ends in a unit.
    #[cfg(feature = "plots")]
    pub(crate) fn look_at_numbers(&mut self, needed: &[&str]) {
        // What the names of columns end in that hold numbers.
        const UNITS: [&str; 3] = ["_qps", "_ms", "_us"];
        let mut found = Vec::new();
        for (cells, line) in self.rows.iter().zip(&self.line_numbers) {
            for (column, cell) in self.columns.iter().zip(cells) {
                let number: Option<f64> = cell.parse().ok();
                let is_needed = needed.contains(&column.as_str());
                let says = match is_needed {
                    true if !number.is_some_and(f64::is_finite) => "the row says nothing",
                    false
                        if UNITS.iter().any(|unit| column.ends_with(unit))
                            && !cell.is_empty()
                            && number.is_none_or(f64::is_nan) =>
                    {
                        "it is left out"
                    }
                    _ => continue,
                };
                found.push(format!("{}:{line}: `{column}` is {cell:?}, expected a number: {says}", self.name));
            }
        }
        self.unread.extend(found);
    }

    /// The comment lines and columns of a CSV file, without its rows.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn head_of(path: &Path) -> Result<Self, InputError> {
        let mut sheet = Self::default();
        for line in open_text(path)?.lines() {
            let line = line.map_err(|e| InputError::file(path, format!("cannot read: {e}")))?;
            if line.starts_with('#') {
                sheet.provenance.parse_line(&line);
            } else if !line.trim().is_empty() {
                sheet.columns = line.split(',').map(|name| name.trim().trim_matches('"').to_owned()).collect();
                break;
            }
        }
        Ok(sheet)
    }

    /// Whether it has all of these columns.
    #[must_use]
    pub fn has(&self, columns: &[&str]) -> bool {
        columns.iter().all(|&column| self.columns.iter().any(|name| name == column))
    }

    /// Its rows.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.rows.iter().map(|cells| Line { sheet: self, cells })
    }
}

impl<'a> Line<'a> {
    /// The text in a column; empty where there is none, or no such column.
    #[must_use]
    pub fn text(&self, column: &str) -> &'a str {
        let at = self.sheet.columns.iter().position(|name| name == column);
        at.and_then(|at| self.cells.get(at)).map_or("", String::as_str)
    }

    /// The finite number in a column, if there is one.
    #[must_use]
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok().filter(|number: &f64| number.is_finite())
    }
}

/// The line of a row of too few or too many cells, and what is wrong with it.
fn unequal(e: &csv::Error) -> (u64, String) {
    match e.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or(0, csv::Position::line);
            (line, format!("{len} values, expected {expected_len}"))
        }
        _ => (0, e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(text: &str) -> Result<Sheet, InputError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("any.csv");
        std::fs::write(&path, text).unwrap();
        assert_eq!(
            Sheet::head_of(&path).unwrap().columns.first().map(String::as_str),
            text.contains("name").then_some("name")
        );
        Sheet::read(&path, "any.csv")
    }

    #[test]
    fn any_columns_are_read_with_what_stands_above_them() {
        let read = sheet("# command: tandem x\n# seed: 7\nname, value_us\n\"a, b\",1.5\nc,\n").unwrap();
        assert_eq!((read.provenance.get("command"), read.provenance.get("seed")), (Some("tandem x"), Some("7")));
        let lines: Vec<_> = read.lines().map(|line| (line.text("name"), line.number("value_us"))).collect();
        assert_eq!(lines, [("a, b", Some(1.5)), ("c", None)]);
        assert!(read.has(&["value_us"]) && !read.has(&["name", "other"]));
        assert_eq!(read.lines().next().unwrap().text("other"), "");
    }

    #[test]
    fn an_empty_file_has_no_columns_and_a_short_row_is_named() {
        assert_eq!(sheet("# only: comments\n").unwrap().columns.len(), 0);
        let message = sheet("name,b\n1\n").unwrap_err().to_string();
        assert!(message.contains("any.csv:2: 1 values, expected 2"), "{message}");
        let read = sheet("# note: x\nname,b\n1,2\n3\n4,5\n").unwrap();
        assert_eq!((read.rows.len(), &read.line_numbers[..]), (2, &[3, 5][..]));
        assert_eq!(read.unread, ["any.csv:4: 1 values, expected 2: the row is left out"]);
    }

    #[test]
    fn numbers_that_are_none_are_told_with_their_line() {
        let mut read = sheet("name,max_rate_qps,low_qps,gone_ms\na,NaN,1,\nb,2,x,inf\nc,,3,4\n").unwrap();
        read.look_at_numbers(&["max_rate_qps"]);
        assert_eq!(
            read.unread,
            [
                "any.csv:2: `max_rate_qps` is \"NaN\", expected a number: the row says nothing",
                "any.csv:3: `low_qps` is \"x\", expected a number: it is left out",
                "any.csv:4: `max_rate_qps` is \"\", expected a number: the row says nothing",
            ]
        );
    }
}
