//! Time in whole nanoseconds since the start of a run.
//!
//! Times are integers, not float seconds: equal histories must compare equal, and a sum of a million service times must
//! not depend on the order of addition. A `u64` of nanoseconds lasts 584 years.

use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A point in time or a duration, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of a run.
    pub const ZERO: Self = Self(0);
    /// Later than any event.
    pub const MAX: Self = Self(u64::MAX);

    /// Rounds `us` microseconds to the nearest nanosecond; negative and NaN give zero, too large saturates.
    #[inline]
    pub fn from_us(us: f64) -> Self {
        Self(rounded(us * 1e3))
    }

    /// Rounds `ms` milliseconds to the nearest nanosecond; negative and NaN give zero, too large saturates.
    #[inline]
    pub fn from_ms(ms: f64) -> Self {
        Self::from_us(ms * 1e3)
    }

    /// Rounds `s` seconds to the nearest nanosecond; negative and NaN give zero, too large saturates.
    #[inline]
    pub fn from_secs(s: f64) -> Self {
        Self::from_us(s * 1e6)
    }

    /// In microseconds.
    #[inline]
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// In milliseconds.
    #[inline]
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// In seconds.
    #[inline]
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to `self`, or zero if `earlier` is later.
    #[must_use]
    #[inline]
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// The given share of this duration, rounded and saturating.
    #[must_use]
    #[inline]
    pub fn scaled(self, share: f64) -> Self {
        Self(rounded(self.0 as f64 * share))
    }
}

/// Computes `ns.round() as u64` without a call into the mathematical library, because simulators round often.
#[inline]
fn rounded(ns: f64) -> u64 {
    /// From here to twice as much, doubles are whole numbers, one apart.
    const WHOLE: f64 = (1_u64 << 52) as f64;
    if (0.0..WHOLE / 2.0).contains(&ns) {
        // The sum is the nearest whole number, the even one of two. Halves go up afterwards.
        let sum = ns + WHOLE;
        return (sum.to_bits() - WHOLE.to_bits()) + u64::from(ns - (sum - WHOLE) == 0.5);
    }
    let whole = ns as u64;
    whole.saturating_add(u64::from(ns - whole as f64 >= 0.5))
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    /// Like [`Nanos::since`]: never below zero.
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_convert_and_saturate() {
        assert_eq!(Nanos::from_ms(1.5), Nanos(1_500_000));
        assert_eq!(Nanos::from_us(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_us(f64::NAN), Nanos::ZERO);
        assert_eq!(Nanos::from_secs(1e300), Nanos::MAX);
        assert_eq!(Nanos(3) - Nanos(5), Nanos::ZERO);
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
    }

    #[test]
    fn rounding_is_that_of_the_library() {
        let edges = [0.0, -0.0, 0.5, 1.5, -0.5, -3.0, 0.5 - f64::EPSILON / 4.0, 4_503_599_627_370_495.5, 9e15, 1.8e19];
        let odd = [2f64.powi(53) + 2.0, 2f64.powi(64), 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let usual = (0..1000).map(|i| f64::from(i) * 1234.567 / 8.0);
        for ns in edges.into_iter().chain(odd).chain(usual) {
            assert_eq!(rounded(ns), ns.round() as u64, "{ns}");
        }
    }
}
