//! Options that several commands take, under one name and with one meaning each.
//!
//! | option | is |
//! | --- | --- |
//! | `INDEX`, `--queries FILE`, `--limit N` | an index's folder, a query log, the number of its queries that are used ([`IndexAndLog`]) |
//! | `--num-queries N`, `--rate`, `--arrivals`, `--seeds`, `--trace FILE` | how many queries arrive and when ([`ArrivalArguments`]) |
//! | `--cpus N`, `--gpus N`, `--streams N`, `--gpu WHAT` | the machine ([`GpuArguments`], [`check_processors`], [`GpuChoice`](tandem_core::lab::GpuChoice)) |
//! | `--gpu-memory BYTES` | the budget of GPU memory for an index ([`GpuMemoryArguments`]) |
//! | `--shards N`, `--replicas N` | a cluster of such machines ([`ClusterArguments`]) |
//! | `--mode`, `--algorithm`, `-k` | how a query is answered ([`SearchArguments`]) |
//! | `--policy`, `--set KEY=VALUE` | scheduling policies, and rare tuning ([`Settings`](super::settings::Settings)) |
//! | `--deadline-ms MS` | when an answer is late ([`DeadlineArgument`]) |
//! | `--objective WHAT` | the condition that a sustained rate meets ([`ObjectiveArguments`]) |
//! | `--estimates WHAT` | the costs that policies see ([`Estimates`](tandem_core::lab::Estimates)) |
//! | `--faults` | lanes that fail ([`FaultArguments`]) |
//! | `-o`, `--out` | the file or folder of the results |
//!
//! Options are checked before any work that an error would waste, and errors name the option.

mod arrivals;
mod cluster;
mod deadline;
mod faults;
mod gpu_memory;
mod index_and_log;
mod list;
mod machine;
mod machine_profile;
pub(crate) mod names;
mod objective;
mod policies;
mod process;
mod rates;
mod search;

pub(super) use arrivals::{ArrivalArguments, no_rates, not_in, parse_seeds};
pub(super) use cluster::{ClusterArguments, check_nodes, cluster_in_words, shard_costs};
pub(super) use deadline::{DEFAULT_MS, DeadlineArgument};
pub(super) use faults::{FaultArguments, watchdog_ms};
pub(super) use gpu_memory::GpuMemoryArguments;
pub(super) use index_and_log::{IndexAndLog, LogForm};
pub(super) use list::{counts, numbers};
pub(super) use machine::{GpuArguments, MAX_PROCESSORS, check_processors, workers_here};
pub(super) use machine_profile::{MACHINE_PROFILE, MachineProfileArgument};
pub(super) use objective::ObjectiveArguments;
pub(super) use process::{ProcessArguments, any_rate, own_rate};
pub(super) use rates::parse_rate;
pub(super) use search::SearchArguments;

use super::Failure;

/// `-k`, checked.
pub(super) fn check_k(k: usize) -> Result<(), Failure> {
    Ok(tandem_core::search::check_k(k)?)
}

/// `--seconds`, how long a measurement lasts, checked: above 0 and at most `most`.
pub(super) fn check_seconds(seconds: f64, most: f64) -> Result<(), Failure> {
    // NaN fails both comparisons.
    if seconds > 0.0 && seconds <= most {
        return Ok(());
    }
    Err(Failure::input(format!("--seconds is {seconds}, expected above 0 and at most {most}")))
}
