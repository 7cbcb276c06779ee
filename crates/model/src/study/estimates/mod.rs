//! Cost estimates that policies see in place of the true costs.
//!
//! By default a model is fitted to the same workload by cross-validation: the estimate of each query comes from a model
//! that was fitted without it. Estimates thus have the error of unseen queries.

pub(super) mod length_threshold;

use std::path::Path;

use super::StudyError;
use crate::base::machine::{Class, Machine, PerClass};
use crate::cost::{
    CostModel, Measured, ModelFile, ModelKind, TrainOptions, Workload, WorkloadRow, cross_validated_estimates, shipped,
};
use crate::files::InputError;
use crate::sim::SimQuery;

/// Folds of the cross-validation.
const FOLDS: usize = 5;

/// The source of estimates.
#[derive(Clone, Debug)]
pub enum Estimates {
    /// Models of this kind, cross-validated on the workload.
    Fitted(ModelKind),
    /// The measured times in place of estimates.
    Oracle,
    /// The column `predicted_us` of the workload, for CPUs.
    Given,
    /// A model file with its name.
    Model(String, Box<ModelFile>),
}

impl Default for Estimates {
    fn default() -> Self {
        Self::Fitted(ModelKind::default())
    }
}

impl Estimates {
    /// The source of this name: `model` (the default kind), a kind of model, `oracle`, a model file or a shipped model.
    ///
    /// # Errors
    /// If the model cannot be read, or no model of this name ships.
    pub fn named(name: &str) -> Result<Self, InputError> {
        match name {
            "model" => Ok(Self::default()),
            "oracle" => Ok(Self::Oracle),
            name => match ModelKind::from_name(name) {
                Some(kind) => Ok(Self::Fitted(kind)),
                None => Ok(Self::Model(name.to_owned(), Box::new(model_named(name)?))),
            },
        }
    }

    /// The name in options.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Fitted(kind) if *kind == ModelKind::default() => "model",
            Self::Fitted(kind) => kind.name(),
            Self::Oracle => "oracle",
            Self::Given => "predicted_us",
            Self::Model(name, _) => name,
        }
    }

    /// These estimates, or others and a reason: the user's own in place of the default, or the measured times if no model can be
    /// fitted to the workload.
    #[must_use]
    pub fn suited_to(self, workload: &Workload) -> (Self, Option<String>) {
        if !matches!(self, Self::Fitted(_)) {
            return (self, None);
        }
        if self.name() == "model" && workload.rows.iter().any(|row| row.predicted_us.is_some()) {
            return (Self::Given, Some(String::from("the workload has predictions")));
        }
        if !workload.has_features() {
            return (Self::Oracle, Some(String::from("the workload has service times only")));
        }
        let different = workload.distinct_queries();
        if different >= FOLDS {
            return (self, None);
        }
        let why = format!("a model needs {FOLDS} different queries, the workload has {different}");
        (Self::Oracle, Some(why))
    }

    /// Estimated microseconds of each row alone, by class; `None` if unknown.
    ///
    /// # Errors
    /// If no model can be fitted.
    pub fn alone_us(&self, workload: &Workload) -> Result<Vec<PerClass<Option<f64>>>, StudyError> {
        match self {
            Self::Oracle => Ok(workload.rows.iter().map(|row| measured_us(&row.measured)).collect()),
            Self::Given => Ok(workload.rows.iter().map(|row| PerClass::two(row.predicted_us, None)).collect()),
            _ if !workload.has_features() => Err(StudyError::NoFeatures { estimates: self.name().to_owned() }),
            &Self::Fitted(model) => {
                let options = TrainOptions { model, folds: FOLDS, ..TrainOptions::default() };
                cross_validated_estimates(workload, &options).map_err(StudyError::NoModel)
            }
            Self::Model(_, models) => {
                let predict = |row: &WorkloadRow| {
                    let inputs = row.inputs();
                    PerClass::from_fn(|class| models.predict_us(class, row.mode, &inputs))
                };
                Ok(workload.rows.iter().map(predict).collect())
            }
        }
    }
}

/// The queries of a workload for the simulator: true costs and estimates.
///
/// # Errors
/// If a query has no measurement or estimate on a class of the machine, or no model can be fitted.
pub fn sim_queries(workload: &Workload, estimates: &Estimates, machine: &Machine) -> Result<Vec<SimQuery>, StudyError> {
    estimated_queries(workload, estimates, machine, || estimates.alone_us(workload))
}

/// [`sim_queries`] with estimated microseconds of each row that were [made before](Estimates::alone_us).
pub(in crate::study) fn estimated_queries(
    workload: &Workload,
    estimates: &Estimates,
    machine: &Machine,
    alone_us: impl FnOnce() -> Result<Vec<PerClass<Option<f64>>>, StudyError>,
) -> Result<Vec<SimQuery>, StudyError> {
    let classes: Vec<Class> = machine.classes().collect();
    for row in &workload.rows {
        if let Some(&class) = classes.iter().find(|&&class| row.measured[class].is_none()) {
            return Err(StudyError::NotMeasured { query: row.query_id, mode: row.mode, class });
        }
    }
    let costs = |row: &WorkloadRow, alone_us: PerClass<Option<f64>>| {
        let known = PerClass::from_fn(|class| alone_us[class].filter(|_| classes.contains(&class)));
        workload.batches.costs(row.mode, known)
    };
    let rows = workload.rows.iter().zip(alone_us()?);
    rows.map(|(row, alone_us)| {
        if let Some(&class) = classes.iter().find(|&&class| alone_us[class].is_none()) {
            let estimates = estimates.name().to_owned();
            return Err(StudyError::NoEstimate { estimates, query: row.query_id, mode: row.mode, class });
        }
        Ok(SimQuery {
            id: row.query_id,
            service: costs(row, measured_us(&row.measured)),
            estimate: costs(row, alone_us),
        })
    })
    .collect()
}

/// The model file of this name, else the shipped model.
fn model_named(name: &str) -> Result<ModelFile, InputError> {
    let path = Path::new(name);
    if path.exists() {
        return ModelFile::read(path);
    }
    // A name with an extension means a file, so its absence is reported.
    shipped::model(name).or_else(|e| if path.extension().is_some() { ModelFile::read(path) } else { Err(e) })
}

fn measured_us(measured: &PerClass<Option<Measured>>) -> PerClass<Option<f64>> {
    PerClass::from_fn(|class| measured[class].map(|time| time.median_us))
}
