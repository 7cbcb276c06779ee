//! Costs of batches: measurements, fitted models, and their errors on unseen batches.
//!
//! ```text
//! executor, queries --measure_batches--> [BatchSample] --fit_batches--> BatchModel --batch_cost, cost--> MachineModel
//! ```
//!
//! A [`BatchModel`] belongs to one class of processor. It maps a query's cost alone to the cost that the query
//! [adds](crate::cost::Cost) to a batch. It also holds the constants of the [formula](crate::cost::BatchCost) for the rest.

mod fit;
mod measure;
mod model;

pub(crate) use fit::least_squares;
pub use fit::{Alone, BatchFitError, fit_batches};
pub use measure::{BatchOptions, BatchSample, measure_batches};
pub use model::{BatchModel, BatchModels};
