//! Text tables for terminals.

use std::fmt;

/// Spaces between columns.
const GAP: usize = 2;

/// Rows of text under headings; columns are as wide as their widest cell, numbers flush right. What begins with a number
/// and goes on with a space, `%` or `*` is one.
///
/// Neighbouring columns may share a heading of their own, above theirs:
///
/// ```text
///           mean ms
/// policy    predicted  measured
/// stealing        1.3       1.5
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The shared headings, each with its number of columns; empty for a table without.
    groups: Vec<(String, usize)>,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings and no rows.
    #[must_use]
    pub fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        Self::grouped([("", &headings.into_iter().collect::<Vec<_>>()[..])])
    }

    /// A table without rows, whose columns stand in groups: what is above them, empty where nothing is, and their own
    /// headings.
    #[must_use]
    pub fn grouped<'a>(groups: impl IntoIterator<Item = (&'a str, &'a [&'a str])>) -> Self {
        let mut table = Self::default();
        for (group, headings) in groups {
            table.groups.push((group.to_owned(), headings.len()));
            table.headings.extend(headings.iter().map(|&heading| heading.to_owned()));
        }
        table
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
        let is_number = |cell: &str| {
            cell.is_empty() || cell == "-" || cell.trim_end_matches([' ', '%', '*']).parse::<f64>().is_ok()
        };
        self.rows.iter().all(|row| is_number(&row[column]))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut columns: Vec<(usize, bool)> = (0..self.headings.len())
            .map(|c| {
                let cells = std::iter::once(&self.headings[c]).chain(self.rows.iter().map(|row| &row[c]));
                (cells.map(|cell| cell.chars().count()).max().unwrap_or(0), self.is_numeric(c))
            })
            .collect();
        let mut above = String::new();
        let mut next = 0;
        for (group, count) in &self.groups {
            let members = &mut columns[next..next + count];
            next += count;
            // A group as wide as its columns and the gaps between: where its heading is wider, the last one grows.
            let width = members.iter().map(|(width, _)| width + GAP).sum::<usize>().saturating_sub(GAP);
            let group_width = group.chars().count().max(width);
            if let Some((last, _)) = members.last_mut() {
                *last += group_width - width;
                above += &format!("{group:<group_width$}{:GAP$}", "");
            }
        }
        if !above.trim().is_empty() {
            writeln!(f, "{}", above.trim_end())?;
        }
        for row in std::iter::once(&self.headings).chain(&self.rows) {
            let mut line = String::new();
            for (cell, &(width, is_numeric)) in row.iter().zip(&columns) {
                line += &if is_numeric { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
                line += &" ".repeat(GAP);
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

    #[test]
    fn a_shared_heading_stands_over_its_columns() {
        let mut table = Table::grouped([("", &["policy"][..]), ("delay in ms", &["p50", "p99"]), ("", &["gpu"])]);
        table.row(["mct", "1", "20", "none"]);
        assert_eq!(table.to_string(), "        delay in ms\npolicy  p50     p99  gpu\nmct       1      20  none\n");
    }
}
