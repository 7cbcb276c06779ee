//! What queries cost: measured samples, and models that predict cost from features.

mod model;
mod workload;

pub use model::CostModel;
pub use workload::{Measured, Workload, WorkloadRow};
