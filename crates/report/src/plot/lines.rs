//! Charts of lines and points.

use std::io;
use std::path::{Path, PathBuf};

use super::axis::Axis;
use super::canvas::{
    Anchor, Canvas, Drawing, LABEL_SIZE, LINE_HEIGHT, Position, TICK_SIZE, TITLE_SIZE, fitted, text_width,
};
use super::look::{Colour, Medium, Stroke};
use crate::number::text;

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
    /// Interval of `y`, if it is known.
    pub interval: Option<(f64, f64)>,
}

/// A line of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, in the order in which they are joined. Points that an axis can't show are left out.
    pub points: Vec<Point>,
    /// Stroke of the line.
    pub stroke: Stroke,
    /// Colour, by default the position among the series. A pair of prediction and measurement shares a colour.
    pub colour: Option<usize>,
    /// Marker, by default the one of the colour.
    pub marker: Option<usize>,
    /// Signs of the line.
    pub signs: Signs,
}

impl Series {
    /// The largest horizontal value without a hollow marker: for delays, the highest rate without a miss.
    pub fn highest_kept(&self) -> f64 {
        self.points.iter().filter(|point| !point.is_hollow).map(|point| point.x).fold(f64::MIN, f64::max)
    }

    /// The largest vertical value.
    pub fn highest(&self) -> f64 {
        self.points.iter().map(|point| point.y).fold(f64::MIN, f64::max)
    }
}

/// A chart of lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineChart {
    /// Title above the chart.
    pub title: String,
    /// Smaller text below the title, or nothing.
    pub subtitle: String,
    /// Description for readers who can't see the chart. By default it names the ends of each line.
    pub description: String,
    /// Label of the horizontal axis, with the unit.
    pub x_label: String,
    /// Label of the vertical axis, with the unit.
    pub y_label: String,
    /// Whether the horizontal axis is logarithmic.
    pub is_x_log: bool,
    /// Whether the vertical axis is logarithmic.
    pub is_y_log: bool,
    /// Ticks of the horizontal axis and their texts, chosen automatically if empty.
    pub x_ticks: Vec<(f64, String)>,
    /// Ticks of the vertical axis and their texts, chosen automatically if empty.
    pub y_ticks: Vec<(f64, String)>,
    /// Lines of the chart.
    pub series: Vec<Series>,
    /// A vertical line across the chart, and its meaning.
    pub vertical: Option<(f64, String)>,
    /// A horizontal line across the chart, and its meaning.
    pub horizontal: Option<(f64, String)>,
    /// Whether the line of equal values is drawn. Both axes then show the same values.
    pub has_diagonal: bool,
    /// A remark below the chart, such as what hollow markers mean.
    pub note: Option<String>,
}

/// Maximum lines of a chart that [`LineChart::with_best`] selects.
const MOST_LINES: usize = 8;
/// Markers without a line become small dots if they are more than this.
const MOST_MARKERS: usize = 80;
/// Maximum values of a horizontal axis that become its ticks.
const MOST_OWN_TICKS: usize = 6;
const COLUMN: f64 = 210.0;
const SAMPLE: f64 = 34.0;
const PAGE_HEIGHT: f64 = 270.0;
const FILE_HEIGHT: f64 = 360.0;

impl LineChart {
    /// Writes `STEM.svg` atomically, and returns its path.
    pub fn write(&self, stem: &Path) -> io::Result<PathBuf> {
        let mut path = stem.as_os_str().to_owned();
        path.push(".svg");
        let (path, svg) = (PathBuf::from(path), self.svg());
        tandem_model::files::write_atomically(&path, |out| io::Write::write_all(out, svg.as_bytes()))?;
        Ok(path)
    }

    /// The chart as the text of an SVG file.
    pub fn svg(&self) -> String {
        self.drawn(Medium::File).file()
    }

    /// Keeps the eight lines of the largest `worth`. The note calls them `best`. Lines of one colour and marker stay
    /// together.
    #[must_use]
    pub fn with_best(mut self, best: &str, worth: impl Fn(&Series) -> f64) -> Self {
        let mut groups: Vec<((usize, usize), f64)> = Vec::new();
        for (index, series) in self.series.iter_mut().enumerate() {
            series.colour.get_or_insert(index);
            let (look, worth) = (look(index, series), worth(series));
            match groups.iter_mut().find(|(of, _)| *of == look) {
                Some((_, most)) => *most = most.max(worth),
                None => groups.push((look, worth)),
            }
        }
        let count = groups.len();
        if count > MOST_LINES {
            groups.sort_by(|a, b| b.1.total_cmp(&a.1));
            groups.truncate(MOST_LINES);
            self.series.retain(|series| groups.iter().any(|(of, _)| *of == look(0, series)));
            let note = self.note.take().map_or_else(String::new, |note| format!("{note}. "));
            self.note = Some(format!("{note}Shown: {MOST_LINES} of {count} lines, {best}"));
        }
        self
    }

