//! Fitting models to a workload: one tree a processor kind and mode, and how wrong it is.

use crate::cost::evaluate::{assign_folds, evaluate};
use crate::cost::model_file::{Model, ModelFile};
use crate::cost::tree::{MAX_DEPTH, Tree};
use crate::cost::{Evaluation, Workload};
use crate::ids::QueryId;
use crate::machine::{Class, PerClass};
use crate::query::{Features, Mode};
use crate::random::{exp, ln};

/// How trees are fitted and evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainOptions {
    /// Parts of the cross-validation, at least 2.
    pub folds: usize,
    /// Most questions before an answer, 1 to 40.
    pub max_depth: u16,
    /// Fewest samples behind an answer, at least 1.
    pub min_leaf: usize,
    /// Draws the folds.
    pub seed: u64,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self { folds: 10, max_depth: 12, min_leaf: 10, seed: 1 }
    }
}

/// Why no model could be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// An option is out of range.
    #[error("--{option} is {value}, expected {expected}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What it is.
        value: usize,
        /// What it should be.
        expected: String,
    },
    /// No row has a measured time.
    #[error("no query of the workload has a measured time")]
    NothingMeasured,
    /// A query has no features to fit to.
    #[error(
        "query {query} ({mode}): `longest`, `blocks`, `and_blocks` or `expected_matches` is missing and does not follow from the \
         other columns (it does up to three terms, with a line `# docs: ...`); a model needs them, measured times as \
         estimates (oracle) don't"
    )]
    NoFeatures {
        /// The query.
        query: QueryId,
        /// How its terms combine.
        mode: Mode,
    },
    /// Too few different queries to hold some back.
    #[error("{kind}, {mode}: {samples} measured queries (equal ones count once), too few for {folds} folds")]
    TooFew {
        /// The processor.
        kind: Class,
        /// The mode.
        mode: Mode,
        /// How many there are.
        samples: usize,
        /// How many parts were asked for.
        folds: usize,
    },
    /// The fit itself failed.
    #[error("{kind}, {mode}: {message}")]
    Fit {
        /// The processor.
        kind: Class,
        /// The mode.
        mode: Mode,
        /// What the library said.
        message: String,
    },
}

/// Fits one model to each processor kind and mode that the workload measures.
///
/// # Errors
/// If an option is out of range, or there is too little to learn from.
pub fn train(workload: &Workload, options: &TrainOptions) -> Result<ModelFile, TrainError> {
    let mut models = Vec::new();
    for group in groups(workload, options)? {
        let (evaluation, _) = group.cross_validate(options)?;
        let tree = group.fit(&group.all(), options)?;
        models.push(Model { kind: group.kind, mode: group.mode, tree, evaluation: Some(evaluation) });
    }
    let mut file = ModelFile::new(models, workload.batches.clone());
    for (key, value) in [
        ("seed", options.seed.to_string()),
        ("max_depth", options.max_depth.to_string()),
        ("min_leaf", options.min_leaf.to_string()),
    ] {
        file.provenance.insert(key.to_owned(), value);
    }
    // Where the costs were measured belongs to the model: it holds on that machine only.
    for key in ["machine", "cpu", "gpu", "index", "docs"] {
        if let Some(value) = workload.provenance.get(key) {
            file.provenance.insert(format!("workload_{key}"), value.to_owned());
        }
    }
    Ok(file)
}

/// For each row, what a model that was fitted without its fold predicts, in microseconds, on each kind where the row
/// was measured: estimates as wrong as those of a model for queries that it has not seen.
///
/// # Errors
/// As [`train`].
pub fn cross_validated_estimates(
    workload: &Workload,
    options: &TrainOptions,
) -> Result<Vec<PerClass<Option<f64>>>, TrainError> {
    let mut estimates = vec![PerClass::default(); workload.rows.len()];
    for group in groups(workload, options)? {
        let (_, estimates_us) = group.cross_validate(options)?;
        for (&row, us) in group.rows.iter().zip(estimates_us) {
            estimates[row][group.kind] = Some(us);
        }
    }
    Ok(estimates)
}

/// The measured rows of one kind and mode.
struct Group {
    kind: Class,
    mode: Mode,
    /// Positions in the workload.
    rows: Vec<usize>,
    samples: Vec<[f64; Features::COUNT]>,
    true_us: Vec<f64>,
}

fn groups(workload: &Workload, options: &TrainOptions) -> Result<Vec<Group>, TrainError> {
    check(options)?;
    let mut groups = Vec::new();
    for kind in Class::ALL {
        for mode in Mode::ALL {
            let mut group = Group { kind, mode, rows: Vec::new(), samples: Vec::new(), true_us: Vec::new() };
            for (i, row) in workload.rows.iter().enumerate().filter(|(_, row)| row.mode == mode) {
                if let Some(measured) = row.measured[kind] {
                    if !row.features.is_complete() {
                        return Err(TrainError::NoFeatures { query: row.query_id, mode });
                    }
                    group.rows.push(i);
                    group.samples.push(row.features.vector());
                    group.true_us.push(measured.median_us);
                }
            }
            if !group.rows.is_empty() {
                groups.push(group);
            }
        }
    }
    if groups.is_empty() { Err(TrainError::NothingMeasured) } else { Ok(groups) }
}

fn check(options: &TrainOptions) -> Result<(), TrainError> {
    let out_of_range =
        |option, value, expected: &str| TrainError::Option { option, value, expected: expected.to_owned() };
    if options.folds < 2 {
        return Err(out_of_range("folds", options.folds, "2 or more"));
    }
    if options.max_depth == 0 || options.max_depth > MAX_DEPTH {
        return Err(out_of_range("max-depth", options.max_depth.into(), &format!("1 to {MAX_DEPTH}")));
    }
    if options.min_leaf == 0 {
        return Err(out_of_range("min-leaf", options.min_leaf, "1 or more"));
    }
    Ok(())
}

impl Group {
    fn all(&self) -> Vec<usize> {
        (0..self.rows.len()).collect()
    }

    /// Fits a tree to the samples at these positions.
    fn fit(&self, chosen: &[usize], options: &TrainOptions) -> Result<Tree, TrainError> {
        let samples: Vec<_> = chosen.iter().map(|&i| self.samples[i]).collect();
        let targets: Vec<f64> = chosen.iter().map(|&i| ln(self.true_us[i])).collect();
        Tree::fit(&samples, &targets, options.max_depth, options.min_leaf).map_err(|message| TrainError::Fit {
            kind: self.kind,
            mode: self.mode,
            message,
        })
    }

    /// The evaluation, and every sample's estimate by the tree that has not seen its fold.
    fn cross_validate(&self, options: &TrainOptions) -> Result<(Evaluation, Vec<f64>), TrainError> {
        let folds = options.folds;
        let fold_of = assign_folds(&self.samples, folds, options.seed).ok_or(TrainError::TooFew {
            kind: self.kind,
            mode: self.mode,
            samples: self.samples.len(),
            folds,
        })?;
        let mut estimates_us = vec![0.0; self.rows.len()];
        for fold in 0..folds {
            let (held_back, others): (Vec<usize>, Vec<usize>) =
                self.all().into_iter().partition(|&i| fold_of[i] == fold);
            let tree = self.fit(&others, options)?;
            for i in held_back {
                estimates_us[i] = exp(tree.predict(&self.samples[i]));
            }
        }
        Ok((evaluate(&self.true_us, &estimates_us, &fold_of, folds), estimates_us))
    }
}
