//! Speed-up of single queries on several lanes of one class.
//!
//! ```text
//!   time on n lanes = time alone / speed-up(size, n)          size: the class of the query's time alone
//! ```
//!
//! Short queries gain less, since handing out and merging their parts takes about the same time for all. A query that gets a
//! lane while it runs does the rest of its work at the new speed.

use serde::{Deserialize, Serialize};

use crate::base::time::Nanos;

/// Classes of measured queries by their time alone.
const SIZES: usize = 4;
/// Most lanes of one query.
const MOST_LANES: usize = 1024;

/// The measured speed-up of queries of similar size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeClass {
    /// The longest time alone of its queries; the last class has no limit.
    pub up_to_us: Option<f64>,
    /// The speed-up on 1, 2, 3 and more lanes. It begins with 1; further lanes add nothing.
    pub by_lanes: Vec<f64>,
}

/// The speed-up of queries on several lanes, by size and number of lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeedUp {
    /// Classes of queries, from short to long.
    pub sizes: Vec<SizeClass>,
}

impl SpeedUp {
    /// One speed-up for queries of all sizes.
    pub fn of_all(by_lanes: Vec<f64>) -> Self {
        Self { sizes: vec![SizeClass { up_to_us: None, by_lanes }] }
    }

    /// Checks every number.
    ///
    /// # Errors
    /// Names the first invalid number and its valid values.
    pub fn check(&self) -> Result<(), String> {
        let ends: Vec<f64> = self.sizes.iter().filter_map(|size| size.up_to_us).collect();
        let is_open = self.sizes.last().is_some_and(|size| size.up_to_us.is_none());
        if !is_open || ends.len() + 1 != self.sizes.len() || !ends.is_sorted_by(|a, b| a < b) {
            return Err(String::from("sizes must ascend by up_to_us, which only the last one lacks"));
        }
        for SizeClass { by_lanes, .. } in &self.sizes {
            if by_lanes.first() != Some(&1.0) || by_lanes.len() > MOST_LANES {
                return Err(format!("a speed-up must begin with 1, for one lane, and end at {MOST_LANES} lanes"));
            }
            let rises = by_lanes.is_sorted();
            let is_possible = (1..).zip(by_lanes).all(|(lanes, &speed_up)| speed_up <= f64::from(lanes));
            if !(rises && is_possible) {
                return Err(format!("speed-ups must not fall, and not exceed the number of lanes: {by_lanes:?}"));
            }
        }
        Ok(())
    }

    /// The speed-up of measured queries, in classes of about equally many: their times alone, and their times on 2, 3... lanes.
    ///
    /// A class has the ratio of the sums, so that long queries count most. Measured speed-ups that fall, or exceed the number of
    /// lanes, are errors of measurement and are moved to the next possible value.
    pub fn measured(alone_us: &[f64], by_lanes_us: &[Vec<f64>]) -> Self {
        let mut order: Vec<usize> = (0..alone_us.len()).collect();
        order.sort_by(|&a, &b| alone_us[a].total_cmp(&alone_us[b]));
        let classes = SIZES.min(order.len().max(1));
        let size = |class: usize| {
            let of_class = &order[class * order.len() / classes..(class + 1) * order.len() / classes];
            let sum = |times: &[f64]| of_class.iter().map(|&query| times[query]).sum::<f64>();
            let mut by_lanes = vec![1.0_f64];
            for (lanes, times) in (2..).zip(by_lanes_us) {
                let ratio = sum(alone_us) / sum(times);
                let before = by_lanes.last().copied().unwrap_or(1.0);
                let possible =
                    if ratio.is_finite() { ratio.clamp(before, f64::from(lanes).max(before)) } else { before };
                by_lanes.push((possible * 1e3).round() / 1e3);
            }
            let end = of_class.last().map(|&query| alone_us[query]).filter(|_| class + 1 < classes);
            SizeClass { up_to_us: end, by_lanes }
        };
        let mut sizes: Vec<SizeClass> = (0..classes).map(size).collect();
        // Equal times belong to one class.
        sizes.dedup_by(|later, earlier| {
            let is_same = later.up_to_us.is_some() && later.up_to_us == earlier.up_to_us;
            if is_same {
                earlier.by_lanes.clone_from(&later.by_lanes);
            }
            is_same
        });
        Self { sizes }
    }

