//! Axes with round ticks, as coordinates of plotters.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::number::text;

/// An axis from `low` to `high`, which may be below `low`.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    low: f64,
    pub(crate) high: f64,
    is_log: bool,
    /// Values with their texts.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// Approximate number of ticks of a linear axis.
const LINEAR_TICKS: f64 = 6.0;
/// A linear axis begins at zero unless all values are within this share of the highest, which would hide differences.
const NARROW: f64 = 0.3;
/// Values within this ratio get a linear axis instead of a logarithmic one, because no decade separates them.
const LINEAR_RATIO: f64 = 3.0;

impl Axis {
    /// An axis of all finite `values`, and on a logarithmic axis of those above zero. It ends at ticks.
    pub(crate) fn new(values: impl IntoIterator<Item = f64>, is_log: bool) -> Self {
        let shown = values.into_iter().filter(|&value| value.is_finite() && (!is_log || value > 0.0));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let begins_at_zero = !is_log && (high - low > NARROW * high || high == low);
        let is_log = is_log && (high == low || high > LINEAR_RATIO * low);
        let low = if begins_at_zero { low.min(0.0) } else { low };
        let ticks = if is_log { decades(low, high) } else { steps(low, high) };
        let (low, high) = (ticks[0].min(low), ticks[ticks.len() - 1].max(high));
        Self { low, high, is_log, ticks: Vec::new() }.with_ticks(&ticks)
    }

    /// Rows from the top, with their names.
    pub(crate) fn rows<'a>(names: impl IntoIterator<Item = &'a String>) -> Self {
        let ticks: Vec<_> = names.into_iter().enumerate().map(|(row, name)| (row as f64, name.clone())).collect();
        Self { low: ticks.len() as f64 - 0.5, high: -0.5, is_log: false, ticks }
    }

    /// The axis with ticks at these values. `k` are thousands and `M` millions.
    pub(crate) fn with_ticks(self, values: &[f64]) -> Self {
        let text = |value: f64| match value.abs() {
            size if size >= 1e6 => format!("{} M", text(value / 1e6, 6)),
            size if size >= 1e3 && self.high >= 1e4 => format!("{} k", text(value / 1e3, 6)),
            _ => text(value, 6),
        };
        Self { ticks: values.iter().map(|&value| (value, text(value))).collect(), ..self }
    }

    pub(crate) fn can_show(&self, value: f64) -> bool {
        value.is_finite() && (!self.is_log || value > 0.0)
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    /// Values beyond an end of the axis are at this end.
    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let [low, high, value] = [self.low, self.high, *value].map(|v| if self.is_log { v.log10() } else { v });
        from + (f64::from(to - from) * ((value - low) / (high - low)).clamp(0.0, 1.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(tick, _)| *tick).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.ticks.iter().find(|(tick, _)| tick == value).map_or_else(String::new, |(_, text)| text.clone())
    }
}

/// Multiples of a round step, from the last one at or below `low` to the first one at or above `high`.
fn steps(low: f64, high: f64) -> Vec<f64> {
    let high = if high > low { high } else { low + 1.0 };
    let rough = (high - low) / LINEAR_TICKS;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|&step| step >= rough).unwrap_or(rough);
    ((low / step).floor() as i64..=(high / step).ceil() as i64).map(|i| i as f64 * step).collect()
}

/// Powers of ten from the last one at or below `low` to the first one above it and not below `high`, with 2 and 5 times
/// these powers if they are few.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let decades = [low.log10().floor() as i32, high.log10().ceil() as i32];
    let factors: &[f64] = if decades[1] - decades[0] <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let decades = decades[0] - 1..=decades[1] + 1;
    let all: Vec<f64> = decades.flat_map(|decade| factors.iter().map(move |f| f * 10f64.powi(decade))).collect();
    let from = all.iter().rposition(|&tick| tick <= low).unwrap_or(0);
    let to = all.iter().position(|&tick| tick >= high && tick > low).unwrap_or(all.len() - 1);
    all[from..=to].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_ticks_and_keep_differences_visible() {
        let ticks = |values: &[f64], is_log| {
            let axis = Axis::new(values.iter().copied(), is_log);
            axis.ticks.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ticks(&[13.0, 87.0, f64::NAN], false), "0 20 40 60 80 100");
        assert_eq!(ticks(&[1.0, 1.05], false), "1 1.01 1.02 1.03 1.04 1.05");
        assert_eq!(ticks(&[3.0, 700.0, 0.0, -4.0], true), "2 5 10 20 50 100 200 500 1000");
        assert_eq!([ticks(&[3.0, 3.6], true), ticks(&[10.0], true)], ["3 3.2 3.4 3.6", "10 20"]);
        assert_eq!(ticks(&[7e3, 2e6, 1e9], true), "1 k 10 k 100 k 1 M 10 M 100 M 1000 M");
        assert_eq!(
            [2.0, 1000.0, 0.0, 1e9].map(|value| Axis::new([3.0, 700.0], true).map(&value, (10, 90))),
            [10, 90, 10, 90]
        );
    }
}
