//! Two axes on a canvas: where values lie, and the frame around them.

use std::fmt::Write as _;

use crate::report::axis::{Axis, tick_text};
use crate::report::page::html::escaped;

/// The canvas, in units of its own; the page scales it.
pub(super) const WIDTH: f64 = 720.0;
pub(super) const HEIGHT: f64 = 400.0;
/// What labels and ticks take.
pub(super) const LEFT: f64 = 80.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 52.0;

/// Number `i` of the ticks along the bottom, at `x`: its line from `top` to `bottom` into `grid`, and what is written there into
/// `ticks`.
pub(super) fn upright_tick(
    i: usize,
    x: f64,
    (top, bottom): (f64, f64),
    text: &str,
    grid: &mut String,
    ticks: &mut String,
) {
    // Every other one may be left out where there is little room.
    let class = if i % 2 == 1 { " class=\"alt\"" } else { "" };
    let _ = write!(grid, "<path d=\"M{x:.1} {top}V{bottom:.0}\"/>");
    let _ = write!(ticks, "<text{class} x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{text}</text>", bottom + 17.0);
}

/// What an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report::page) enum Unit {
    /// In millions or thousands, where the values are so large.
    Qps,
    /// As they are.
    Plain(&'static str),
}

/// What an axis shows, and how.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report::page) struct Scale {
    pub(in crate::report::page) label: String,
    pub(in crate::report::page) unit: Unit,
    pub(in crate::report::page) is_log: bool,
    /// Ticks of its own: where, and what is written there.
    pub(in crate::report::page) ticks: Vec<(f64, String)>,
}

impl Scale {
    pub(in crate::report::page) fn new(label: &str, unit: Unit, is_log: bool) -> Self {
        Self { label: label.to_owned(), unit, is_log, ticks: Vec::new() }
    }

    /// From the first of these ticks to the last.
    pub(in crate::report::page) fn with_ticks(self, ticks: impl IntoIterator<Item = (f64, String)>) -> Self {
        Self { ticks: ticks.into_iter().collect(), ..self }
    }
}

/// A scale with its values placed.
#[derive(Clone, Debug)]
struct Side {
    scale: Scale,
    axis: Axis,
    /// What ticks are divided by, and its name in the label.
    factor: (f64, &'static str),
}

impl Side {
    fn new(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let ends = [scale.ticks.first(), scale.ticks.last()].into_iter().flatten().map(|(at, _)| *at);
        let axis = Axis::new(values.chain(ends.collect::<Vec<_>>()), scale.is_log);
        let top = axis.ticks().last().copied().unwrap_or(0.0);
        let factor = match scale.unit {
            Unit::Qps if top >= 1e6 => (1e6, "million queries/s"),
            Unit::Qps if top >= 1e4 => (1e3, "thousand queries/s"),
            Unit::Qps => (1.0, "queries/s"),
            Unit::Plain(unit) => (1.0, unit),
        };
        Self { scale, axis, factor }
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        if !self.scale.ticks.is_empty() {
            return self.scale.ticks.clone();
        }
        self.axis.ticks().iter().map(|&tick| (tick, tick_text(tick / self.factor.0))).collect()
    }

    fn label(&self) -> String {
        match self.factor.1 {
            "" => self.scale.label.clone(),
            unit => format!("{} ({unit})", self.scale.label),
        }
    }

    fn position(&self, value: f64) -> Option<f64> {
        self.axis.position(value).filter(|at| (-1e-9..=1.0 + 1e-9).contains(at))
    }
}

/// A chart's two axes.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    x: Side,
    y: Side,
}

impl Plane {
    /// Axes that show these values.
    pub(super) fn new(x: Scale, xs: impl Iterator<Item = f64>, y: Scale, ys: impl Iterator<Item = f64>) -> Self {
        Self { x: Side::new(x, xs), y: Side::new(y, ys) }
    }

    /// Where a point lies; `None` if an axis can't show it.
    pub(super) fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.across(x)?, self.up(y)?))
    }

    pub(super) fn across(&self, x: f64) -> Option<f64> {
        self.x.position(x).map(|share| LEFT + share * (WIDTH - LEFT - RIGHT))
    }

    pub(super) fn up(&self, y: f64) -> Option<f64> {
        self.y.position(y).map(|share| HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP))
    }

    /// The lowest place, for what reaches below what a logarithmic axis shows.
    pub(super) fn floor(&self) -> f64 {
        HEIGHT - BOTTOM
    }

    /// Grid, ticks and labels. Every second tick can be left out where there is little room.
    pub(super) fn frame(&self) -> String {
        let mut svg = String::from("<g class=\"grid\">");
        let (right, bottom) = (WIDTH - RIGHT, self.floor());
        let class = |i: usize| if i % 2 == 1 { " class=\"alt\"" } else { "" };
        let mut labels = String::new();
        for (i, (tick, text)) in self.x.ticks().into_iter().enumerate() {
            let Some(x) = self.across(tick) else { continue };
            let _ = write!(svg, "<path d=\"M{x:.1} {TOP}V{bottom}\"/>");
            let _ = write!(
                labels,
                "<text{} x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                class(i),
                bottom + 18.0,
                escaped(&text)
            );
        }
        for (tick, text) in self.y.ticks() {
            let Some(y) = self.up(tick) else { continue };
            let _ = write!(svg, "<path d=\"M{LEFT} {y:.1}H{right}\"/>");
            let _ = write!(
                labels,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                escaped(&text)
            );
        }
        let _ = write!(
            svg,
            "</g><g class=\"ticks\">{labels}</g><path class=\"axis\" d=\"M{LEFT} {bottom}H{right}\"/>\
             <text class=\"label\" x=\"{:.0}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text class=\"label\" x=\"0\" y=\"14\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 10.0,
            escaped(&self.x.label()),
            escaped(&self.y.label()),
        );
        svg
    }

    /// A line across the whole height, and what it means.
    pub(super) fn vertical(&self, value: f64, text: &str) -> String {
        let Some(x) = self.across(value) else { return String::new() };
        // Beside the line, on the side where there is more room.
        let (anchor, beside) = if x > WIDTH / 2.0 { ("end", -5.0) } else { ("start", 5.0) };
        format!(
            "<path class=\"mark\" d=\"M{x:.1} {TOP}V{}\"/><text class=\"marked\" x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            self.floor(),
            x + beside,
            TOP + 13.0,
            escaped(text),
        )
    }

    /// A line across the whole width, and what it means.
    pub(super) fn horizontal(&self, value: f64, text: &str) -> String {
        let Some(y) = self.up(value) else { return String::new() };
        format!(
            "<path class=\"mark\" d=\"M{LEFT} {y:.1}H{}\"/><text class=\"marked\" x=\"{}\" y=\"{:.1}\">{}</text>",
            WIDTH - RIGHT,
            LEFT + 6.0,
            y - 6.0,
            escaped(text),
        )
    }
}
