//! Results of an experiment: numbers next to those of the paper, charts and notes.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use tandem_model::files::{Provenance, csv_error, write_atomically};

use crate::results::{POINT_COLUMNS, ROW_COLUMNS, Results, Row, Series as CurveNumbers};
use tandem_report::figure::{LineChart, Point, Series};
use tandem_report::number::{optional, text};
use tandem_report::table::{Table, wrapped};

/// Significant digits in files.
const FILE_DIGITS: usize = 9;
const SHOWN_DIGITS: usize = 4;
/// Width of names in tables, which leaves room for the unit and both numbers.
const NAME_WIDTH: usize = 36;

/// Results of one experiment.
#[derive(Debug, Default)]
pub struct Findings {
    /// Subject of the rows that follow; empty for the whole experiment.
    section: String,
    rows: Vec<Comparison>,
    charts: Vec<Chart>,
    notes: Vec<String>,
    provenance: Vec<(&'static str, String)>,
}

#[derive(Debug)]
struct Comparison {
    section: String,
    quantity: String,
    unit: &'static str,
    paper: Option<f64>,
    ours: Option<f64>,
}

impl Comparison {
    /// The name in files, with the section.
    fn name(&self) -> String {
        let Self { section, quantity, .. } = self;
        if section.is_empty() { quantity.clone() } else { format!("{section}: {quantity}") }
    }
}

/// A figure, or one panel of it.
#[derive(Debug)]
pub(crate) struct Chart {
    /// End of the file name `NAME-STEM.svg`.
    stem: String,
    title: String,
    x_label: String,
    y_label: String,
    is_x_log: bool,
    is_y_log: bool,
    curves: Vec<Curve>,
}

#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    /// Whether the points are the paper's rather than ours.
    is_papers: bool,
    /// Number of the colour. Curves that belong together share one.
    colour: usize,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Curve {
    /// A curve that was measured, modelled or counted here.
    pub(crate) fn ours(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), is_papers: false, colour, points }
    }

    /// A curve through the numbers that the text of the paper gives.
    pub(crate) fn papers(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), is_papers: true, colour, points }
    }
}

impl Findings {
    /// Starts a section: a heading over the rows that follow, and a prefix of their names in files.
    pub(crate) fn section(&mut self, subject: impl Into<String>) {
        self.section = subject.into();
    }

    /// Adds a row; a number is `None` if the paper does not give it or this machine cannot measure it.
    pub(crate) fn compare(
        &mut self,
        quantity: impl Into<String>,
        unit: &'static str,
        paper: impl Into<Option<f64>>,
        ours: impl Into<Option<f64>>,
    ) {
        let (section, quantity) = (self.section.clone(), quantity.into());
        self.rows.push(Comparison { section, quantity, unit, paper: paper.into(), ours: ours.into() });
    }

    /// Adds a row for a quantity that the paper does not give.
    pub(crate) fn add(&mut self, quantity: impl Into<String>, unit: &'static str, ours: impl Into<Option<f64>>) {
        self.compare(quantity, unit, None, ours);
    }

    pub(crate) fn chart(&mut self, chart: Chart) {
        self.charts.push(chart);
    }

    /// Adds a text that is printed below the rows and written to the file.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds a line to the head of every file.
    pub(crate) fn provenance(&mut self, key: &'static str, value: impl Into<String>) {
        self.provenance.push((key, value.into()));
    }

    /// Returns the numbers for claims.
    pub fn results(&self) -> Results {
        let row =
            |row: &Comparison| Row { name: row.name(), unit: row.unit.to_owned(), paper: row.paper, ours: row.ours };
        let series = self.charts.iter().flat_map(|chart| {
            chart.curves.iter().filter(|curve| !curve.is_papers).map(|curve| CurveNumbers {
                chart: chart.stem.clone(),
                name: curve.name.clone(),
                points: curve.points.clone(),
            })
        });
        let provenance = self.described(Provenance::default());
        Results { rows: self.rows.iter().map(row).collect(), series: series.collect(), provenance, is_missing: false }
    }

    /// Adds the origin and the notes of the experiment to the origin of the program.
    fn described(&self, mut provenance: Provenance) -> Provenance {
        for (key, value) in &self.provenance {
            provenance = provenance.with(key, value);
        }
        self.notes.iter().fold(provenance, |provenance, note| provenance.with("note", note))
    }

