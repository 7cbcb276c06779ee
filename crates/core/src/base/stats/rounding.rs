//! Rounding to significant digits.

/// Rounds to `digits` significant decimal digits. Infinite values and NaN stay unchanged.
#[must_use]
pub fn significant(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}
