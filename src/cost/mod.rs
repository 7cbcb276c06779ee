//! What queries cost: measured samples, and models that predict cost from features.
//!
//! ```text
//! index, queries --profile--> Workload (CSV) --train--> ModelFile (JSON) --predict_us--> scheduler
//! ```

mod model;
pub mod shipped;
mod workload;
mod workload_csv;

pub use model::CostModel;
pub use workload::{Measured, Workload, WorkloadRow};
