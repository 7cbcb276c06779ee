//! Discrete-event simulation of schedulers.
//!
//! [`simulate`] plays arrivals through the same [`Dispatcher`](crate::sched::Dispatcher) that drives real executors;
//! only the clock and the processors are imagined. Policies that serve [lines](crate::sched::Lines) are played without it,
//! row by row alike and several times as fast. [`bounds`] says what no scheduler at all could exceed, so that a
//! capacity can be read as a share of what is possible, and [`certificate`] at which rates nobody can be late.
//!
//! Invariant: no clock is read here, and random numbers are drawn from seeds alone; equal inputs give equal logs, bit
//! for bit.

mod ahead;
mod arrivals;
pub mod bounds;
pub mod certificate;
mod cluster;
mod engine;
mod experiment;
mod lines;
mod node;
mod table;

pub use arrivals::Arrivals;
pub use cluster::{Cluster, ClusterShape, OtherNodes, Routing, ShardCosts};
pub use engine::{NoMiss, SimQuery, SimRun, drive, simulate, simulate_into};
pub use experiment::{Experiment, SimError};
