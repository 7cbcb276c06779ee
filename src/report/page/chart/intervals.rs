//! One value a row on a common axis, each with what it may be off by: capacities side by side.

use std::fmt::Write as _;

use super::lines::figure;
use super::marker;
use super::plane::{WIDTH, upright_tick};
use crate::report::axis::{Axis, tick_text};
use crate::report::page::html::{escaped, number};

/// A value and its interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::report::page) struct Row {
    pub(in crate::report::page) name: String,
    /// Behind the name, such as `measured`.
    pub(in crate::report::page) detail: String,
    pub(in crate::report::page) look: usize,
    pub(in crate::report::page) value: f64,
    /// From where to where it may lie.
    pub(in crate::report::page) interval: Option<(f64, f64)>,
    /// What it cannot exceed, where that differs from row to row.
    pub(in crate::report::page) bound: Option<f64>,
    /// A hollow marker: what was predicted.
    pub(in crate::report::page) is_hollow: bool,
    pub(in crate::report::page) tip: String,
}

/// Rows below each other.
#[derive(Clone, Debug, Default)]
pub(in crate::report::page) struct Intervals {
    pub(in crate::report::page) id: String,
    pub(in crate::report::page) title: String,
    pub(in crate::report::page) description: String,
    pub(in crate::report::page) rows: Vec<Row>,
    /// Lines across all rows, each with what it means.
    pub(in crate::report::page) marks: Vec<(f64, String)>,
    pub(in crate::report::page) note: String,
}

const LEFT: f64 = 190.0;
const RIGHT: f64 = 104.0;
const TOP: f64 = 30.0;
const STEP: f64 = 27.0;
/// Values further apart than this stand on a logarithmic axis: on a linear one the small would be nothing.
const LINEAR_RATIO: f64 = 12.0;

impl Intervals {
    /// The figure; nothing if it has no row.
    pub(in crate::report::page) fn html(&self) -> String {
        let positive = || self.rows.iter().map(|row| row.value).filter(|&value| value > 0.0);
        let (least, most) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
        if self.rows.is_empty() || most == 0.0 {
            return String::new();
        }
        let is_log = most / least > LINEAR_RATIO;
        let highs = self.rows.iter().filter_map(|row| row.interval.map(|(_, high)| high));
        let bounds = self.rows.iter().filter_map(|row| row.bound);
        let values = positive().chain(highs).chain(bounds).chain(self.marks.iter().map(|(at, _)| *at));
        let axis = Axis::new(values, is_log);
        let top_tick = axis.ticks().last().copied().unwrap_or(0.0);
        let (factor, unit) = match top_tick {
            top if top >= 1e6 => (1e6, "million queries/s"),
            top if top >= 1e4 => (1e3, "thousand queries/s"),
            _ => (1.0, "queries/s"),
        };
        let across =
            |value: f64| axis.position(value).map(|share| LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT));
        let bottom = TOP + STEP * self.rows.len() as f64 + 4.0;
        let mut svg = String::from("<g class=\"grid\">");
        let mut ticks = String::from("<g class=\"ticks\">");
        for (i, &tick) in axis.ticks().iter().enumerate() {
            let Some(x) = across(tick) else { continue };
            upright_tick(i, x, (TOP, bottom), &tick_text(tick / factor), &mut svg, &mut ticks);
        }
        let _ = write!(
            svg,
            "</g>{ticks}</g><text class=\"label\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{unit}{}</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            bottom + 38.0,
            if is_log { ", logarithmic" } else { "" }
        );
        for (at, text) in &self.marks {
            let Some(x) = across(*at) else { continue };
            let anchor = if x > (LEFT + WIDTH) / 2.0 { "end" } else { "start" };
            let _ = write!(
                svg,
                "<path class=\"mark\" d=\"M{x:.1} {:.0}V{bottom:.0}\"/><text class=\"marked\" x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{}</text>",
                TOP - 10.0,
                TOP - 15.0,
                escaped(text)
            );
        }
        for (i, row) in self.rows.iter().enumerate() {
            svg += &drawn(row, TOP + STEP * (i as f64 + 0.5), is_log, &across);
        }
        figure(&self.id, &self.title, &self.description, bottom + 48.0, &svg, "", &self.note)
    }
}

fn drawn(row: &Row, y: f64, is_log: bool, across: &dyn Fn(f64) -> Option<f64>) -> String {
    let mut svg = format!(
        "<g class=\"series c{}\"><text class=\"name\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}",
        row.look,
        LEFT - 14.0,
        y + 4.5,
        escaped(&row.name)
    );
    if !row.detail.is_empty() {
        let _ = write!(svg, "<tspan class=\"detail\"> {}</tspan>", escaped(&row.detail));
    }
    svg += "</text>";
    if let Some(x) = across(row.value) {
        if is_log {
            let _ = write!(svg, "<path class=\"leader\" d=\"M{LEFT} {y:.1}H{x:.1}\"/>");
        } else {
            let _ = write!(
                svg,
                "<path class=\"stem{}\" d=\"M{LEFT} {y:.1}H{x:.1}\"/>",
                if row.is_hollow { " faint" } else { "" }
            );
        }
        let ends = row.interval.and_then(|(low, high)| Some((across(low).unwrap_or(LEFT), across(high)?)));
        if let Some((low, high)) = ends.filter(|(low, high)| high - low > 0.5) {
            let _ = write!(svg, "<path class=\"whisker\" d=\"M{low:.1} {:.1}v10m0 -5H{high:.1}m0 -5v10\"/>", y - 5.0);
        }
        if let Some(bound) = row.bound.and_then(across) {
            let _ = write!(svg, "<path class=\"mark\" d=\"M{bound:.1} {:.1}v{:.1}\"/>", y - STEP / 2.0, STEP);
        }
        let class = if row.is_hollow { "dot hollow" } else { "dot" };
        let _ =
            write!(svg, "<path class=\"{class}\" d=\"{}\" data-t=\"{}\"/>", marker(x, y, row.look), escaped(&row.tip));
    }
    let _ = write!(
        svg,
        "<text class=\"value\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text></g>",
        WIDTH - 4.0,
        y + 4.5,
        number(row.value)
    );
    svg
}
