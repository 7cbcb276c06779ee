//! What a policy is told of each query's cost, beside what the query really takes.
//!
//! A policy never sees the second. Where no model is named, one is fitted to the very workload that is then played, and
//! each query is estimated by one that was fitted without it: the error is that of queries never seen.

pub(super) mod length_threshold;
pub(super) mod regret;

use std::path::Path;

use super::LabError;
use crate::base::machine::{Class, Machine, PerClass};
use crate::cost::{
    CostModel, Measured, ModelFile, ModelKind, TrainOptions, Workload, WorkloadRow, cross_validated_estimates, shipped,
};
use crate::files::InputError;
use crate::sim::SimQuery;

/// Parts of the cross-validation.
const FOLDS: usize = 5;

/// Where estimates come from.
#[derive(Clone, Debug)]
pub enum Estimates {
    /// Models of this kind fitted to the workload, each query's without it.
    Fitted(ModelKind),
    /// The measured times.
    Oracle,
    /// A model of this name.
    Model(String, Box<ModelFile>),
}

impl Default for Estimates {
    fn default() -> Self {
        Self::Fitted(ModelKind::default())
    }
}

impl Estimates {
    /// `model` (the default kind), a kind of model, `oracle`, a model file, or the name of a model that ships.
    ///
    /// # Errors
    /// If the model can't be read, or none of this name ships.
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

    /// The name it is asked for by.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Fitted(kind) if *kind == ModelKind::default() => "model",
            Self::Fitted(kind) => kind.name(),
            Self::Oracle => "oracle",
            Self::Model(name, _) => name,
        }
    }

    /// These, or the measured times where no model can be fitted, to so few different queries or to service times only; and then
    /// why.
    #[must_use]
    pub fn suited_to(self, workload: &Workload) -> (Self, Option<String>) {
        if !matches!(self, Self::Fitted(_)) {
            return (self, None);
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

    /// By row of the workload: estimated microseconds alone on each class; `None` where nothing is known.
    fn alone_us(&self, workload: &Workload) -> Result<Vec<PerClass<Option<f64>>>, LabError> {
        match self {
            Self::Oracle => Ok(workload.rows.iter().map(|row| measured_us(&row.measured)).collect()),
            _ if !workload.has_features() => Err(LabError::NoFeatures { estimates: self.name().to_owned() }),
            &Self::Fitted(model) => {
                let options = TrainOptions { model, folds: FOLDS, ..TrainOptions::default() };
                cross_validated_estimates(workload, &options).map_err(LabError::NoModel)
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

/// The workload's queries as `machine` is simulated with them: what each takes, and what policies are told.
///
/// # Errors
/// If a query lacks a measurement or an estimate on a class that the machine has, or no model can be fitted.
pub fn sim_queries(workload: &Workload, estimates: &Estimates, machine: &Machine) -> Result<Vec<SimQuery>, LabError> {
    let classes: Vec<Class> = machine.classes().collect();
    for row in &workload.rows {
        if let Some(&class) = classes.iter().find(|&&class| row.measured[class].is_none()) {
            return Err(LabError::NotMeasured { query: row.query_id, mode: row.mode, class });
        }
    }
    let costs = |row: &WorkloadRow, alone_us: PerClass<Option<f64>>| {
        let known = PerClass::from_fn(|class| alone_us[class].filter(|_| classes.contains(&class)));
        workload.batches.costs(row.mode, known)
    };
    let rows = workload.rows.iter().zip(estimates.alone_us(workload)?);
    rows.map(|(row, alone_us)| {
        if let Some(&class) = classes.iter().find(|&&class| alone_us[class].is_none()) {
            let estimates = estimates.name().to_owned();
            return Err(LabError::NoEstimate { estimates, query: row.query_id, mode: row.mode, class });
        }
        Ok(SimQuery {
            id: row.query_id,
            service: costs(row, measured_us(&row.measured)),
            estimate: costs(row, alone_us),
        })
    })
    .collect()
}

/// The model file of this name, else the shipped one.
fn model_named(name: &str) -> Result<ModelFile, InputError> {
    let path = Path::new(name);
    if path.exists() {
        return ModelFile::read(path);
    }
    // A name with an extension is surely meant as a file: its absence is then what to report.
    shipped::model(name).or_else(|e| if path.extension().is_some() { ModelFile::read(path) } else { Err(e) })
}

fn measured_us(measured: &PerClass<Option<Measured>>) -> PerClass<Option<f64>> {
    PerClass::from_fn(|class| measured[class].map(|time| time.median_us))
}
