//! The interface of cost models.

use super::Inputs;
use crate::base::machine::Class;
use crate::query::Mode;

/// Predicts service times from features that are known before a query runs.
pub trait CostModel: Send + Sync {
    /// The predicted service time in microseconds, above zero. `None` if the model does not cover this processor class
    /// and mode, or inputs that it reads are unknown.
    fn predict_us(&self, kind: Class, mode: Mode, inputs: &Inputs) -> Option<f64>;
}
