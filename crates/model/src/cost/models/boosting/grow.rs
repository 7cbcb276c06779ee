//! Growing of symmetric trees.
//!
//! Each input is cut at its quantiles into at most [`BORDERS`] + 1 bins. The question of a level is the input and border that
//! lower the sum of squares most, over all nodes of the level. Candidates are compared by histograms of the residuals. Of two
//! siblings only the smaller is counted; the larger is its parent minus the smaller.

use super::trees::{DEPTH, LEAVES, SymmetricTree, SymmetricTrees};
use crate::base::random::Random;
use crate::cost::models::samples::Samples;

/// Maximum borders between bins of an input.
const BORDERS: usize = 63;
const BINS: usize = BORDERS + 1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BoostingOptions {
    pub(crate) trees: usize,
    /// Share of a tree's prediction that is added to the sum.
    pub(crate) rate: f32,
    /// Zero residuals that are added to every leaf, which shrinks small leaves.
    pub(crate) ballast: f32,
    /// Share of samples that each tree is grown on, drawn anew.
    pub(crate) share: f64,
    /// Share of samples whose residuals are clipped to those of the others (Huber's loss). An unpredictable binary outcome,
    /// such as whether an intersection finds k documents, would otherwise distort all its neighbours.
    pub(crate) outliers: f64,
    pub(crate) seed: u64,
}

impl Default for BoostingOptions {
    /// The best options of those tried on the shipped workloads, with the fewest trees that lose no accuracy.
    fn default() -> Self {
        Self { trees: 200, rate: 0.12, ballast: 3.0, share: 0.65, outliers: 0.1, seed: 1 }
    }
}

/// Sum of residuals, and number of samples.
type Sum = [f32; 2];
/// Sums by node of a level, and by bin.
type Histogram = Vec<[Sum; BINS]>;

/// A binned column of the samples. Constant inputs have none.
struct BinnedColumn {
    input: u8,
    borders: Vec<f32>,
    bins: Vec<u8>,
}

impl SymmetricTrees {
    pub(crate) fn fit(samples: &Samples, options: &BoostingOptions) -> Self {
        let columns: Vec<BinnedColumn> =
            samples.known().iter().filter_map(|input| BinnedColumn::of(samples, input)).collect();
        let targets = samples.ln_us();
        let base = (targets.iter().sum::<f64>() / targets.len().max(1) as f64) as f32;
        let mut left: Vec<f32> = targets.iter().map(|&target| target as f32 - base).collect();
        let mut random = Random::new(options.seed, 0);
        let mut trees = Vec::new();
        // A constant needs no tree, and without columns there is no question.
        let num_trees = if columns.is_empty() { 0 } else { options.trees };
        for _ in 0..num_trees {
            let drawn: Vec<u32> = (0..left.len() as u32).filter(|_| random.unit() <= options.share).collect();
            let most = largest_counted(&left, &drawn, options.outliers);
            let counted: Vec<f32> = left.iter().map(|left| left.clamp(-most, most)).collect();
            let (mut tree, leaf_of) = grow(&columns, &counted, &drawn, options);
            fill_leaves(&mut tree, &leaf_of, &left, &drawn, most, options);
            for (left, &leaf) in left.iter_mut().zip(&leaf_of) {
                *left -= tree.leaves[usize::from(leaf)];
            }
            trees.push(tree);
        }
        Self::new(base, &trees)
    }
}

/// The clipping bound of residuals. All drawn residuals but the share `outliers` are within it.
fn largest_counted(left: &[f32], drawn: &[u32], outliers: f64) -> f32 {
    let mut sizes: Vec<f32> = drawn.iter().map(|&sample| left[sample as usize].abs()).collect();
    let at = ((1.0 - outliers) * sizes.len() as f64) as usize;
    if at >= sizes.len() {
        return f32::MAX;
    }
    *sizes.select_nth_unstable_by(at, f32::total_cmp).1
}

/// Sets each leaf to a part of its samples' median residual plus the mean of their deviations, clipped to `most`.
fn fill_leaves(
    tree: &mut SymmetricTree,
    leaf_of: &[u8],
    left: &[f32],
    drawn: &[u32],
    most: f32,
    options: &BoostingOptions,
) {
    let mut of_leaf: Vec<Vec<f32>> = vec![Vec::new(); LEAVES];
    for &sample in drawn {
        of_leaf[usize::from(leaf_of[sample as usize])].push(left[sample as usize]);
    }
    for (leaf, values) in tree.leaves.iter_mut().zip(&mut of_leaf) {
        let samples = values.len() as f32;
        if values.is_empty() {
            continue;
        }
        values.sort_by(f32::total_cmp);
        let median = f32::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
        let beyond = values.iter().map(|value| (value - median).clamp(-most, most)).sum::<f32>() / samples;
        let step = options.rate * (median + beyond) * samples / (samples + options.ballast);
        // A file holds five decimals, so a model reads back as it was fitted.
        *leaf = (step * 1e5).round() / 1e5;
    }
}

