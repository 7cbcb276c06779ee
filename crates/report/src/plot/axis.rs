//! Axes with ranges and ticks.

#[derive(Clone, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    ticks: Vec<f64>,
}

/// Approximate number of ticks of a linear axis.
const LINEAR_TICKS: f64 = 6.0;
/// A linear axis begins at zero unless all values are within this share of the highest, which would hide differences.
const NARROW: f64 = 0.3;
/// Values within this ratio get a linear axis instead of a logarithmic one, because no decade separates them.
const LINEAR_RATIO: f64 = 3.0;

impl Axis {
    /// An axis of all finite `values`, and on a logarithmic axis of those above zero.
    pub(crate) fn new(values: impl IntoIterator<Item = f64>, is_log: bool) -> Self {
        let shown = values.into_iter().filter(|&value| value.is_finite() && (!is_log || value > 0.0));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return if is_log { Self::logarithmic(1.0, 10.0) } else { Self::linear(0.0, 1.0) };
        }
        match is_log {
            true if high == low || high > LINEAR_RATIO * low => Self::logarithmic(low, high),
            false if high - low > NARROW * high || high == low => Self::linear(low.min(0.0), high),
            _ => Self::linear(low, high),
        }
    }

    fn linear(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = nice_step((high - low) / LINEAR_TICKS);
        let [first, last] = [(low / step).floor(), (high / step).ceil()];
        let ticks: Vec<f64> = (first as i64..=last as i64).map(|i| i as f64 * step).collect();
        Self { low: first * step, high: last * step, is_log: false, ticks }
    }

    fn logarithmic(low: f64, high: f64) -> Self {
        let decades = [low.log10().floor() as i32, high.log10().ceil() as i32];
        // Few decades get ticks in between, many only whole ones.
        let factors: &[f64] = if decades[1] - decades[0] <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let all: Vec<f64> = (decades[0] - 1..=decades[1])
            .flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)))
            .collect();
        // Ticks reach from the last one below all values to the first one above them.
        let from = all.iter().rposition(|&tick| tick <= low).unwrap_or(0);
        let to = all.iter().position(|&tick| tick >= high && tick > all[from]).unwrap_or(all.len() - 1);
        let ticks = all[from..=to].to_vec();
        Self { low: all[from].min(low), high: all[to].max(high), is_log: true, ticks }
    }

    /// Relative position of a value, from 0 at the low end to 1 at the high end, or `None` if it is outside.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        let scale = |v: f64| if self.is_log { v.log10() } else { v };
        let share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low));
        (-1e-9..=1.0 + 1e-9).contains(&share).then_some(share)
    }

    /// Values of the ticks and their texts. Large numbers use `k` for thousands and `M` for millions.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        self.ticks.iter().map(|&tick| (tick, tick_text(tick, self.high))).collect()
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|factor| factor * power).find(|&step| step >= rough).unwrap_or(10.0 * power)
}

/// A tick's value as text, without rounding noise, on an axis up to `most`.
fn tick_text(value: f64, most: f64) -> String {
    let text = |value: f64| crate::number::text(value, 6);
    match value.abs() {
        size if size >= 1e6 => format!("{} M", text(value / 1e6)),
        size if size >= 1e3 && most >= 1e4 => format!("{} k", text(value / 1e3)),
        _ => text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(axis: &Axis) -> Vec<f64> {
        axis.ticks().iter().map(|(tick, _)| *tick).collect()
    }

    #[test]
    fn linear_axes_start_at_zero_unless_it_hides_differences() {
        let axis = Axis::new([13.0, 87.0, f64::NAN], false);
        assert_eq!(values(&axis), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(axis.position(50.0), Some(0.5));
        assert_eq!([f64::INFINITY, f64::NAN, -1.0, 101.0].map(|value| axis.position(value)), [None; 4]);
        assert_eq!(values(&Axis::new([1.0, 1.05], false)), [1.0, 1.01, 1.02, 1.03, 1.04, 1.05]);
        assert_eq!(values(&Axis::new([3.0], false))[0], 0.0);
    }

    #[test]
    fn a_logarithmic_axis_covers_its_values() {
        let axis = Axis::new([3.0, 700.0, 0.0, -4.0], true);
        assert_eq!((values(&axis)[0], values(&axis).last()), (2.0, Some(&1000.0)));
        assert_eq!(axis.position(0.0), None);
        let single = Axis::new([10.0], true);
        assert!(single.position(10.0).is_some_and(|at| (0.0..=1.0).contains(&at)));
        // Differences of values within a decade stay visible.
        let narrow: Vec<String> = Axis::new([3.0, 3.6], true).ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(narrow, ["3", "3.2", "3.4", "3.6"]);
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(tick_text(0.1 + 0.2, 1.0), "0.3");
        let large = [500.0, 5e3, 1e4, 123_456.0, 1e6, 2.5e9].map(|value| tick_text(value, 1e7));
        assert_eq!(large, ["500", "5 k", "10 k", "123.456 k", "1 M", "2500 M"]);
        assert_eq!(tick_text(1200.0, 2000.0), "1200");
    }
}
