//! Reading CSV files, one row at a time.

use std::io::BufRead;
use std::marker::PhantomData;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::cells::Cells;
use super::names::{Names, TimeUnit, in_words};
use super::row::{Fault, columns, row};
use crate::files::{InputError, Provenance, read_line};

/// A row of a CSV file: a struct whose fields are the columns, in the order of writing.
pub trait Record: DeserializeOwned {
    /// Columns that a file may lack; their fields then take serde's defaults.
    const OPTIONAL: &'static [&'static str] = &[];
}

/// A CSV file as rows of type `T`.
#[derive(Debug)]
pub struct CsvReader<'a, T, R> {
    path: &'a Path,
    reader: R,
    line: u64,
    text: String,
    provenance: Provenance,
    /// The character between cells: a comma in this program's files.
    separator: char,
    /// The name of each column of the file, as written.
    names: Vec<String>,
    /// The field of each column of the file; `None` for a column to skip. Empty without a header.
    header: Vec<Option<&'static str>>,
    rows: PhantomData<T>,
}

impl<'a, T: Record, R: BufRead> CsvReader<'a, T, R> {
    /// Reads up to the header; `path` is the file's name in errors. Fails with line and column: unknown, repeated or
    /// missing columns, text that can't be read or is not UTF-8.
    pub fn new(path: &'a Path, reader: R) -> Result<Self, InputError> {
        Self::with_header(path, reader, |_| ',', header::<T>)
    }

    /// As [`CsvReader::new`], for tables of other programs: the separator is recognised, and columns by their names. A field
    /// takes the column with the first of its names; other columns are skipped. Fails if text can't be read or is not
    /// UTF-8.
    pub fn recognised(path: &'a Path, reader: R, names: &Names) -> Result<Self, InputError> {
        let separator = |line: &str| {
            let count = |separator: &char| line.matches(*separator).count();
            [';', '\t', '|', ','].into_iter().max_by_key(count).unwrap_or(',')
        };
        Self::with_header(path, reader, separator, |cells| {
            let mut header = vec![None; cells.len()];
            let stems: Vec<String> = cells.iter().map(|name| TimeUnit::of_column(name).0).collect();
            for &(field, names) in names {
                let column = names.split(' ').find_map(|name| stems.iter().position(|stem| stem == name));
                column.into_iter().for_each(|at| header[at] = header[at].or(Some(field)));
            }
            Ok(header)
        })
    }

