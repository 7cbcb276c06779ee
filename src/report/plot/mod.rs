//! Line charts, as SVG and PNG, without any system library or font.
//!
//! [`LineChart`] says what is drawn; [`axis`](super::axis) places values and ticks, [`draw`](self) puts both on a canvas through
//! plotters. The legend stands outside of the lines, to the right. Colours are those of Okabe and Ito, which people
//! with any common form of colour blindness can tell apart; markers differ in shape as well.

mod draw;

use std::io;
use std::path::Path;

use crate::report::axis::Axis;

/// How a line is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stroke {
    /// Unbroken: what was measured, or the main matter.
    #[default]
    Solid,
    /// Dashes: what was predicted, or a reference.
    Dashed,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Along.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Whether the marker is hollow, say because a query missed its deadline here.
    pub is_hollow: bool,
    /// Between which `y` surely lies, where that is known.
    pub interval: Option<(f64, f64)>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, in the order in which they are joined. Points that are not finite, or not positive on a logarithmic
    /// axis, are left out.
    pub points: Vec<Point>,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Which colour and marker; by default its position among the series. Give a pair (predicted, measured) the same.
    pub colour: Option<usize>,
}

/// A chart of lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineChart {
    /// Above the chart.
    pub title: String,
    /// Below the title and smaller: of what the numbers are. Empty for none.
    pub subtitle: String,
    /// Below the horizontal axis, with the unit.
    pub x_label: String,
    /// Beside the vertical axis, with the unit.
    pub y_label: String,
    /// Whether the horizontal axis is logarithmic.
    pub is_x_log: bool,
    /// Whether the vertical axis is logarithmic.
    pub is_y_log: bool,
    /// The lines.
    pub series: Vec<Series>,
    /// A vertical line across the chart, and what it means.
    pub vertical: Option<(f64, String)>,
    /// A horizontal line across the chart, and what it means.
    pub horizontal: Option<(f64, String)>,
    /// A remark for the legend, such as what hollow markers mean.
    pub note: Option<String>,
}

impl LineChart {
    /// Writes `STEM.svg` and `STEM.png` beside each other, each whole or not at all.
    ///
    /// # Errors
    /// Those of the file system, and of the drawing itself.
    pub fn write(&self, stem: &Path) -> io::Result<()> {
        let svg = draw::svg(self)?;
        let png = draw::png(self)?;
        let with_extension = |extension: &str| {
            let mut name = stem.as_os_str().to_owned();
            name.push(extension);
            std::path::PathBuf::from(name)
        };
        crate::files::write_atomically(&with_extension(".svg"), |out| io::Write::write_all(out, svg.as_bytes()))?;
        crate::files::write_atomically(&with_extension(".png"), |out| io::Write::write_all(out, &png))
    }

    fn x_axis(&self) -> Axis {
        let lines = self.vertical.iter().map(|(x, _)| *x);
        Axis::new(self.series.iter().flat_map(|s| s.points.iter().map(|p| p.x)).chain(lines), self.is_x_log)
    }

    fn y_axis(&self) -> Axis {
        let lines = self.horizontal.iter().map(|(y, _)| *y);
        Axis::new(self.series.iter().flat_map(|s| s.points.iter().map(|p| p.y)).chain(lines), self.is_y_log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            colour: None,
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
    fn a_chart_is_written_as_svg_and_png_the_same_every_time() {
        let dir = tempfile::tempdir().unwrap();
        let stem = dir.path().join("delay");
        chart().write(&stem).unwrap();
        let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
        let (svg, png) = (read("delay.svg"), read("delay.png"));
        assert!(png.starts_with(b"\x89PNG"));
        let text = String::from_utf8(svg.clone()).unwrap();
        for expected in ["stealing", "of &lt;nothing&gt;", "cpu-only &lt;1&gt;", "rate (queries/s)", "bound", "hollow"]
        {
            assert!(text.contains(expected), "{expected:?} should stand in the SVG");
        }
        chart().write(&stem).unwrap();
        assert_eq!((read("delay.svg"), read("delay.png")), (svg, png));
    }

    #[test]
    fn an_empty_chart_and_hopeless_points_still_draw() {
        let dir = tempfile::tempdir().unwrap();
        LineChart::default().write(&dir.path().join("empty")).unwrap();
        let mut chart = chart();
        chart.series[0].points[3].y = f64::NAN;
        chart.series[0].points[4].y = 0.0;
        chart.write(&dir.path().join("odd")).unwrap();
    }
}
