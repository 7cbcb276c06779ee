//! What the bus to the host's memory takes of batches whose lists all lie there.

use std::collections::BTreeMap;

use super::fit::{FOLDS, LARGE_SHARE, least_squares};
use super::{BatchFitError, BatchSample};
use crate::query::Mode;

/// How long the bus is taken by each unit of what queries take it by: their reads, or the microseconds that they take longer alone with
/// their lists far.
#[derive(Clone, Debug, PartialEq)]
pub struct BusFit {
    /// By mode, in the order of [`Mode::ALL`], in large batches.
    pub shares: [f64; 3],
    /// How many times as long in smaller ones: `(n, crowding)`, n ascending.
    pub crowding: Vec<(u32, f64)>,
    /// Batches that it is fitted to.
    pub samples: usize,
    /// Mean of |predicted - measured| / measured, over batches that the fit had not seen.
    pub mean_relative_error: f64,
}

/// Fits it to `samples` with all lists far, each with what its device would take with all lists near, in microseconds; its queries have
/// such a mode and so much of what the bus is taken by, by position. Batches of a quarter of the largest size on tell of the bus: in
/// smaller ones reads wait for each other, too, for which each size has a factor.
///
/// # Errors
/// If there are too few.
pub fn fit_bus(samples: &[(&BatchSample, f64)], work: &[(Mode, f64)]) -> Result<BusFit, BatchFitError> {
    let largest = samples.iter().map(|(sample, _)| sample.work.len()).max().unwrap_or(0);
    let is_large = |(sample, _): &&(&BatchSample, f64)| sample.work.len() as f64 >= LARGE_SHARE * largest as f64;
    let row = |(sample, near_us): &(&BatchSample, f64)| {
        let mut sums = [0.0; 3];
        for &i in &sample.work {
            let (mode, of_query) = work[i as usize];
            sums[mode.index()] += of_query;
        }
        (sums, (sample.device_us - near_us).max(0.0))
    };
    let rows: Vec<([f64; 3], f64)> = samples.iter().filter(is_large).map(row).collect();
    if rows.len() < 2 * FOLDS {
        return Err(BatchFitError::TooFew(rows.len(), usize::from(!rows.is_empty())));
    }
    let mut errors = 0.0;
    for fold in 0..FOLDS {
        let part = |is_in: bool| {
            rows.iter().enumerate().filter(move |(i, _)| (i % FOLDS == fold) == is_in).map(|(_, row)| *row)
        };
        let shares = shares(&part(false).collect::<Vec<_>>());
        let error = |(sums, us): ([f64; 3], f64)| (predicted(&shares, &sums) / us.max(1e-3) - 1.0).abs();
        errors += part(true).map(error).sum::<f64>();
    }
    let shares = shares(&rows);
    let mut by_size: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for sample in samples {
        let (sums, us) = row(sample);
        let (measured, expected) = by_size.entry(sample.0.work.len() as u32).or_default();
        *measured += us;
        *expected += predicted(&shares, &sums);
    }
    let factor = |(size, (measured, expected)): (u32, (f64, f64))| {
        (size, if expected > 0.0 { measured / expected } else { 1.0 })
    };
    Ok(BusFit {
        shares,
        crowding: by_size.into_iter().map(factor).filter(|&(_, factor)| factor > 0.0).collect(),
        samples: samples.len(),
        mean_relative_error: errors / rows.len() as f64,
    })
}

fn predicted(shares: &[f64; 3], sums: &[f64; 3]) -> f64 {
    shares.iter().zip(sums).map(|(share, sum)| share * sum).sum()
}

/// By mode; one that is not in the batches, or too seldom to tell, is taken for the others' like.
fn shares(rows: &[([f64; 3], f64)]) -> [f64; 3] {
    let mut shares = least_squares(rows);
    let all: f64 = rows.iter().map(|(sums, _)| sums.iter().sum::<f64>()).sum();
    let common = if all > 0.0 { rows.iter().map(|(_, us)| us).sum::<f64>() / all } else { 0.0 };
    shares.iter_mut().filter(|share| **share <= 0.0).for_each(|share| *share = common);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn what_known_shares_make_is_fitted_to_them() {
        let mut random = Random::new(3, 1);
        let longer: Vec<(Mode, f64)> =
            (0..300).map(|i| (Mode::ALL[i % 2], 10.0 + f64::from(random.below(90)))).collect();
        let truth = [0.2, 0.4, 0.0];
        let mut samples = Vec::new();
        for size in [4, 1024, 4096] {
            for repeat in 0..12 {
                let drawn = |random: &mut Random| match repeat % 3 {
                    2 => random.below(300),
                    mode => 2 * random.below(150) + mode,
                };
                let work: Vec<u32> = (0..size).map(|_| drawn(&mut random)).collect();
                let us: f64 = work.iter().map(|&i| longer[i as usize]).map(|(mode, us)| truth[mode.index()] * us).sum();
                // Small batches wait.
                let device_us: f64 = 7.0 + if size == 4 { 3.0 * us } else { us };
                samples.push(BatchSample { work, total_us: device_us, device_us, host_us: 0.0 });
            }
        }
        // Seven microseconds are the device's own.
        let samples: Vec<(&BatchSample, f64)> = samples.iter().map(|sample| (sample, 7.0)).collect();
        let found = fit_bus(&samples, &longer).unwrap();
        assert!((found.shares[0] - 0.2).abs() < 1e-6 && (found.shares[1] - 0.4).abs() < 1e-6, "{found:?}");
        // Nobody asked the third: it is like the others.
        assert!((0.2..0.4).contains(&found.shares[2]), "{found:?}");
        assert!(found.mean_relative_error < 1e-6 && found.samples == 36);
        let sizes: Vec<(u32, f64)> =
            found.crowding.iter().map(|&(n, factor)| (n, (1e6 * factor).round() / 1e6)).collect();
        assert_eq!(sizes, [(4, 3.0), (1024, 1.0), (4096, 1.0)]);
        assert_eq!(fit_bus(&samples[..3], &longer), Err(BatchFitError::TooFew(3, 1)));
    }
}
