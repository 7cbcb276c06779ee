//! Numbers of an experiment as claims read them: of a run, or of the files that a run wrote.

use std::path::Path;

use tandem_model::files::Provenance;
use tandem_report::number::text;

/// Header of a file of rows.
pub(crate) const ROW_COLUMNS: [&str; 4] = ["quantity", "unit", "paper", "ours"];
/// Header of a file of a chart's points.
pub(crate) const POINT_COLUMNS: [&str; 4] = ["source", "series", "x", "y"];
/// Significant digits of numbers in evidence.
const DIGITS: usize = 3;

/// A quantity, the paper's number and ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) paper: Option<f64>,
    pub(crate) ours: Option<f64>,
}

/// A curve of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// Stem of the chart's file name.
    pub(crate) chart: String,
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// All numbers of one run of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Results {
    pub(crate) rows: Vec<Row>,
    pub(crate) series: Vec<Series>,
    pub(crate) provenance: Provenance,
    /// Whether there is no run.
    pub(crate) is_missing: bool,
}

/// The reason why a number is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap(pub(crate) String);

pub(crate) type Found<T> = std::result::Result<T, Gap>;

impl Results {
    /// Results of an experiment that was not run.
    pub fn missing() -> Self {
        Self { is_missing: true, ..Self::default() }
    }

    /// Reads a file of rows, and the charts of the same run, whose files begin with the same name; `None` if the file
    /// holds no rows. Fails with a message with the path if a file cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>, String> {
        let (header, records, provenance) = read_csv(path)?;
        if header != ROW_COLUMNS {
            return Ok(None);
        }
        let number = |cell: &str| cell.parse::<f64>().ok();
        let row = |cells: &csv::StringRecord| Row {
            name: cells[0].to_owned(),
            unit: cells[1].to_owned(),
            paper: number(&cells[2]),
            ours: number(&cells[3]),
        };
        let rows = records.iter().map(row).collect();
        let mut results = Self { rows, provenance, ..Self::default() };
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut paths: Vec<_> = std::fs::read_dir(folder)
            .map_err(|e| format!("{}: {e}", folder.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "csv")) {
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            if let Some(chart) = name.strip_prefix(&stem).and_then(|rest| rest.strip_prefix('-')) {
                results.add_chart(chart, path)?;
            }
        }
        Ok(Some(results))
    }

    fn add_chart(&mut self, chart: &str, path: &Path) -> Result<(), String> {
        let (header, records, _) = read_csv(path)?;
        if header != POINT_COLUMNS {
            return Ok(());
        }
        for cells in records.iter().filter(|cells| &cells[0] == "ours") {
            let point = cells[2].parse().ok().zip(cells[3].parse().ok());
            let point = point.ok_or_else(|| format!("{}: a point is no pair of numbers", path.display()))?;
            match self.series.iter_mut().find(|series| series.chart == chart && series.name == cells[1]) {
                Some(series) => series.points.push(point),
                None => {
                    self.series.push(Series { chart: chart.to_owned(), name: cells[1].to_owned(), points: vec![point] })
                }
            }
        }
        Ok(())
    }

    /// Our number of a row.
    pub(crate) fn ours(&self, name: &str) -> Found<f64> {
        self.row(name)?.ours.ok_or_else(|| self.not_measured(name))
    }

    /// Our numbers of all rows whose names have the form of `pattern`, with the text in place of its holes.
    pub(crate) fn like(&self, pattern: &str) -> Found<Vec<(String, f64)>> {
        let named = self.rows.iter().filter_map(|row| {
            let holes = captured(pattern, &row.name)?;
            Some((if holes.is_empty() { row.name.clone() } else { holes.join(", ") }, row))
        });
        let named: Vec<(String, &Row)> = named.collect();
        if named.is_empty() {
            return Err(self.no_row(pattern));
        }
        let measured: Vec<_> = named.into_iter().filter_map(|(name, row)| Some((name, row.ours?))).collect();
        if measured.is_empty() { Err(self.not_measured(pattern)) } else { Ok(measured) }
    }

    /// Whether a row of this form exists.
    pub(crate) fn has(&self, pattern: &str) -> bool {
        self.rows.iter().any(|row| captured(pattern, &row.name).is_some())
    }

    /// Points of a curve of ours.
    pub(crate) fn curve(&self, chart: &str, name: &str) -> Found<&[(f64, f64)]> {
        let found = self.series.iter().find(|series| series.chart == chart && series.name == name);
        let found = found.filter(|series| !series.points.is_empty());
        found.map(|series| series.points.as_slice()).ok_or_else(|| self.no_row(&format!("curve {name} of {chart}")))
    }

    /// The number of queries that the numbers are means of, if the file has it.
    pub(crate) fn queries(&self) -> Option<u64> {
        let notes = || self.provenance.lines().filter(|(key, _)| *key == "note").map(|(_, note)| note);
        let before = |text: &str, end: &str| {
            let digits = text[..text.find(end)?].rsplit(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse::<u64>().ok()
        };
        let stated = self.provenance.get("sample").and_then(|sample| before(sample, " "));
        let measured = notes().find_map(|note| before(note, " are measured;"));
        let first = notes().find_map(|note| before(note.split_once("mean of the first ")?.1, " queries"));
        let all = || before(self.provenance.get("input")?, " queries, ");
        let noted = || notes().find_map(|note| note.split_once(" queries")?.0.parse().ok());
        stated.or(measured).or(first).or_else(all).or_else(noted)
    }

    /// The duration of a measurement that the command names.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let command = self.provenance.get("command")?;
        command.split_once("--seconds ")?.1.split(' ').next()?.parse().ok()
    }

    fn row(&self, name: &str) -> Found<&Row> {
        self.rows.iter().find(|row| row.name == name).ok_or_else(|| self.no_row(name))
    }

    fn no_row(&self, name: &str) -> Gap {
        Gap(if self.is_missing { String::from("no result is recorded") } else { format!("no row `{name}`") })
    }

    fn not_measured(&self, name: &str) -> Gap {
        let is_without_gpu =
            self.provenance.lines().any(|(key, note)| key == "note" && note.starts_with("No GPU here"));
        Gap(if is_without_gpu { String::from("no GPU") } else { format!("`{name}` was not measured") })
    }
}

