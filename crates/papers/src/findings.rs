//! What an experiment found: numbers beside the paper's, and charts.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use tandem_core::files::{Provenance, write_atomically};
use tandem_report::number::{optional, text};
use tandem_report::plot::{LineChart, Point, Series, Stroke};
use tandem_report::table::Table;

/// Significant digits in files, and on the terminal.
const FILE_DIGITS: usize = 9;
const SHOWN_DIGITS: usize = 4;

/// Everything that one experiment found.
#[derive(Debug, Default)]
pub struct Findings {
    /// What the rows to come are about; empty, where that is the experiment.
    section: String,
    rows: Vec<Row>,
    charts: Vec<Chart>,
    notes: Vec<String>,
    provenance: Vec<(&'static str, String)>,
}

/// One number of the paper's and ours.
#[derive(Debug)]
struct Row {
    section: String,
    quantity: String,
    unit: &'static str,
    paper: Option<f64>,
    ours: Option<f64>,
}

/// A figure, or one panel of it.
#[derive(Debug)]
pub struct Chart {
    /// Completes the file's name: `NAME-STEM.svg`.
    pub stem: String,
    /// Stands above it.
    pub title: String,
    /// What the horizontal axis tells, with its unit.
    pub x_label: String,
    /// What the vertical axis tells, with its unit.
    pub y_label: String,
    /// Whether the horizontal axis is logarithmic.
    pub is_x_log: bool,
    /// Whether the vertical axis is logarithmic.
    pub is_y_log: bool,
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// A line of a chart.
#[derive(Debug)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// What the paper gives (as far as its text tells), or what was measured here.
    pub is_papers: bool,
    /// Lines of one colour belong together.
    pub colour: usize,
    /// In the order in which they are joined.
    pub points: Vec<(f64, f64)>,
}

impl Findings {
    /// What the rows to come are about: a heading over them, and the beginning of their names in files.
    pub fn section(&mut self, about: impl Into<String>) {
        self.section = about.into();
    }

    /// Adds a number; `None` where the paper doesn't tell it, or this machine can't.
    pub fn compare(
        &mut self,
        quantity: impl Into<String>,
        unit: &'static str,
        paper: impl Into<Option<f64>>,
        ours: impl Into<Option<f64>>,
    ) {
        let (section, quantity) = (self.section.clone(), quantity.into());
        self.rows.push(Row { section, quantity, unit, paper: paper.into(), ours: ours.into() });
    }

    /// Adds a chart.
    pub fn chart(&mut self, chart: Chart) {
        self.charts.push(chart);
    }

    /// Adds a sentence to be printed below the numbers, and kept in the file: what differs from the paper, say.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds a line to the head of every file.
    pub fn provenance(&mut self, key: &'static str, value: impl Into<String>) {
        self.provenance.push((key, value.into()));
    }

    /// Writes `NAME.csv`, and a CSV file and drawings for each chart, into `out`; returns the files' names.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, out: &Path, name: &str, provenance: &Provenance) -> io::Result<Vec<String>> {
        let mut provenance = provenance.clone().with("experiment", name);
        for (key, value) in &self.provenance {
            provenance = provenance.with(key, value);
        }
        for note in &self.notes {
            provenance = provenance.with("note", note);
        }
        let path = out.join(format!("{name}.csv"));
        write_atomically(&path, |file| self.write_rows(file, &provenance))?;
        let mut written = vec![path.display().to_string()];
        for chart in &self.charts {
            let stem = out.join(format!("{name}-{}", chart.stem));
            let path = stem.with_extension("csv");
            write_atomically(&path, |file| chart.write_points(file, &provenance))?;
            chart.drawing().write(&stem)?;
            written.push(format!("{} (.svg)", path.display()));
        }
        Ok(written)
    }

