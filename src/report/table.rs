//! Text tables for terminals.

use std::fmt;

/// Rows of text under headings; columns are as wide as their widest cell, numbers flush right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings and no rows.
    #[must_use]
    pub fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        Self { headings: headings.into_iter().map(str::to_owned).collect(), rows: Vec::new() }
    }

    /// Adds a row; cells that it lacks are empty, those beyond the headings are dropped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.headings.len(), String::new());
        self.rows.push(cells);
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a column holds numbers (or nothing, or a dash) in every row.
    fn is_numeric(&self, column: usize) -> bool {
        let is_number =
            |cell: &str| cell.is_empty() || cell == "-" || cell.trim_end_matches(" %").parse::<f64>().is_ok();
        self.rows.iter().all(|row| is_number(&row[column]))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<(usize, bool)> = (0..self.headings.len())
            .map(|c| {
                let cells = std::iter::once(&self.headings[c]).chain(self.rows.iter().map(|row| &row[c]));
                (cells.map(|cell| cell.chars().count()).max().unwrap_or(0), self.is_numeric(c))
            })
            .collect();
        for row in std::iter::once(&self.headings).chain(&self.rows) {
            let mut line = String::new();
            for (cell, &(width, is_numeric)) in row.iter().zip(&columns) {
                line += &if is_numeric { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_left_and_numbers_right() {
        let mut table = Table::new(["policy", "qps"]);
        table.row(["stealing", "1.5"]);
        table.row(["mct", "120"]);
        assert_eq!(table.to_string(), "policy    qps\nstealing  1.5\nmct       120\n");
    }
}
