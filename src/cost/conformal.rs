//! Quantiles of what a query will take, by how wrong estimates were on queries that the model had not seen.
//!
//! No distribution is assumed. Queries are put into bands by their estimates, and in each band the ratios of true cost to
//! estimate are sorted; the level of a quantile says which of them counts:
//!
//! ```text
//! estimates of 40 to 90 us     true / estimate   0.61 .. 0.93 .. 1.00 .. 1.08 .. 1.33 .. 1.9
//!                                                  5 %    25 %    50 %    75 %    95 %   99 %
//! 95 % of queries estimated to take 60 us take no longer than 60 us x 1.33
//! ```
//!
//! Of n queries in a band, the quantile of level p is the ceil((n + 1) p)-th smallest ratio: with that a further query of the
//! band is within it with a probability of p at least, whatever the model and the costs, if queries come in random order.
//! That the ratios are those of models fitted without each query's fold makes it so for a model of all folds, too, up to what
//! the last tenth of the samples changes.
//!
//! Source: Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005 (conformal prediction, by category);
//! Barber, Candes, Ramdas and Tibshirani, "Predictive Inference with the Jackknife+", Annals of Statistics 2021.

use serde::{Deserialize, Serialize};

/// The levels of the quantiles.
pub const LEVELS: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
/// Bands, where there are queries enough.
const BANDS: usize = 10;
/// Fewest queries of a band: so many that its highest level is not its largest ratio.
const LEAST_IN_BAND: usize = 200;

/// By band of estimates, how far true costs spread around them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantiles {
    bands: Vec<Band>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Band {
    /// The largest estimate of the band; the last band has those above, too.
    up_to_us: f64,
    /// Queries behind it.
    samples: usize,
    /// By level, true cost over estimate.
    factors: [f64; LEVELS.len()],
}

impl Quantiles {
    /// Bands of these queries' estimates, each made without the query, and what they took; at least one.
    #[must_use]
    pub fn calibrate(estimates_us: &[f64], true_us: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..estimates_us.len()).collect();
        order.sort_by(|&a, &b| estimates_us[a].total_cmp(&estimates_us[b]));
        let bands = (order.len() / LEAST_IN_BAND).clamp(1, BANDS);
        let band = |n: usize| {
            let members = &order[n * order.len() / bands..(n + 1) * order.len() / bands];
            let mut ratios: Vec<f64> = members.iter().map(|&i| true_us[i] / estimates_us[i]).collect();
            ratios.sort_by(f64::total_cmp);
            let last = members.last().map_or(0.0, |&i| estimates_us[i]);
            let rounded = |x: f64| format!("{x:.4e}").parse().unwrap_or(x);
            Band {
                up_to_us: rounded(last),
                samples: ratios.len(),
                factors: LEVELS.map(|level| rounded(at_level(&ratios, level))),
            }
        };
        Self { bands: (0..bands).map(band).collect() }
    }

    /// What a query of this estimate takes at most with a probability of `level`: between two of [`LEVELS`], linear in the
    /// level; beyond the outermost, theirs.
    #[must_use]
    pub fn at(&self, estimate_us: f64, level: f64) -> f64 {
        let band = self.bands.iter().find(|band| estimate_us <= band.up_to_us).or(self.bands.last());
        let Some(Band { factors, .. }) = band else { return estimate_us };
        let above = LEVELS.partition_point(|&known| known < level);
        let factor = match (above.checked_sub(1), factors.get(above)) {
            (None, _) => factors[0],
            (Some(below), None) => factors[below],
            (Some(below), Some(factor)) => {
                let share = (level - LEVELS[below]) / (LEVELS[above] - LEVELS[below]);
                factors[below] + share * (factor - factors[below])
            }
        };
        estimate_us * factor
    }

    /// Whether bands and factors ascend, and all are above 0.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        let ascend =
            |numbers: &[f64]| numbers.iter().all(|&number| number.is_finite() && number > 0.0) && numbers.is_sorted();
        let ends: Vec<f64> = self.bands.iter().map(|band| band.up_to_us).collect();
        if ends.is_empty() || !ascend(&ends) {
            return Err(String::from("`bands` must ascend in `up_to_us`, and there is at least one"));
        }
        match self.bands.iter().position(|band| !ascend(&band.factors)) {
            Some(n) => Err(format!("bands[{n}].factors must be above 0 and ascend")),
            None => Ok(()),
        }
    }
}

/// The smallest of the sorted ratios that a further one does not exceed with a probability of `level`.
fn at_level(sorted: &[f64], level: f64) -> f64 {
    let rank = ((sorted.len() + 1) as f64 * level).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn further_queries_are_within_their_quantiles_as_often_as_said() {
        let mut random = Random::new(3, 0);
        // Dear queries are harder to estimate.
        let mut draw = || {
            let estimate = 10.0 + 1000.0 * random.unit();
            (estimate, estimate * (1.0 + (random.unit() - 0.3) * estimate / 1000.0))
        };
        let (estimates, truth): (Vec<f64>, Vec<f64>) = (0..5000).map(|_| draw()).unzip();
        let quantiles = Quantiles::calibrate(&estimates, &truth);
        quantiles.check().unwrap();
        let further: Vec<(f64, f64)> = (0..20_000).map(|_| draw()).collect();
        for level in [0.05, 0.5, 0.8, 0.95, 0.99] {
            for range in [0.0..300.0, 300.0..700.0, 700.0..2000.0] {
                let of_range: Vec<_> = further.iter().filter(|(estimate, _)| range.contains(estimate)).collect();
                let within = of_range.iter().filter(|(estimate, us)| *us <= quantiles.at(*estimate, level)).count();
                let share = within as f64 / of_range.len() as f64;
                // Five hundred queries of a band tell a share within 0.05.
                assert!((share - level).abs() < 0.06, "{level} {range:?}: {share}");
            }
        }
    }

    #[test]
    fn the_rank_counts_the_query_to_come() {
        let ratios: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!([0.1, 0.5, 0.9, 0.99].map(|level| at_level(&ratios, level)), [1.0, 5.0, 9.0, 9.0]);
    }

    #[test]
    fn damaged_bands_are_refused() {
        let mut quantiles = Quantiles::calibrate(&[10.0, 20.0], &[11.0, 19.0]);
        assert_eq!(quantiles.check(), Ok(()));
        quantiles.bands[0].factors[2] = 0.0;
        assert_eq!(quantiles.check().unwrap_err(), "bands[0].factors must be above 0 and ascend");
        quantiles.bands.clear();
        assert!(quantiles.check().unwrap_err().contains("at least one"));
    }
}
