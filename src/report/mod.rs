//! Summaries, CSV files, tables, plots, the page and traces for Perfetto: the same for simulated and live runs.

pub mod axis;
pub mod capacity;
pub mod compared;
pub mod effectiveness;
pub mod faults;
pub mod json;
pub mod live;
pub mod machine;
pub mod number;
pub mod page;
pub mod perfetto;
#[cfg(feature = "plots")]
pub mod plot;
pub mod source;
pub mod summary;
pub mod table;
pub mod trec;
pub mod validation;
mod wrap;
