//! Elements of HTML: escaped text, uniform numbers, and sortable tables.

use std::fmt::Write as _;

use crate::figure::LineChart;
use crate::number;
use crate::plot::paper::{Area, Drawn, drawn};
use crate::sheet::Sheet;
use crate::text::escaped;

/// A number for people: four significant digits, or a whole number in groups of three from a thousand on.
pub(crate) fn number(value: f64) -> String {
    if value.abs() >= 1000.0 { grouped(&format!("{value:.0}")) } else { number::text(value, 4) }
}

/// A [`number`] that is first rounded to `digits` significant digits, for sentences.
pub(crate) fn rounded(value: f64, digits: usize) -> String {
    number(number::significant(value, digits))
}

/// A percentage with one decimal, and with a sign if it is a difference.
pub(crate) fn percent(share: f64, is_signed: bool) -> String {
    if is_signed { format!("{:+.1} %", 100.0 * share) } else { format!("{:.1} %", 100.0 * share) }
}

fn grouped(text: &str) -> String {
    let (sign, digits) = text.split_at(usize::from(text.starts_with('-')));
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    format!("{sign}{}", groups.collect::<Vec<_>>().join(","))
}

/// A column's name as text, and its unit: `p99_ms` gives "p99" and "ms".
pub(crate) fn heading(column: &str) -> (String, &'static str) {
    const UNITS: [(&str, &str); 6] =
        [("_qps", "q/s"), ("_ms", "ms"), ("_us", "µs"), ("_s", "s"), ("_bytes", "bytes"), ("_ns", "ns")];
    let unit = UNITS.iter().find(|(suffix, _)| column.ends_with(suffix));
    let name = unit.map_or(column, |(suffix, _)| &column[..column.len() - suffix.len()]);
    (name.replace('_', " "), unit.map_or("", |(_, unit)| unit))
}

/// A cell of a table: its text, and the key for sorting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// The value in the file.
    raw: String,
    /// The escaped text that is shown.
    shown: String,
    is_number: bool,
}

impl Cell {
    /// A cell of a file, whose numbers are formatted uniformly.
    pub(crate) fn of(raw: &str) -> Self {
        let value: Option<f64> = raw.parse().ok().filter(|value: &f64| value.is_finite());
        let shown = value.map_or_else(|| escaped(raw), number);
        Self { raw: raw.to_owned(), shown, is_number: value.is_some() }
    }

    /// A cell of text, even if it looks like a number.
    pub(crate) fn text(text: &str) -> Self {
        Self { raw: text.to_owned(), shown: escaped(text), is_number: false }
    }

    /// The cell with another text, if there is one.
    pub(crate) fn shown_as(self, text: Option<String>) -> Self {
        Self { shown: text.map_or(self.shown, |text| escaped(&text)), ..self }
    }

    pub(crate) fn share(share: Option<f64>, is_signed: bool) -> Self {
        let Some(share) = share else { return Self::of("") };
        Self { raw: number::text(share, 9), shown: percent(share, is_signed), is_number: true }
    }
}

