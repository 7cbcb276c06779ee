//! Discrete-event simulation of schedulers.
//!
//! [`simulate`] plays arrivals through the same [`Dispatcher`](crate::sched::Dispatcher) that drives real executors;
//! only the clock and the processors are imagined. [`find_capacity`] looks for the highest rate that keeps every
//! deadline, and [`bounds`] says what no scheduler at all could exceed, so that a capacity can be read as a share of
//! what is possible.
//!
//! Invariant: no clock is read here and no random number drawn; equal inputs give equal logs, bit for bit.

pub mod bounds;
mod capacity;
mod certificate;
mod engine;
mod experiment;

pub use capacity::{Capacity, Grid, find_capacity};
pub use engine::{NoMiss, SimQuery, SimRun, drive, measured_times, simulate, simulate_into};
pub use experiment::{Arrivals, Experiment, SimError};
