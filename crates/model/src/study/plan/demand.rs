//! Demand: the rate that a plan must serve, with its uncertainty.

use crate::base::quantile::nearest_rank;
use crate::base::random::{Random, exp, ln};

/// The 95 % quantile of the standard normal: an interval ends at the 5 % and the 95 % quantile.
const Z_95: f64 = 1.644_853_626_951_472_7;

/// The rate at the busiest time, before growth.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// A known rate, in queries per second.
    Rate(f64),
    /// A lognormal rate with this 90 % interval.
    Between(f64, f64),
    /// The rates of equally long windows of a recorded day. The peak is the maximum of a bootstrap sample of the
    /// windows, so that a day with one short peak is less certain than one with many.
    Recorded(Vec<f64>),
}

impl Demand {
    /// The rate of one draw.
    ///
    /// # Panics
    /// If a recorded day has no window.
    pub fn draw(&self, random: &mut Random) -> f64 {
        match self {
            Self::Rate(rate_qps) => *rate_qps,
            Self::Between(low, high) => {
                let (middle, spread) = ((ln(*low) + ln(*high)) / 2.0, (ln(*high) - ln(*low)) / (2.0 * Z_95));
                exp(middle + spread * random.normal())
            }
            Self::Recorded(rates) => {
                let draws = (0..rates.len()).map(|_| rates[random.below(rates.len() as u32) as usize]);
                draws.fold(0.0, f64::max)
            }
        }
    }

    /// The median rate; for a recorded day, its peak.
    #[must_use]
    pub fn typical_qps(&self) -> f64 {
        match self {
            Self::Rate(rate_qps) => *rate_qps,
            Self::Between(low, high) => (low * high).sqrt(),
            Self::Recorded(rates) => {
                let mut ascending = rates.clone();
                ascending.sort_by(f64::total_cmp);
                nearest_rank(&ascending, 1.0).unwrap_or(0.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ninety_of_a_hundred_draws_lie_in_the_interval_and_peaks_are_of_the_day() {
        let mut random = Random::new(1, 2);
        let between = Demand::Between(2000.0, 8000.0);
        let inside = (0..4000).filter(|_| (2000.0..=8000.0).contains(&between.draw(&mut random))).count();
        assert!((3500..=3700).contains(&inside), "{inside}");
        let day = Demand::Recorded(vec![10.0, 20.0, 90.0]);
        let peaks: Vec<f64> = (0..300).map(|_| day.draw(&mut random)).collect();
        // (2/3)^3 of the draws miss the peak.
        let missed = peaks.iter().filter(|&&peak| peak < 90.0).count();
        assert!((60..=120).contains(&missed), "{missed}");
        assert_eq!((day.typical_qps(), between.typical_qps()), (90.0, 4000.0));
    }
}
