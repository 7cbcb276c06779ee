//! Fits a model to measured batches.
//!
//! The fit has three steps of least squares over *relative* errors, so that a batch of four has the same weight as one of four
//! thousand:
//!
//! 1. The device's waiting time, `total − device`, and the thread's time, which mostly overlaps the device's. Each is a line
//!    over n.
//! 2. The time that queries add: the device's time of the largest batches over the sums of their queries' times alone. There
//!    is one sum per mode, and no share is below zero.
//! 3. Crowding and the longest query. Crowding is a factor per size, after subtracting a share of the longest query's time
//!    that is the same at all sizes.
//!
//! Errors are measured on batches that the fit has not seen (five folds, drawn by position).

use std::collections::BTreeMap;

use super::BatchModel;
use crate::base::quantile::{interpolated, median};
use crate::base::time::Nanos;
use crate::cost::{BatchCost, BatchLoad, Exposed};
use crate::traffic::Mode;

/// Batches of at least this share of the largest size determine what queries add.
const LARGE_SHARE: f64 = 0.25;
const FOLDS: usize = 5;
/// Shares of the longest query's time that are tried, from 0 to 1.
const LONGEST_STEPS: u32 = 20;
/// Lower bound of crowding: other queries always add some time, however much the longest one explains.
const LEAST_CROWDING: f64 = 0.05;

/// Why no model could be fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BatchFitError {
    /// Too few batches, or only one size.
    #[error("{0} batches were measured, of {1} sizes; at least 10, of 2 sizes, are needed")]
    TooFew(usize, usize),
}

/// A batch that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchSample {
    /// Positions of its queries in the work that they were drawn from.
    pub work: Vec<u32>,
    /// From submission to answers in host memory, in microseconds.
    pub total_us: f64,
    /// The device's own time, in microseconds; 0 if the device has no clock.
    pub device_us: f64,
    /// The thread's time to prepare requests and read answers, mostly overlapping the device's. If the executor does not
    /// report it, it is the time outside the device's.
    pub host_us: f64,
}

/// The cost alone of a query that may join a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alone {
    /// Its mode.
    pub mode: Mode,
    /// Its service time alone, in microseconds.
    pub total_us: f64,
    /// The device's part of it, where known.
    pub device_us: Option<f64>,
}

/// Fits a model to `samples`, whose queries refer to costs in `alone` by position. Fails if there are too few samples.
pub fn fit_batches(samples: &[BatchSample], alone: &[Alone]) -> Result<BatchModel, BatchFitError> {
    let mut sizes: Vec<usize> = samples.iter().map(|sample| sample.work.len()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if samples.len() < 2 * FOLDS || sizes.len() < 2 {
        return Err(BatchFitError::TooFew(samples.len(), sizes.len()));
    }
    let model = fit(samples.iter(), alone);
    let mut errors: Vec<f64> = Vec::with_capacity(samples.len());
    for fold in 0..FOLDS {
        let others = samples.iter().enumerate().filter(|(i, _)| i % FOLDS != fold).map(|(_, sample)| sample);
        let fitted = fit(others, alone);
        for (_, sample) in samples.iter().enumerate().filter(|(i, _)| i % FOLDS == fold) {
            errors.push((predict_us(&fitted, sample, alone) / sample.total_us - 1.0).abs());
        }
    }
    let mean_relative_error = errors.iter().sum::<f64>() / errors.len() as f64;
    errors.sort_by(f64::total_cmp);
    Ok(BatchModel {
        samples: samples.len(),
        mean_relative_error,
        p95_relative_error: interpolated(&errors, 0.95),
        ..model
    })
}

/// The model's time of a measured batch, in microseconds.
fn predict_us(model: &BatchModel, sample: &BatchSample, alone: &[Alone]) -> f64 {
    let queries = sample.work.iter().map(|&i| alone[i as usize]);
    let costs = queries.map(|query| model.cost(Nanos::from_us(query.total_us), query.mode));
    model.cost.time(&costs.fold(BatchLoad::default(), BatchLoad::with)).total().as_us()
}

fn fit<'a>(samples: impl Iterator<Item = &'a BatchSample>, alone: &[Alone]) -> BatchModel {
    let samples: Vec<&BatchSample> = samples.collect();
    let overhead_us = overhead_us(alone);
    let largest = samples.iter().map(|sample| sample.work.len()).max().unwrap_or(1);
    let together: Vec<&BatchSample> = samples.iter().copied().filter(|sample| sample.work.len() > 1).collect();
    let [host_fixed_us, host_each_us] = line(&together, |sample| sample.host_us);
    let [fixed_us, each_us] = line(&together, |sample| sample.total_us - sample.device_us);

    // By mode: device time of the batch's queries alone.
    let sums = |sample: &BatchSample| {
        let mut sums = [0.0; 3];
        for &i in &sample.work {
            let query = &alone[i as usize];
            sums[query.mode.index()] += (query.total_us - overhead_us).max(0.0);
        }
        sums
    };
    let is_large = |sample: &&&BatchSample| sample.work.len() as f64 >= LARGE_SHARE * largest as f64;
    let large: Vec<([f64; 3], f64)> =
        samples.iter().filter(is_large).map(|sample| (sums(sample), sample.device_us)).collect();
    let shares = added_shares(&large);
    let rows: Vec<BatchRow> = together
        .iter()
        .map(|sample| BatchRow {
            size: sample.work.len() as u32,
            added_us: sums(sample).iter().zip(shares).map(|(sum, share)| sum * share).sum(),
            longest_us: sample.work.iter().map(|&i| alone[i as usize].total_us).fold(0.0, f64::max),
            device_us: sample.device_us,
        })
        .collect();
    let (longest, crowding) = longest_and_crowding(&rows);

    let [added_and, added_or, added_and_or] = shares;
    BatchModel {
        overhead_us,
        added_and,
        added_or,
        added_and_or,
        cost: BatchCost {
            host_fixed_us,
            host_each_us,
            exposed: Some(Exposed { fixed_us, each_us }),
            device_fixed_us: 0.0,
            longest,
            crowding,
            most_queries: largest as u32,
        },
        samples: samples.len(),
        mean_relative_error: f64::NAN,
        p95_relative_error: f64::NAN,
    }
}

