//! The contract of a cost model.

use crate::machine::Class;
use crate::query::{Features, Mode};

/// Predicts service times from what is known before a query runs.
pub trait CostModel: Send + Sync {
    /// The predicted service time in microseconds, above zero; `None` where the model knows nothing of this
    /// processor and mode, or not all features are known.
    fn predict_us(&self, kind: Class, mode: Mode, features: &Features) -> Option<f64>;
}
