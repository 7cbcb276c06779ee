//! Scheduling: policies as pure state machines, and the dispatcher that drives and checks them.
//!
//! A policy is told the time, it never reads it; it sees estimates, never true costs. The simulator and the live
//! driver are two short loops around one [`Dispatcher`]:
//!
//! ```text
//!   arrivals ──Event::Arrive──▶ ┌────────────┐ ──Action::Start──▶ processors (simulated, real or replayed)
//!                               │ Dispatcher │
//!   processors ─Event::Finish─▶ │   Policy   │ ──Action::WakeAt─▶ the loop's clock
//!                               └─────┬──────┘
//!                                     ▼ RunLog
//! ```
//!
//! Invariant: nothing here reads a clock, draws a random number or sees a true service time.

mod best_of;
mod dispatcher;
mod error;
mod events;
mod job;
mod log;
mod log_csv;
mod mct;
mod only;
mod options;
mod policy;
mod registry;
mod stealing;
mod waiting;

pub use best_of::BestOf;
pub use dispatcher::{Action, Dispatcher, Event, LawBroken, Sink};
pub use error::PolicyError;
pub use events::{Due, EventQueue};
pub use job::{Batch, Job};
pub use log::{LogRow, RunLog};
pub use mct::EarliestCompletion;
pub use only::OnlyOn;
pub use options::{PolicyOptions, StealGuard};
pub use policy::{Next, Policy};
pub use registry::PolicyKind;
pub use stealing::Stealing;
