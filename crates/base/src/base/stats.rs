//! Confidence intervals of means, medians, quantiles and shares, and a test whether a run has settled.
//!
//! [`quantile`](crate::base::quantile) defines the quantiles themselves. `statrs` provides the distributions.
//!
//! # Intervals
//!
//! | of | from | by |
//! | --- | --- | --- |
//! | a mean | few repeats, each a mean of many | Student's t |
//! | a median or another quantile | any values, however distributed | order statistics: the number of values below is binomial |
//! | a share, such as of missed deadlines | hits and trials | Clopper and Pearson: exact, also for 0 of n |
//!
//! ```text
//! 10 values, their median:   x1 [x2  x3  x4  x5 | x6  x7  x8  x9] x10      P(2 to 8 lie below it) = 97.9 %
//! ```
//!
//! Sources: David and Nagaraja, "Order Statistics", 2003, section 7.1; Clopper and Pearson, "The use of confidence or
//! fiducial limits illustrated in the case of the binomial", Biometrika 26, 1934.
//!
//! # Drift
//!
//! Delays of a stable system vary around a level. Under too much load the backlog and the delay grow for as long as the
//! run lasts. Successive queries wait in the same queue, so their delays are not independent draws. Means of long
//! stretches nearly are, and a line through them has a slope whose sign can be tested:
//!
//! ```text
//! delay  ·  ·          ·                         delay                ·  ·
//!          ·   · ─·──·───·─ ·   level                       · ─· ──·       grows: by more than
//!        ·    ·     ·     ·                              · ·   ·            chance would make of a level
//!        └──┴──┴──┴──┴──┴──┘ stretches                  └──┴──┴──┴──┴──┘
//! ```

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};

/// Rounds to `digits` significant decimal digits. Infinite values and NaN stay unchanged.
pub fn significant(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}

/// The line through the means of a run's stretches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Rise from the middle of the first stretch to that of the last.
    pub rise: f64,
    /// Level half way through the run.
    pub level: f64,
    /// Probability of a slope as steep as this, upward, if there is no trend.
    pub p_value: f64,
}

/// The autocorrelation of fewer stretches is taken as it is.
const FEW_STRETCHES: f64 = 8.0;
/// Least degrees of freedom of a slope: a backlog that grows is a line whose residuals are all alike.
const LEAST_FREEDOM: f64 = 3.0;

/// The drift of a run by the means of equally long stretches, in order. With several `phases`, stretches repeat after so many,
/// and each phase is compared with itself in other rounds only. `None` without two rounds, or with too few stretches.
///
/// Neighbouring stretches of a queue near saturation are alike. Residuals with the autocorrelation r at lag 1 count as
/// n (1 − r) / (1 + r) independent ones, in the standard error of the slope and in the degrees of freedom. A line takes a part of
/// the autocorrelation of few residuals out: its expectation r − (2 + 4 r) / n is solved for r. Source: Santer and others,
/// "Statistical significance of trends and trend differences in layer-average atmospheric temperature time series", Journal of
/// Geophysical Research 105, 2000; Kendall, "Note on bias in the estimation of autocorrelation", Biometrika 41, 1954.
pub fn drift(means: &[f64], phases: usize) -> Option<Drift> {
    let (count, rounds) = (means.len(), means.len() / phases.max(1));
    if rounds < 2 || count < phases + 2 {
        return None;
    }
    let (n, used) = (count as f64, (phases + 1) as f64);
    let level = means.iter().sum::<f64>() / n;
    let mean_of = |phase: usize| means.iter().skip(phase).step_by(phases).sum::<f64>() / rounds as f64;
    let by_phase: Vec<f64> = (0..phases).map(mean_of).collect();
    let from_middle = |i: usize| (i / phases) as f64 - (rounds - 1) as f64 / 2.0;
    let spread: f64 = (0..count).map(|i| from_middle(i).powi(2)).sum();
    let slope =
        means.iter().enumerate().map(|(i, y)| from_middle(i) * (y - by_phase[i % phases])).sum::<f64>() / spread;
    let residual = |(i, y): (usize, &f64)| y - by_phase[i % phases] - slope * from_middle(i);
    let rest: Vec<f64> = means.iter().enumerate().map(residual).collect();
    let squares: f64 = rest.iter().map(|rest| rest * rest).sum();
    let lagged: f64 = rest.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let alike = if squares > 0.0 { lagged / squares } else { 0.0 };
    let alike = if n < FEW_STRETCHES { alike } else { (alike * n + 2.0) / (n - 4.0) }.clamp(0.0, 1.0);
    let freedom = (n * (1.0 - alike) / (1.0 + alike) - used).max(LEAST_FREEDOM.min(n - used));
    let error = (squares / freedom / spread).sqrt();
    let p_value = if error > 0.0 {
        StudentsT::new(0.0, 1.0, freedom).ok()?.sf(slope / error)
    } else {
        // A line without residuals certainly rises, or certainly does not.
        f64::from(u8::from(slope <= 0.0))
    };
    Some(Drift { rise: slope * (rounds - 1) as f64, level, p_value })
}

