//! Reading the CSV files that users may have edited, line by line.
//!
//! No value of our formats holds a comma, so nothing else tells where a value ends; quotes around one, which some tools
//! add, are passed over. Every value keeps its place, so that whatever is wrong with it is reported with line and
//! column. Lines that begin with `#` are [`Provenance`], wherever they stand; blank ones are passed over.

use std::io::BufRead;
use std::path::Path;

use super::{InputError, Provenance, read_line};

/// The lines of a CSV file, its header first.
#[derive(Debug)]
pub struct CsvLines<'a, R> {
    path: &'a Path,
    reader: R,
    line: u64,
    text: String,
}

impl<'a, R: BufRead> CsvLines<'a, R> {
    /// The lines that `reader` gives; `path` stands for it in errors.
    pub fn new(path: &'a Path, reader: R) -> Self {
        Self { path, reader, line: 0, text: String::new() }
    }

    /// The next line that holds values, `None` after the last; `provenance` takes in the comment lines before it.
    ///
    /// # Errors
    /// If it can't be read, or is not UTF-8.
    pub fn next(&mut self, provenance: &mut Provenance) -> Result<Option<Cells<'_>>, InputError> {
        loop {
            self.line += 1;
            if !read_line(self.path, &mut self.reader, self.line, &mut self.text)? {
                return Ok(None);
            }
            let text = without_end(&self.text);
            if text.starts_with('#') {
                provenance.parse_line(text);
            } else if !text.trim().is_empty() {
                break;
            }
        }
        Ok(Some(Cells::cut(self.path, self.line, without_end(&self.text))))
    }
}

fn without_end(line: &str) -> &str {
    line.trim_end_matches(['\n', '\r'])
}

/// One line, cut at its commas.
#[derive(Clone, Debug)]
pub struct Cells<'a> {
    path: &'a Path,
    line: u64,
    text: &'a str,
    /// Trimmed, each with the byte of the line at which it begins.
    values: Vec<(usize, &'a str)>,
}

impl<'a> Cells<'a> {
    /// Cuts line number `line`, from 1, of the file at `path`: its text without a line end.
    fn cut(path: &'a Path, line: u64, text: &'a str) -> Self {
        let mut begin = 0;
        let values = text.split(',').map(|field| {
            let value = field.trim_start_matches(is_around);
            let at = begin + (field.len() - value.len());
            begin += field.len() + 1;
            (at, value.trim_end_matches(is_around))
        });
        Self { path, line, text, values: values.collect() }
    }

    /// How many values there are, at least 1.
    #[must_use]
    pub fn num_values(&self) -> usize {
        self.values.len()
    }

    /// The values, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.values.iter().map(|&(_, value)| value)
    }

    /// Value number `field`.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn value(&self, field: usize) -> &'a str {
        self.values[field].1
    }

    /// The line's number, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// An error about value number `field`.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn error_at(&self, field: usize, message: impl Into<String>) -> InputError {
        let before = &self.text[..self.values[field].0];
        InputError::at(self.path, self.line, before.chars().count() as u64 + 1, message)
    }

    /// An error about the line.
    #[must_use]
    pub fn error(&self, message: impl Into<String>) -> InputError {
        InputError::line(self.path, self.line, message)
    }

    /// Checks that the line has as many values as its file's header.
    ///
    /// # Errors
    /// If it has more or fewer.
    pub fn expect_values(&self, num_values: usize) -> Result<(), InputError> {
        if self.values.len() == num_values {
            return Ok(());
        }
        Err(self.error(format!("{} values, expected {num_values} as in the header", self.values.len())))
    }

    /// For each of the columns `known`, which value of this line, the header, names it.
    ///
    /// # Errors
    /// If a name is unknown or comes twice.
    pub fn positions<const N: usize>(&self, known: &[&str; N]) -> Result<[Option<usize>; N], InputError> {
        if let Some((field, name)) = self.iter().enumerate().find(|(_, name)| !known.contains(name)) {
            let message = format!("unknown column `{name}`, expected some of {}", known.join(", "));
            return Err(self.error_at(field, message));
        }
        self.positions_among_others(known)
    }

    /// As [`positions`](Self::positions), but other columns are passed over.
    ///
    /// # Errors
    /// If one of the names comes twice.
    pub fn positions_among_others<const N: usize>(&self, known: &[&str; N]) -> Result<[Option<usize>; N], InputError> {
        let mut positions = [None; N];
        for (field, name) in self.iter().enumerate() {
            if let Some(column) = known.iter().position(|&known| known == name)
                && positions[column].replace(field).is_some()
            {
                return Err(self.error_at(field, format!("column `{name}` is given twice")));
            }
        }
        Ok(positions)
    }

    /// The error that the line, the header, lacks these columns.
    #[must_use]
    pub fn lacks<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> InputError {
        let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
        self.error_at(0, format!("the header lacks {}", names.join(", ")))
    }
}

/// What may stand around a value.
fn is_around(c: char) -> bool {
    c.is_whitespace() || c == '"'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_are_no_rows_and_count_as_lines() {
        let text = "# seed: 7\r\n\na,b\r\n# docs: 5\n1,2";
        let (mut lines, mut provenance) = (CsvLines::new("x.csv".as_ref(), text.as_bytes()), Provenance::default());
        let mut found = Vec::new();
        while let Some(cells) = lines.next(&mut provenance).unwrap() {
            found.push((cells.line(), cells.iter().map(str::to_owned).collect::<Vec<_>>().join("|")));
        }
        assert_eq!(found, [(3, "a|b".to_owned()), (5, "1|2".to_owned())]);
        assert_eq!((provenance.get("seed"), provenance.get("docs")), (Some("7"), Some("5")));
    }

    #[test]
    fn values_are_trimmed_and_keep_their_columns() {
        let cells = Cells::cut("x.csv".as_ref(), 3, "\u{e4}\u{f6}, \"b\" ,,d");
        assert_eq!(cells.iter().collect::<Vec<_>>(), ["\u{e4}\u{f6}", "b", "", "d"]);
        let columns: Vec<String> = (0..4).map(|field| cells.error_at(field, "bad").to_string()).collect();
        assert_eq!(columns, ["x.csv:3:1: bad", "x.csv:3:6: bad", "x.csv:3:10: bad", "x.csv:3:11: bad"]);
        assert_eq!(cells.expect_values(2).unwrap_err().to_string(), "x.csv:3: 4 values, expected 2 as in the header");
    }

    #[test]
    fn a_header_names_each_known_column_once() {
        let positions = |text| Cells::cut("x.csv".as_ref(), 1, text).positions(&["a", "b", "c"]);
        assert_eq!(positions("c,a"), Ok([Some(1), None, Some(0)]));
        assert_eq!(
            positions("a,d").unwrap_err().to_string(),
            "x.csv:1:3: unknown column `d`, expected some of a, b, c"
        );
        assert_eq!(positions("a,b,a").unwrap_err().to_string(), "x.csv:1:5: column `a` is given twice");
    }
}
