//! The interface of cost models.

use super::Inputs;
use crate::base::machine::Class;
use crate::traffic::Mode;

/// Predicts service times from features that are known before a query runs.
pub trait CostModel: Send + Sync {
    /// The predicted service time in microseconds, above zero. It is `None` if the model does not cover this class and mode,
    /// or an input that it reads is unknown.
    fn predict_us(&self, kind: Class, mode: Mode, inputs: &Inputs) -> Option<f64>;
}