/// An interval that contains the true value with some confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval<T = f64> {
    /// Lower end of the interval.
    pub low: T,
    /// Upper end of the interval.
    pub high: T,
    /// Confidence of the interval. It is lower than requested if there are too few values.
    pub confidence: f64,
}

/// Interval of the mean of a distribution by `values` drawn from it, if means of many such values are normal. `None` if
/// there are fewer than two.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = students_t(values.len() - 1, confidence) * (variance / n).sqrt();
    Some(Interval { low: mean - half, high: mean + half, confidence })
}

/// The value below which `share` of a standard normal distribution lies. It is infinite at 0 and 1.
pub fn normal_quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

/// The half-width of an interval of this confidence, in standard errors that were estimated with `freedom` degrees of
/// freedom (Student's t). Panics without a degree of freedom.
pub fn students_t(freedom: usize, confidence: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64)
        .expect("at least one degree of freedom")
        .inverse_cdf(0.5 + confidence / 2.0)
}

/// Interval of the quantile at `share` of any distribution by `ascending` values drawn from it. Its ends are two of the
/// values.
///
/// If there are too few values, the ends are the first and the last, and the confidence is lower. `None` if there are
/// no values.
pub fn quantile_interval<T: Copy>(ascending: &[T], share: f64, confidence: f64) -> Option<Interval<T>> {
    let n = ascending.len();
    let (first, last) = (*ascending.first()?, *ascending.last()?);
    let below = Binomial::new(share, n as u64).ok()?;
    let tail = (1.0 - confidence) / 2.0;
    // Ranks count from 1. The quantile is at least the value of rank l if at least l values lie below it, and at most
    // that of rank u if fewer than u do.
    let l = below.inverse_cdf(tail) as usize;
    let u = below.inverse_cdf(1.0 - tail) as usize + 1;
    if l >= 1 && u <= n {
        return Some(Interval { low: ascending[l - 1], high: ascending[u - 1], confidence });
    }
    let (l, u) = (l.max(1), u.min(n));
    let has = below.cdf(u as u64 - 1) - below.cdf(l as u64 - 1);
    Some(Interval {
        low: if l == 1 { first } else { ascending[l - 1] },
        high: if u == n { last } else { ascending[u - 1] },
        confidence: has.min(confidence),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    #[test]
    fn a_backlog_that_grows_is_told_from_a_level_that_varies() {
        let mut random = Random::new(3, 0);
        let level: Vec<f64> = (0..10_000).map(|_| 5.0 + random.normal()).collect();
        let growing: Vec<f64> = level.iter().enumerate().map(|(i, y)| y + i as f64 / 10_000.0).collect();
        let of_means = |values: &[f64]| {
            let means: Vec<f64> = values.chunks(1_000).map(|part| part.iter().sum::<f64>() / 1_000.0).collect();
            drift(&means, 1).unwrap()
        };
        let (level, growing) = (of_means(&level), of_means(&growing));
        assert!(level.p_value > 0.01 && growing.p_value < 0.01, "{level:?}, {growing:?}");
        assert!((growing.rise - 0.9).abs() < 0.1 && (growing.level - 5.5).abs() < 0.1, "{growing:?}");
    }

    #[test]
    fn drift_counts_like_neighbours_as_fewer_and_compares_phases() {
        let mut random = Random::new(9, 0);
        let mut alike = || {
            let mut walk = 0.0;
            let values = (0..20).map(|_| {
                walk = 0.5 * walk + random.normal();
                walk
            });
            drift(&values.collect::<Vec<_>>(), 1).unwrap().p_value < 0.01
        };
        // Of 1000 levels with such neighbours, plain Student's tests call 80 a drift.
        let drifting = (0..1000).filter(|_| alike()).count();
        assert!(drifting < 25, "{drifting}");
        // A peak in each pass is no drift, and a rise from pass to pass is one in spite of the peak.
        let pass = |rise: f64| {
            move |i: usize| if i % 5 == 4 { 50.0 } else { 1.0 } + rise * (i / 5) as f64 + 0.1 * (i % 3) as f64
        };
        let (level, rising): (Vec<f64>, Vec<f64>) =
            ((0..15).map(pass(0.0)).collect(), (0..15).map(pass(1.0)).collect());
        let (level, rising) = (drift(&level, 5).unwrap(), drift(&rising, 5).unwrap());
        assert!(
            level.p_value > 0.05 && rising.p_value < 0.001 && (rising.rise - 2.0).abs() < 0.2,
            "{level:?} {rising:?}"
        );
        assert_eq!(drift(&[1.0; 5], 5), None);
    }

    #[test]
    fn a_drift_needs_three_stretches() {
        assert!(drift(&[1.0, 2.0, 3.0], 1).is_some() && drift(&[1.0, 2.0], 1).is_none());
    }

    #[test]
    fn constants_and_lines_without_noise_are_no_puzzle() {
        assert_eq!(drift(&[2.0; 3], 1).unwrap(), Drift { rise: 0.0, level: 2.0, p_value: 1.0 });
        assert_eq!(drift(&[1.0, 4.0, 7.0], 1).unwrap(), Drift { rise: 6.0, level: 4.0, p_value: 0.0 });
    }

    #[test]
    fn slopes_have_students_p_values() {
        // Slope 1/2, standard error sqrt(3)/2, one degree of freedom; slope 4/5, standard error sqrt(0.18), two degrees.
        for (means, expected) in [(&[1.0, 3.0, 2.0][..], 1.0 / 3.0), (&[1.0, 3.0, 2.0, 4.0][..], 0.1)] {
            let found = drift(means, 1).unwrap();
            assert!((found.p_value - expected).abs() < 1e-6, "{found:?}");
        }
        assert_eq!(drift(&[1.0, 2.0], 1), None);
    }

    #[test]
    fn a_mean_of_five_has_students_interval() {
        // t of 4 degrees of freedom at 97.5 %: 2.776; the standard deviation is sqrt(2.5).
        let found = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        let half = 2.776_445 * (2.5f64 / 5.0).sqrt();
        assert!((found.low - (3.0 - half)).abs() < 1e-4 && (found.high - (3.0 + half)).abs() < 1e-4, "{found:?}");
        assert_eq!(mean_interval(&[1.0], 0.95), None);
    }

    #[test]
    fn medians_lie_between_order_statistics() {
        let values: Vec<u32> = (1..=10).collect();
        let found = quantile_interval(&values, 0.5, 0.95).unwrap();
        assert_eq!((found.low, found.high, found.confidence), (2, 9, 0.95));
        // Not even the least and the greatest of five values contain the median with that confidence.
        let few = quantile_interval(&values[..5], 0.5, 0.95).unwrap();
        assert_eq!((few.low, few.high), (1, 5));
        assert!((few.confidence - 0.9375).abs() < 1e-9, "{few:?}");
        assert_eq!(quantile_interval::<u32>(&[], 0.5, 0.95), None);
        // A low quantile lacks an order statistic below it, but not above: P(1 to 3 of 100 lie below) is 61.6 %.
        let values: Vec<u32> = (1..=100).collect();
        let low = quantile_interval(&values, 0.01, 0.95).unwrap();
        assert_eq!((low.low, low.high), (1, 4));
        assert!((low.confidence - 0.615_6).abs() < 1e-4, "{low:?}");
    }

    #[test]
    fn intervals_of_quantiles_hold_as_often_as_they_say() {
        let (mut random, mut held) = (Random::new(5, 0), 0);
        for _ in 0..400 {
            let mut values: Vec<f64> = (0..500).map(|_| random.unit()).collect();
            values.sort_by(f64::total_cmp);
            let found = quantile_interval(&values, 0.95, 0.95).unwrap();
            held += u32::from(found.low <= 0.95 && 0.95 <= found.high);
        }
        // At least 95 %, less four standard errors of 1.1 %.
        assert!(held >= 362, "{held} of 400");
    }
}
