//! Measuring the parts against this machine's own limits.
//!
//! The machines that one measures on are shared, and drift by a factor of two for tens of seconds. So whatever is
//! compared takes turns in short rounds, and of each piece of work the least time over the rounds counts: a disturbance
//! must hit a piece in every round to be seen.
//!
//! | file | what it measures |
//! | --- | --- |
//! | `blocks.rs` | how fast an index's own blocks are decoded |
//! | `dispatcher.rs` | how many jobs a second one dispatcher carries under each policy |
//! | `estimates.rs` | what a query's estimate costs: its features, and predictions from them |
//! | `ingest.rs` | what some cores answer while others index |
//! | `memory.rs` | how fast one thread, and all of them, copy memory: what any decoder is bounded by |
//! | `operators.rs` | what each way to answer a query costs, query by query |
//! | `peak.rs` | the most memory that this process has had |
//! | `simpy.rs` | the same question asked of SimPy, in a process of its own |
//! | `simulator.rs` | what a simulated query costs under each policy |
//! | `single_server.rs` | the simulator beside Lindley's recursion, wait for wait |
//! | `sizes.rs` | what the parts of an index take |

mod blocks;
mod dispatcher;
mod estimates;
mod ingest;
mod memory;
mod operators;
mod peak;
mod simpy;
mod simulator;
mod single_server;
mod sizes;

pub use blocks::{BlockTimes, time_blocks};
pub use dispatcher::{DispatcherError, DispatcherTime, ThreadedRate, dispatcher_machine, time_dispatcher};
pub use estimates::{EstimateTimes, time_estimates};
pub use ingest::{SharedCores, SharedCoresError, SharedWork, share_cores};
pub use memory::{CopyRate, copy_rate};
pub use operators::{Contender, OperatorTimes, Search, time_operators};
pub use peak::{peak_bytes, reset_peak};
pub use simpy::{SimPy, SimPyError};
pub use simulator::{SimulatorTime, time_simulator};
pub use single_server::{SingleServer, SingleServerError, SingleServerTime, time_single_server};
pub use sizes::{PartSize, index_sizes};

use crate::quantile::nearest_rank;

/// Times of many pieces of work, in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Ascending.
    us: Vec<f64>,
}

impl Times {
    /// Of these times.
    #[must_use]
    pub fn of(mut us: Vec<f64>) -> Self {
        us.sort_by(f64::total_cmp);
        Self { us }
    }

    /// Their sum.
    #[must_use]
    pub fn sum_us(&self) -> f64 {
        self.us.iter().sum()
    }

    /// Their mean; 0 if there are none.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        self.sum_us() / (self.us.len().max(1)) as f64
    }

    /// The least time that a share `q` of the pieces does not exceed; 0 if there are none.
    #[must_use]
    pub fn quantile_us(&self, q: f64) -> f64 {
        nearest_rank(&self.us, q).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let times = Times::of(vec![3.0, 1.0, 2.0, 10.0]);
        assert_eq!(times.mean_us(), 4.0);
        assert_eq!([0.0, 0.25, 0.5, 0.51, 1.0].map(|q| times.quantile_us(q)), [1.0, 1.0, 2.0, 3.0, 10.0]);
        assert_eq!(Times::default().quantile_us(0.5), 0.0);
        assert_eq!(Times::default().mean_us(), 0.0);
    }
}
