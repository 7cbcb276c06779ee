//! Summaries, CSV files, tables and plots: the same for simulated and live runs.

pub mod capacity;
pub mod effectiveness;
pub mod live;
pub mod number;
#[cfg(feature = "plots")]
pub mod plot;
pub mod source;
pub mod summary;
pub mod table;
pub mod trec;
pub mod validation;
