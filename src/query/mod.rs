//! Queries, query logs, the features that predict their cost, and arrivals.

mod features;
mod mode;
mod query;

pub use features::Features;
pub use mode::Mode;
pub use query::{Query, QueryTerm};