    /// Puts the horizontal ticks at the points, if their values are few.
    #[must_use]
    pub fn with_ticks_at_points(mut self) -> Self {
        let mut values: Vec<f64> = self.points().map(|point| point.x).filter(|x| x.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        if values.len() <= MOST_OWN_TICKS {
            self.x_ticks = values.into_iter().map(|x| (x, text(x, 6))).collect();
        }
        self
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points)
    }

    /// The chart as a part of a page, or nothing if it has no point.
    pub(crate) fn html(&self, id: &str) -> String {
        if self.points().next().is_none() { String::new() } else { self.drawn(Medium::Page).html(id) }
    }

    fn axes(&self) -> (Axis, Axis) {
        let ends =
            |ticks: &[(f64, String)]| [ticks.first(), ticks.last()].into_iter().flatten().map(|(at, _)| *at).collect();
        let (mut xs, mut ys): (Vec<f64>, Vec<f64>) = (ends(&self.x_ticks), ends(&self.y_ticks));
        xs.extend(self.points().map(|point| point.x).chain(self.vertical.iter().map(|(x, _)| *x)));
        ys.extend(self.points().map(|point| point.y).chain(self.horizontal.iter().map(|(y, _)| *y)));
        if self.has_diagonal {
            xs.extend(&ys);
            ys.clone_from(&xs);
        }
        (Axis::new(xs, self.is_x_log), Axis::new(ys, self.is_y_log))
    }

    pub(crate) fn drawn(&self, medium: Medium) -> Drawing {
        let frame = Frame::new(self, medium);
        Drawing {
            title: self.title.clone(),
            description: if self.description.is_empty() { self.ends_in_words() } else { self.description.clone() },
            note: self.note.as_ref().map_or_else(String::new, |note| format!("{}.", note.trim_end_matches('.'))),
            canvas: frame.draw(Canvas::new(medium, frame.end)),
        }
    }

    /// A description of the first and last point of each line.
    fn ends_in_words(&self) -> String {
        let at = |point: &Point| format!("{} at {}", text(point.y, 4), text(point.x, 4));
        let lines = self.series.iter().filter_map(|series| {
            let (first, last) = (series.points.first()?, series.points.last()?);
            Some(format!("{} goes from {} to {}", series.name, at(first), at(last)))
        });
        let lines = lines.collect::<Vec<_>>().join("; ");
        format!("Vertical: {}. Horizontal: {}. {lines}.", self.y_label, self.x_label)
    }
}

struct Frame<'a> {
    chart: &'a LineChart,
    x: Axis,
    y: Axis,
    x_ticks: Vec<(f64, String)>,
    y_ticks: Vec<(f64, String)>,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// Texts with positions and sizes: title and subtitle above, notes below.
    texts: Vec<(String, Position, f64)>,
    /// Number, position and lines of each series' name in the legend.
    legend: Vec<(usize, Position, Vec<String>)>,
    end: f64,
}

impl<'a> Frame<'a> {
    fn new(chart: &'a LineChart, medium: Medium) -> Self {
        let (width, (x, y)) = (medium.width(), chart.axes());
        let ticks = |own: &[(f64, String)], axis: &Axis| if own.is_empty() { axis.ticks() } else { own.to_vec() };
        let (x_ticks, y_ticks) = (ticks(&chart.x_ticks, &x), ticks(&chart.y_ticks, &y));
        let widest = y_ticks.iter().map(|(_, tick)| text_width(tick, TICK_SIZE)).fold(0.0, f64::max);
        let half = x_ticks.last().map_or(0.0, |(_, tick)| text_width(tick, TICK_SIZE) / 2.0);
        let (mut texts, mut at) = (Vec::new(), 6.0);
        let mut write = |text: &str, size: f64, at: &mut f64| {
            for line in fitted(text, size, width - 12.0).into_iter().filter(|line| !line.is_empty()) {
                texts.push((line, (6.0, *at + 0.6 * size), size));
                *at += 1.3 * size;
            }
        };
        if medium == Medium::File {
            write(&chart.title, TITLE_SIZE, &mut at);
            write(&chart.subtitle, TICK_SIZE, &mut at);
        }
        at += 4.0;
        write(&chart.y_label, LABEL_SIZE, &mut at);
        // The meaning of a vertical line stands between the label and the plotted area.
        let top = at + if chart.vertical.is_some() { 26.0 } else { 12.0 };
        let bottom = top + if medium == Medium::File { FILE_HEIGHT } else { PAGE_HEIGHT };
        let mut at = bottom + 28.0 + 1.6 * LABEL_SIZE;
        let columns = (width / COLUMN).floor().max(1.0);
        let column = width / columns;
        let mut legend = Vec::new();
        if chart.series.len() > 1 || (medium == Medium::File && !chart.series.is_empty()) {
            let named =
                |(index, series): (usize, &Series)| (index, fitted(&series.name, LABEL_SIZE, column - SAMPLE - 14.0));
            let entries: Vec<(usize, Vec<String>)> = chart.series.iter().enumerate().map(named).collect();
            for row in entries.chunks(columns as usize) {
                for (place, (index, lines)) in row.iter().enumerate() {
                    legend.push((*index, (6.0 + column * place as f64, at + 0.6 * LABEL_SIZE), lines.clone()));
                }
                at += LINE_HEIGHT * row.iter().map(|(_, lines)| lines.len()).max().unwrap_or(1) as f64;
            }
        }
        if let (Medium::File, Some(note)) = (medium, &chart.note) {
            at += 6.0;
            write(note, TICK_SIZE, &mut at);
        }
        let (left, right) = (widest + 14.0, width - half.max(8.0) - 2.0);
        Self { chart, x, y, x_ticks, y_ticks, left, right, top, bottom, texts, legend, end: at + 6.0 }
    }

