//! Names of columns in tables of other programs, which may end in a unit of time.

/// For each field of a row, the names of its column as [`normal`] writes them, without a unit and separated by blanks; the surest
/// comes first.
pub type Names = [(&'static str, &'static str)];

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

impl TimeUnit {
    const SPELLINGS: [(Self, &str); 4] = [
        (Self::Seconds, "s sec secs second seconds"),
        (Self::Millis, "ms msec msecs millis millisecond milliseconds"),
        (Self::Micros, "us \u{b5}s \u{3bc}s usec usecs micros microsecond microseconds"),
        (Self::Nanos, "ns nsec nsecs nanos nanosecond nanoseconds"),
    ];

    /// A column's name without its unit, in [normal](normal) form, and the unit: `Latency (ms)`, `latency_ms` and `latencyMs` are
    /// `latency` in milliseconds.
    pub fn of_column(name: &str) -> (String, Option<Self>) {
        let is_end = |(at, c): (usize, char)| {
            let begins = c.is_uppercase() && name[..at].ends_with(char::is_lowercase);
            (begins || !c.is_alphanumeric()) && name[at..].contains(char::is_alphanumeric)
        };
        let Some(end) = name.char_indices().rfind(|&place| is_end(place)).map(|(at, _)| at) else {
            return (normal(name), None);
        };
        let last = normal(&name[end..]);
        let unit =
            Self::SPELLINGS.iter().find(|(_, names)| names.split(' ').any(|name| name == last)).map(|&(unit, _)| unit);
        (normal(if unit.is_some() { &name[..end] } else { name }), unit)
    }

    /// The decimals of a number in this unit that are whole nanoseconds.
    pub fn decimals(self) -> usize {
        9 - 3 * self as usize
    }

    /// Its length in microseconds.
    pub fn us(self) -> f64 {
        [1e6, 1e3, 1.0, 1e-3][self as usize]
    }

    /// Its symbol.
    pub fn symbol(self) -> &'static str {
        ["s", "ms", "us", "ns"][self as usize]
    }

    /// The unit in words.
    pub fn name(self) -> &'static str {
        ["seconds", "milliseconds", "microseconds", "nanoseconds"][self as usize]
    }
}

/// A name without case and punctuation.
pub fn normal(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The first names of a list, in words.
pub(super) fn in_words(names: &[impl AsRef<str>]) -> String {
    const MOST: usize = 8;
    let first: Vec<String> = names.iter().take(MOST).map(|name| format!("`{}`", name.as_ref())).collect();
    let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
    first.join(", ") + &more
}
