//! What a chart says. `plot` draws it.

use std::io;
use std::path::{Path, PathBuf};

use tandem_model::sched::PolicyKind;

use crate::number::text;
use crate::plot::look::LOOKS;
pub use crate::plot::look::Look;
use crate::plot::paper::{TICK, drawn, paragraph};
use crate::text::escaped;

/// The signs of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signs {
    /// A line with a marker at each point.
    #[default]
    LineAndMarkers,
    /// A line alone.
    Line,
    /// Markers without a line, or small dots if they are many.
    Markers,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// Whether the marker is hollow, for example because a query missed its deadline.
    pub is_hollow: bool,
    /// Interval of `y`, or of `x` if the chart has rows.
    pub interval: Option<(f64, f64)>,
}

/// A line of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, in the order in which they are joined. Points that an axis can't show are left out.
    pub points: Vec<Point>,
    /// Whether the line is dashed, as for predictions.
    pub is_dashed: bool,
    /// Colour and marker, by default those of the position among the series.
    pub look: Option<Look>,
    /// Signs of the line.
    pub signs: Signs,
}

impl Series {
    /// The series of this name, which is added if there is none yet.
    pub fn named(all: &mut Vec<Self>, name: String) -> &mut Self {
        let at = all.iter().position(|series| series.name == name).unwrap_or_else(|| {
            all.push(Self { name, ..Self::default() });
            all.len() - 1
        });
        &mut all[at]
    }

    /// The largest horizontal value without a hollow marker: for delays, the highest rate without a miss.
    pub fn highest_kept(&self) -> f64 {
        self.points.iter().filter(|point| !point.is_hollow).map(|point| point.x).fold(f64::MIN, f64::max)
    }

    /// The largest vertical value.
    pub fn highest(&self) -> f64 {
        self.points.iter().map(|point| point.y).fold(f64::MIN, f64::max)
    }
}

/// The look of a policy in every figure. Other policies than the lab's get a look by the letters of their name.
pub fn look_of(policy: &str) -> Look {
    let known = PolicyKind::ALL.iter().position(|kind| kind.name() == policy);
    let number = known.unwrap_or_else(|| policy.bytes().map(usize::from).sum::<usize>() % LOOKS);
    (number, number)
}

/// Gives looks to lines whose names begin with a policy, followed by a comma or a space and other settings. A policy keeps
/// its colour, and its lines differ in markers. Lines of a single policy differ in both.
#[must_use]
pub fn with_looks(mut series: Vec<Series>) -> Vec<Series> {
    let policies: Vec<String> =
        series.iter().map(|one| one.name.split([' ', ',']).next().unwrap_or_default().to_owned()).collect();
    let is_single = series.len() > 1 && policies.iter().all(|policy| *policy == policies[0]);
    for (index, series) in series.iter_mut().enumerate() {
        let (colour, marker) = look_of(&policies[index]);
        let before = policies[..index].iter().filter(|policy| **policy == policies[index]).count();
        series.look = Some(if is_single { (index, index) } else { (colour, marker + before) });
    }
    series
}

/// A chart of lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineChart {
    /// Title above the chart.
    pub title: String,
    /// Label of the horizontal axis, with the unit.
    pub x_label: String,
    /// Label of the vertical axis, with the unit.
    pub y_label: String,
    /// Whether the horizontal axis is logarithmic.
    pub is_x_log: bool,
    /// Whether the vertical axis is logarithmic.
    pub is_y_log: bool,
    /// Ticks of the vertical axis and their texts, chosen automatically if empty.
    pub y_ticks: Vec<(f64, String)>,
    /// Rows of a chart of bars: the texts in front of each and behind it. Vertical values are then numbers of rows.
    pub rows: Vec<[String; 2]>,
    /// Lines of the chart.
    pub series: Vec<Series>,
    /// A vertical line across the chart, and its meaning.
    pub vertical: Option<(f64, String)>,
    /// A horizontal line across the chart, and its meaning.
    pub horizontal: Option<(f64, String)>,
    /// Whether the line of equal values is drawn. Both axes then show the same values.
    pub has_diagonal: bool,
    /// A remark below the chart, such as what hollow markers mean.
    pub note: String,
}

