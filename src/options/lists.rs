//! Values of options with a form of their own: several as `1,2,4`, `1:8`, `0.1,0.2`; rates as `120`, `50,100,200` or `50:400:8`.

use tandem_model::cost::SpeedUp;
use tandem_model::sim::ShardCosts;

use crate::failure::Failure;
use tandem_report::number::significant;

/// A larger number of values of one option is a mistake.
const MAX_VALUES: usize = 10_000;
/// The largest accepted spread of costs between shards.
const MAX_SPREAD: f64 = 3.0;
/// Limits of the watchdog: a shorter one mistakes long queries for dead lanes, a longer one never acts.
const WATCHDOG_MS: std::ops::RangeInclusive<f64> = 1.0..=600_000.0;

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

/// Reads the costs of a query on other shards: `independent`, or `alike=S`.
///
/// By default S is 0.1: what four quarters of 261,409 articles of English Wikipedia, in order of their pages, differed by in
/// 1,346 of the TREC 2005 efficiency queries (OR, top 10), after the noise of repeats was taken out. Dealt out one by one they
/// differed by 0.08.
pub(crate) fn shard_costs(text: &str) -> Result<ShardCosts, String> {
    let text = text.trim();
    let spread = || text.strip_prefix("alike")?.strip_prefix('=').map_or(Some(0.0), |spread| spread.parse().ok());
    let costs = match text {
        "independent" => Some(ShardCosts::Independent),
        _ => spread().filter(|spread| (0.0..=MAX_SPREAD).contains(spread)).map(ShardCosts::Alike),
    };
    costs.ok_or_else(|| format!("{text:?}, expected independent, or alike=S with S from 0 to {MAX_SPREAD}"))
}

/// Reads the watchdog's limit, in milliseconds.
pub(crate) fn watchdog_ms(text: &str) -> Result<f64, String> {
    let ms = text.parse().ok().filter(|ms| WATCHDOG_MS.contains(ms));
    ms.ok_or_else(|| format!("expected {} to {}", WATCHDOG_MS.start(), WATCHDOG_MS.end()))
}

/// Speed-ups on 1, 2, 3... CPU workers, between commas.
pub(crate) fn speed_up(text: &str) -> Result<SpeedUp, String> {
    let number = |part: &str| part.trim().parse::<f64>().map_err(|_| format!("{part:?} is not a number"));
    let found = SpeedUp::of_all(text.split(',').map(number).collect::<Result<_, _>>()?);
    found.check().map(|()| found)
}

/// At most this many rates in one command.
const MAX_RATES: usize = 10_000;
/// The lowest rate. Below it, a run of a thousand queries lasts years.
const MIN_RATE_QPS: f64 = 1e-6;
/// The highest rate. Above it, arrivals are less than a nanosecond apart.
const MAX_RATE_QPS: f64 = 1e9;

/// Reads rates: numbers between commas, each a rate in queries per second or `A:B:N`, N rates evenly from A to B. Fails
/// with a message for the option.
pub(crate) fn parse_rates(text: &str) -> Result<Vec<f64>, String> {
    let mut rates = Vec::new();
    for part in text.split(',') {
        let fields: Vec<&str> = part.split(':').map(str::trim).collect();
        match fields[..] {
            [rate] => rates.push(parse_rate(rate)?),
            [from, to, count] => {
                let (from, to) = (parse_rate(from)?, parse_rate(to)?);
                let count: usize = count.parse().map_err(|_| format!("{count:?} is not a number of rates"))?;
                if !(2..=MAX_RATES).contains(&count) {
                    return Err(format!("{part:?}: the number of rates must be from 2 to {MAX_RATES}"));
                }
                let step = (to - from) / (count - 1) as f64;
                rates.extend((0..count).map(|i| significant(from + step * i as f64, 9)));
            }
            _ => return Err(format!("{part:?} is neither a rate nor FROM:TO:COUNT")),
        }
    }
    if rates.len() > MAX_RATES {
        return Err(format!("{} rates, at most {MAX_RATES} can be tried at once", rates.len()));
    }
    Ok(rates)
}

/// Reads one rate, in queries per second. Fails with a message for the option.
pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of queries per second"))?;
    if !(MIN_RATE_QPS..=MAX_RATE_QPS).contains(&rate) {
        return Err(format!(
            "rate {text} is out of range: expected {MIN_RATE_QPS} to {MAX_RATE_QPS} queries per second"
        ));
    }
    Ok(rate)
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

    #[test]
    fn rates_are_numbers_lists_and_ranges() {
        assert_eq!(parse_rates("120").unwrap(), [120.0]);
        assert_eq!(parse_rates("1,2.5").unwrap(), [1.0, 2.5]);
        assert_eq!(parse_rates("10:20:3").unwrap(), [10.0, 15.0, 20.0]);
        for bad in ["", "0", "-1", "NaN", "inf", "1:2", "1:2:1", "1:2:999999999", "x", "0:5:3"] {
            assert!(parse_rates(bad).is_err(), "{bad:?} should be refused");
        }
    }
}
