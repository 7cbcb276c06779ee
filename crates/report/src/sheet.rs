//! A CSV file with any columns, and the comment lines at its head.

use std::io::BufRead;
use std::path::Path;

use tandem_model::files::{InputError, Provenance, open_text};

/// A table of text with named columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Path of the file below its folder.
    pub name: String,
    /// Comment lines of the file.
    pub provenance: Provenance,
    /// Columns in the file's order.
    pub columns: Vec<String>,
    /// Rows, with one cell per column.
    pub rows: Vec<Vec<String>>,
    /// Line number of each row.
    pub line_numbers: Vec<u64>,
    /// Errors in the file, with file and line.
    pub unread: Vec<String>,
}

/// A row whose cells are found by their column's name.
#[derive(Clone, Copy, Debug)]
pub struct SheetRow<'a> {
    sheet: &'a Sheet,
    cells: &'a [String],
}

impl Sheet {
    /// Reads a CSV file (also `.gz` or `.zst`) with any columns. A row with a wrong number of cells is
    /// [reported](Self::unread) and left out, if there is a good row. Fails if the file can't be read or is not UTF-8,
    /// or no row has the right number of cells.
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

    /// Reports wrong numbers in the columns `needed`, without which a row is useless, and in columns whose names end in
    /// a unit.
    pub(crate) fn look_at_numbers(&mut self, needed: &[&str]) {
        // Endings of the names of columns that contain numbers.
        const UNITS: [&str; 3] = ["_qps", "_ms", "_us"];
        let mut found = Vec::new();
        for (cells, line) in self.rows.iter().zip(&self.line_numbers) {
            for (column, cell) in self.columns.iter().zip(cells) {
                let number: Option<f64> = cell.parse().ok();
                let is_needed = needed.contains(&column.as_str());
                let says = match is_needed {
                    true if !number.is_some_and(f64::is_finite) => "the row is useless",
                    false
                        if UNITS.iter().any(|unit| column.ends_with(unit))
                            && !cell.is_empty()
                            && number.is_none_or(f64::is_nan) =>
                    {
                        "it is ignored"
                    }
                    _ => continue,
                };
                found.push(format!("{}:{line}: `{column}` is {cell:?}, expected a number: {says}", self.name));
            }
        }
        self.unread.extend(found);
    }

    /// Reads the comment lines and columns of a CSV file, without its rows.
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

    /// Whether the file has all of these columns.
    pub fn has(&self, columns: &[&str]) -> bool {
        columns.iter().all(|&column| self.columns.iter().any(|name| name == column))
    }

    /// Rows of the file.
    pub fn lines(&self) -> impl Iterator<Item = SheetRow<'_>> {
        self.rows.iter().map(|cells| SheetRow { sheet: self, cells })
    }
}

impl<'a> SheetRow<'a> {
    /// The text in a column, or nothing if the column or the text is missing.
    pub fn text(&self, column: &str) -> &'a str {
        let at = self.sheet.columns.iter().position(|name| name == column);
        at.and_then(|at| self.cells.get(at)).map_or("", String::as_str)
    }

    /// The finite number in a column, if there is one.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok().filter(|number: &f64| number.is_finite())
    }
}

/// The line of a row with a wrong number of cells, and the error.
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
                "any.csv:2: `max_rate_qps` is \"NaN\", expected a number: the row is useless",
                "any.csv:3: `low_qps` is \"x\", expected a number: it is ignored",
                "any.csv:4: `max_rate_qps` is \"\", expected a number: the row is useless",
            ]
        );
    }
}