    /// Returns an opened GPU; on a machine without one, notes the reason and returns `None`.
    #[cfg(feature = "gpu")]
    pub(crate) fn gpu_if_any<T>(
        &mut self,
        opened: crate::Result<T, impl Into<crate::ExperimentError>>,
    ) -> crate::Result<Option<T>> {
        match opened.map_err(Into::into) {
            Ok(gpu) => Ok(Some(gpu)),
            Err(crate::ExperimentError::Gpu(tandem_engine::search::device::GpuError::NoGpu(reason))) => {
                self.note(format!("No GPU here ({reason}): its numbers are left empty."));
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Writes `NAME.csv`, and a CSV file and a drawing for each chart, into `out`; returns the names of the files.
    /// Fails as the file system does.
    pub fn write(&self, out: &Path, name: &str, provenance: &Provenance) -> io::Result<Vec<String>> {
        let provenance = self.described(provenance.clone().with("experiment", name));
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
        csv.write_record(ROW_COLUMNS).map_err(csv_error)?;
        for row in &self.rows {
            let (paper, ours) = (optional(row.paper, FILE_DIGITS), optional(row.ours, FILE_DIGITS));
            csv.write_record([&row.name(), row.unit, &paper, &ours]).map_err(csv_error)?;
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
            if let Some(Comparison { section, .. }) = rows.first().filter(|row| !row.section.is_empty()) {
                writeln!(f, "{section}")?;
            }
            let mut table = Table::new(["quantity", "unit", "paper", "ours"]);
            for Comparison { quantity, unit, paper, ours, .. } in rows {
                // Names are broken, so that both numbers stay in one line of 80 characters.
                let mut lines = wrapped(quantity, NAME_WIDTH).into_iter();
                let first = lines.next().unwrap_or_default();
                table.row([first, (*unit).to_owned(), shown(*paper), shown(*ours)]);
                lines.for_each(|line| table.row([format!("  {line}")]));
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
    /// A chart with linear axes. Curves without points are left out.
    pub(crate) fn new(
        stem: impl Into<String>,
        title: impl Into<String>,
        [x_label, y_label]: [&str; 2],
        curves: impl IntoIterator<Item = Curve>,
    ) -> Self {
        let curves = curves.into_iter().filter(|curve| !curve.points.is_empty()).collect();
        let (x_label, y_label) = (x_label.to_owned(), y_label.to_owned());
        Self { stem: stem.into(), title: title.into(), x_label, y_label, is_x_log: false, is_y_log: false, curves }
    }

    pub(crate) fn log_x(self) -> Self {
        Self { is_x_log: true, ..self }
    }

    pub(crate) fn log_y(self) -> Self {
        Self { is_y_log: true, ..self }
    }

    fn write_points(&self, out: &mut impl Write, provenance: &Provenance) -> io::Result<()> {
        provenance.clone().with("x", &self.x_label).with("y", &self.y_label).write_to(out)?;
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(POINT_COLUMNS).map_err(csv_error)?;
        for curve in &self.curves {
            let source = if curve.is_papers { "paper" } else { "ours" };
            for &(x, y) in &curve.points {
                csv.write_record([source, &curve.name, &text(x, FILE_DIGITS), &text(y, FILE_DIGITS)])
                    .map_err(csv_error)?;
            }
        }
        csv.flush()
    }

    fn drawing(&self) -> LineChart {
        let series = self.curves.iter().map(|curve| {
            let point = |&(x, y)| Point { x, y, is_hollow: curve.is_papers, interval: None };
            Series {
                name: if curve.is_papers { format!("{} (paper)", curve.name) } else { curve.name.clone() },
                points: curve.points.iter().map(point).collect(),
                is_dashed: curve.is_papers,
                look: Some((curve.colour, curve.colour)),
                ..Series::default()
            }
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
    fn numbers_stand_next_to_the_papers_and_charts_are_drawn() {
        let mut findings = Findings::default();
        findings.compare("INTER, 8 cores", "q/s", 850.0, 12_345.678);
        findings.compare("adaptive, 8 cores", "q/s", None, 2.0);
        findings.section("real lists");
        findings.compare("bytes", "MB", 1.0, None);
        findings.note("measured on nothing");
        let curve = Curve::ours("INTER", 0, vec![(1.0, 2.0)]);
        findings.chart(Chart::new("delay", "Delay", ["rate (queries/s)", "delay (ms)"], [curve]).log_y());
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
