//! Capacity: the highest rate up to which no query misses its deadline.
//!
//! Missing is not monotone in the rate: a policy may fail at 143 queries per second and pass again at 152, because
//! another rate makes other queries meet. Bisection would return whichever edge it stumbles on. So a geometric grid is
//! tried from the bottom to the top, then the step from the last rate that passed to the first that failed is divided
//! again; capacity is the highest rate below which *every* tried rate passed. How often the verdict flips along the
//! grid is reported with it.

use rayon::prelude::*;

/// The rates to try.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// The lowest rate, above zero, in queries per second.
    pub low_qps: f64,
    /// The highest rate.
    pub high_qps: f64,
    /// Factor from one rate to the next, above 1.
    pub step: f64,
    /// Parts into which the step with the first failure is divided.
    pub parts: u32,
}

impl Grid {
    /// The coarse grid's rates, ascending: `low_qps`, each `step` times the one before, none above `high_qps`.
    #[must_use]
    pub fn rates(&self) -> Vec<f64> {
        // Each from the first: the error of one multiplication, not of all before it.
        let rate = |i: i32| self.low_qps * self.step.powi(i);
        (0..).map(rate).take_while(|&rate| rate <= self.high_qps).collect()
    }
}

/// What a search has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// The highest rate at and below which every rate tried passed; 0 if even the lowest failed.
    pub low_qps: f64,
    /// The lowest rate tried that failed; `None` if all passed.
    pub high_qps: Option<f64>,
    /// How often the verdict changed from one rate of the coarse grid to the next. Beyond 1 it is not monotone.
    pub flips: usize,
}

/// Searches `grid`; `passes` says whether no query misses at a rate. Rates are tried in parallel.
///
/// # Errors
/// The first error of `passes`, in order of rate.
pub fn find_capacity<E: Send>(grid: &Grid, passes: impl Fn(f64) -> Result<bool, E> + Sync) -> Result<Capacity, E> {
    let coarse = grid.rates();
    let verdicts = try_all(&coarse, &passes)?;
    let flips = verdicts.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let Some(first_failure) = verdicts.iter().position(|&passed| !passed) else {
        return Ok(Capacity { low_qps: coarse.last().copied().unwrap_or(0.0), high_qps: None, flips });
    };
    if first_failure == 0 {
        return Ok(Capacity { low_qps: 0.0, high_qps: Some(coarse[0]), flips });
    }
    let (low, high) = (coarse[first_failure - 1], coarse[first_failure]);
    let parts = grid.parts.max(1);
    let fine: Vec<f64> = (1..parts).map(|i| low * (high / low).powf(f64::from(i) / f64::from(parts))).collect();
    let passed = count_until_failure(&fine, &passes)?;
    let low_qps = if passed == 0 { low } else { fine[passed - 1] };
    Ok(Capacity { low_qps, high_qps: Some(fine.get(passed).copied().unwrap_or(high)), flips })
}

/// How many of the first rates pass. Those after the first failure tell nothing: few of them are tried.
fn count_until_failure<E: Send>(rates: &[f64], passes: &(impl Fn(f64) -> Result<bool, E> + Sync)) -> Result<usize, E> {
    let mut passed = 0;
    for together in rates.chunks(rayon::current_num_threads()) {
        let verdicts = try_all(together, passes)?;
        passed += verdicts.iter().take_while(|&&passed| passed).count();
        if verdicts.contains(&false) {
            break;
        }
    }
    Ok(passed)
}

fn try_all<E: Send>(rates: &[f64], passes: &(impl Fn(f64) -> Result<bool, E> + Sync)) -> Result<Vec<bool>, E> {
    // Collected in order, whoever finishes first.
    let verdicts: Vec<Result<bool, E>> = rates.par_iter().map(|&rate| passes(rate)).collect();
    verdicts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const GRID: Grid = Grid { low_qps: 1.0, high_qps: 100.0, step: 1.1, parts: 8 };

    fn search(passes: impl Fn(f64) -> bool + Sync) -> Capacity {
        find_capacity(&GRID, |rate| Ok::<_, Infallible>(passes(rate))).unwrap()
    }

    #[test]
    fn capacity_is_below_the_first_failure_even_if_higher_rates_pass_again() {
        let found = search(|rate| rate < 40.0 || (50.0..60.0).contains(&rate));
        let high = found.high_qps.unwrap();
        assert!(found.low_qps < 40.0 && high >= 40.0 && high / found.low_qps < 1.02, "{found:?}");
        assert_eq!(found.flips, 3);
    }

    #[test]
    fn all_or_nothing() {
        assert_eq!(search(|_| false), Capacity { low_qps: 0.0, high_qps: Some(1.0), flips: 0 });
        let all = search(|_| true);
        assert_eq!((all.high_qps, all.flips), (None, 0));
        assert!(all.low_qps > 90.0);
    }
}
