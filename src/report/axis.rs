//! Axes: which values are shown, where, and with which ticks.

/// A linear or logarithmic axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    ticks: Vec<f64>,
}

/// About this many ticks a linear axis has.
const LINEAR_TICKS: f64 = 7.0;

impl Axis {
    /// An axis that shows all `values` that it can: finite ones, and on a logarithmic axis those above zero.
    pub fn new(values: impl IntoIterator<Item = f64>, is_log: bool) -> Self {
        let shown = values.into_iter().filter(|&value| value.is_finite() && (!is_log || value > 0.0));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            // Nothing to show: a frame around nothing.
            return if is_log { Self::logarithmic(1.0, 10.0) } else { Self::linear(0.0, 1.0) };
        }
        if is_log { Self::logarithmic(low, high) } else { Self::linear(low.min(0.0), high) }
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
        // Few decades get ticks in between; many show only whole ones.
        let factors: &[f64] = if decades[1] - decades[0] <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let all: Vec<f64> = (decades[0] - 1..=decades[1])
            .flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)))
            .collect();
        // From the last tick below all values to the first above them.
        let from = all.iter().rposition(|&tick| tick <= low).unwrap_or(0);
        let to = all.iter().position(|&tick| tick >= high && tick > all[from]).unwrap_or(all.len() - 1);
        let ticks = all[from..=to].to_vec();
        Self { low: all[from].min(low), high: all[to].max(high), is_log: true, ticks }
    }

    /// Where a value lies: 0 at the low end, 1 at the high end; `None` if the axis can't show it.
    #[must_use]
    pub fn position(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.is_log && value <= 0.0) {
            return None;
        }
        let scale = |v: f64| if self.is_log { v.log10() } else { v };
        Some((scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low)))
    }

    /// The values at which to write a number and draw a line across.
    #[must_use]
    pub fn ticks(&self) -> &[f64] {
        &self.ticks
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|factor| factor * power).find(|&step| step >= rough).unwrap_or(10.0 * power)
}

/// A tick's value as text, without the noise of the multiplication that made it; large ones can be told apart at a
/// glance: 5,000, 10,000, 10,000,000.
#[must_use]
pub fn tick_text(value: f64) -> String {
    let mut text = crate::report::number::text(value, 6);
    if value.abs() >= 1e3 {
        let whole = text.find('.').unwrap_or(text.len());
        let first = usize::from(value < 0.0) + 1;
        (first..whole).rev().filter(|at| (whole - at).is_multiple_of(3)).for_each(|at| text.insert(at, ','));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_starts_at_zero_with_round_ticks() {
        let axis = Axis::new([13.0, 87.0, f64::NAN], false);
        assert_eq!(axis.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(axis.position(50.0), Some(0.5));
        assert_eq!(axis.position(f64::INFINITY), None);
    }

    #[test]
    fn a_logarithmic_axis_covers_its_values() {
        let axis = Axis::new([3.0, 700.0, 0.0, -4.0], true);
        assert_eq!(axis.ticks().first(), Some(&2.0));
        assert_eq!(axis.ticks().last(), Some(&1000.0));
        assert_eq!(axis.position(0.0), None);
        let single = Axis::new([10.0], true);
        assert!(single.position(10.0).is_some_and(|at| (0.0..=1.0).contains(&at)));
        assert_eq!(tick_text(0.1 + 0.2), "0.3");
        let large = [5e3, 1e4, 123_456.0, 1e6, -1e5, 1e7, 2.5e9].map(tick_text);
        assert_eq!(large, ["5,000", "10,000", "123,456", "1,000,000", "-100,000", "10,000,000", "2,500,000,000"]);
    }
}
