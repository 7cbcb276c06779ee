//! Fitting of one model per processor class and mode to a workload, and its errors.

use crate::cost::evaluate::{assign_folds, evaluate};
use rayon::prelude::*;

use crate::base::ids::QueryId;
use crate::base::machine::{Class, PerClass};
use crate::cost::inputs::InputSet;
use crate::cost::model_file::{Model, ModelFile};
use crate::cost::models::{FitOptions, Fitted, MAX_DEPTH, Samples};
use crate::cost::{Evaluation, Inputs, ModelKind, Workload, WorkloadRow};
use crate::traffic::Mode;

/// The class and mode of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Of {
    /// The class of processor.
    pub kind: Class,
    /// The mode.
    pub mode: Mode,
}

/// Options of fitting and evaluating models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainOptions {
    /// The kind of model.
    pub model: ModelKind,
    /// Number of folds of the cross-validation, at least 2.
    pub folds: usize,
    /// Maximum questions of a regression tree before an answer, 1 to 40.
    pub max_depth: u16,
    /// Minimum samples of a regression tree's answer, at least 1.
    pub min_leaf: usize,
    /// Seed of the folds and of fits.
    pub seed: u64,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self { model: ModelKind::default(), folds: 10, max_depth: 12, min_leaf: 10, seed: 1 }
    }
}

/// Reasons why no model could be fitted.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// An option is out of range.
    #[error("--{option} is {value}, expected {expected}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// Value of the option.
        value: usize,
        /// Expected values.
        expected: String,
    },
    /// No row has a measured time.
    #[error("no query of the workload has a measured time")]
    NothingMeasured,
    /// A query lacks features.
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
    /// There are too few different queries for the folds.
    #[error("{kind}, {mode}: {distinct} distinct of {samples} measured queries, too few for {folds} folds")]
    TooFew {
        /// The processor.
        kind: Class,
        /// The mode.
        mode: Mode,
        /// Number of queries.
        samples: usize,
        /// Number of different queries.
        distinct: usize,
        /// Number of folds.
        folds: usize,
    },
    /// The fit failed.
    #[error("{kind}, {mode}: {message}")]
    Fit {
        /// The processor.
        kind: Class,
        /// The mode.
        mode: Mode,
        /// Message of the library.
        message: String,
    },
}

/// Fits one model to each processor class and mode that the workload measures. Fails if an option is out of range, or
/// there is too little data.
pub fn train(workload: &Workload, options: &TrainOptions) -> Result<ModelFile, TrainError> {
    let fit = |group: &Group| {
        let estimates = group.cross_validate(options)?;
        let model = Model::new(group.kind, group.mode, group.fit(&group.samples, options)?);
        Ok(Model { evaluation: Some(group.evaluate(&estimates, options)), ..model })
    };
    // All fits complete, so that the first error in order is returned, not the first in time.
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
    // A model holds only for the machine that measured the costs, so its provenance is kept.
    for key in ["machine", "cpu", "gpu", "index", "docs"] {
        if let Some(value) = workload.provenance.get(key) {
            file.provenance.insert(format!("workload_{key}"), value.to_owned());
        }
    }
    Ok(file)
}

/// Predictions in microseconds for each row, on each class where it was measured, by models fitted without the row's fold.
/// Their errors are those of a model on unseen queries.
///
/// Errors are those of [`train`].
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

/// Predictions in microseconds for the queries of `here` on this class. The models are fitted to `measured` on the inputs that
/// both workloads know. `None` if one of their modes was not measured, or no input is known.
pub(crate) fn known_here(measured: &Workload, class: Class, here: &Workload) -> Option<Vec<f64>> {
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

pub(crate) struct Group {
    pub(crate) kind: Class,
    pub(crate) mode: Mode,
    pub(crate) rows: Vec<usize>,
    pub(crate) inputs: Vec<Inputs>,
    pub(crate) samples: Samples,
}

/// For each sample of a group, the prediction of a model that has not seen its fold.
pub(crate) struct Estimates {
    pub(crate) us: Vec<f64>,
    pub(crate) fold_of: Vec<usize>,
}

/// The groups of a workload, none of them empty.
pub(crate) fn groups(workload: &Workload, options: &TrainOptions) -> Result<Vec<Group>, TrainError> {
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
    pub(crate) fn of(&self) -> Of {
        Of { kind: self.kind, mode: self.mode }
    }

    pub(crate) fn too_few(&self, distinct: usize, options: &TrainOptions) -> TrainError {
        let samples = self.samples.len();
        TrainError::TooFew { kind: self.kind, mode: self.mode, samples, distinct, folds: options.folds }
    }

    pub(crate) fn fit(&self, samples: &Samples, options: &TrainOptions) -> Result<Fitted, TrainError> {
        let &TrainOptions { model, max_depth, min_leaf, seed, .. } = options;
        Fitted::fit(samples, &FitOptions { kind: model, max_depth, min_leaf, seed })
            .map_err(|message| TrainError::Fit { kind: self.kind, mode: self.mode, message })
    }

    /// Predicts every sample by the model that has not seen its fold.
    pub(crate) fn cross_validate(&self, options: &TrainOptions) -> Result<Estimates, TrainError> {
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

    pub(crate) fn evaluate(&self, estimates: &Estimates, options: &TrainOptions) -> Evaluation {
        evaluate(self.samples.us(), &estimates.us, &estimates.fold_of, options.folds)
    }
}
