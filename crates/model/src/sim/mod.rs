//! Discrete-event simulation of schedulers.
//!
//! [`simulate`] plays arrivals through the [`Dispatcher`](crate::sched::Dispatcher) that also drives real executors; only
//! the clock and the processors are simulated. Policies that serve [queues](crate::sched::FifoQueues) are played without it,
//! with equal rows and several times as fast. [`bounds`] gives rates that no scheduler can exceed, so that a capacity can
//! be read as a share of the possible.
//!
//! Invariant: no clock is read here, and random numbers depend on seeds alone; equal inputs give equal logs, bit for bit.

mod ahead;
mod arrivals;
pub mod bounds;
mod cluster;
mod engine;
mod experiment;
mod fifo_queues;
mod latency_bound;
mod node;
mod table;

pub use arrivals::Arrivals;
pub use cluster::{Cluster, ClusterShape, OtherNodes, Routing, ShardCosts};
pub use engine::{SimRun, drive, simulate, simulate_into};
pub use experiment::{Experiment, SimError};
pub use latency_bound::{LatencyBound, latency_bound};
pub use table::SimQuery;
