//! Queries, query logs, and the features of queries that an index knows.

mod index_features;
mod log;
mod prepared;
mod text;

pub use index_features::Sketch;
pub use log::{
    Log, LogEntry, LogFormat, LogOptions, QueryLog, counted_terms, has_unused_weights, look_up, parse_log,
    prepare_queries, read_log,
};
pub use prepared::{Query, QueryTerm};
pub use text::Text;
