//! Scheduling: policies as pure state machines, and the dispatcher that drives and checks them.
//!
//! A policy is told the time, it never reads it; it sees estimates, never true costs. The simulator and the live
//! driver are two short loops around one [`Dispatcher`]:
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

mod adaptive;
mod batching;
mod best_of;
mod cached_first;
mod combined;
mod dispatch;
mod factory;
mod forecast;
mod greedy;
mod job;
mod lines;
mod log;
mod mct;
mod only;
mod options;
mod order;
mod policy;
mod registry;
mod shedding;
mod static_split;
mod stealing;
mod stealing_adaptive;
mod stealing_published;
mod window;

pub use adaptive::Adaptive;
pub use best_of::BestOf;
pub use cached_first::CachedFirst;
pub use combined::Combined;
pub use dispatch::{Action, Dispatcher, Due, EventQueue, Jobs, LawBroken, Sink};
pub use factory::{PolicyFactory, Promise};
pub use greedy::Greedy;
pub use job::{Job, preferred_class};
pub use lines::{Joining, Line, Lines};
pub use log::{LogRow, RunLog, ShedJob};
pub use mct::EarliestCompletion;
pub use only::OnlyOn;
pub use options::{PolicyOptions, StealGuard};
pub use policy::{Lane, LanesToPoll, Next, Policy, PolicyError};
pub use registry::{BuiltIn, PolicyKind};
pub use shedding::Shed;
pub use static_split::{ByCoin, ByLength, LengthBased, RandomSplit, Side, SplitRule, StaticSplit};
pub use stealing::Stealing;
pub use stealing_adaptive::StealingAdaptive;
pub use stealing_published::StealingPublished;
pub use window::Window;