impl BinnedColumn {
    fn of(samples: &Samples, input: usize) -> Option<Self> {
        let values: Vec<f32> = samples.rows().iter().map(|row| row[input] as f32).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f32::total_cmp);
        let mut borders: Vec<f32> = Vec::new();
        for quantile in 1..=BORDERS {
            let value = sorted[(quantile * sorted.len() / (BORDERS + 1)).min(sorted.len() - 1)];
            let below = sorted.partition_point(|&other| other < value);
            if let Some(&before) = below.checked_sub(1).and_then(|at| sorted.get(at)) {
                // The border is half way between the values, rounded to few digits where the gap allows.
                borders.push(short_between(before, value));
            }
        }
        borders.dedup();
        let bins = values.iter().map(|&value| borders.partition_point(|&border| border < value) as u8).collect();
        (!borders.is_empty()).then_some(Self { input: input as u8, borders, bins })
    }
}

/// A number of few digits that is at least `low` and below `high`.
fn short_between(low: f32, high: f32) -> f32 {
    let middle = f64::midpoint(low.into(), high.into());
    (0..7)
        .map(|digits| 10_f64.powi(digits))
        .map(|scale| ((middle * scale).round() / scale) as f32)
        .find(|&rounded| low <= rounded && rounded < high)
        .unwrap_or(low)
}

/// One tree for the residuals `left`, grown on the samples `drawn`, and the leaf of every sample.
fn grow(columns: &[BinnedColumn], left: &[f32], drawn: &[u32], options: &BoostingOptions) -> (SymmetricTree, Vec<u8>) {
    let mut leaf_of = vec![0_u8; left.len()];
    let mut tree = SymmetricTree { inputs: [0; DEPTH], thresholds: [0.0; DEPTH], leaves: [0.0; LEAVES] };
    let mut histograms: Vec<Histogram> = columns
        .iter()
        .map(|column| {
            let mut histogram = vec![[[0.0; 2]; BINS]];
            count(column, left, drawn, &leaf_of, &mut histogram);
            histogram
        })
        .collect();
    for level in 0..DEPTH {
        let (best, border) = best_question(columns, &histograms, options.ballast);
        let column = &columns[best];
        tree.inputs[level] = column.input;
        tree.thresholds[level] = column.borders[border];
        for (leaf, &bin) in leaf_of.iter_mut().zip(&column.bins) {
            *leaf |= u8::from(usize::from(bin) > border) << level;
        }
        if level + 1 < DEPTH {
            split(columns, left, drawn, &leaf_of, &mut histograms);
        }
    }
    (tree, leaf_of)
}

/// The column and border that lower the sum of squares most.
fn best_question(columns: &[BinnedColumn], histograms: &[Histogram], ballast: f32) -> (usize, usize) {
    let gain = |[sum, samples]: Sum| sum * sum / (samples + ballast);
    let mut best = (f32::NEG_INFINITY, 0, 0);
    for (c, (column, histogram)) in columns.iter().zip(histograms).enumerate() {
        let mut gains = [0.0_f32; BORDERS];
        for node in histogram {
            let (mut sums, mut samples) = ([0.0_f32; BINS], [0.0_f32; BINS]);
            let mut below = [0.0; 2];
            for (i, bin) in node.iter().enumerate() {
                below = [below[0] + bin[0], below[1] + bin[1]];
                [sums[i], samples[i]] = below;
            }
            if below[1] == 0.0 {
                continue;
            }
            // Apart from the sums, so that the processor divides several numbers at once.
            for (i, g) in gains.iter_mut().enumerate() {
                *g += gain([sums[i], samples[i]]) + gain([below[0] - sums[i], below[1] - samples[i]]);
            }
        }
        for (border, &gain) in gains.iter().enumerate().take(column.borders.len()) {
            if gain > best.0 {
                best = (gain, c, border);
            }
        }
    }
    (best.1, best.2)
}

