//! Queries, query logs, the features that predict their cost, and arrivals.

mod arrival_csv;
mod arrivals;
mod course;
mod features;
mod index_features;
mod log;
mod mode;
mod prepared;
mod priorities;
mod recording;
mod shipped;
mod trace;
mod trace_summary;

pub use arrivals::{
    ArrivalProcess, Burstiness, QueryDraws, Stretch, TimeScale, UnitTimes, check_rate, draw_queries, unit_arrivals,
};
pub use features::Features;
pub(crate) use index_features::with_index_features;
pub use index_features::{IndexFeatures, Sketch};
pub use log::{
    Log, LogEntry, LogFormat, LogOptions, QueryLog, counted_terms, has_unused_weights, look_up, parse_log,
    prepare_queries, read_log,
};
pub use mode::Mode;
pub use prepared::{Query, QueryTerm};
pub use priorities::{Priorities, Priority, RunPriorities};
pub use recording::{Recording, Replay};
pub use shipped::trace_names;
pub use trace::Trace;
pub use trace_summary::TraceSummary;