    fn with_header(
        path: &'a Path,
        reader: R,
        separator: impl Fn(&str) -> char,
        header: impl Fn(&Cells<'_>) -> Result<Vec<Option<&'static str>>, InputError>,
    ) -> Result<Self, InputError> {
        let (provenance, text, names) = (Provenance::default(), String::new(), Vec::new());
        let rows = PhantomData;
        let mut csv = Self { path, reader, line: 0, text, provenance, separator: ',', names, header: Vec::new(), rows };
        if csv.next_line()? {
            csv.separator = separator(&csv.text);
            let cells = Cells::cut(path, csv.line, &csv.text, csv.separator)?;
            csv.header = header(&cells)?;
            csv.names = cells.iter().map(str::to_owned).collect();
        }
        Ok(csv)
    }

    /// Whether the file has a header; empty files and files of comments lack one.
    pub fn has_header(&self) -> bool {
        !self.header.is_empty()
    }

    /// Whether the header has a column.
    pub fn column(&self, name: &str) -> bool {
        self.header.contains(&Some(name))
    }

    /// The name of a field's column in the file, and the unit in it.
    pub fn named(&self, field: &str) -> Option<(&str, Option<TimeUnit>)> {
        let at = self.header.iter().position(|&known| known == Some(field))?;
        Some((&self.names[at], TimeUnit::of_column(&self.names[at]).1))
    }

    /// The separator and the skipped columns in words; `None` if these are commas and no column.
    pub fn skipped(&self) -> Option<String> {
        let skipped: Vec<&str> = self
            .names
            .iter()
            .zip(&self.header)
            .filter(|(_, field)| field.is_none())
            .map(|(name, _)| name.as_str())
            .collect();
        let ignored = if skipped.is_empty() { String::new() } else { format!(", ignored: {}", in_words(&skipped)) };
        let form = match self.separator {
            ',' => "comma",
            ';' => "semicolon",
            '|' => "bar",
            _ => "tab",
        };
        (self.separator != ',' || !skipped.is_empty()).then(|| format!("{form}-separated{ignored}"))
    }

    /// The names of the columns in words.
    pub fn columns(&self) -> String {
        in_words(&self.names)
    }

    /// An error at the line read last, which is the header's at first.
    pub fn error(&self, message: impl Into<String>) -> InputError {
        InputError::at(self.path, self.line, 1, message)
    }

    /// The comment lines read so far; after the last row, all of them.
    pub fn into_provenance(self) -> Provenance {
        self.provenance
    }

    /// The next row; `None` after the last. Fails with line and column: numbers of values that differ from the
    /// header's, values of a wrong form, text that can't be read or is not UTF-8.
    pub fn next_row(&mut self) -> Result<Option<Row<'_, T>>, InputError> {
        if !self.has_header() || !self.next_line()? {
            return Ok(None);
        }
        let cells = Cells::cut(self.path, self.line, &self.text, self.separator)?;
        let (found, expected) = (cells.len(), self.header.len());
        if found != expected {
            return Err(cells.error(format!("{found} values, expected {expected} as in the header")));
        }
        let context = Context { cells, names: &self.names, header: &self.header, provenance: &self.provenance };
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

/// Likeness of two names, from 0 to 1, above which one may be the other misspelt.
const ALIKE: f64 = 0.85;

/// The field of each column in the header.
fn header<T: Record>(cells: &Cells<'_>) -> Result<Vec<Option<&'static str>>, InputError> {
    let (known, optional) = (columns::<T>(), T::OPTIONAL);
    let mut header = Vec::with_capacity(cells.len());
    for (field, name) in cells.iter().enumerate() {
        let column = known.iter().copied().find(|&known| known == name);
        if column.is_none() {
            let likeness = |known: &&str| strsim::jaro_winkler(&name.to_lowercase(), known);
            let near = known.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
            let hint = match near.filter(|near| likeness(near) > ALIKE) {
                Some(near) => format!("perhaps `{near}`"),
                None if name.contains([';', '\t']) => format!("expected {}, separated by commas", in_words(known)),
                None => format!("expected some of {}", in_words(known)),
            };
            return Err(cells.error_at(field, format!("unknown column `{name}`, {hint}")));
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
    names: &'a [String],
    header: &'a [Option<&'static str>],
    provenance: &'a Provenance,
}

impl Context<'_> {
    /// The error for cell `field`, whose content is not as expected.
    fn unexpected_at(&self, field: usize, expected: &str) -> InputError {
        let name = &self.names[field];
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
    pub fn line(&self) -> u64 {
        self.context.cells.line()
    }

    /// The comment lines before it.
    pub fn provenance(&self) -> &Provenance {
        self.context.provenance
    }

    /// The text of a column's cell; empty if the file lacks the column.
    pub fn text(&self, column: &str) -> &str {
        let field = self.context.header.iter().position(|&name| name == Some(column));
        field.map_or("", |field| self.context.cells.value(field))
    }

    /// The error for a column's cell, whose content is not as expected.
    pub fn unexpected(&self, column: &str, expected: &str) -> InputError {
        self.context.unexpected_at(self.context.field(column), expected)
    }

    /// An error at a column's cell.
    pub fn error_at(&self, column: &str, message: impl Into<String>) -> InputError {
        self.context.cells.error_at(self.context.field(column), message)
    }

    /// An error about the row.
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
            ("a,c\n", "x.csv:1:3: unknown column `c`, expected some of `a`, `b`"),
            ("a;b\n", "x.csv:1:1: unknown column `a;b`, expected `a`, `b`, separated by commas"),
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
}
