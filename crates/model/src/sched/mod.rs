//! Scheduling: policies as pure state machines, and the dispatcher that drives and checks them.
//!
//! A policy receives the time and never reads a clock; it sees estimates, never true costs. The simulator and the live driver
//! are two short loops around one [`Dispatcher`]:
//!
//! ```text
//!   arrivals ──arrive──▶ ┌────────────┐ ──Action::Start──▶ processors (simulated, real or replayed)
//!                        │ Dispatcher │
//!   processors ─finish─▶ │   Policy   │ ──Action::WakeAt─▶ the loop's clock
//!                        └─────┬──────┘
//!                              ▼ RunLog
//! ```
//!
//! Invariant: nothing here reads a clock, draws a random number or sees a true service time.

mod batching;
mod dispatch;
mod factory;
mod fifo_queues;
mod forecast;
mod job;
mod log;
mod options;
mod order;
mod policy;
mod registry;
mod sharing;
mod shedding;

// Policies. A new policy needs a file with an entry, its `mod` line and its line in the list.
mod adaptive;
mod best_of;
mod cached_first;
mod combined;
mod delayed_prediction;
mod edf;
mod few_to_many;
mod greedy;
mod least_slack;
mod mct;
mod only;
mod predictive;
mod static_split;
mod stealing;
mod stealing_adaptive;
mod stealing_published;
mod tail;
mod window;

// The order is that of tables and figures.
registry::policies! {
    GpuOnly = only::GPU_ONLY,
    CpuOnly = only::CPU_ONLY,
    BestOf = best_of::ENTRY,
    Stealing = stealing::ENTRY,
    Mct = mct::ENTRY,
    Greedy = greedy::ENTRY,
    Window = window::ENTRY,
    Adaptive = adaptive::ENTRY,
    Combined = combined::ENTRY,
    StealingPublished = stealing_published::ENTRY,
    LengthBased = static_split::LENGTH_BASED,
    RandomSplit = static_split::RANDOM_SPLIT,
    StealingAdaptive = stealing_adaptive::ENTRY,
    CachedFirst = cached_first::ENTRY,
    Edf = edf::ENTRY,
    LeastSlack = least_slack::ENTRY,
    Predictive = predictive::ENTRY,
    FewToMany = few_to_many::ENTRY,
    DelayedPrediction = delayed_prediction::ENTRY,
    Tail = tail::ENTRY,
}

pub use dispatch::{Action, Dispatcher, Due, EventQueue, Jobs, Join, LawBroken};
pub use factory::PolicyFactory;
pub use fifo_queues::{FifoQueues, QueueServers, QueuedJob};
pub use job::{Job, Shed, preferred_class};
pub use log::{LogRow, RunLog, ShedJob, Sink};
pub use options::{PolicyOptions, StealGuard};
pub use policy::{Lane, LanesToPoll, Next, Policy, PolicyError};
pub use registry::BuiltIn;
