//! Definitions of quantiles.
//!
//! All of Tandem's reports use the **nearest rank**: of n values in ascending order, the one at rank ⌈share · n⌉. It is
//! the smallest value that at least this share of the values does not exceed. The 99th percentile of delays is
//! therefore the delay of a served query, and it is at most the deadline exactly if 99 % of the queries met the
//! deadline.
//!
//! ```text
//! rank      1    2    3    4    5              nearest rank of 0.5: ⌈2.5⌉ = 3, the value 4
//! value     1    2    4    8   16              of 0.9: ⌈4.5⌉ = 5, the value 16
//! ```
//!
//! The [`median`] of an even number of values is therefore the lesser of the two in the middle.
//!
//! Only costs are [`interpolated`].
//!
//! Source: Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50, 1996. Nearest
//! rank is their definition 1, interpolation their definition 7.

/// The smallest of the ascending values that at least `share` of them do not exceed, or `None` if there are none.
pub fn nearest_rank<T: Copy>(ascending: &[T], share: f64) -> Option<T> {
    ascending.get(rank(ascending.len(), share)).copied()
}

/// The [`nearest_rank`] of values in any order, which it reorders, in linear time.
pub fn select_nearest_rank<T: Copy + Ord>(values: &mut [T], share: f64) -> Option<T> {
    let rank = rank(values.len(), share);
    (rank < values.len()).then(|| *values.select_nth_unstable(rank).1)
}

/// Position of the nearest rank, from 0.
pub fn rank(count: usize, share: f64) -> usize {
    let rank = (share * count as f64).ceil() as usize;
    rank.clamp(1, count.max(1)) - 1
}

/// The value in the middle, the lesser of two, or NaN if there is none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    nearest_rank(&values, 0.5).unwrap_or(f64::NAN)
}

/// The value at `share` of the way through the ascending values, interpolated linearly, or NaN if there is none.
///
/// This definition is for costs only. A query is profiled few times, and the nearest ranks of three times' quartiles
/// would be the least and the greatest. The published workloads (`traces/`) and the errors in model files (`models/`)
/// use it, and must be reproducible.
pub fn interpolated(ascending: &[f64], share: f64) -> f64 {
    let Some(last) = ascending.len().checked_sub(1) else { return f64::NAN };
    let position = share * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    ascending[below] + (ascending[above] - ascending[below]) * (position - below as f64)
}

/// Durations of many pieces of work, in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Times in ascending order.
    us: Vec<f64>,
}

impl Times {
    /// The durations `us`, in any order.
    pub fn of(mut us: Vec<f64>) -> Self {
        us.sort_by(f64::total_cmp);
        Self { us }
    }

    /// Sum of the times.
    pub fn sum_us(&self) -> f64 {
        self.us.iter().sum()
    }

    /// Mean of the times, or 0 if there are none.
    pub fn mean_us(&self) -> f64 {
        self.sum_us() / (self.us.len().max(1)) as f64
    }

    /// The [`nearest_rank`] of the times at share `q`, or 0 if there are none.
    pub fn quantile_us(&self, q: f64) -> f64 {
        nearest_rank(&self.us, q).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rank_is_a_value_that_a_share_does_not_exceed() {
        let ascending: Vec<u64> = (1..=100).collect();
        let shares = [0.0, 0.5, 0.501, 0.95, 0.99, 0.999, 1.0];
        let expected = [1, 50, 51, 95, 99, 100, 100].map(Some);
        assert_eq!(shares.map(|share| nearest_rank(&ascending, share)), expected);
        let mut values: Vec<u64> = ascending.into_iter().rev().collect();
        assert_eq!(shares.map(|share| select_nearest_rank(&mut values, share)), expected);
        assert_eq!((nearest_rank(&[7], 0.5), select_nearest_rank(&mut [7], 0.5)), (Some(7), Some(7)));
        assert_eq!((nearest_rank::<u64>(&[], 0.5), select_nearest_rank::<u64>(&mut [], 0.5)), (None, None));
    }

    #[test]
    fn a_median_is_the_lesser_of_two() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 3.0, 1.0, 2.0]), 2.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn interpolation_lies_between_neighbours() {
        assert_eq!(interpolated(&[1.0, 2.0, 3.0, 4.0], 0.5), 2.5);
        assert_eq!(interpolated(&[1.0, 2.0, 3.0], 1.0), 3.0);
        assert_eq!(interpolated(&[7.0], 0.95), 7.0);
        assert!(interpolated(&[], 0.5).is_nan());
    }

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let times = Times::of(vec![3.0, 1.0, 2.0, 10.0]);
        assert_eq!(times.mean_us(), 4.0);
        assert_eq!([0.0, 0.25, 0.5, 0.51, 1.0].map(|q| times.quantile_us(q)), [1.0, 1.0, 2.0, 3.0, 10.0]);
        assert_eq!(Times::default().quantile_us(0.5), 0.0);
        assert_eq!(Times::default().mean_us(), 0.0);
    }
}
