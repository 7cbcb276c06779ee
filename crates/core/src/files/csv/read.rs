//! Reading CSV files, one row at a time.

use std::io::BufRead;
use std::marker::PhantomData;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::cells::Cells;
use super::row::{Fault, columns, row};
use crate::files::{InputError, Provenance, read_line};

/// A row of a CSV file: a struct whose fields are the columns, in the order of writing.
pub trait Record: DeserializeOwned {
    /// Columns that a file may lack; their fields then take serde's defaults.
    const OPTIONAL: &'static [&'static str] = &[];
    /// Columns of earlier versions. A file that has one is refused.
    const REMOVED: &'static [&'static str] = &[];
    /// The way to make a file without [`REMOVED`](Self::REMOVED) columns, for the error.
    const REMEDY: &'static str = "";
}

/// A CSV file as rows of type `T`.
#[derive(Debug)]
pub struct CsvReader<'a, T, R> {
    path: &'a Path,
    reader: R,
    line: u64,
    text: String,
    provenance: Provenance,
    /// The field of each column of the file; `None` for a column to skip. Empty without a header.
    header: Vec<Option<&'static str>>,
    rows: PhantomData<T>,
}

impl<'a, T: Record, R: BufRead> CsvReader<'a, T, R> {
    /// Reads up to the header; `path` is the file's name in errors.
    ///
    /// # Errors
    /// With line and column: unknown, repeated or missing columns, text that can't be read or is not UTF-8.
    pub fn new(path: &'a Path, reader: R) -> Result<Self, InputError> {
        Self::with_header(path, reader, false)
    }

    /// As [`CsvReader::new`], for files that may have other columns, which are skipped.
    ///
    /// # Errors
    /// As [`CsvReader::new`], except that no column is unknown.
    pub fn among_others(path: &'a Path, reader: R) -> Result<Self, InputError> {
        Self::with_header(path, reader, true)
    }

    fn with_header(path: &'a Path, reader: R, passes_over_others: bool) -> Result<Self, InputError> {
        let (provenance, text) = (Provenance::default(), String::new());
        let mut csv = Self { path, reader, line: 0, text, provenance, header: Vec::new(), rows: PhantomData };
        if csv.next_line()? {
            let cells = Cells::cut(path, csv.line, &csv.text)?;
            csv.header = header::<T>(&cells, passes_over_others)?;
        }
        Ok(csv)
    }

    /// Whether the file has a header; empty files and files of comments lack one.
    #[must_use]
    pub fn has_header(&self) -> bool {
        !self.header.is_empty()
    }

    /// Whether the header has a column.
    #[must_use]
    pub fn column(&self, name: &str) -> bool {
        self.header.contains(&Some(name))
    }

    /// An error at the line read last, which is the header's at first.
    #[must_use]
    pub fn error(&self, message: impl Into<String>) -> InputError {
        InputError::at(self.path, self.line, 1, message)
    }

    /// The comment lines read so far; after the last row, all of them.
    #[must_use]
    pub fn into_provenance(self) -> Provenance {
        self.provenance
    }

    /// The next row; `None` after the last.
    ///
    /// # Errors
    /// With line and column: numbers of values that differ from the header's, values of a wrong form, text that can't be
    /// read or is not UTF-8.
    pub fn next_row(&mut self) -> Result<Option<Row<'_, T>>, InputError> {
        if !self.has_header() || !self.next_line()? {
            return Ok(None);
        }
        let cells = Cells::cut(self.path, self.line, &self.text)?;
        let (found, expected) = (cells.len(), self.header.len());
        if found != expected {
            return Err(cells.error(format!("{found} values, expected {expected} as in the header")));
        }
        let context = Context { cells, header: &self.header, provenance: &self.provenance };
        let value = row(&self.header, &context.cells).map_err(|fault: Fault| match fault.field {
            Some(field) => context.unexpected_at(field, &fault.expected),
            None => context.cells.error(fault.expected),
        })?;
        Ok(Some(Row { value, context }))
    }

    /// Reads the next line with values, and the comment lines before it; returns `false` after the last.
    fn next_line(&mut self) -> Result<bool, InputError> {
        loop {
            self.line += 1;
            if !read_line(self.path, &mut self.reader, self.line, &mut self.text)? {
                return Ok(false);
            }
            self.text.truncate(self.text.trim_end_matches(['\n', '\r']).len());
            if self.text.starts_with('#') {
                self.provenance.parse_line(&self.text);
            } else if !self.text.trim().is_empty() {
                return Ok(true);
            }
        }
    }
}

