//! The contract of a cost model.

use super::Inputs;
use crate::base::machine::Class;
use crate::query::Mode;

/// Predicts service times from what is known before a query runs.
pub trait CostModel: Send + Sync {
    /// The predicted service time in microseconds, above zero; `None` where the model knows nothing of this
    /// processor and mode, or what it asks for is not known.
    fn predict_us(&self, kind: Class, mode: Mode, inputs: &Inputs) -> Option<f64>;
}
