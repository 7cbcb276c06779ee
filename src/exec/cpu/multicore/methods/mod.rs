//! The ways to share queries among cores, one a file; [`multicore`](super) compares them.

mod adaptive;
mod document_partitioned;
mod fine_grained;
mod inter_query;
mod partitioned_index;

pub use adaptive::adaptive_lanes;
pub use document_partitioned::DocumentPartitioned;
pub use fine_grained::FineGrained;
pub use inter_query::inter_lanes;
pub use partitioned_index::PartitionedIndex;
