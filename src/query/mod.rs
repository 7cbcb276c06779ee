//! Queries, query logs, the features that predict their cost, and arrivals.

mod arrival_csv;
mod arrivals;
mod features;
mod mode;
mod query;
mod trace;

pub use arrivals::{ArrivalProcess, Burstiness, Recording, at_rate, check_rate, draw_queries, unit_arrivals};
pub use features::Features;
pub use mode::Mode;
pub use query::{Query, QueryTerm};
pub use trace::Trace;
