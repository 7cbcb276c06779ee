//! The fitted model of a class's batches, as files hold it.

use serde::{Deserialize, Serialize};

use crate::cost::{BatchCost, Cost};
use crate::files::Provenance;
use crate::machine::{Class, PerClass};
use crate::query::Mode;
use crate::time::Nanos;

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

    /// Takes in what the comment lines of a file say: `batches_gpu: {...}`.
    ///
    /// # Errors
    /// If such a line does not hold a model: its key, and what is wrong.
    pub fn from_provenance(provenance: &Provenance) -> Result<Self, (String, String)> {
        let mut models = Self::default();
        for class in Class::ALL {
            let key = format!("batches_{class}");
            if let Some(text) = provenance.get(&key) {
                let model = serde_json::from_str(text).map_err(|e| (key, e.to_string()))?;
                models.0[class] = Some(model);
            }
        }
        Ok(models)
    }

    /// The comment lines that say what these models are.
    #[must_use]
    pub fn into_provenance(&self, provenance: Provenance) -> Provenance {
        self.0.iter().fold(provenance, |provenance, (class, model)| match model {
            // Numbers that are finite, and strings, always have a JSON form.
            Some(model) => {
                provenance.with(&format!("batches_{class}"), serde_json::to_string(model).unwrap_or_default())
            }
            None => provenance,
        })
    }

    /// The constants of the classes' batches.
    #[must_use]
    pub fn batch_costs(&self) -> PerClass<Option<BatchCost>> {
        PerClass::from_fn(|class| self.0[class].as_ref().map(|model| model.cost.clone()))
    }
}
