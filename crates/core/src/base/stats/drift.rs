//! Tests whether a value still grows at the end of a run.
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

use statrs::distribution::{ContinuousCDF, StudentsT};

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

impl Drift {
    /// Whether the line rises significantly at `significance`, and so steeply that it exceeds `limit` when the run has
    /// lasted `runs` times as long as observed.
    #[must_use]
    pub fn reaches(&self, limit: f64, runs: f64, significance: f64) -> bool {
        self.p_value < significance && self.level + self.rise * (0.5 + runs) > limit
    }
}

/// The drift of `values` over `stretches` stretches of equal length, or `None` if there are fewer than three stretches
/// or fewer values than stretches.
#[must_use]
pub fn drift(values: &[f64], stretches: usize) -> Option<Drift> {
    if stretches < 3 || values.len() < stretches {
        return None;
    }
    let border = |i: usize| i * values.len() / stretches;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let means: Vec<f64> = (0..stretches).map(|i| mean(&values[border(i)..border(i + 1)])).collect();
    drift_of_means(&means)
}

/// The drift of a run by the means of equally long stretches, in order, or `None` if there are fewer than three.
#[must_use]
pub fn drift_of_means(means: &[f64]) -> Option<Drift> {
    if means.len() < 3 {
        return None;
    }
    let n = means.len() as f64;
    let level = means.iter().sum::<f64>() / n;
    let from_middle = |i: usize| i as f64 - (n - 1.0) / 2.0;
    let spread: f64 = (0..means.len()).map(|i| from_middle(i).powi(2)).sum();
    let slope = means.iter().enumerate().map(|(i, y)| from_middle(i) * (y - level)).sum::<f64>() / spread;
    let rest: f64 = means.iter().enumerate().map(|(i, y)| (y - level - slope * from_middle(i)).powi(2)).sum();
    let error = (rest / (n - 2.0) / spread).sqrt();
    let p_value = if error > 0.0 {
        StudentsT::new(0.0, 1.0, n - 2.0).ok()?.sf(slope / error)
    } else {
        // A line without residuals certainly rises, or certainly does not.
        f64::from(u8::from(slope <= 0.0))
    };
    Some(Drift { rise: slope * (n - 1.0), level, p_value })
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
        let (level, growing) = (drift(&level, 10).unwrap(), drift(&growing, 10).unwrap());
        assert!(!level.reaches(5.5, 100.0, 0.01), "{level:?}");
        assert!(growing.reaches(8.0, 3.0, 0.01) && (growing.rise - 0.9).abs() < 0.1, "{growing:?}");
        // It takes longer to reach that limit.
        assert!(!growing.reaches(8.0, 1.5, 0.01), "{growing:?}");
    }

    #[test]
    fn constants_and_lines_without_noise_are_no_puzzle() {
        assert_eq!(drift(&[2.0; 9], 3).unwrap(), Drift { rise: 0.0, level: 2.0, p_value: 1.0 });
        let line: Vec<f64> = (0..9).map(f64::from).collect();
        assert_eq!(drift(&line, 3).unwrap(), Drift { rise: 6.0, level: 4.0, p_value: 0.0 });
        assert_eq!((drift(&line, 2), drift(&line[..2], 3)), (None, None));
    }
}
