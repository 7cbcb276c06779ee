//! A line of a CSV file, cut at its separators.

use std::borrow::Cow;
use std::path::Path;

use crate::files::InputError;

#[derive(Clone, Debug)]
pub(super) struct Cells<'a> {
    path: &'a Path,
    line: u64,
    text: &'a str,
    /// Values without quotes and surrounding white space, each with the offset of its first byte in the line.
    values: Vec<(usize, Cow<'a, str>)>,
}

impl<'a> Cells<'a> {
    /// Cuts line `line`, from 1, of the file at `path`; `text` has no line end.
    ///
    /// A value in double quotes may hold separators and doubled quotes; white space around values is ignored. Fails if
    /// a quote is not closed, or text follows a closed one.
    pub(super) fn cut(path: &'a Path, line: u64, text: &'a str, separator: char) -> Result<Self, InputError> {
        let mut cells = Self { path, line, text, values: Vec::new() };
        let mut begin = 0;
        loop {
            let rest = &text[begin..];
            let value = rest.trim_start_matches(|c: char| c.is_whitespace() && c != separator);
            let at = begin + (rest.len() - value.len());
            let (value, length) = match value.strip_prefix('"') {
                None => {
                    let length = value.find(separator).unwrap_or(value.len());
                    (Cow::Borrowed(value[..length].trim_end()), length)
                }
                Some(quoted) => {
                    let (value, length) = cells.quoted(at, quoted, separator)?;
                    (value, length + 1)
                }
            };
            cells.values.push((at, value));
            match text[at + length..].find(separator) {
                Some(next) => begin = at + length + next + 1,
                None => return Ok(cells),
            }
        }
    }

    /// The quoted value after an opening quote, and its length in bytes with the closing quote.
    fn quoted(&self, at: usize, text: &'a str, separator: char) -> Result<(Cow<'a, str>, usize), InputError> {
        let mut from = 0;
        let end = loop {
            match text[from..].find('"').map(|quote| from + quote) {
                Some(quote) if text[quote + 1..].starts_with('"') => from = quote + 2,
                Some(quote) => break quote,
                None => return Err(self.error_from(at, "the quote is not closed on its line")),
            }
        };
        let behind = text[end + 1..].split(separator).next().unwrap_or_default();
        if !behind.trim().is_empty() {
            let message = format!("`{}` follows a closing quote", behind.trim());
            return Err(self.error_from(at, message));
        }
        let value = text[..end].trim();
        let value = if value.contains('"') { Cow::Owned(value.replace("\"\"", "\"")) } else { Cow::Borrowed(value) };
        Ok((value, end + 1))
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(_, value)| &**value)
    }

    pub(super) fn value(&self, field: usize) -> &str {
        &self.values[field].1
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn error_at(&self, field: usize, message: impl Into<String>) -> InputError {
        self.error_from(self.values[field].0, message)
    }

    fn error_from(&self, byte: usize, message: impl Into<String>) -> InputError {
        let column = self.text[..byte].chars().count() as u64 + 1;
        InputError::at(self.path, self.line, column, message)
    }

    pub(super) fn error(&self, message: impl Into<String>) -> InputError {
        InputError::line(self.path, self.line, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Result<Cells<'_>, InputError> {
        Cells::cut("x.csv".as_ref(), 3, text, ',')
    }

    #[test]
    fn values_are_trimmed_and_keep_their_columns() {
        let cells = cut("\u{e4}\u{f6}, \"b\" ,,d").unwrap();
        assert_eq!(cells.iter().collect::<Vec<_>>(), ["\u{e4}\u{f6}", "b", "", "d"]);
        let columns: Vec<String> = (0..4).map(|field| cells.error_at(field, "bad").to_string()).collect();
        assert_eq!(columns, ["x.csv:3:1: bad", "x.csv:3:5: bad", "x.csv:3:10: bad", "x.csv:3:11: bad"]);
    }

    #[test]
    fn quoted_values_may_hold_commas_and_quotes() {
        let cells = cut("\"a, b\",\"say \"\"so\"\"\",\"\"").unwrap();
        assert_eq!(cells.iter().collect::<Vec<_>>(), ["a, b", "say \"so\"", ""]);
        assert_eq!(cut("1,\"2").unwrap_err().to_string(), "x.csv:3:3: the quote is not closed on its line");
        assert_eq!(cut("1,\"2\"3").unwrap_err().to_string(), "x.csv:3:3: `3` follows a closing quote");
        assert_eq!(cut("").unwrap().iter().collect::<Vec<_>>(), [""]);
    }
}
