//! The work model: a query's cost as a sum of priced operations, which people can read and check.
//!
//! ```text
//! 2.1 us  +  0.35 us per term  +  1.9 ns per posting of essential lists  +  28 ns per look-up  +  ...
//! ```
//!
//! Prices are not negative, because no operation saves time. Coordinate descent minimises the sum of squared relative errors.
//! Inputs without a price are left out. The model is far less accurate than boosting, but it is explainable, and it predicts
//! the effect of changes to the index.

use serde::{Deserialize, Serialize};

use super::samples::Samples;
use super::tree::FitError;
use super::{FitOptions, Regression, US};
use crate::cost::inputs::{InputSet, Inputs, NUM_INPUTS};

/// Inputs that may have a price, because they count operations.
#[rustfmt::skip]
const PRICED: [&str; 11] = [
    "terms", "shortest", "postings", "blocks", "and_blocks", "essential_postings", "live_postings", "lookups",
    "dense_postings", "sought_blocks", "expected_found",
];
/// Rounds of the descent; prices have converged after these rounds in all tests.
const ROUNDS: usize = 20_000;

/// The smallest prediction in microseconds, as in files.
const LEAST_US: f64 = 0.001;

/// The base cost of a query, and the price of each operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Work {
    base_us: f64,
    /// Positions among the inputs, and microseconds per unit.
    prices: Vec<(usize, f64)>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredWork {
    base_us: f64,
    prices: Vec<StoredPrice>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPrice {
    feature: String,
    us: f64,
}

impl Regression for Work {
    const HELP: &'static str = "Prices of what a query does, which a person can read";
    const TARGET: &'static str = US;

    type Stored = StoredWork;

    fn fit(samples: &Samples, _options: &FitOptions) -> Result<Self, FitError> {
        let priced: Vec<usize> = PRICED
            .iter()
            .filter_map(|name| Inputs::position(name))
            .filter(|&input| samples.known().contains(input))
            .collect();
        // There is one column per price, and a first one of ones. Rows are divided by their times to make errors relative.
        let columns = priced.len() + 1;
        let row = |sample: usize| {
            let us = samples.us()[sample];
            let values = priced.iter().map(move |&input| samples.rows()[sample][input]);
            std::iter::once(1.0).chain(values).map(move |value| value / us)
        };
        let mut squares = vec![vec![0.0; columns]; columns];
        let mut targets = vec![0.0; columns];
        for sample in 0..samples.len() {
            let row: Vec<f64> = row(sample).collect();
            for i in 0..columns {
                targets[i] += row[i];
                for j in 0..columns {
                    squares[i][j] += row[i] * row[j];
                }
            }
        }
        let mut prices = vec![0.0_f64; columns];
        for _ in 0..ROUNDS {
            for i in (0..columns).filter(|&i| squares[i][i] > 0.0) {
                let others: f64 = (0..columns).filter(|&j| j != i).map(|j| squares[i][j] * prices[j]).sum();
                prices[i] = ((targets[i] - others) / squares[i][i]).max(0.0);
            }
        }
        let kept = priced.iter().zip(&prices[1..]).map(|(&input, &us)| (input, digits(us)));
        Ok(Self { base_us: digits(prices[0]), prices: kept.filter(|&(_, us)| us > 0.0).collect() })
    }

    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        (self.base_us + self.prices.iter().map(|&(input, us)| us * inputs[input]).sum::<f64>()).max(LEAST_US)
    }

    fn asks(&self) -> InputSet {
        self.prices.iter().map(|&(input, _)| input).collect()
    }

    /// The base cost counts as a price.
    fn size(&self) -> (usize, &'static str) {
        (1 + self.prices.len(), "prices")
    }

    fn words(&self) -> Option<String> {
        let price = |&(input, us): &(usize, f64)| {
            let name = Inputs::NAMES[input];
            if us < 0.1 { format!("{} ns x {name}", digits(us * 1e3)) } else { format!("{us} us x {name}") }
        };
        let parts = std::iter::once(format!("{} us", self.base_us)).chain(self.prices.iter().map(price));
        Some(parts.collect::<Vec<_>>().join(" + "))
    }

    fn stored(&self) -> StoredWork {
        let price = |&(input, us): &(usize, f64)| StoredPrice { feature: Inputs::NAMES[input].to_owned(), us };
        StoredWork { base_us: self.base_us, prices: self.prices.iter().map(price).collect() }
    }

    fn checked(stored: &StoredWork, features: InputSet, place: &str) -> Result<Self, String> {
        let is_price = |us: f64| (0.0..1e12).contains(&us);
        if !is_price(stored.base_us) || (stored.base_us == 0.0 && stored.prices.is_empty()) {
            return Err(format!("{place}.base_us is {}, expected microseconds from 0", stored.base_us));
        }
        let check = |(n, price): (usize, &StoredPrice)| {
            let place = format!("{place}.prices[{n}]");
            let input = features.position(&price.feature, &place)?;
            if is_price(price.us) {
                Ok((input, price.us))
            } else {
                Err(format!("{place}: {} us, expected a number from 0", price.us))
            }
        };
        let prices = stored.prices.iter().enumerate().map(check).collect::<Result<_, _>>()?;
        Ok(Self { base_us: stored.base_us, prices })
    }
}

/// Rounds to three digits.
fn digits(value: f64) -> f64 {
    if value < 1e-12 { 0.0 } else { format!("{value:.2e}").parse().unwrap_or(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitted_prices_equal_the_true_prices() {
        let rows: Vec<Inputs> = (0..400_u32)
            .map(|i| Inputs(std::array::from_fn(|input| f64::from((i * 7919 + input as u32 * 104_729) % 1013))))
            .collect();
        let [terms, lookups] = ["terms", "lookups"].map(|name| Inputs::position(name).unwrap());
        let us = rows.iter().map(|row| 2.0 + 0.5 * row.0[terms] + 0.025 * row.0[lookups]).collect();
        let work = Work::fit(&Samples::new(&rows, us), &FitOptions::default()).unwrap();
        assert_eq!(work.words().unwrap(), "2 us + 0.5 us x terms + 25 ns x lookups");
        assert_eq!(work.asks().iter().collect::<Vec<_>>(), [terms, lookups]);
        let stored = work.stored();
        assert_eq!(Work::checked(&stored, InputSet::ALL, "work"), Ok(work));
        assert_eq!(
            Work::checked(&stored, InputSet::default(), "work").unwrap_err(),
            "work.prices[0]: asks for `terms`, which is none of the model's features"
        );
    }
}