    fn write_rows(&self, out: &mut impl Write, provenance: &Provenance) -> io::Result<()> {
        provenance.write_to(out)?;
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(["quantity", "unit", "paper", "ours"])?;
        for Row { section, quantity, unit, paper, ours } in &self.rows {
            let name = if section.is_empty() { quantity.clone() } else { format!("{section}: {quantity}") };
            csv.write_record([&name, *unit, &optional(*paper, FILE_DIGITS), &optional(*ours, FILE_DIGITS)])?;
        }
        csv.flush()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: Option<f64>| value.map_or_else(|| String::from("-"), |value| text(value, SHOWN_DIGITS));
        for (number, rows) in self.rows.chunk_by(|a, b| a.section == b.section).enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            if let Some(Row { section, .. }) = rows.first().filter(|row| !row.section.is_empty()) {
                writeln!(f, "{section}")?;
            }
            let mut table = Table::new(["quantity", "unit", "paper", "ours"]);
            for Row { quantity, unit, paper, ours, .. } in rows {
                table.row([quantity.clone(), (*unit).to_owned(), shown(*paper), shown(*ours)]);
            }
            write!(f, "{table}")?;
        }
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        Ok(())
    }
}

impl Chart {
    fn write_points(&self, out: &mut impl Write, provenance: &Provenance) -> io::Result<()> {
        provenance.clone().with("x", &self.x_label).with("y", &self.y_label).write_to(out)?;
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(["source", "series", "x", "y"])?;
        for line in &self.lines {
            let source = if line.is_papers { "paper" } else { "ours" };
            for &(x, y) in &line.points {
                csv.write_record([source, &line.name, &text(x, FILE_DIGITS), &text(y, FILE_DIGITS)])?;
            }
        }
        csv.flush()
    }

    fn drawing(&self) -> LineChart {
        let series = self.lines.iter().map(|line| Series {
            name: if line.is_papers { format!("{} (paper)", line.name) } else { line.name.clone() },
            points: line
                .points
                .iter()
                .map(|&(x, y)| Point { x, y, is_hollow: line.is_papers, interval: None })
                .collect(),
            stroke: if line.is_papers { Stroke::Dashed } else { Stroke::Solid },
            colour: Some(line.colour),
            ..Series::default()
        });
        LineChart {
            title: self.title.clone(),
            x_label: self.x_label.clone(),
            y_label: self.y_label.clone(),
            is_x_log: self.is_x_log,
            is_y_log: self.is_y_log,
            series: series.collect(),
            ..LineChart::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_beside_the_papers_and_charts_are_drawn() {
        let mut findings = Findings::default();
        findings.compare("INTER, 8 cores", "q/s", 850.0, 12_345.678);
        findings.compare("adaptive, 8 cores", "q/s", None, 2.0);
        findings.section("real lists");
        findings.compare("bytes", "MB", 1.0, None);
        findings.note("measured on nothing");
        findings.chart(Chart {
            stem: String::from("delay"),
            title: String::from("Delay"),
            x_label: String::from("rate (queries/s)"),
            y_label: String::from("delay (ms)"),
            is_x_log: false,
            is_y_log: true,
            lines: vec![Line { name: String::from("INTER"), is_papers: false, colour: 0, points: vec![(1.0, 2.0)] }],
        });
        let shown = findings.to_string();
        assert!(
            shown.contains("\nreal lists\nquantity")
                && shown.contains("INTER, 8 cores")
                && shown.contains("850  12350")
                && shown.contains("-      2"),
            "{shown}"
        );

        let dir = tempfile::tempdir().unwrap();
        findings.write(dir.path(), "fig", &Provenance::new()).unwrap();
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(read("fig.csv").ends_with(
            "quantity,unit,paper,ours\n\"INTER, 8 cores\",q/s,850,12345.678\n\"adaptive, 8 cores\",q/s,,2\nreal lists: bytes,MB,1,\n"
        ));
        assert!(read("fig.csv").contains("# note: measured on nothing\n"));
        assert!(read("fig-delay.csv").ends_with("source,series,x,y\nours,INTER,1,2\n"));
        assert!(read("fig-delay.svg").contains("INTER"));
    }
}
