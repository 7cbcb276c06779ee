//! Costs of batches: fitted models, and their errors on unseen batches.
//!
//! ```text
//! [BatchSample] --fit_batches--> BatchModel --batch_cost, cost--> MachineModel
//! ```
//!
//! A [`BatchModel`] belongs to one class of processor. It maps a query's cost alone to the cost that the query
//! [adds](crate::cost::Cost) to a batch. It also holds the constants of the [formula](crate::cost::BatchCost) for the rest.

mod fit;
mod model;

pub use fit::{Alone, BatchFitError, BatchSample, fit_batches, least_squares};
pub use model::{BatchModel, BatchModels};
