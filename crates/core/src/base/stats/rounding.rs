//! Numbers with as many digits as they deserve.

/// Rounds to `digits` significant decimal digits; what is not finite stays as it is.
#[must_use]
pub fn significant(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}