/// The median time of a query alone outside the device's work; 0 if no device time is known.
fn overhead_us(alone: &[Alone]) -> f64 {
    let beside_device = |query: &Alone| query.device_us.map(|device_us| query.total_us - device_us);
    let overhead_us = median(alone.iter().filter_map(beside_device).collect()).max(0.0);
    if overhead_us.is_finite() { overhead_us } else { 0.0 }
}

/// Fits a line over the number of queries to `us`: per batch and per query, in microseconds.
fn line(batches: &[&BatchSample], us: fn(&BatchSample) -> f64) -> [f64; 2] {
    let rows: Vec<([f64; 2], f64)> =
        batches.iter().map(|sample| ([1.0, sample.work.len() as f64], us(sample).max(0.0))).collect();
    least_squares(&rows)
}

/// By mode: the share of its time alone that a query adds to the device's. It is fitted to batches so large that the device is
/// full.
fn added_shares(large: &[([f64; 3], f64)]) -> [f64; 3] {
    let mut shares = least_squares(large);
    // A mode with no queries in the batches, or too few, takes the share of the others.
    let all_us: f64 = large.iter().map(|(sums, _)| sums.iter().sum::<f64>()).sum();
    let device_us: f64 = large.iter().map(|(_, device_us)| device_us).sum();
    let common = if all_us > 0.0 { device_us / all_us } else { 1.0 };
    for share in &mut shares {
        if *share <= 0.0 {
            *share = common;
        }
    }
    shares
}

/// The share of the longest query's time that holds up its batch, and the crowding by size. The share is the one that fits all
/// sizes best.
fn longest_and_crowding(rows: &[BatchRow]) -> (f64, Vec<(u32, f64)>) {
    let candidates = (0..=LONGEST_STEPS).map(|step| f64::from(step) / f64::from(LONGEST_STEPS));
    let fitted = candidates.map(|longest| {
        let crowding = crowding(rows, longest);
        let error = error(rows, longest, &crowding);
        (longest, crowding, error)
    });
    let (longest, crowding, _) = fitted.min_by(|a, b| a.2.total_cmp(&b.2)).unwrap_or_default();
    (longest, crowding)
}

/// A measured batch of several queries, in the variables of the formula.
struct BatchRow {
    size: u32,
    added_us: f64,
    longest_us: f64,
    device_us: f64,
}

/// Crowding by size, if `longest` is the share of the longest query's time.
fn crowding(rows: &[BatchRow], longest: f64) -> Vec<(u32, f64)> {
    let mut by_size: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for row in rows {
        let weight = row.device_us.max(1.0).powi(-2);
        let (with, square) = by_size.entry(row.size).or_default();
        *with += weight * row.added_us * (row.device_us - longest * row.longest_us);
        *square += weight * row.added_us * row.added_us;
    }
    let factor = |(size, (with, square)): (u32, (f64, f64))| (size, if square > 0.0 { with / square } else { 1.0 });
    by_size.into_iter().map(factor).map(|(size, factor)| (size, factor.max(LEAST_CROWDING))).collect()
}

/// The mean relative error of the device's time.
fn error(rows: &[BatchRow], longest: f64, crowding: &[(u32, f64)]) -> f64 {
    let of_row = |row: &BatchRow| {
        let factor = crowding.iter().find(|(size, _)| *size == row.size).map_or(1.0, |&(_, factor)| factor);
        let predicted_us = factor * row.added_us + longest * row.longest_us;
        (predicted_us / row.device_us.max(1.0) - 1.0).abs()
    };
    rows.iter().map(of_row).sum::<f64>() / rows.len().max(1) as f64
}

