//! What arrives at a node: arrival processes, recordings and traces, priorities, and the features that predict costs.

mod arrival_csv;
mod arrivals;
mod course;
mod features;
mod index_features;
mod mode;
mod priorities;
mod recording;
mod shipped;
mod trace;
mod trace_summary;

pub use arrivals::{
    ArrivalProcess, QueryDraws, Stretch, TimeScale, UnitTimes, check_rate, draw_queries, unit_arrivals,
};
pub use course::Burstiness;
pub use features::Features;
pub use index_features::{IndexFeatures, with_index_features};
pub use mode::Mode;
pub use priorities::{Priorities, Priority, RunPriorities};
pub use recording::{Recording, Replay};
pub use shipped::trace_names;
pub use trace::Trace;
pub use trace_summary::TraceSummary;