    /// The speed-up on `lanes` lanes of a query that takes `alone` on one.
    pub fn of(&self, alone: Nanos, lanes: u32) -> f64 {
        let is_in = |size: &&SizeClass| size.up_to_us.is_none_or(|end| alone.as_us() <= end);
        let Some(size) = self.sizes.iter().find(is_in) else { return 1.0 };
        let at = (lanes.max(1) as usize).min(size.by_lanes.len());
        size.by_lanes.get(at - 1).copied().unwrap_or(1.0)
    }
}

/// Knowledge of a scheduler for its choice of the number of lanes of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Parallelism {
    /// The speed-up of queries on several CPU lanes.
    pub speed_up: SpeedUp,
    /// Times of the workload's queries on one CPU lane: quantiles at equal steps, ascending.
    pub times: Vec<Nanos>,
}

impl Parallelism {
    const QUANTILES: usize = 1000;

    /// The parallelism of queries with these times alone.
    pub fn of(speed_up: SpeedUp, mut times: Vec<Nanos>) -> Self {
        times.sort_unstable();
        let count = times.len();
        let middle = |i: usize| times[((2 * i + 1) * count / (2 * Self::QUANTILES)).min(count - 1)];
        let times = if count > Self::QUANTILES { (0..Self::QUANTILES).map(middle).collect() } else { times };
        Self { speed_up, times }
    }

    /// The time alone that this share of the queries does not exceed.
    pub fn quantile(&self, share: f64) -> Nanos {
        let at = (share * self.times.len() as f64) as usize;
        self.times.get(at.min(self.times.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_its_speed_up_and_faults_are_named() {
        let size = |up_to_us, by_lanes: &[f64]| SizeClass { up_to_us, by_lanes: by_lanes.to_vec() };
        let speed_up = SpeedUp { sizes: vec![size(Some(100.0), &[1.0, 1.2]), size(None, &[1.0, 1.8, 2.5])] };
        assert_eq!(speed_up.check(), Ok(()));
        let of = |us: f64, lanes| speed_up.of(Nanos::from_us(us), lanes);
        assert_eq!([of(100.0, 2), of(100.0, 9), of(101.0, 1), of(101.0, 2), of(101.0, 3)], [1.2, 1.2, 1.0, 1.8, 2.5]);
        for bad in [
            SpeedUp { sizes: vec![] },
            SpeedUp { sizes: vec![size(Some(1.0), &[1.0])] },
            SpeedUp { sizes: vec![size(None, &[1.0]), size(None, &[1.0])] },
            SpeedUp::of_all(vec![]),
            SpeedUp::of_all(vec![1.1]),
            SpeedUp::of_all(vec![1.0, 2.1]),
            SpeedUp::of_all(vec![1.0, 1.8, 1.7]),
            SpeedUp::of_all(vec![1.0, f64::NAN]),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn measured_times_give_speed_ups_by_size_that_are_possible() {
        let alone: Vec<f64> = (1..=400).map(f64::from).collect();
        // On two lanes short queries gain nothing, long ones more than is possible; on three nothing more.
        let on_two: Vec<f64> = alone.iter().map(|us| if *us <= 100.0 { us * 1.1 } else { us / 2.2 }).collect();
        let found = SpeedUp::measured(&alone, &[on_two.clone(), on_two]);
        assert_eq!(found.check(), Ok(()));
        let of = |us: f64, lanes| found.of(Nanos::from_us(us), lanes);
        assert_eq!([of(50.0, 2), of(101.0, 2), of(399.0, 2), of(399.0, 3)], [1.0, 2.0, 2.0, 2.2]);
        assert_eq!(SpeedUp::measured(&[7.0; 9], &[vec![5.0; 9]]).check(), Ok(()));
        assert_eq!(SpeedUp::measured(&[], &[]).check(), Ok(()));
    }

    #[test]
    fn quantiles_of_many_times_stay_in_order() {
        let parallelism = Parallelism::of(SpeedUp::of_all(vec![1.0]), (0..50_000).rev().map(Nanos).collect());
        assert_eq!(parallelism.times.len(), Parallelism::QUANTILES);
        assert_eq!([0.0, 0.5, 1.0].map(|share| parallelism.quantile(share).0), [25, 25_025, 49_975]);
    }
}
