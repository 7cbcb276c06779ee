//! Bars of values on a common axis, with their intervals.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Drawing, LABEL_SIZE, text_width};
use super::look::{Colour, Medium, Stroke};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) look: usize,
    pub(crate) value: f64,
    /// The value as text behind the bar.
    pub(crate) text: String,
    pub(crate) interval: Option<(f64, f64)>,
    /// Upper bound of the value, if rows have different bounds.
    pub(crate) bound: Option<f64>,
    /// Whether the marker is hollow, as for predictions.
    pub(crate) is_hollow: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) x_label: String,
    pub(crate) rows: Vec<Bar>,
    /// A vertical line across all rows, and its meaning.
    pub(crate) vertical: Option<(f64, String)>,
    pub(crate) note: String,
}

const TOP: f64 = 28.0;
const STEP: f64 = 25.0;
/// Values of a larger ratio have a logarithmic axis. Small ones would vanish on a linear axis.
const LINEAR_RATIO: f64 = 12.0;

impl Bars {
    /// The figure, or `None` if no row has a value.
    pub(crate) fn drawn(&self, medium: Medium) -> Option<Drawing> {
        let positive = || self.rows.iter().map(|row| row.value).filter(|&value| value > 0.0);
        let (least, most) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
        if most == 0.0 {
            return None;
        }
        let is_log = most / least > LINEAR_RATIO;
        let others = self.rows.iter().flat_map(|row| [row.interval.map(|(_, high)| high), row.bound]).flatten();
        let marks = self.vertical.iter().map(|(at, _)| *at);
        // Bars begin at zero.
        let axis = Axis::new(positive().chain(others).chain(marks).chain((!is_log).then_some(0.0)), is_log);
        let widest =
            |of: fn(&Bar) -> &str| self.rows.iter().map(|row| text_width(of(row), LABEL_SIZE)).fold(0.0, f64::max);
        let (left, right) = (widest(|row| &row.name) + 16.0, medium.width() - widest(|row| &row.text) - 14.0);
        let bottom = TOP + STEP * self.rows.len() as f64;
        let label = format!("{}{}", self.x_label, if is_log { ", logarithmic" } else { "" });
        let across = |value: f64| axis.position(value).map(|share| left + share * (right - left));
        let mut canvas = Canvas::new(medium, bottom + 48.0);
        canvas.ticks_below(&axis.ticks(), across, (TOP, bottom));
        canvas.text(&label, ((left + right) / 2.0, bottom + 34.0), LABEL_SIZE, Anchor::Middle);
        for (i, row) in self.rows.iter().enumerate() {
            row.draw(&mut canvas, TOP + STEP * (i as f64 + 0.5), left, is_log, &across);
        }
        if let Some((x, name)) = self.vertical.as_ref().and_then(|(at, name)| Some((across(*at)?, name))) {
            canvas.upright(x, (TOP, bottom), name);
        }
        let (title, description, note) = (self.title.clone(), self.description.clone(), self.note.clone());
        Some(Drawing { title, description, note, canvas })
    }
}

impl Bar {
    /// Draws the row, whose middle is at `y` and whose bar begins at `left`.
    fn draw(&self, canvas: &mut Canvas, y: f64, left: f64, is_log: bool, across: &dyn Fn(f64) -> Option<f64>) {
        canvas.text(&self.name, (left - 9.0, y), LABEL_SIZE, Anchor::End);
        canvas.text(&self.text, (canvas.width - 3.0, y), LABEL_SIZE, Anchor::End);
        let Some(x) = across(self.value) else { return };
        // Lengths mean nothing on a logarithmic axis, so only a thin line leads to the value.
        let half = if is_log { 0.5 } else { 4.5 };
        let opacity = if self.is_hollow { 0.3 } else { 0.8 };
        canvas.block((left, y - half), (x, y + half), Colour::Series(self.look), opacity);
        let ends = self.interval.and_then(|(low, high)| Some((across(low).unwrap_or(left), across(high)?)));
        if let Some((low, high)) = ends.filter(|(low, high)| high - low > 0.5) {
            let lines = [[(low, y), (high, y)], [(low, y - 5.0), (low, y + 5.0)], [(high, y - 5.0), (high, y + 5.0)]];
            lines.iter().for_each(|line| canvas.line(line, Colour::Ink, 1.3, Stroke::Solid));
        }
        if let Some(bound) = self.bound.and_then(across) {
            canvas.line(&[(bound, y - STEP / 2.0), (bound, y + STEP / 2.0)], Colour::Ink, 1.3, Stroke::Dashed);
        }
        canvas.marker((x, y), (self.look, self.look), self.is_hollow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(values: &[f64]) -> Bars {
        let row = |&value: &f64| Bar {
            name: String::from("mct"),
            value,
            interval: Some((value, 1.5 * value)),
            ..Bar::default()
        };
        Bars { rows: values.iter().map(row).collect(), ..Bars::default() }
    }

    #[test]
    fn values_have_bars_whiskers_and_markers_and_zero_none() {
        let html = bars(&[100.0, 40.0, 0.0]).drawn(Medium::Page).unwrap().html("x");
        let counts = ["<rect", "<circle", ">mct<", "stroke-width=\"1.3\""].map(|sign| html.matches(sign).count());
        assert_eq!(counts, [3, 3, 3, 3 * 2]);
        assert!(!html.contains("logarithmic") && bars(&[0.0]).drawn(Medium::Page).is_none());
        assert!(bars(&[100.0, 5.0]).drawn(Medium::Page).unwrap().html("x").contains("logarithmic"));
    }
}
