//! Confidence intervals.
//!
//! | of | from | by |
//! | --- | --- | --- |
//! | a mean | few repeats, each a mean of many | Student's t |
//! | a median or another quantile | any values, however distributed | order statistics: how many values lie below is binomial |
//! | a share, such as of missed deadlines | so many of so many | Clopper and Pearson: exact, also for 0 of n |
//!
//! ```text
//! 10 values, their median:   x1 [x2  x3  x4  x5 | x6  x7  x8  x9] x10      P(2 to 8 lie below it) = 97.9 %
//! ```
//!
//! Sources: David and Nagaraja, "Order Statistics", 2003, section 7.1; Clopper and Pearson, "The use of confidence or
//! fiducial limits illustrated in the case of the binomial", Biometrika 26, 1934.

use statrs::distribution::{Beta, Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

/// Where the true value lies, by what was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval<T = f64> {
    /// It is at least this,
    pub low: T,
    /// and at most this,
    pub high: T,
    /// with at least this probability: less than was asked for where there are too few values for it.
    pub confidence: f64,
}

/// The mean of what `values` were drawn from, if means of many like them are normal; `None` of fewer than two.
#[must_use]
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

/// How many standard errors, themselves estimated with so many degrees of freedom, an interval of this confidence reaches to
/// each side (Student's t).
///
/// # Panics
/// Without a degree of freedom.
#[must_use]
pub fn students_t(freedom: usize, confidence: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64)
        .expect("at least one degree of freedom")
        .inverse_cdf(0.5 + confidence / 2.0)
}

/// The quantile at `share` of what `ascending` values were drawn from, however it is distributed: two of the values.
///
/// Of too few values it is the first and the last, and its confidence what they have. `None` of no value.
#[must_use]
pub fn quantile_interval<T: Copy>(ascending: &[T], share: f64, confidence: f64) -> Option<Interval<T>> {
    let n = ascending.len();
    let (first, last) = (*ascending.first()?, *ascending.last()?);
    let below = Binomial::new(share, n as u64).ok()?;
    let tail = (1.0 - confidence) / 2.0;
    // Ranks from 1: the quantile is at least the value of rank l if at least l values lie below it, and at most that of
    // rank u if fewer than u do.
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

/// The share of which `hits` of `trials` were drawn. Of no trial it may be any.
#[must_use]
pub fn share_interval(hits: u64, trials: u64, confidence: f64) -> Interval {
    let tail = (1.0 - confidence) / 2.0;
    let (hits, misses) = (hits as f64, trials.saturating_sub(hits) as f64);
    let quantile = |a: f64, b: f64, at: f64| Beta::new(a, b).map(|beta| beta.inverse_cdf(at)).ok();
    Interval {
        low: if hits == 0.0 { 0.0 } else { quantile(hits, misses + 1.0, tail).unwrap_or(0.0) },
        high: if misses == 0.0 { 1.0 } else { quantile(hits + 1.0, misses, 1.0 - tail).unwrap_or(1.0) },
        confidence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

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
        // Of five values not even the least and the greatest enclose the median that surely.
        let few = quantile_interval(&values[..5], 0.5, 0.95).unwrap();
        assert_eq!((few.low, few.high), (1, 5));
        assert!((few.confidence - 0.9375).abs() < 1e-9, "{few:?}");
        assert_eq!(quantile_interval::<u32>(&[], 0.5, 0.95), None);
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

    #[test]
    fn shares_have_exact_intervals_also_without_a_hit() {
        let found = share_interval(0, 100, 0.95);
        assert!(found.low == 0.0 && (found.high - (1.0 - 0.025f64.powf(0.01))).abs() < 1e-6, "{found:?}");
        let found = share_interval(5, 100, 0.95);
        assert!((found.low - 0.016_43).abs() < 1e-4 && (found.high - 0.112_84).abs() < 1e-4, "{found:?}");
        assert_eq!((share_interval(0, 0, 0.95).low, share_interval(0, 0, 0.95).high), (0.0, 1.0));
    }
}
