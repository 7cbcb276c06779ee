//! The fitted model of a class's batches, as files hold it.

use serde::{Deserialize, Serialize};

use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::cost::{BatchCost, Cost, comment_line};
use crate::files::Provenance;
use crate::query::Mode;

/// How the keys of comment lines that hold models begin.
const KEY: &str = "batches_";

/// What batches cost on one class of processor, and what each query brings to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchModel {
    /// What a query alone takes besides the work that a batch shares out, in microseconds: launch, copies, waiting.
    pub overhead_us: f64,
    /// What a microsecond of a query's remaining time alone adds to a large batch, by mode: `and`, `or`, `and-or`.
    pub added_and: f64,
    /// See [`added_and`](Self::added_and).
    pub added_or: f64,
    /// See [`added_and`](Self::added_and).
    pub added_and_or: f64,
    /// The formula's constants.
    pub cost: BatchCost,
    /// Batches that were measured.
    pub samples: usize,
    /// Mean of |predicted - measured| / measured, over batches that the fit had not seen.
    pub mean_relative_error: f64,
    /// The 95th percentile of the same.
    pub p95_relative_error: f64,
}

impl BatchModel {
    /// What a microsecond of a query's time alone, beyond the overhead, adds to a large batch.
    #[must_use]
    pub fn added_share(&self, mode: Mode) -> f64 {
        match mode {
            Mode::And => self.added_and,
            Mode::Or => self.added_or,
            Mode::AndOr => self.added_and_or,
        }
    }

    /// Whether every number makes sense.
    ///
    /// # Errors
    /// Names the first that does not, with what would.
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

    /// What a query that takes `alone` by itself costs.
    #[must_use]
    pub fn cost(&self, alone: Nanos, mode: Mode) -> Cost {
        let shared = alone.since(Nanos::from_us(self.overhead_us));
        Cost { alone, added: shared.scaled(self.added_share(mode)).min(alone) }
    }
}

/// The batch models of a machine's classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchModels(pub PerClass<Option<BatchModel>>);

impl BatchModels {
    /// What a query that takes `alone` by itself on `class` costs there.
    #[must_use]
    pub fn cost(&self, class: Class, alone: Nanos, mode: Mode) -> Cost {
        match &self.0[class] {
            Some(model) => model.cost(alone, mode),
            None => Cost::alone(alone),
        }
    }

    /// What a query costs that takes so many microseconds by itself on each class; [`Cost::NEVER`] where that is unknown.
    #[must_use]
    pub fn costs(&self, mode: Mode, alone_us: PerClass<Option<f64>>) -> PerClass<Cost> {
        PerClass::from_fn(|class| match alone_us[class] {
            Some(us) => self.cost(class, Nanos::from_us(us), mode),
            None => Cost::NEVER,
        })
    }

    /// Takes the models out of the comment lines of a file: `batches_gpu: {...}`.
    ///
    /// # Errors
    /// If such a line does not hold a model: which, and what is wrong.
    pub fn take_from(provenance: &mut Provenance) -> Result<Self, String> {
        let mut models = Self::default();
        for class in Class::ALL {
            models.0[class] = comment_line::take(provenance, &format!("{KEY}{class}"), BatchModel::check)?;
        }
        *provenance = provenance.without(KEY);
        Ok(models)
    }

    /// The comment lines with those that say what these models are, in the place of what they said before.
    #[must_use]
    pub fn in_provenance(&self, provenance: &Provenance) -> Provenance {
        self.0.iter().fold(provenance.without(KEY), |provenance, (class, model)| {
            comment_line::with(&provenance, &format!("{KEY}{class}"), model.as_ref())
        })
    }

    /// The constants of the classes' batches.
    #[must_use]
    pub fn batch_costs(&self) -> PerClass<Option<BatchCost>> {
        PerClass::from_fn(|class| self.0[class].as_ref().map(|model| model.cost.clone()))
    }
}
