//! Growing and pruning of model trees.

use super::linear::{Linear, SampleSlice, raised};
use super::{PUBLISHED, PublishedRow};

/// Nodes of fewer samples are not split, and no part has fewer than half of this.
const LEAST_SPLIT: usize = 8;
/// Nodes whose targets vary by less than this share of the standard deviation of all targets are not split.
const FLAT: f64 = 0.05;

/// A condition: an input, whether it must be above the threshold, and the threshold.
pub(crate) type Condition = (usize, bool, f64);

/// A leaf of a pruned model tree, with the conditions on its path.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) model: Linear,
    pub(crate) samples: usize,
}

struct Node {
    model: Linear,
    samples: usize,
    below: Option<Below>,
}

struct Below {
    input: usize,
    threshold: f64,
    at_most: Box<Node>,
    above: Box<Node>,
}

/// The leaf of the pruned tree of `samples` that covers most of them; ties go to the first.
pub(crate) fn largest_leaf(samples: &mut [(PublishedRow, f64)]) -> Option<Leaf> {
    let spread = deviation(samples);
    let (root, _, _) = grow(samples, spread);
    let mut largest: Option<Leaf> = None;
    root.leaves(&mut Vec::new(), None, &mut |leaf| {
        if largest.as_ref().is_none_or(|largest| leaf.samples > largest.samples) {
            largest = Some(leaf);
        }
    });
    largest
}

impl Node {
    /// Passes every leaf to `visit`. Its model is smoothed by those of the nodes above.
    fn leaves(&self, conditions: &mut Vec<Condition>, above: Option<&Linear>, visit: &mut dyn FnMut(Leaf)) {
        let model = above.map_or(self.model, |above| self.model.smoothed(above, self.samples));
        let Some(below) = &self.below else {
            visit(Leaf { conditions: conditions.clone(), model, samples: self.samples });
            return;
        };
        for (is_above, node) in [(false, &below.at_most), (true, &below.above)] {
            conditions.push((below.input, is_above, below.threshold));
            node.leaves(conditions, Some(&model), visit);
            conditions.pop();
        }
    }
}

/// The pruned tree of these samples, its expected error, and the inputs that it reads.
fn grow(samples: &mut [(PublishedRow, f64)], spread: f64) -> (Node, f64, Vec<usize>) {
    let whole = samples.len();
    let split = (whole >= LEAST_SPLIT && deviation(samples) > FLAT * spread).then(|| best_split(samples)).flatten();
    let Some((input, threshold)) = split else {
        let model = Linear::fit(samples, &[]);
        let error = model.expected_error(samples);
        return (Node { model, samples: whole, below: None }, error, Vec::new());
    };
    samples.sort_by(|a, b| a.0[input].total_cmp(&b.0[input]));
    let cut = samples.partition_point(|sample| sample.0[input] <= threshold);
    let (low, high) = samples.split_at_mut(cut);
    let (at_most, low_error, mut asked) = grow(low, spread);
    let (above, high_error, asked_above) = grow(high, spread);
    asked.extend(asked_above);
    asked.push(input);
    asked.sort_unstable();
    asked.dedup();
    let model = Linear::fit(samples, &asked);
    let own = model.expected_error(samples);
    let (n, low_n) = (whole as f64, cut as f64);
    // A split counts as one more number.
    let split_error = raised((low_n * low_error + (n - low_n) * high_error) / n, whole, 1);
    // Differences by rounding don't count.
    if own <= split_error + 1e-9 * spread {
        return (Node { model, samples: whole, below: None }, own, asked);
    }
    let below = Below { input, threshold, at_most: Box::new(at_most), above: Box::new(above) };
    (Node { model, samples: whole, below: Some(below) }, split_error, asked)
}

/// The input and threshold that lower the standard deviation most.
fn best_split(samples: &mut [(PublishedRow, f64)]) -> Option<(usize, f64)> {
    let least = LEAST_SPLIT / 2;
    let mut best: Option<(f64, usize, f64)> = None;
    for input in 0..PUBLISHED.len() {
        samples.sort_by(|a, b| a.0[input].total_cmp(&b.0[input]));
        let sums =
            |part: SampleSlice<'_>| part.iter().fold((0.0, 0.0), |(sum, squares), s| (sum + s.1, squares + s.1 * s.1));
        let (all, all_squares) = sums(&*samples);
        let (mut sum, mut squares) = (0.0, 0.0);
        for cut in 1..samples.len() {
            let target = samples[cut - 1].1;
            (sum, squares) = (sum + target, squares + target * target);
            let (low, high) = (samples[cut - 1].0[input], samples[cut].0[input]);
            if low == high || cut < least || samples.len() - cut < least {
                continue;
            }
            let spread = |n: f64, sum: f64, squares: f64| n * (squares / n - (sum / n).powi(2)).max(0.0).sqrt();
            let (n, m) = (cut as f64, (samples.len() - cut) as f64);
            let left = spread(n, sum, squares) + spread(m, all - sum, all_squares - squares);
            if best.is_none_or(|(least, _, _)| left < least) {
                best = Some((left, input, f64::midpoint(low, high)));
            }
        }
    }
    best.map(|(_, input, threshold)| (input, threshold))
}

fn deviation(samples: SampleSlice<'_>) -> f64 {
    let n = samples.len().max(1) as f64;
    let mean = samples.iter().map(|sample| sample.1).sum::<f64>() / n;
    (samples.iter().map(|sample| (sample.1 - mean).powi(2)).sum::<f64>() / n).sqrt()
}