    fn across(&self, x: f64) -> Option<f64> {
        self.x.position(x).map(|share| self.left + share * (self.right - self.left))
    }

    fn up(&self, y: f64) -> Option<f64> {
        self.y.position(y).map(|share| self.bottom - share * (self.bottom - self.top))
    }

    fn draw(&self, mut canvas: Canvas) -> Canvas {
        let &Self { chart, left, right, top, bottom, .. } = self;
        for (text, at, size) in &self.texts {
            canvas.text(text, *at, *size, Anchor::Start);
        }
        canvas.ticks_below(&self.x_ticks, |x| self.across(x), (top, bottom));
        for (tick, text) in &self.y_ticks {
            let Some(y) = self.up(*tick) else { continue };
            canvas.line(&[(left, y), (right, y)], Colour::Grid, 1.0, Stroke::Solid);
            canvas.text(text, (left - 7.0, y), TICK_SIZE, Anchor::End);
        }
        canvas.line(&[(left, top), (left, bottom), (right, bottom)], Colour::Ink, 1.0, Stroke::Solid);
        canvas.text(&chart.x_label, ((left + right) / 2.0, bottom + 34.0), LABEL_SIZE, Anchor::Middle);
        if chart.has_diagonal {
            canvas.line(&[(left, bottom), (right, top)], Colour::Ink, 1.0, Stroke::Dashed);
        }
        for (index, series) in chart.series.iter().enumerate() {
            self.series(&mut canvas, series, look(index, series));
        }
        if let Some((x, name)) = chart.vertical.as_ref().and_then(|(x, name)| Some((self.across(*x)?, name))) {
            canvas.upright(x, (top, bottom), name);
        }
        if let Some((y, name)) = chart.horizontal.as_ref().and_then(|(y, name)| Some((self.up(*y)?, name))) {
            canvas.line(&[(left, y), (right, y)], Colour::Ink, 1.0, Stroke::Dashed);
            // The text stands below the line if there is no room above.
            let at = if y - top < 16.0 { y + 9.0 } else { y - 9.0 };
            canvas.text(name, (left + 6.0, at), TICK_SIZE, Anchor::Start);
        }
        for (index, (x, y), lines) in &self.legend {
            let series = &chart.series[*index];
            let look = look(*index, series);
            if series.signs != Signs::Markers {
                canvas.line(&[(*x, *y), (x + SAMPLE - 8.0, *y)], Colour::Series(look.0), 2.0, series.stroke);
            }
            if series.signs != Signs::Line {
                canvas.marker((x + (SAMPLE - 8.0) / 2.0, *y), look, false);
            }
            for (i, line) in lines.iter().enumerate() {
                canvas.text(line, (x + SAMPLE, y + LINE_HEIGHT * i as f64), LABEL_SIZE, Anchor::Start);
            }
        }
        canvas
    }

    fn series(&self, canvas: &mut Canvas, series: &Series, look: (usize, usize)) {
        let ink = Colour::Series(look.0);
        let shown: Vec<(Position, &Point)> = series
            .points
            .iter()
            .filter_map(|point| Some(((self.across(point.x)?, self.up(point.y)?), point)))
            .collect();
        if series.signs == Signs::Markers && shown.len() > MOST_MARKERS {
            shown.iter().for_each(|(place, _)| canvas.dot(*place, 2.0, ink, 0.45));
            return;
        }
        if series.signs != Signs::Markers {
            canvas.line(&shown.iter().map(|(place, _)| *place).collect::<Vec<_>>(), ink, 2.0, series.stroke);
        }
        for ((x, y), point) in &shown {
            let Some((low, high)) = point.interval else { continue };
            // An interval may exceed the axis.
            let (low, high) = (self.up(low).unwrap_or(self.bottom), self.up(high).unwrap_or(self.top));
            if (low - y).abs().max((high - y).abs()) > 4.0 {
                let bars =
                    [[(*x, low), (*x, high)], [(x - 4.0, low), (x + 4.0, low)], [(x - 4.0, high), (x + 4.0, high)]];
                bars.iter().for_each(|bar| canvas.line(bar, ink, 1.0, Stroke::Solid));
            }
        }
        if series.signs != Signs::Line {
            shown.iter().for_each(|(place, point)| canvas.marker(*place, look, point.is_hollow));
        }
    }
}

