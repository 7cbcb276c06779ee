//! Several values of one option: `1,2,4`, `1:8`, `0.1,0.2`.

use crate::Failure;

/// More values of one option than this are surely a slip.
const MAX_VALUES: usize = 10_000;

/// Whole numbers between commas, each alone or `FIRST:LAST`, both ends included; each from `least` to `most`, and once.
pub(crate) fn counts(option: &str, text: &str, least: usize, most: usize) -> Result<Vec<usize>, Failure> {
    let fault = |part: &str| {
        Failure::input(format!("{option}: {part:?}, expected whole numbers from {least} to {most}, as 1,2,4 or 1:8"))
    };
    let number = |part: &str| {
        part.trim().parse::<usize>().ok().filter(|count| (least..=most).contains(count)).ok_or_else(|| fault(part))
    };
    let mut values = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once(':') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last || last - first >= MAX_VALUES {
            return Err(fault(part));
        }
        for value in first..=last {
            once(option, &mut values, value)?;
        }
    }
    Ok(values)
}

/// Numbers between commas, each once and from `least` to `most`.
pub(crate) fn numbers(option: &str, text: &str, least: f64, most: f64) -> Result<Vec<f64>, Failure> {
    let mut values = Vec::new();
    for part in text.split(',') {
        let value = part.trim().parse::<f64>().ok().filter(|value| (least..=most).contains(value));
        let fault = || Failure::input(format!("{option}: {part:?}, expected numbers from {least} to {most}"));
        once(option, &mut values, value.ok_or_else(fault)?)?;
    }
    Ok(values)
}

fn once<T: PartialEq + std::fmt::Display>(option: &str, values: &mut Vec<T>, value: T) -> Result<(), Failure> {
    if values.contains(&value) {
        return Err(Failure::input(format!("{option}: {value} is given twice")));
    }
    values.push(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_numbers_and_ranges_without_repeats() {
        let of = |text: &str| counts("--cpus", text, 1, 64).map_err(|e| e.to_string());
        assert_eq!(of("1,4:6").unwrap(), [1, 4, 5, 6]);
        for bad in ["", "0", "65", "3:1", "x", "1:", "2,1:3"] {
            let message = of(bad).unwrap_err();
            assert!(message.starts_with("--cpus: "), "{bad:?}: {message}");
        }
        assert_eq!(numbers("--noise", "0, 0.5", 0.0, 3.0).unwrap(), [0.0, 0.5]);
        for bad in ["", "-1", "NaN", "4", "0,0"] {
            assert!(numbers("--noise", bad, 0.0, 3.0).is_err(), "{bad:?}");
        }
    }
}
