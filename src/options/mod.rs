//! Options that several commands take, under one name and with one meaning each.
//!
//! | file | options |
//! | --- | --- |
//! | `input.rs` | `INDEX`, `--queries`, `--log-format`, `--column` |
//! | `question.rs` | `--deadline-ms`, `--objective`, `--mode`, `--algorithm`, `-k` |
//! | `arrivals.rs` | `--rate`, `--num-queries`, `--seeds`, `--arrivals`, `--replay`, `--trace` |
//! | `machine.rs` | `--cpus`, `--gpus`, `--streams`, `--gpu-memory`, `--machine`, `--shards`, `--replicas`, `--faults` |
//! | `policies.rs` | the settings of policies |
//! | `priorities.rs` | `--priority` |
//! | `lists.rs`, `names.rs` | values: lists, rates, and names of the library |
//!
//! Options are checked before any work that an error would waste, and errors name the option.

pub(crate) mod arrivals;
pub(crate) mod input;
pub(crate) mod lists;
pub(crate) mod machine;
pub(crate) mod names;
mod policies;
pub(crate) mod priorities;
pub(crate) mod question;
