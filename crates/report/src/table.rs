//! Text tables for terminals.

use std::fmt;

pub use super::text::wrapped;

const GAP: usize = 2;
/// Minimum width to which text in the last column is broken.
const LEAST_TEXT: usize = 24;
/// Width of any terminal in characters. Columns beyond it continue below, after a repetition of the first columns.
const WIDTH: usize = 80;

/// Rows of text under headings. Columns are as wide as their widest cell, and numbers are flush right. A cell that
/// begins with a number, followed by a space, `%` or `*`, is a number.
///
/// Adjacent columns may share a heading above their own:
///
/// ```text
///           mean ms
/// policy    predicted  measured
/// stealing        1.3       1.5
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Shared headings with their numbers of columns; empty for a column without.
    groups: Vec<(String, usize)>,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Number of columns that identify a row.
    keys: usize,
}

impl Table {
    /// A table with these headings and no rows.
    pub fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        Self::grouped([("", &headings.into_iter().collect::<Vec<_>>()[..])])
    }

    /// A table without rows, whose columns form groups: a shared heading, empty if there is none, and the columns' own
    /// headings.
    pub fn grouped<'a>(groups: impl IntoIterator<Item = (&'a str, &'a [&'a str])>) -> Self {
        let mut table = Self { groups: Vec::new(), headings: Vec::new(), rows: Vec::new(), keys: 1 };
        for (group, headings) in groups {
            table.groups.push((group.to_owned(), headings.len()));
            table.headings.extend(headings.iter().map(|&heading| heading.to_owned()));
        }
        table
    }

    /// Makes the first `keys` columns identify rows. They are repeated if a table is too wide for one piece.
    #[must_use]
    pub fn with_keys(self, keys: usize) -> Self {
        Self { keys, ..self }
    }

    /// Adds a row. Missing cells are empty, and surplus ones are dropped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.headings.len(), String::new());
        self.rows.push(cells);
    }

    /// Removes columns that are empty in every row.
    #[must_use]
    pub fn without_empty_columns(mut self) -> Self {
        let is_kept: Vec<bool> =
            (0..self.headings.len()).map(|column| self.rows.iter().any(|row| !row[column].is_empty())).collect();
        let keep = |cells: &mut Vec<String>| {
            let mut kept = is_kept.iter();
            cells.retain(|_| kept.next() == Some(&true));
        };
        keep(&mut self.headings);
        self.rows.iter_mut().for_each(keep);
        let mut from = 0;
        for (_, columns) in &mut self.groups {
            let of_group = &is_kept[from..from + *columns];
            from += *columns;
            *columns = of_group.iter().filter(|&&kept| kept).count();
        }
        self.groups.retain(|&(_, columns)| columns > 0);
        self
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a column contains a number, nothing or a dash in every row.
    fn is_numeric(&self, column: usize) -> bool {
        let is_number = |cell: &str| {
            cell.is_empty() || cell == "-" || cell.trim_end_matches([' ', '%', '*']).parse::<f64>().is_ok()
        };
        self.rows.iter().all(|row| is_number(&row[column]))
    }
}

/// Layout of a column: its position, its width, and whether its cells are flush right.
#[derive(Clone, Copy, Debug)]
struct TableColumn {
    at: usize,
    width: usize,
    is_numeric: bool,
}

/// Columns under a shared heading, or a single column without one.
#[derive(Clone, Debug)]
struct Group<'a> {
    heading: &'a str,
    columns: Vec<TableColumn>,
}

impl Group<'_> {
    fn width(&self) -> usize {
        self.columns.iter().map(|column| column.width + GAP).sum()
    }
}

impl Table {
    fn column(&self, at: usize) -> TableColumn {
        let cells = std::iter::once(&self.headings[at]).chain(self.rows.iter().map(|row| &row[at]));
        let width = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        TableColumn { at, width, is_numeric: self.is_numeric(at) }
    }

