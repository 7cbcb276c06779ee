//! Fitting models to a workload: one a processor kind and mode, and how wrong it is.

use crate::cost::evaluate::{assign_folds, evaluate};
use rayon::prelude::*;

use crate::base::ids::QueryId;
use crate::base::machine::{Class, PerClass};
use crate::cost::inputs::InputSet;
use crate::cost::model_file::{Model, ModelFile};
use crate::cost::models::{FitOptions, Fitted, MAX_DEPTH, Samples};
use crate::cost::study::Of;
use crate::cost::{Evaluation, Inputs, ModelKind, Workload, WorkloadRow};
use crate::query::Mode;

/// How models are fitted and evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainOptions {
    /// The kind of model.
    pub model: ModelKind,
    /// Parts of the cross-validation, at least 2.
    pub folds: usize,
    /// Of a regression tree: most questions before an answer, 1 to 40.
    pub max_depth: u16,
    /// Of a regression tree: fewest samples behind an answer, at least 1.
    pub min_leaf: usize,
    /// Draws the folds, and whatever a fit draws.
    pub seed: u64,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self { model: ModelKind::default(), folds: 10, max_depth: 12, min_leaf: 10, seed: 1 }
    }
}

/// Why no model could be fitted.
#[derive(Debug, thiserror::Error)]
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
    #[error("{kind}, {mode}: {distinct} distinct of {samples} measured queries, too few for {folds} folds")]
    TooFew {
        /// The processor.
        kind: Class,
        /// The mode.
        mode: Mode,
        /// How many there are,
        samples: usize,
        /// and how many different ones.
        distinct: usize,
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
    let fit = |group: &Group| {
        let estimates = group.cross_validate(options)?;
        let model = Model::new(group.kind, group.mode, group.fit(&group.samples, options)?);
        Ok(Model { evaluation: Some(group.evaluate(&estimates, options)), ..model })
    };
    // All are waited for: of several errors the first in order is told, whichever came first.
    let models: Vec<Result<Model, TrainError>> = groups(workload, options)?.par_iter().map(fit).collect();
    let models = models.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut file = ModelFile::new(models, workload.batches.clone());
    for (key, value) in [("model", options.model.to_string()), ("seed", options.seed.to_string())] {
        file.provenance.insert(key.to_owned(), value);
    }
    if matches!(options.model, ModelKind::Cart | ModelKind::Lengths) {
        file.provenance.insert("max_depth".to_owned(), options.max_depth.to_string());
        file.provenance.insert("min_leaf".to_owned(), options.min_leaf.to_string());
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
    let groups = groups(workload, options)?;
    let of_groups: Vec<Result<_, TrainError>> = groups.par_iter().map(|group| group.cross_validate(options)).collect();
    let of_groups = of_groups.into_iter().collect::<Result<Vec<_>, _>>()?;
    for (group, of_group) in groups.iter().zip(of_groups) {
        for (&row, us) in group.rows.iter().zip(of_group.us) {
            estimates[row][group.kind] = Some(us);
        }
    }
    Ok(estimates)
}

/// What models fitted to `measured` say of the queries of `here` on this class of processor, in microseconds, by those
/// inputs that both know; `None` if a mode of theirs was not measured, or nothing is known.
pub(super) fn known_here(measured: &Workload, class: Class, here: &Workload) -> Option<Vec<f64>> {
    let options = TrainOptions::default();
    let inputs: Vec<Inputs> = here.rows.iter().map(WorkloadRow::inputs).collect();
    let known = inputs.iter().fold(InputSet::ALL, |known, inputs| known.and(inputs.known()));
    let groups = groups(measured, &options).ok()?;
    let mut times = vec![None; inputs.len()];
    for group in groups.iter().filter(|group| group.kind == class) {
        let rows: Vec<usize> = (0..inputs.len()).filter(|&row| here.rows[row].mode == group.mode).collect();
        if rows.is_empty() || known.and(group.samples.known()).is_empty() {
            continue;
        }
        let model = group.fit(&group.samples.knowing(known), &options).ok()?;
        for row in rows {
            times[row] = Some(model.predict_us(&inputs[row].0));
        }
    }
    times.into_iter().collect()
}

/// The measured rows of one kind and mode.
pub(super) struct Group {
    pub(super) kind: Class,
    pub(super) mode: Mode,
    /// Positions in the workload.
    pub(super) rows: Vec<usize>,
    pub(super) inputs: Vec<Inputs>,
    pub(super) samples: Samples,
}

/// By sample of a group, what a model that has not seen its fold says.
pub(super) struct Estimates {
    pub(super) us: Vec<f64>,
    pub(super) fold_of: Vec<usize>,
}

/// The groups of a workload, each of at least one row.
pub(super) fn groups(workload: &Workload, options: &TrainOptions) -> Result<Vec<Group>, TrainError> {
    check(options)?;
    let mut groups = Vec::new();
    for kind in Class::ALL {
        for mode in Mode::ALL {
            let (mut rows, mut inputs, mut us) = (Vec::new(), Vec::new(), Vec::new());
            for (i, row) in workload.rows.iter().enumerate().filter(|(_, row)| row.mode == mode) {
                if let Some(measured) = row.measured[kind] {
                    if !row.features.is_complete() {
                        return Err(TrainError::NoFeatures { query: row.query_id, mode });
                    }
                    rows.push(i);
                    inputs.push(row.inputs());
                    us.push(measured.median_us);
                }
            }
            if !rows.is_empty() {
                let samples = Samples::new(&inputs, us);
                groups.push(Group { kind, mode, rows, inputs, samples });
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
    /// What the group is of.
    pub(super) fn of(&self) -> Of {
        Of { kind: self.kind, mode: self.mode }
    }

    /// That it can't be cut into so many folds.
    pub(super) fn too_few(&self, distinct: usize, options: &TrainOptions) -> TrainError {
        let samples = self.samples.len();
        TrainError::TooFew { kind: self.kind, mode: self.mode, samples, distinct, folds: options.folds }
    }

    /// A model of these of its samples.
    pub(super) fn fit(&self, samples: &Samples, options: &TrainOptions) -> Result<Fitted, TrainError> {
        let &TrainOptions { model, max_depth, min_leaf, seed, .. } = options;
        Fitted::fit(samples, &FitOptions { kind: model, max_depth, min_leaf, seed })
            .map_err(|message| TrainError::Fit { kind: self.kind, mode: self.mode, message })
    }

    /// Every sample's estimate by the model that has not seen its fold.
    pub(super) fn cross_validate(&self, options: &TrainOptions) -> Result<Estimates, TrainError> {
        let folds = options.folds;
        let fold_of =
            assign_folds(&self.inputs, folds, options.seed).map_err(|distinct| self.too_few(distinct, options))?;
        let fitted = |fold: usize| {
            let others: Vec<usize> = (0..self.samples.len()).filter(|&i| fold_of[i] != fold).collect();
            self.fit(&self.samples.at(&others), options)
        };
        let models = (0..folds).into_par_iter().map(fitted).collect::<Result<Vec<_>, _>>()?;
        let estimate = |i: usize| models[fold_of[i]].predict_us(&self.samples.rows()[i]);
        Ok(Estimates { us: (0..self.samples.len()).map(estimate).collect(), fold_of })
    }

    /// How wrong estimates are.
    pub(super) fn evaluate(&self, estimates: &Estimates, options: &TrainOptions) -> Evaluation {
        evaluate(self.samples.us(), &estimates.us, &estimates.fold_of, options.folds)
    }
}
