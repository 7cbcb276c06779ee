//! Values in the notation of files.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::base::time::Nanos;

/// A number written with `DIGITS` significant digits and no exponent.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Digits<const DIGITS: usize>(pub f64);

/// A number written with `PLACES` decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Decimals<const PLACES: usize>(pub f64);

/// A time in microseconds with three decimals, so that every nanosecond survives the round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Us(pub Nanos);

impl<const DIGITS: usize> fmt::Display for Digits<DIGITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = format!("{:.*e}", DIGITS.saturating_sub(1), self.0);
        rounded.parse::<f64>().unwrap_or(self.0).fmt(f)
    }
}

impl<const PLACES: usize> fmt::Display for Decimals<PLACES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.PLACES$}", self.0)
    }
}

impl fmt::Display for Us {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0.0 / 1000, self.0.0 % 1000)
    }
}

impl<const DIGITS: usize> Serialize for Digits<DIGITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<const PLACES: usize> Serialize for Decimals<PLACES> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Us {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, const DIGITS: usize> Deserialize<'de> for Digits<DIGITS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self)
    }
}

impl<'de, const PLACES: usize> Deserialize<'de> for Decimals<PLACES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Us {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, "microseconds with at most three decimals", parse_us).map(Self)
    }
}

/// Reads microseconds with at most three decimals, exactly.
fn parse_us(text: &str) -> Option<Nanos> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !(whole.bytes().chain(decimals.bytes()).all(|b| b.is_ascii_digit())) {
        return None;
    }
    let thousandths: u64 = format!("{decimals:0<3}").parse().ok()?;
    Some(Nanos(whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(thousandths)?))
}

/// Reads a value from text with `parse`, for `Deserialize` implementations of the types of cells. Fails with
/// `expected`, in words, if `parse` returns `None`.
pub fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    struct Parse<F>(&'static str, F);

    impl<T, F: FnOnce(&str) -> Option<T>> Visitor<'_> for Parse<F> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            (self.1)(text).ok_or_else(|| E::custom(self.0))
        }
    }

    deserializer.deserialize_str(Parse(expected, parse))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_their_types_say() {
        assert_eq!([123_456.789, 0.000_123_45, 0.0].map(|x| Digits::<3>(x).to_string()), ["123000", "0.000123", "0"]);
        assert_eq!(Decimals::<3>(1.5).to_string(), "1.500");
        assert_eq!(Us(Nanos(1_000_002)).to_string(), "1000.002");
        assert_eq!(
            ["1.5", "7", "0.001", ".5", "1.0001", "-1"].map(parse_us),
            [Some(Nanos(1500)), Some(Nanos(7000)), Some(Nanos(1)), None, None, None]
        );
    }

    #[test]
    fn rounded_numbers_are_read_as_numbers() {
        assert_eq!(serde_json::from_str::<Digits<3>>("1.25").unwrap().0, 1.25);
        assert_eq!(serde_json::from_str::<Decimals<3>>("1.25").unwrap().0, 1.25);
    }
}
