//! INTER: every core answers whole queries on its own.
//!
//! Cores share the index and norms, which nobody writes, and one counter, which says who takes the next
//! query ([`serve`](crate::search::cpu::multicore::serve)). Throughput grows with the cores as far as memory lets it; a
//! query takes as long as on one.

use crate::search::Executor;
use crate::search::cpu::executor::CpuExecutor;

/// An executor for each of `workers` cores.
#[must_use]
pub fn inter_lanes(executor: &CpuExecutor, workers: usize) -> Vec<Box<dyn Executor>> {
    (0..workers).map(|_| Box::new(executor.clone_for_worker()) as Box<dyn Executor>).collect()
}