    /// The groups in order. Columns without a shared heading form their own groups.
    fn laid_out(&self) -> Vec<Group<'_>> {
        let mut groups = Vec::new();
        let mut next = 0;
        for (heading, count) in &self.groups {
            let mut columns: Vec<TableColumn> = (next..next + count).map(|at| self.column(at)).collect();
            next += count;
            if heading.is_empty() {
                groups.extend(columns.into_iter().map(|column| Group { heading: "", columns: vec![column] }));
                continue;
            }
            // If the heading is wider than the group's columns and gaps, the last column grows.
            let width = columns.iter().map(|column| column.width + GAP).sum::<usize>().saturating_sub(GAP);
            if let Some(last) = columns.last_mut() {
                last.width += heading.chars().count().saturating_sub(width);
            }
            groups.push(Group { heading, columns });
        }
        // Text in the last column may take several lines.
        let others: usize = groups.iter().rev().skip(1).map(Group::width).sum();
        if let Some(last) = groups.last_mut().and_then(|group| group.columns.last_mut())
            && !last.is_numeric
            && others + LEAST_TEXT <= WIDTH
        {
            last.width = last.width.min(WIDTH - others);
        }
        groups
    }

    /// Prints some groups below their headings.
    fn block(&self, groups: &[&Group<'_>], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if groups.iter().any(|group| !group.heading.is_empty()) {
            let above: String =
                groups.iter().map(|group| format!("{:<width$}", group.heading, width = group.width())).collect();
            writeln!(f, "{}", above.trim_end())?;
        }
        for row in std::iter::once(&self.headings).chain(&self.rows) {
            let mut line = String::new();
            let (mut indent, mut more) = (0, Vec::new());
            for &TableColumn { at, width, is_numeric } in groups.iter().flat_map(|group| &group.columns) {
                let mut cell = row[at].clone();
                if cell.chars().count() > width {
                    let mut lines = wrapped(&cell, width).into_iter();
                    cell = lines.next().unwrap_or_default();
                    (indent, more) = (line.chars().count(), lines.collect());
                }
                line += &if is_numeric { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
                line += &" ".repeat(GAP);
            }
            writeln!(f, "{}", line.trim_end())?;
            // The rest of a long last cell stands below its beginning.
            for more in more {
                writeln!(f, "{:indent$}{more}", "")?;
            }
        }
        Ok(())
    }
}

/// Breaks lines between words to the width of a table. Short lines stay unchanged.
pub fn fitted(text: &str) -> String {
    let fit = |line: &str| match line.chars().count() {
        0..=WIDTH => line.to_owned(),
        _ => wrapped(line, WIDTH).join("\n"),
    };
    text.split('\n').map(fit).collect::<Vec<_>>().join("\n")
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.laid_out();
        let (keys, others) = groups.split_at(self.keys.min(groups.len()));
        let keys: Vec<&Group<'_>> = keys.iter().collect();
        let key_width: usize = keys.iter().map(|group| group.width()).sum();
        let mut rest = others;
        loop {
            // As many groups as fit, at least one, form a block.
            let mut width = key_width;
            let fits = rest.iter().take_while(|group| {
                width += group.width();
                width <= WIDTH + GAP
            });
            let count = fits.count().max(1).min(rest.len());
            let (these, after) = rest.split_at(count);
            let block: Vec<&Group<'_>> = keys.iter().copied().chain(these).collect();
            self.block(&block, f)?;
            if after.is_empty() {
                return Ok(());
            }
            writeln!(f)?;
            rest = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_are_empty_in_every_row_can_be_left_out() {
        let mut table = Table::grouped([("", &["name"][..]), ("left", &["a", "b"]), ("out", &["c"]), ("", &["d"])]);
        table.row(["x", "", "1", "", "2"]);
        table.row(["y", "", "", "", "3"]);
        let lines: Vec<String> = table.without_empty_columns().to_string().lines().map(str::to_owned).collect();
        let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["left"]);
        assert_eq!(words[1], ["name", "b", "d"]);
        assert_eq!(words[2..], [vec!["x", "1", "2"], vec!["y", "3"]]);
    }

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

    #[test]
    fn a_wide_table_goes_on_below_with_its_first_columns_once_more() {
        let headings: Vec<String> = (0..9).map(|i| format!("column {i} of 9")).collect();
        let mut table = Table::new(headings.iter().map(String::as_str)).with_keys(2);
        table.row((0..9).map(|i| format!("cell {i}")));
        let text = table.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!((2..9).all(|i| text.matches(&format!("cell {i}")).count() == 1), "{text}");
        assert!((0..2).all(|i| text.matches(&format!("cell {i}")).count() == 3), "{text}");
    }

    #[test]
    fn long_lines_are_broken_and_others_left() {
        let text = format!("a  b\n\n{}\n", "word ".repeat(20).trim());
        assert_eq!(fitted(&text), format!("a  b\n\n{}\n{}\n", "word ".repeat(16).trim(), "word ".repeat(4).trim()));
    }

    #[test]
    fn long_text_in_the_last_column_goes_on_under_its_beginning() {
        let mut table = Table::new(["name", "what"]);
        table.row(["x", "long ".repeat(30).trim()]);
        let text = table.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!((text.lines().count(), text.matches("long").count()), (3, 30), "{text}");
        assert!(text.lines().last().unwrap().starts_with("      long long"), "{text}");
    }
}