/// A table with a caption, whose columns can be sorted with JavaScript.
#[derive(Clone, Debug, Default)]
pub(crate) struct HtmlTable {
    caption: String,
    headings: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl HtmlTable {
    pub(crate) fn new<'a>(caption: &str, columns: impl IntoIterator<Item = &'a str>) -> Self {
        let heading = |column: &str| match heading(column) {
            (name, "") => escaped(&name),
            (name, unit) => format!("{} <span class=\"unit\">{unit}</span>", escaped(&name)),
        };
        Self { caption: caption.to_owned(), headings: columns.into_iter().map(heading).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn of_sheet(caption: &str, sheet: &Sheet) -> Self {
        let is_used =
            |column: &usize| sheet.rows.iter().any(|row| row.get(*column).is_some_and(|cell| !cell.is_empty()));
        let used: Vec<usize> = (0..sheet.columns.len()).filter(is_used).collect();
        let mut table = Self::new(caption, used.iter().map(|&column| sheet.columns[column].as_str()));
        for row in &sheet.rows {
            table.row(used.iter().map(|&column| Cell::of(row.get(column).map_or("", String::as_str))));
        }
        table
    }

    pub(crate) fn html(&self) -> String {
        let mut html = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table class=\"sorts\"><caption>{caption}</caption><thead><tr>",
            caption = escaped(&self.caption),
        );
        let is_number = |column: usize| {
            let mut cells =
                self.rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.raw.is_empty()).peekable();
            cells.peek().is_some() && cells.all(|cell| cell.is_number)
        };
        let numeric: Vec<bool> = (0..self.headings.len()).map(is_number).collect();
        for (heading, &is_number) in self.headings.iter().zip(&numeric) {
            let class = if is_number { " class=\"n\"" } else { "" };
            let _ = write!(
                html,
                "<th scope=\"col\"{class} aria-sort=\"none\"><button type=\"button\">{heading}</button></th>"
            );
        }
        html.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (column, cell) in row.iter().enumerate() {
                let (open, close) = if column == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
                let class = if numeric.get(column) == Some(&true) { " class=\"n\"" } else { "" };
                let _ = write!(html, "<{open}{class} data-v=\"{}\">{}</{close}>", escaped(&cell.raw), cell.shown);
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        html
    }
}

/// A table that opens on a click.
pub(crate) fn folded(summary: &str, table: &HtmlTable) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    format!("<details><summary>{}</summary>{}</details>\n", escaped(summary), table.html())
}

/// The width of a figure, which fits a phone.
pub(crate) const FIGURE_WIDTH: i32 = 4400;

/// A figure with an `id` that is unique on the page, a title, and the texts for readers who can't see it and who can.
pub(crate) fn figure(id: &str, texts: [&str; 3], draw: impl FnOnce(&Area<'_>) -> Drawn<i32>) -> String {
    let [title, description, note] = texts.map(escaped);
    let note = if note.is_empty() { note } else { format!("<p class=\"note\">{note}</p>") };
    let (height, elements) = drawn(FIGURE_WIDTH, draw);
    format!(
        "<figure id=\"{id}\"><figcaption>{title}</figcaption><svg class=\"chart\" viewBox=\"0 0 {FIGURE_WIDTH} {height}\" \
         role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{title}</title>\
         <desc id=\"{id}-d\">{description}</desc>\n{elements}</svg>{note}</figure>\n"
    )
}

impl LineChart {
    /// The chart as a part of a page, or nothing if it has no point.
    pub(crate) fn html(&self, id: &str) -> String {
        if self.points().next().is_none() {
            return String::new();
        }
        let note = if self.note.is_empty() { "" } else { &format!("{}.", self.note.trim_end_matches('.')) };
        figure(id, [&self.title, &self.in_words(), note], |area| self.draw(area, 60, 2700))
    }
}

pub(crate) fn section(id: &str, key: &str, heading: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<section id=\"{id}-s-{key}\"><h3>{heading}</h3>\n{content}</section>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_cannot_become_markup() {
        let table = {
            let mut table = HtmlTable::new("<b>", ["policy"]);
            table.row([Cell::of("<script>alert('x')</script>\u{0}")]);
            table.html()
        };
        assert!(!table.contains("<script") && !table.contains("<b>") && !table.contains('\u{0}'), "{table}");
        assert!(table.contains("&lt;script&gt;alert(&#39;x&#39;)"), "{table}");
    }

    #[test]
    fn numbers_are_written_one_way_and_kept_as_they_are() {
        let shown = [0.0, 0.123456, 12.3456, 999.96, 1234.5, 46961.7, 1_000_000.0, -1500.0].map(number);
        assert_eq!(shown, ["0", "0.1235", "12.35", "1000", "1,234", "46,962", "1,000,000", "-1,500"]);
        assert_eq!(rounded(82434.6, 3), "82,400");
        let cell = Cell::of("46961.7");
        assert_eq!((cell.raw.as_str(), cell.shown.as_str()), ("46961.7", "46,962"));
        assert!(!Cell::of("NaN").is_number && !Cell::of("inf").is_number);
        assert_eq!(heading("p99_ms"), (String::from("p99"), "ms"));
        assert_eq!(heading("max_rate_qps"), (String::from("max rate"), "q/s"));
    }
}
