//! What batches cost: measured, fitted, and how wrong the fit is on batches that it has not seen.
//!
//! ```text
//! executor, queries --measure_batches--> [BatchSample] --fit_batches--> BatchModel --batch_cost, cost--> MachineModel
//! ```
//!
//! A [`BatchModel`] belongs to one class of processor. It turns what a query costs alone into what it
//! [adds](crate::cost::Cost) to a batch, and has the constants of the [formula](crate::cost::BatchCost) for the rest.

mod fit;
mod measure;
mod model;

pub(crate) use fit::least_squares;
pub use fit::{Alone, BatchFitError, fit_batches};
pub use measure::{BatchOptions, BatchSample, measure_batches};
pub use model::{BatchModel, BatchModels};
