//! Summaries, CSV files, tables, figures, the page and traces for Perfetto: the same for simulated and live runs.

pub mod capacity;
pub mod effectiveness;
pub mod faults;
pub mod json;
pub mod machine;
pub mod number;
#[cfg(feature = "plots")]
pub mod page;
pub mod perfetto;
#[cfg(feature = "plots")]
pub mod plot;
pub mod policies;
pub mod sheet;
pub mod summary;
pub mod table;
mod text;
pub mod trec;
pub mod validation;