/// The texts in place of the holes `{}` of a pattern, if a name has its form.
pub(crate) fn captured<'a>(pattern: &str, name: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = pattern.split("{}");
    let mut rest = name.strip_prefix(parts.next()?)?;
    let mut parts = parts.peekable();
    let mut texts = Vec::new();
    while let Some(part) = parts.next() {
        // The last part must end the name.
        let at = if parts.peek().is_none() { rest.strip_suffix(part)?.len() } else { rest.find(part)? };
        if at == 0 {
            return None;
        }
        texts.push(&rest[..at]);
        rest = &rest[at + part.len()..];
    }
    rest.is_empty().then_some(texts)
}

/// A number in evidence.
pub(crate) fn shown(value: f64) -> String {
    text(value, DIGITS)
}

type Csv = (Vec<String>, Vec<csv::StringRecord>, Provenance);

/// Header, records and provenance of a file.
fn read_csv(path: &Path) -> Result<Csv, String> {
    let fault = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| fault(&e))?;
    let mut provenance = Provenance::default();
    text.lines().take_while(|line| line.starts_with('#')).for_each(|line| provenance.parse_line(line));
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| fault(&e))?.iter().map(str::to_owned).collect();
    let records = reader.records().collect::<Result<Vec<_>, _>>().map_err(|e| fault(&e))?;
    Ok((header, records, provenance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_give_the_text_of_their_holes() {
        assert_eq!(captured("M {} %, VFB over {}", "M 10 %, VFB over Qtf"), Some(vec!["10", "Qtf"]));
        assert_eq!(captured("{}: GPU", "AND: GPU"), Some(vec!["AND"]));
        assert_eq!(captured("{}: GPU", "AND: GPU, P 64"), None);
        assert_eq!(captured("lists", "lists"), Some(vec![]));
        assert_eq!(captured("{}lists", "lists"), None);
    }

    #[test]
    fn a_file_is_read_with_its_charts_and_the_queries_that_it_tells() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write(
            "a-fig1.csv",
            "# command: tandem reproduce a-fig1 --seconds 0.05\n# input: x; 40 queries, 7 postings\nquantity,unit,paper,ours\n\"b, c\",ms,1,2\nd,ms,,\n",
        );
        write("a-fig1-delay.csv", "source,series,x,y\npaper,s,1,9\nours,s,1,2\nours,s,2,3\n");
        let results = Results::read(&dir.path().join("a-fig1.csv")).unwrap().unwrap();
        assert_eq!((results.ours("b, c"), results.rows[0].paper), (Ok(2.0), Some(1.0)));
        assert_eq!(results.ours("d"), Err(Gap("`d` was not measured".into())));
        assert_eq!(results.ours("e"), Err(Gap("no row `e`".into())));
        assert_eq!(results.curve("delay", "s"), Ok(&[(1.0, 2.0), (2.0, 3.0)][..]));
        assert_eq!((results.queries(), results.seconds()), (Some(40), Some(0.05)));
        assert!(Results::read(&dir.path().join("a-fig1-delay.csv")).unwrap().is_none());
    }
}