/// The field of each column in the header.
fn header<T: Record>(cells: &Cells<'_>, passes_over_others: bool) -> Result<Vec<Option<&'static str>>, InputError> {
    let (known, optional) = (columns::<T>(), T::OPTIONAL);
    let mut header = Vec::with_capacity(cells.len());
    for (field, name) in cells.iter().enumerate() {
        let column = known.iter().copied().find(|&known| known == name);
        if T::REMOVED.contains(&name) {
            return Err(cells.error_at(field, format!("column `{name}` is of an earlier version: {}", T::REMEDY)));
        }
        if column.is_none() && !passes_over_others {
            let commas = if name.contains([';', '\t']) { ", separated by commas" } else { "" };
            let message = format!("unknown column `{name}`, expected some of {}{commas}", known.join(", "));
            return Err(cells.error_at(field, message));
        }
        if column.is_some() && header.contains(&column) {
            return Err(cells.error_at(field, format!("column `{name}` is given twice")));
        }
        header.push(column);
    }
    let is_missing = |name: &&&str| !header.contains(&Some(**name)) && !optional.contains(*name);
    let missing: Vec<String> = known.iter().filter(is_missing).map(|name| format!("`{name}`")).collect();
    if !missing.is_empty() {
        return Err(cells.error_at(0, format!("the header lacks {}", missing.join(", "))));
    }
    Ok(header)
}

/// A row, with its place in the file.
#[derive(Debug)]
pub struct Row<'a, T> {
    /// The row as a struct.
    pub value: T,
    context: Context<'a>,
}

#[derive(Debug)]
struct Context<'a> {
    cells: Cells<'a>,
    header: &'a [Option<&'static str>],
    provenance: &'a Provenance,
}

impl Context<'_> {
    /// The error for cell `field`, whose content is not as expected.
    fn unexpected_at(&self, field: usize, expected: &str) -> InputError {
        let name = self.header[field].unwrap_or_default();
        let message = format!("`{name}` is \"{}\", expected {expected}", self.cells.value(field));
        self.cells.error_at(field, message)
    }

    /// The cell of a column; the first cell if the file lacks the column.
    fn field(&self, column: &str) -> usize {
        self.header.iter().position(|&name| name == Some(column)).unwrap_or(0)
    }
}

impl<T> Row<'_, T> {
    /// Its line, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.context.cells.line()
    }

    /// The comment lines before it.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        self.context.provenance
    }

    /// The text of a column's cell; empty if the file lacks the column.
    #[must_use]
    pub fn text(&self, column: &str) -> &str {
        let field = self.context.header.iter().position(|&name| name == Some(column));
        field.map_or("", |field| self.context.cells.value(field))
    }

    /// The error for a column's cell, whose content is not as expected.
    #[must_use]
    pub fn unexpected(&self, column: &str, expected: &str) -> InputError {
        self.context.unexpected_at(self.context.field(column), expected)
    }

    /// An error at a column's cell.
    #[must_use]
    pub fn error_at(&self, column: &str, message: impl Into<String>) -> InputError {
        self.context.cells.error_at(self.context.field(column), message)
    }

    /// An error about the row.
    #[must_use]
    pub fn error(&self, message: impl Into<String>) -> InputError {
        self.context.cells.error(message)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Pair {
        a: u32,
        b: Option<f64>,
    }

    impl Record for Pair {
        const OPTIONAL: &'static [&'static str] = &["b"];
    }

    fn read(text: &str) -> Result<(Vec<(u64, Pair)>, Provenance), String> {
        let mut reader = CsvReader::<Pair, _>::new("x.csv".as_ref(), text.as_bytes()).map_err(|e| e.to_string())?;
        let mut rows = Vec::new();
        while let Some(row) = reader.next_row().map_err(|e| e.to_string())? {
            rows.push((row.line(), row.value));
        }
        Ok((rows, reader.into_provenance()))
    }

    #[test]
    fn comments_and_blank_lines_are_no_rows_and_count_as_lines() {
        let (rows, provenance) = read("# seed: 7\r\n\nb,a\r\n# docs: 5\n\n2.5,1\n,3").unwrap();
        assert_eq!(rows, [(6, Pair { a: 1, b: Some(2.5) }), (7, Pair { a: 3, b: None })]);
        assert_eq!((provenance.get("seed"), provenance.get("docs")), (Some("7"), Some("5")));
        assert_eq!(read("a\n1\n").unwrap().0, [(2, Pair { a: 1, b: None })]);
        assert_eq!(read("# only: this\n").unwrap().0, []);
    }

    #[test]
    fn faults_name_place_and_what_was_expected() {
        for (text, expected) in [
            ("a,c\n", "x.csv:1:3: unknown column `c`, expected some of a, b"),
            ("a;b\n", "x.csv:1:1: unknown column `a;b`, expected some of a, b, separated by commas"),
            ("a,b,a\n", "x.csv:1:5: column `a` is given twice"),
            ("b\n", "x.csv:1:1: the header lacks `a`"),
            ("a,b\n1\n", "x.csv:2: 1 values, expected 2 as in the header"),
            ("b,a\n1,-2\n", "x.csv:2:3: `a` is \"-2\", expected a whole number from 0"),
            ("a,b\n1,x\n", "x.csv:2:3: `b` is \"x\", expected a number"),
            ("a,b\n1,\"2\n", "x.csv:2:3: the quote is not closed on its line"),
        ] {
            assert_eq!(read(text).unwrap_err(), expected, "{text:?}");
        }
    }

    #[test]
    fn other_columns_are_passed_over_where_some_are_meant() {
        let text = "x,a,y\n\"1, 2\",7,z\n";
        let mut reader = CsvReader::<Pair, _>::among_others("x.csv".as_ref(), text.as_bytes()).unwrap();
        let row = reader.next_row().unwrap().unwrap();
        assert_eq!((row.value.a, row.text("a"), row.text("b")), (7, "7", ""));
        assert_eq!(row.error_at("a", "bad").to_string(), "x.csv:2:8: bad");
    }
}
