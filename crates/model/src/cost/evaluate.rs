//! Relative errors of estimates on samples that the model has not seen.
//!
//! An estimate of half the true cost misleads a scheduler at 100 us as much as at 10 ms, hence errors are relative:
//! `|estimate - true| / true`. Samples are cut into folds, and each is estimated by a model fitted to the other folds.
//! A repeated query would be estimated from itself, so samples of equal features share a fold.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::Inputs;
use crate::base::quantile::interpolated;
use crate::traffic::Features;

/// Results of a cross-validation. Errors are relative: 0.1 is 10 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Number of measured queries.
    pub samples: usize,
    /// Number of folds.
    pub folds: usize,
    /// Mean of `|estimate - true| / true`.
    pub mean_relative_error: f64,
    /// Median of `|estimate - true| / true`.
    pub median: f64,
    /// 95th percentile of `|estimate - true| / true`.
    pub p95: f64,
    /// The mean error if every query were estimated as the mean cost of the other folds.
    pub baseline_mean_relative_error: f64,
    /// The mean error if every query were estimated as the geometric mean of the other folds.
    pub baseline_geometric_relative_error: f64,
    /// Spearman's rank correlation of estimates and true costs. It is 1 if both order queries alike.
    pub rank_correlation: f64,
    /// Sum of the estimates over sum of the true costs, by tenths of the estimates from the cheapest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decile_bias: Vec<f64>,
}

/// The fold of each sample, drawn by `seed`. Folds are as even as groups of equal features allow. Fails with the number
/// of groups, if there are fewer groups than folds.
pub(crate) fn assign_folds(samples: &[Inputs], folds: usize, seed: u64) -> Result<Vec<usize>, usize> {
    let mut groups: BTreeMap<[u64; Features::COUNT], Vec<usize>> = BTreeMap::new();
    for (i, sample) in samples.iter().enumerate() {
        groups.entry(std::array::from_fn(|feature| sample.0[feature].to_bits())).or_default().push(i);
    }
    if groups.len() < folds {
        return Err(groups.len());
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    groups.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut fold_of = vec![0; samples.len()];
    for (i, group) in groups.iter().enumerate() {
        for &sample in group {
            fold_of[sample] = i % folds;
        }
    }
    Ok(fold_of)
}

/// Compares estimates, each made without its own fold, with the truth. All values are positive microseconds, and there is at
/// least one.
pub(crate) fn evaluate(truth: &[f64], estimates: &[f64], fold_of: &[usize], folds: usize) -> Evaluation {
    let errors = relative_errors(truth, estimates);
    let (mean_estimates, geometric_estimates): (Vec<f64>, Vec<f64>) = {
        let means: Vec<(f64, f64)> = (0..folds).map(|fold| means_without(truth, fold_of, fold)).collect();
        fold_of.iter().map(|&fold| means[fold]).unzip()
    };
    let rounded = |x: f64| (x * 1e6).round() / 1e6;
    Evaluation {
        samples: truth.len(),
        folds,
        mean_relative_error: rounded(mean(&errors)),
        median: rounded(interpolated(&errors, 0.5)),
        p95: rounded(interpolated(&errors, 0.95)),
        baseline_mean_relative_error: rounded(mean(&relative_errors(truth, &mean_estimates))),
        baseline_geometric_relative_error: rounded(mean(&relative_errors(truth, &geometric_estimates))),
        rank_correlation: rounded(rank_correlation(truth, estimates)),
        decile_bias: decile_bias(truth, estimates).into_iter().map(rounded).collect(),
    }
}

fn decile_bias(truth: &[f64], estimates: &[f64]) -> Vec<f64> {
    let mut pairs: Vec<(f64, f64)> = estimates.iter().copied().zip(truth.iter().copied()).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let tenth = |n: usize| &pairs[n * pairs.len() / 10..(n + 1) * pairs.len() / 10];
    let ratio = |pairs: &[(f64, f64)]| {
        let sum = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        sum.0 / sum.1
    };
    (0..10).map(tenth).filter(|tenth| !tenth.is_empty()).map(ratio).collect()
}

fn relative_errors(truth: &[f64], estimates: &[f64]) -> Vec<f64> {
    let mut errors: Vec<f64> =
        truth.iter().zip(estimates).map(|(truth, estimate)| (estimate - truth).abs() / truth).collect();
    errors.sort_by(f64::total_cmp);
    errors
}

/// The arithmetic and the geometric mean of all samples outside `fold`.
fn means_without(truth: &[f64], fold_of: &[usize], fold: usize) -> (f64, f64) {
    let others: Vec<f64> = truth.iter().zip(fold_of).filter(|&(_, &f)| f != fold).map(|(&us, _)| us).collect();
    let logs: Vec<f64> = others.iter().map(|us| us.ln()).collect();
    (mean(&others), mean(&logs).exp())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Spearman's coefficient: Pearson's correlation of ranks; ties share their mean rank. It is 0 if either side is constant.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    // Both sides have the same mean rank.
    let centre = (a.len() as f64 - 1.0) / 2.0;
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - centre) * (y - centre)).sum::<f64>();
    let scale = (dot(&a, &a) * dot(&b, &b)).sqrt();
    if scale > 0.0 { dot(&a, &b) / scale } else { 0.0 }
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let rank = first as f64 + (equal.len() - 1) as f64 / 2.0;
        for &i in equal {
            ranks[i] = rank;
        }
        first += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(lengths: impl IntoIterator<Item = u64>) -> Vec<Inputs> {
        lengths.into_iter().map(|n| Inputs::of(&Features::from_lengths(&[n], 1000), None)).collect()
    }

    #[test]
    fn equal_features_share_a_fold_and_folds_are_even() {
        let samples = samples((0..100).map(|i| i % 50 + 1));
        let fold_of = assign_folds(&samples, 10, 1).unwrap();
        for i in 0..50 {
            assert_eq!(fold_of[i], fold_of[i + 50]);
        }
        for fold in 0..10 {
            assert_eq!(fold_of.iter().filter(|&&f| f == fold).count(), 10);
        }
        assert_eq!(assign_folds(&samples, 10, 1), Ok(fold_of));
        assert_eq!(assign_folds(&samples, 51, 1), Err(50));
    }

    #[test]
    fn errors_are_relative_and_baselines_know_only_the_other_folds() {
        let evaluation = evaluate(&[100.0, 200.0, 400.0, 800.0], &[110.0, 180.0, 400.0, 400.0], &[0, 0, 1, 1], 2);
        assert_eq!(evaluation.mean_relative_error, 0.175);
        assert_eq!(evaluation.median, 0.1);
        // Fold 0 is estimated as 600, fold 1 as 150.
        let baseline = (5.0 + 2.0 + 0.625 + 0.8125) / 4.0;
        assert!((evaluation.baseline_mean_relative_error - baseline).abs() < 1e-6);
        // Estimates 110, 180, 400, 400 have ranks 0, 1, 2.5, 2.5.
        assert!((evaluation.rank_correlation - 4.5 / (5.0_f64 * 4.5).sqrt()).abs() < 1e-6);
    }
}