/// Turns the histograms of a level into those of the next, whose nodes `leaf_of` gives.
fn split(columns: &[BinnedColumn], left: &[f32], drawn: &[u32], leaf_of: &[u8], histograms: &mut [Histogram]) {
    let num_parents = histograms[0].len();
    let mut sizes = vec![0_u32; 2 * num_parents];
    for &sample in drawn {
        sizes[usize::from(leaf_of[sample as usize])] += 1;
    }
    // The children of node n are n (no) and n + num_parents (yes).
    let is_counted = |leaf: usize| {
        let sibling = if leaf < num_parents { leaf + num_parents } else { leaf - num_parents };
        (sizes[leaf], leaf) < (sizes[sibling], sibling)
    };
    let counted: Vec<bool> = (0..2 * num_parents).map(is_counted).collect();
    let smaller: Vec<u32> =
        drawn.iter().copied().filter(|&sample| counted[usize::from(leaf_of[sample as usize])]).collect();
    for (column, histogram) in columns.iter().zip(histograms) {
        let parents = std::mem::replace(histogram, vec![[[0.0; 2]; BINS]; 2 * num_parents]);
        count(column, left, &smaller, leaf_of, histogram);
        for (n, parent) in parents.iter().enumerate() {
            let (small, large) = if counted[n] { (n, n + num_parents) } else { (n + num_parents, n) };
            for bin in 0..BINS {
                let [sum, samples] = histogram[small][bin];
                histogram[large][bin] = [parent[bin][0] - sum, parent[bin][1] - samples];
            }
        }
    }
}

fn count(column: &BinnedColumn, left: &[f32], samples: &[u32], leaf_of: &[u8], histogram: &mut Histogram) {
    for &sample in samples {
        let sample = sample as usize;
        add(&mut histogram[usize::from(leaf_of[sample])][usize::from(column.bins[sample])], left[sample]);
    }
}

#[inline]
fn add(sum: &mut Sum, left: f32) {
    sum[0] += left;
    sum[1] += 1.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::inputs::{Inputs, NUM_INPUTS};
    use crate::cost::models::Regression;

    fn options() -> BoostingOptions {
        BoostingOptions { trees: 60, rate: 0.2, ballast: 1.0, share: 0.8, outliers: 0.0, seed: 1 }
    }

    /// Samples whose time is a product of two inputs, which no sum of questions about single inputs predicts.
    fn samples() -> Samples {
        let rows: Vec<Inputs> = (0..900)
            .map(|i| {
                let mut numbers = [f64::NAN; NUM_INPUTS];
                (numbers[0], numbers[3]) = (f64::from(i % 30), f64::from(i / 30));
                Inputs(numbers)
            })
            .collect();
        let us = rows.iter().map(|row| 10.0 + row.0[0] * row.0[3]).collect();
        Samples::new(&rows, us)
    }

    #[test]
    fn trees_learn_what_inputs_do_together() {
        let samples = samples();
        let trees = SymmetricTrees::fit(&samples, &options());
        assert_eq!(trees.asks().iter().collect::<Vec<_>>(), [0, 3]);
        let errors =
            samples.rows().iter().zip(samples.us()).map(|(row, us)| (trees.predict(row).exp() / us - 1.0).abs());
        let mean = errors.sum::<f64>() / samples.len() as f64;
        assert!(mean < 0.05, "{mean}");
    }

    #[test]
    fn a_few_wild_samples_do_not_move_what_is_said_of_the_others() {
        let usual = samples();
        let mut us = usual.us().to_vec();
        // One time in twenty is fifty times as long, which no input predicts.
        let mut random = Random::new(5, 0);
        us.iter_mut().filter(|_| random.unit() < 0.05).for_each(|us| *us *= 50.0);
        let rows: Vec<Inputs> = (0..usual.len()).map(|i| usual.inputs(i)).collect();
        let wild = Samples::new(&rows, us);
        let error = |outliers: f64| {
            let trees = SymmetricTrees::fit(&wild, &BoostingOptions { outliers, ..options() });
            let errors =
                usual.rows().iter().zip(usual.us()).map(|(row, us)| (trees.predict(row).exp() / us - 1.0).abs());
            errors.sum::<f64>() / usual.len() as f64
        };
        let (counting_all, robust) = (error(0.0), error(0.1));
        assert!(robust < 0.5 * counting_all && robust < 0.12, "{robust} for {counting_all}");
    }

    #[test]
    fn a_constant_needs_no_tree() {
        let rows = vec![Inputs([7.0; NUM_INPUTS]); 20];
        let trees = SymmetricTrees::fit(&Samples::new(&rows, vec![20.0; 20]), &options());
        assert_eq!(trees.len(), 0);
        assert!((trees.predict(&[1.0; NUM_INPUTS]) - 20_f64.ln()).abs() < 1e-6);
    }

    #[test]
    fn borders_lie_between_values_and_are_short() {
        assert_eq!(short_between(3.0, 4.0), 3.5);
        assert_eq!(short_between(1234.56, 1300.0), 1267.0);
        assert_eq!(short_between(0.125, 0.25), 0.2);
        assert_eq!(short_between(1.0, 1.0 + f32::EPSILON), 1.0);
    }
}
