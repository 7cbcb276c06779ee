//! Tatikonda, Cambazoglu, Junqueira: Posting list intersection on multicore architectures (SIGIR 2011).
//!
//! | file | contents |
//! | --- | --- |
//! | `document_partitioned`, `partitioned_index` | DOCP: each core searches its own range of the documents |
//! | `published/` | the paper's fine-grained method (FGQP) with its pools of tasks |
//! | `experiments/` | the paper's figures |
//!
//! Searches use the fine-grained and adaptive sharing of [`multicore`](tandem_core::search::cpu::multicore).

pub mod document_partitioned;
pub(crate) mod experiments;
pub mod partitioned_index;
mod published;
#[cfg(test)]
mod tests;
