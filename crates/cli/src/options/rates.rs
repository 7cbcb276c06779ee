//! `--rate`: how a set of rates is written: `120`, `50,100,200` or `50:400:8`.

use tandem_report::number::significant;

/// At most this many rates in one command.
const MAX_RATES: usize = 10_000;
/// Below this, a run of a thousand queries would last years.
const MIN_RATE_QPS: f64 = 1e-6;
/// Above this, arrivals are closer than the nanoseconds they are counted in.
const MAX_RATE_QPS: f64 = 1e9;

/// Reads rates: numbers between commas, each a rate in queries per second or `A:B:N`, N rates evenly from A to B.
///
/// # Errors
/// In words, for an option's message.
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

/// Reads one rate, in queries per second.
///
/// # Errors
/// In words, for an option's message.
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
    fn rates_are_numbers_lists_and_ranges() {
        assert_eq!(parse_rates("120").unwrap(), [120.0]);
        assert_eq!(parse_rates("1,2.5").unwrap(), [1.0, 2.5]);
        assert_eq!(parse_rates("10:20:3").unwrap(), [10.0, 15.0, 20.0]);
        for bad in ["", "0", "-1", "NaN", "inf", "1:2", "1:2:1", "1:2:999999999", "x", "0:5:3"] {
            assert!(parse_rates(bad).is_err(), "{bad:?} should be refused");
        }
    }
}