/// Width and height of a file's figure, and the size of its title.
const FILE: [i32; 2] = [7600, 3600];
const TITLE: i32 = 170;
/// Maximum lines of a chart that [`LineChart::with_best`] selects.
const MOST_LINES: usize = 8;

impl LineChart {
    /// Writes `STEM.svg` atomically, and returns its path.
    pub fn write(&self, stem: &Path) -> io::Result<PathBuf> {
        let mut path = stem.as_os_str().to_owned();
        path.push(".svg");
        tandem_model::files::write_atomically(Path::new(&path), |out| {
            io::Write::write_all(out, self.svg().as_bytes())
        })?;
        Ok(path.into())
    }

    /// The chart as the text of an SVG file on white paper.
    #[must_use]
    pub fn svg(&self) -> String {
        let [width, height] = FILE;
        let (height, elements) = drawn(width, |area| {
            let at = paragraph(area, &self.title, (60, 60), TITLE, width - 120)?;
            let at = self.draw(area, at + 40, height)?;
            paragraph(area, &self.note, (60, at), TICK, width - 120)
        });
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{elements}</svg>\n",
            width / 10,
            height / 10,
            escaped(&self.title),
            escaped(&self.in_words()),
        )
    }

    /// Keeps the eight lines of the largest `worth`. The note calls them `best`. Lines of one look stay together.
    #[must_use]
    pub fn with_best(mut self, best: &str, worth: impl Fn(&Series) -> f64) -> Self {
        let mut groups: Vec<(Look, f64)> = Vec::new();
        for (index, series) in self.series.iter_mut().enumerate() {
            let (look, worth) = (*series.look.get_or_insert((index, index)), worth(series));
            match groups.iter_mut().find(|(of, _)| *of == look) {
                Some((_, most)) => *most = most.max(worth),
                None => groups.push((look, worth)),
            }
        }
        let count = groups.len();
        if count > MOST_LINES {
            groups.sort_by(|a, b| b.1.total_cmp(&a.1));
            groups.truncate(MOST_LINES);
            self.series.retain(|series| groups.iter().any(|(of, _)| Some(*of) == series.look));
            let end = if self.note.is_empty() { "" } else { ". " };
            self.note += &format!("{end}Shown: {MOST_LINES} of {count} lines, {best}");
        }
        self
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points)
    }

    /// A description for readers who can't see the chart: the first and last point of each line.
    pub(crate) fn in_words(&self) -> String {
        let at = |point: &Point| format!("{} at {}", text(point.y, 4), text(point.x, 4));
        let lines = self.series.iter().filter_map(|series| {
            let (first, last) = (series.points.first()?, series.points.last()?);
            Some(format!("{} goes from {} to {}", series.name, at(first), at(last)))
        });
        let rows = self.rows.iter().map(|row| row.join(" "));
        let all: Vec<String> = if self.rows.is_empty() { lines.collect() } else { rows.collect() };
        format!("Vertical: {}. Horizontal: {}. {}.", self.y_label, self.x_label, all.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_lines_are_shown_in_their_order_with_their_colours() {
        let series = |i: usize| Series {
            name: format!("line {i}"),
            points: vec![Point { x: 1.0, y: i as f64, ..Point::default() }],
            ..Series::default()
        };
        let chart =
            LineChart { series: (0..10).map(series).collect(), note: String::from("a note"), ..LineChart::default() };
        let best = chart.with_best("those of the highest rates", |series| series.points[0].y);
        assert_eq!(
            best.series.iter().map(|series| series.look.unwrap().0).collect::<Vec<_>>(),
            [2, 3, 4, 5, 6, 7, 8, 9]
        );
        assert_eq!(best.note, "a note. Shown: 8 of 10 lines, those of the highest rates");
        assert!(best.in_words().ends_with("line 8 goes from 8 at 1 to 8 at 1; line 9 goes from 9 at 1 to 9 at 1."));
    }

    #[test]
    fn a_chart_shows_all_its_points_and_words_in_a_file_and_on_a_page() {
        let line = |name: &str, scale: f64, is_dashed| Series {
            name: name.to_owned(),
            points: (1..20)
                .map(|i| Point { x: f64::from(i), y: scale / f64::from(20 - i), is_hollow: i > 15, interval: None })
                .collect(),
            is_dashed,
            ..Series::default()
        };
        let mut chart = LineChart {
            title: String::from("Delay against rate"),
            is_y_log: true,
            series: vec![line("stealing", 900.0, false), line("cpu-only <1>", 5000.0, true)],
            vertical: Some((15.0, String::from("bound"))),
            note: String::from("hollow: missed"),
            ..LineChart::default()
        };
        let (svg, html) = (chart.svg(), chart.html("x"));
        for expected in ["Delay", "cpu-only &lt;1&gt;", "bound", "missed", "stealing goes from 47.37 at 1 to 900 at 19"]
        {
            assert!(svg.contains(expected) && html.contains(expected), "{expected:?} should stand in both");
        }
        // The first line has circles, hollow ones in two parts, the second squares, and the legend has one of each.
        let counts = ["<circle", "<polygon", "stroke-dasharray"].map(|sign| svg.matches(sign).count());
        assert_eq!(counts, [24, 20, 3]);
        assert!(html.ends_with("missed.</p></figure>\n"), "{html}");
        (chart.series[1].points[3].y, chart.series[1].points[4].y) = (f64::NAN, 0.0);
        assert_eq!(chart.svg().matches("<polygon").count(), 18);
        assert!(LineChart::default().svg().contains("<polyline") && LineChart::default().html("x").is_empty());
    }

    #[test]
    fn every_row_has_a_bar_a_whisker_and_its_value() {
        let series = [100.0, 40.0, 0.0].iter().enumerate().map(|(row, &x)| Series {
            points: vec![Point { x, y: row as f64, interval: Some((x, 2.0 * x)), is_hollow: false }],
            ..Series::default()
        });
        let rows = ["a", "b", "c"].map(|name| [name, "12.5"].map(String::from)).to_vec();
        let html = LineChart { series: series.collect(), rows, ..LineChart::default() }.html("x");
        let counts = ["stroke-width=\"90\"", "<circle", ">\na\n", "12.5\n"].map(|sign| html.matches(sign).count());
        assert_eq!(counts, [3, 1, 1, 3]);
    }

    #[test]
    fn a_policy_keeps_its_look_and_its_lines_differ_in_markers() {
        let policies: std::collections::BTreeSet<_> = PolicyKind::ALL.iter().map(|kind| look_of(kind.name())).collect();
        // No two policies share both a colour and a marker.
        assert!(policies.len() == PolicyKind::ALL.len() && policies.len() < LOOKS);
        let looks = |names: &[&str]| -> Vec<Look> {
            let series = names.iter().map(|&name| Series { name: name.to_owned(), ..Series::default() });
            with_looks(series.collect()).iter().filter_map(|series| series.look).collect()
        };
        let ((mct, marker), stealing) = (look_of("mct"), look_of("stealing"));
        let of_three = looks(&["mct, deadline 10", "mct, deadline 100", "stealing at 5 q/s"]);
        assert_eq!(of_three, [(mct, marker), (mct, marker + 1), stealing]);
        assert_eq!(
            [looks(&["mct, cpus 1", "mct, cpus 2"]), looks(&["mct"])],
            [vec![(0, 0), (1, 1)], vec![(mct, marker)]]
        );
    }
}
