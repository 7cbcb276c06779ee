//! Linear models of few inputs.

use super::PublishedRow;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Linear {
    pub(crate) constant: f64,
    pub(crate) factors: PublishedRow,
}

pub(crate) type SampleSlice<'a> = &'a [(PublishedRow, f64)];

impl Linear {
    pub(crate) fn predict(&self, row: &PublishedRow) -> f64 {
        self.constant + self.factors.iter().zip(row).map(|(factor, value)| factor * value).sum::<f64>()
    }

    /// Number of fitted numbers.
    fn size(&self) -> usize {
        1 + self.factors.iter().filter(|&&factor| factor != 0.0).count()
    }

    /// Fits a model of `part` on these `inputs`. The least useful input is dropped while the expected error on other
    /// samples falls.
    pub(crate) fn fit(part: SampleSlice<'_>, inputs: &[usize]) -> Self {
        let mut inputs = inputs.to_vec();
        let mut best = least_squares(part, &inputs);
        while !inputs.is_empty() {
            let without = |dropped: usize| {
                let rest: Vec<usize> = inputs.iter().copied().filter(|&input| input != dropped).collect();
                let model = least_squares(part, &rest);
                (model.expected_error(part), model, rest)
            };
            let Some((error, model, rest)) =
                inputs.iter().map(|&input| without(input)).min_by(|a, b| a.0.total_cmp(&b.0))
            else {
                break;
            };
            if error > best.expected_error(part) {
                break;
            }
            (best, inputs) = (model, rest);
        }
        best
    }

    /// The mean absolute error on `part`, raised to the expected error on other samples: by (n + v) / (n - v) for v
    /// numbers fitted to n samples.
    pub(crate) fn expected_error(&self, part: SampleSlice<'_>) -> f64 {
        let error = part.iter().map(|(row, target)| (self.predict(row) - target).abs()).sum::<f64>();
        raised(error / part.len().max(1) as f64, part.len(), self.size())
    }

    /// The mean of this model and `above`, that of a node above it, weighted by the `samples` behind this one.
    pub(crate) fn smoothed(&self, above: &Self, samples: usize) -> Self {
        /// Weight of the model above, in samples.
        const SMOOTHING: f64 = 15.0;
        let n = samples as f64;
        let mixed = |own: f64, above: f64| (n * own + SMOOTHING * above) / (n + SMOOTHING);
        Self {
            constant: mixed(self.constant, above.constant),
            factors: std::array::from_fn(|i| mixed(self.factors[i], above.factors[i])),
        }
    }
}

/// Raises an error on `samples` by what fitting `size` numbers hides.
pub(crate) fn raised(error: f64, samples: usize, size: usize) -> f64 {
    let (n, v) = (samples as f64, size as f64);
    if samples > size { error * (n + v) / (n - v) } else { error * 10.0 }
}

/// The model of these inputs with the least sum of squared errors. Redundant inputs get no factor.
fn least_squares(part: SampleSlice<'_>, inputs: &[usize]) -> Linear {
    let n = part.len().max(1) as f64;
    let mean = |value: &dyn Fn(&(PublishedRow, f64)) -> f64| part.iter().map(value).sum::<f64>() / n;
    let target_mean = mean(&|sample| sample.1);
    let means: Vec<f64> = inputs.iter().map(|&input| mean(&|sample| sample.0[input])).collect();
    let scales: Vec<f64> = (inputs.iter().zip(&means))
        .map(|(&input, centre)| mean(&|sample| (sample.0[input] - centre).powi(2)).sqrt())
        .collect();
    // Normal equations in standard units, solved by elimination.
    let size = inputs.len();
    let unit = |sample: &(PublishedRow, f64), i: usize| {
        if scales[i] > 0.0 { (sample.0[inputs[i]] - means[i]) / scales[i] } else { 0.0 }
    };
    let mut rows = vec![vec![0.0; size + 1]; size];
    for (i, row) in rows.iter_mut().enumerate() {
        for (j, cell) in row[..size].iter_mut().enumerate() {
            *cell = mean(&|sample| unit(sample, i) * unit(sample, j));
        }
        row[size] = mean(&|sample| unit(sample, i) * (sample.1 - target_mean));
    }
    let solution = solve(rows);
    let mut model = Linear { constant: target_mean, factors: PublishedRow::default() };
    for (i, &input) in inputs.iter().enumerate() {
        if scales[i] > 0.0 {
            model.factors[input] = solution[i] / scales[i];
            model.constant -= model.factors[input] * means[i];
        }
    }
    model
}

/// Solves equations whose last column is the right side. Unknowns that depend on others are 0.
fn solve(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let size = rows.len();
    let mut row_of = vec![None; size];
    let mut used = 0;
    for unknown in 0..size {
        let Some(pivot) = (used..size).max_by(|&a, &b| rows[a][unknown].abs().total_cmp(&rows[b][unknown].abs()))
        else {
            break;
        };
        if rows[pivot][unknown].abs() < 1e-9 {
            continue;
        }
        rows.swap(used, pivot);
        let lead = rows[used].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|&(r, _)| r != used) {
            let factor = row[unknown] / lead[unknown];
            row.iter_mut().zip(&lead).for_each(|(cell, lead)| *cell -= factor * lead);
        }
        row_of[unknown] = Some(used);
        used += 1;
    }
    (0..size).map(|unknown| row_of[unknown].map_or(0.0, |row: usize| rows[row][size] / rows[row][unknown])).collect()
}