fn look(index: usize, series: &Series) -> (usize, usize) {
    let colour = series.colour.unwrap_or(index);
    (colour, series.marker.unwrap_or(colour))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lines of 19 points, the last four hollow.
    fn chart() -> LineChart {
        let line = |name: &str, scale: f64, stroke| Series {
            name: name.to_owned(),
            points: (1..20)
                .map(|i| Point {
                    x: f64::from(i) * 10.0,
                    y: scale / f64::from(20 - i),
                    is_hollow: i > 15,
                    ..Point::default()
                })
                .collect(),
            stroke,
            ..Series::default()
        };
        LineChart {
            title: String::from("Delay against rate"),
            subtitle: String::from("of <nothing>"),
            x_label: String::from("rate (queries/s)"),
            y_label: String::from("mean delay (ms)"),
            is_y_log: true,
            series: vec![line("stealing", 900.0, Stroke::Solid), line("cpu-only <1>", 5000.0, Stroke::Dashed)],
            vertical: Some((150.0, String::from("bound"))),
            note: Some(String::from("hollow: a query missed")),
            ..LineChart::default()
        }
    }

    #[test]
    fn a_chart_is_written_the_same_every_time_with_all_its_points() {
        let dir = tempfile::tempdir().unwrap();
        let write = || std::fs::read_to_string(chart().write(&dir.path().join("delay.x")).unwrap()).unwrap();
        let svg = write();
        assert!(dir.path().join("delay.x.svg").exists());
        for expected in
            ["stealing", "of &lt;nothing&gt;", "cpu-only &lt;1&gt;", "rate (queries/s)", "bound", "hollow", "<desc>"]
        {
            assert!(svg.contains(expected), "{expected:?} should stand in the SVG");
        }
        assert_eq!(write(), svg);
        // The first line has circles, the second squares, and the legend has one of each.
        assert_eq!(svg.matches("<circle").count(), 20);
        assert_eq!(svg.matches("<polygon").count(), 20);
        let hollow = |line: &&str| line.starts_with("<polygon") && line.contains("fill=\"#FFFFFF\"");
        assert_eq!(svg.lines().filter(hollow).count(), 4);
    }

    #[test]
    fn a_page_s_chart_has_the_page_s_colours_and_words_around_it() {
        let html = chart().drawn(Medium::Page).html("x");
        assert!(
            html.contains("<figcaption>Delay against rate</figcaption>")
                && html.contains("aria-labelledby=\"x-t x-d\"")
        );
        assert!(
            html.contains("stealing goes from 47.37 at 10 to 900 at 190") && html.ends_with("missed.</p></figure>\n")
        );
        assert!(html.contains("var(--c0)") && html.contains("var(--paper)") && !html.contains('#'), "{html}");
    }

    #[test]
    fn an_empty_chart_and_hopeless_points_still_draw() {
        assert!(LineChart::default().drawn(Medium::File).file().contains("<polyline"));
        let mut chart = chart();
        let points = |chart: &LineChart| chart.drawn(Medium::File).file().matches("<polygon").count();
        let all = points(&chart);
        chart.series[1].points[3].y = f64::NAN;
        chart.series[1].points[4].y = 0.0;
        assert_eq!(points(&chart), all - 2);
    }

    #[test]
    fn the_best_lines_are_shown_in_their_order_with_their_colours() {
        let series = |i: usize| Series {
            name: format!("line {i}"),
            points: vec![Point { x: 1.0, y: i as f64, ..Point::default() }],
            ..Series::default()
        };
        let chart = LineChart {
            series: (0..10).map(series).collect(),
            note: Some(String::from("a note")),
            ..LineChart::default()
        };
        let best = chart.with_best("those of the highest rates", |series| series.points[0].y);
        assert_eq!(
            best.series.iter().map(|series| series.colour).collect::<Vec<_>>(),
            (2..10).map(Some).collect::<Vec<_>>()
        );
        assert_eq!(best.note.as_deref(), Some("a note. Shown: 8 of 10 lines, those of the highest rates"));
        let ticks = LineChart { series: vec![series(4)], ..LineChart::default() }.with_ticks_at_points().x_ticks;
        assert_eq!(ticks, [(1.0, String::from("1"))]);
    }
}
