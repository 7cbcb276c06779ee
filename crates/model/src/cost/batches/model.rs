//! The fitted model of a class's batches in its file form.

use serde::{Deserialize, Serialize};

use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::cost::{BatchCost, Cost, comment_line};
use crate::files::Provenance;
use crate::traffic::Mode;

/// Prefix of the keys of comment lines that hold models.
const KEY: &str = "batches_";

/// Costs of batches on one class of processor, and of each query in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchModel {
    /// Part of a query's time alone that a batch does not share out, in microseconds: launch, copies, waiting.
    pub overhead_us: f64,
    /// Share of a query's remaining time alone that it adds to a large batch in mode `and`.
    pub added_and: f64,
    /// The share in mode `or`.
    pub added_or: f64,
    /// The share in mode `and-or`.
    pub added_and_or: f64,
    /// The formula's constants.
    pub cost: BatchCost,
    /// Batches that were measured.
    pub samples: usize,
    /// Mean of |predicted - measured| / measured, over batches that the fit has not seen.
    pub mean_relative_error: f64,
    /// 95th percentile of |predicted - measured| / measured, over the same batches.
    pub p95_relative_error: f64,
}

impl BatchModel {
    /// Share of a query's time alone, beyond the overhead, that it adds to a large batch.
    pub fn added_share(&self, mode: Mode) -> f64 {
        match mode {
            Mode::And => self.added_and,
            Mode::Or => self.added_or,
            Mode::AndOr => self.added_and_or,
        }
    }

    /// Checks every number.
    ///
    /// # Errors
    /// Names the first invalid number and its valid values.
    pub fn check(&self) -> Result<(), String> {
        let times = [
            ("overhead_us", self.overhead_us),
            ("added_and", self.added_and),
            ("added_or", self.added_or),
            ("added_and_or", self.added_and_or),
        ];
        if let Some((name, value)) = times.into_iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0)) {
            return Err(format!("{name} is {value}, expected a number from 0"));
        }
        self.cost.check()
    }

    /// The cost of a query whose time alone is `alone`.
    pub fn cost(&self, alone: Nanos, mode: Mode) -> Cost {
        let shared = alone.since(Nanos::from_us(self.overhead_us));
        Cost { alone, added: shared.scaled(self.added_share(mode)).min(alone) }
    }
}

/// The batch models of a machine's classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchModels(pub PerClass<Option<BatchModel>>);

impl BatchModels {
    /// The cost on `class` of a query whose time alone there is `alone`.
    pub fn cost(&self, class: Class, alone: Nanos, mode: Mode) -> Cost {
        match &self.0[class] {
            Some(model) => model.cost(alone, mode),
            None => Cost::alone(alone),
        }
    }

    /// The cost of a query from its time alone on each class, in microseconds; [`Cost::NEVER`] where that is unknown.
    pub fn costs(&self, mode: Mode, alone_us: PerClass<Option<f64>>) -> PerClass<Cost> {
        PerClass::from_fn(|class| match alone_us[class] {
            Some(us) => self.cost(class, Nanos::from_us(us), mode),
            None => Cost::NEVER,
        })
    }

    /// Takes the models out of the comment lines of a file: `batches_gpu: {...}`. Fails if such a line does not hold a
    /// model, with its key and the fault.
    pub fn take_from(provenance: &mut Provenance) -> Result<Self, String> {
        let mut models = Self::default();
        for class in Class::ALL {
            models.0[class] = comment_line::take(provenance, &format!("{KEY}{class}"), BatchModel::check)?;
        }
        *provenance = provenance.without(KEY);
        Ok(models)
    }

    /// The comment lines with these models, which replace older ones.
    pub fn in_provenance(&self, provenance: &Provenance) -> Provenance {
        self.0.iter().fold(provenance.without(KEY), |provenance, (class, model)| {
            comment_line::with(&provenance, &format!("{KEY}{class}"), model.as_ref())
        })
    }

    /// The constants of the classes' batches.
    pub fn batch_costs(&self) -> PerClass<Option<BatchCost>> {
        PerClass::from_fn(|class| self.0[class].as_ref().map(|model| model.cost.clone()))
    }
}
