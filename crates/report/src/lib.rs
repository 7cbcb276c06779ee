//! Summaries, CSV files, tables, figures, the page and traces for Perfetto, for simulated and live runs alike.

pub mod capacity;
pub mod docs;
pub mod effectiveness;
pub mod faults;
pub mod figure;
pub mod gap;
pub mod json;
pub mod number;
pub mod page;
pub mod perfetto;
mod plot;
pub mod policies;
pub mod priorities;
pub mod recorded;
mod row;
pub mod sheet;
pub mod summary;
pub mod table;
mod text;
pub mod trec;
pub mod validation;
