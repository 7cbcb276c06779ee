//! Uniform text of numbers.

pub use tandem_core::base::stats::significant;

/// A number with `digits` significant digits and no exponent, for CSV files and tables.
pub fn text(value: f64, digits: usize) -> String {
    significant(value, digits).to_string()
}

/// The [`text`] of a number, or nothing if there is none, which is an empty field in a CSV file.
pub fn optional(value: Option<f64>, digits: usize) -> String {
    value.map(|value| text(value, digits)).unwrap_or_default()
}

/// A count with its noun: `1 query`, `2 queries`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A rate for people: `1,234,000`, `12.3`.
#[must_use]
pub fn grouped(value: f64) -> String {
    if value.abs() < 100.0 {
        return text(value, 3);
    }
    let digits = format!("{value:.0}");
    let from_end = digits.len();
    let group = |(at, digit): (usize, char)| {
        let comma = at > 0 && digit != '-' && (from_end - at).is_multiple_of(3);
        [comma.then_some(','), Some(digit)].into_iter().flatten()
    };
    digits.chars().enumerate().flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_leading_digits() {
        assert_eq!(text(123_456.789, 3), "123000");
        assert_eq!(text(0.000_123_45, 3), "0.000123");
        assert_eq!(text(0.0, 6), "0");
        assert_eq!(text(181.818_181_8, 6), "181.818");
        assert_eq!(optional(None, 3), "");
        assert_eq!([1_234_000.0, 123.4, 12.34, 1000.0].map(grouped), ["1,234,000", "123", "12.3", "1,000"]);
        assert!(significant(f64::INFINITY, 3).is_infinite());
        assert_eq!([counted(1, "term", "terms"), counted(0, "term", "terms")], ["1 term", "0 terms"]);
    }
}
