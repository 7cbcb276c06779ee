//! Costs of queries: measured samples, and models that predict cost from features.
//!
//! ```text
//! index, queries --profile--> Workload (CSV) --train--> ModelFile (JSON) --predict_us--> scheduler
//! ```

pub mod batches;
pub(crate) mod comment_line;
mod energy;
mod evaluate;
mod inputs;
pub mod machine_profile;
mod model;
mod model_file;
mod models;
mod own_times;
mod parallel;
mod recorded;
mod service;
pub mod shipped;
pub mod study;
mod train;
mod workload;
mod workload_csv;

pub use energy::EnergyMeter;
pub use evaluate::Evaluation;
pub use inputs::Inputs;
pub use machine_profile::{Decisions, MachineProfile};
pub use model::CostModel;
pub use model_file::{Model, ModelFile};
pub use models::ModelKind;
pub use parallel::{Parallelism, SizeClass, SpeedUp};
pub use recorded::{RecordedGpu, replay_gpu_times};
pub use service::{
    BatchCost, BatchLoad, BatchSizes, BatchTime, Cost, Exposed, LeastUse, MachineModel, MeasuredTimes, Preparing,
    Rerun, ServiceTimes,
};
pub use train::{Of, TrainError, TrainOptions, cross_validated_estimates, train};
pub use workload::{Measured, Workload, WorkloadRow};
