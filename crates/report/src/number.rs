//! Uniform text of numbers.

pub use tandem_model::base::stats::significant;

/// A number with `digits` significant digits and no exponent, for CSV files and tables.
pub fn text(value: f64, digits: usize) -> String {
    significant(value, digits).to_string()
}

/// A number that is known to plus or minus `half_width`, with the digits that are known: `152000` of 151,873 +- 1,900.
pub fn known(value: f64, half_width: f64) -> String {
    text(value, known_digits(value, half_width))
}

/// Two different numbers that are known to plus or minus `half_width`, with at least the digits that tell them apart.
pub fn known_apart(one: f64, other: f64, half_width: f64) -> (String, String) {
    let least = known_digits(one, half_width);
    let both = |digits| (text(one, digits), text(other, digits));
    (least..=15).map(both).find(|(one, other)| one != other).unwrap_or_else(|| both(least))
}

/// An interval with the digits that are known: it is never narrower than the numbers are, nor empty.
pub fn known_interval(low: f64, high: f64) -> String {
    if low == 0.0 && high == 0.0 {
        return String::from("0 to 0");
    }
    let unit = 10_f64.powf((0.5 * (high - low)).max(1e-12 * high.abs()).log10().floor());
    let at = |steps: f64| {
        let value = steps * unit;
        text(value, known_digits(value, unit))
    };
    // A tolerance keeps numbers on the grid that differ from it by rounding errors only.
    format!("{} to {}", at((low / unit + 1e-9).floor()), at((high / unit - 1e-9).ceil()))
}

/// Significant digits of a number, down to the first of its uncertainty.
fn known_digits(value: f64, half_width: f64) -> usize {
    let is_known = value.is_finite() && half_width.is_finite() && half_width > 0.0;
    if value == 0.0 || !is_known {
        return 4;
    }
    let digits = value.abs().log10().floor() - half_width.log10().floor() + 1.0;
    digits.clamp(1.0, 6.0) as usize
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

/// A rate with the digits that are known, given its relative uncertainty.
pub fn rate(qps: f64, half_width: f64) -> String {
    grouped(significant(qps, if half_width >= 0.1 { 2 } else { 3 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_are_known() {
        assert_eq!([known(151_873.0, 1900.0), known(53.948, 0.38), known(53.948, 5.0)], ["152000", "53.9", "54"]);
        assert_eq!(known_apart(151_240.0, 151_996.0, 4000.0), (String::from("151000"), String::from("152000")));
        assert_eq!(known_apart(15.0, 15.0, 1.0).0, "15");
        assert_eq!(known_interval(151_240.0, 153_600.0), "151000 to 154000");
        assert_eq!(known_interval(53.21, 54.02), "53.2 to 54.1");
        assert_eq!(known_interval(99.5, 100.0), "99.5 to 100");
        assert_eq!(known_interval(0.0, 0.0), "0 to 0");
        assert_eq!(known_interval(4_059_000.0, 4_079_295.0), "4050000 to 4080000");
    }

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