/// The non-negative coefficients of a sum of terms with the least squared relative error over `rows`.
///
/// With few terms, every subset that may be above zero is tried.
pub fn least_squares<const N: usize>(rows: &[([f64; N], f64)]) -> [f64; N] {
    let mut best = ([0.0; N], f64::INFINITY);
    for allowed in 0u32..1 << N {
        let found = solve(rows, |i| allowed & (1 << i) != 0);
        if found.iter().any(|&coefficient| !(coefficient.is_finite() && coefficient >= 0.0)) {
            continue;
        }
        let residual = |(terms, value): &([f64; N], f64)| {
            let sum: f64 = terms.iter().zip(found).map(|(term, coefficient)| term * coefficient).sum();
            ((sum - value) / value.max(1.0)).powi(2)
        };
        let error = rows.iter().map(residual).sum();
        if error < best.1 {
            best = (found, error);
        }
    }
    best.0
}

/// Solves the normal equations over the allowed terms by elimination; the other coefficients are zero. The result is NaN if
/// the terms are collinear.
fn solve<const N: usize>(rows: &[([f64; N], f64)], is_allowed: impl Fn(usize) -> bool) -> [f64; N] {
    let mut matrix = [[0.0; N]; N];
    let mut right = [0.0; N];
    for (terms, value) in rows {
        let weight = value.max(1.0).powi(-2);
        for i in 0..N {
            right[i] += weight * terms[i] * value;
            for j in 0..N {
                matrix[i][j] += weight * terms[i] * terms[j];
            }
        }
    }
    for i in (0..N).filter(|&i| !is_allowed(i)) {
        matrix[i] = [0.0; N];
        matrix.iter_mut().for_each(|row| row[i] = 0.0);
        (matrix[i][i], right[i]) = (1.0, 0.0);
    }
    for pivot in 0..N {
        for row in (0..N).filter(|&row| row != pivot) {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let of_pivot = matrix[pivot];
            matrix[row].iter_mut().zip(of_pivot).for_each(|(value, subtracted)| *value -= factor * subtracted);
            right[row] -= factor * right[pivot];
        }
    }
    std::array::from_fn(|i| right[i] / matrix[i][i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    /// Batches and single queries whose times follow a known model exactly.
    fn world() -> (BatchModel, Vec<Alone>, Vec<BatchSample>) {
        let truth = BatchModel {
            overhead_us: 9.0,
            added_and: 0.05,
            added_or: 0.1,
            added_and_or: 0.2,
            cost: BatchCost {
                host_fixed_us: 6.0,
                host_each_us: 0.4,
                exposed: Some(Exposed { fixed_us: 8.0, each_us: 0.1 }),
                device_fixed_us: 0.0,
                longest: 0.0,
                crowding: vec![(2, 6.0), (16, 3.0), (256, 1.2), (1024, 1.0), (4096, 1.0)],
                most_queries: 4096,
            },
            samples: 0,
            mean_relative_error: 0.0,
            p95_relative_error: 0.0,
        };
        let mut random = Random::new(5, 5);
        let alone: Vec<Alone> = (0..300)
            .map(|i| {
                let device_us = 6.0 + 10.0 * random.draw::<f64>(&rand_distr::Exp1);
                Alone { mode: Mode::ALL[i % 3], total_us: device_us + 9.0, device_us: Some(device_us) }
            })
            .collect();
        let mut samples = Vec::new();
        for &(size, _) in &truth.cost.crowding {
            for repeat in 0..12 {
                // All modes are mixed, or one is alone.
                let draw = |random: &mut Random| match repeat % 4 {
                    3 => random.below(300),
                    mode => 3 * random.below(100) + mode,
                };
                let work: Vec<u32> = (0..size).map(|_| draw(&mut random)).collect();
                let costs = work.iter().map(|&i| {
                    let query = alone[i as usize];
                    truth.cost(Nanos::from_us(query.total_us), query.mode)
                });
                let time = truth.cost.time(&costs.fold(BatchLoad::default(), BatchLoad::with));
                let (total_us, device_us) = (time.total().as_us(), time.device.as_us());
                samples.push(BatchSample { work, total_us, device_us, host_us: time.host.as_us() });
            }
        }
        (truth, alone, samples)
    }

    #[test]
    fn what_a_known_model_makes_is_fitted_to_it() {
        let (truth, alone, samples) = world();
        let found = fit_batches(&samples, &alone).unwrap();
        assert!((found.overhead_us - truth.overhead_us).abs() < 1e-9);
        assert!((found.cost.host_each_us / truth.cost.host_each_us - 1.0).abs() < 0.02, "{found:?}");
        for mode in Mode::ALL {
            let (is, was) = (found.added_share(mode), truth.added_share(mode));
            assert!((is / was - 1.0).abs() < 0.1, "{mode}: {is} for {was}");
        }
        assert!(found.mean_relative_error < 0.05, "{}", found.mean_relative_error);
        assert_eq!((found.samples, found.cost.most_queries), (60, 4096));
    }

    #[test]
    fn too_few_batches_are_refused() {
        let (_, alone, samples) = world();
        assert_eq!(fit_batches(&samples[..3], &alone), Err(BatchFitError::TooFew(3, 1)));
        assert!(fit_batches(&samples[..12], &alone).unwrap_err().to_string().contains("of 1 sizes"));
    }
}
