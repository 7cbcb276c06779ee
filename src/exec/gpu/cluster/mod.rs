//! Several GPUs that answer together.
//!
//! ```text
//! by queries      replicas.rs   each GPU has the whole index       a batch is shared out; a query runs on one GPU
//! by documents    shards.rs     each has the lists of its range    every query runs on all; their best are merged
//! ```
//!
//! By queries the rate grows with the GPUs. By documents a GPU holds half of the index, and a query of long lists is over
//! sooner; but every GPU does for every query what does not depend on how long lists are. `choice.rs` predicts which is
//! quicker, from what one GPU takes.
//!
//! Documents and bits of scores are those of one GPU: weights and norms are the whole collection's, terms are added in the
//! query's order. A GPU that fails takes part no more. Replicas answer its share; without its documents there are no
//! answers, and shards say so.

mod choice;
mod drive;
mod replicas;
mod shards;
#[cfg(test)]
mod tests;

pub use choice::{Layout, QueryCost, choose};
pub use replicas::GpuReplicas;
pub use shards::GpuShards;
