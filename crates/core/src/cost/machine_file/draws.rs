//! Values of a distribution that a file gives by quantiles.

use super::Quantile;

/// The value at `x` of a piecewise linear function through points of ascending x. It is constant before the first and after
/// the last point.
pub(super) fn interpolated(points: impl Iterator<Item = (f64, f64)>, x: f64) -> Option<f64> {
    let mut before: Option<(f64, f64)> = None;
    for (at, value) in points {
        if at >= x {
            return Some(match before {
                Some((from, low)) if at > from => low + (value - low) * (x - from) / (at - from),
                _ => value,
            });
        }
        before = Some((at, value));
    }
    before.map(|(_, value)| value)
}

/// The quantile of a distribution at `share`.
#[inline]
pub(super) fn value_at(quantiles: &[Quantile], share: f64) -> Option<f64> {
    interpolated(quantiles.iter().map(|point| (point.share, point.value)), share)
}
