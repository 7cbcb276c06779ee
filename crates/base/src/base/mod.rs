//! Small types that all rooms share: time, identifiers, processors, seeded randomness, statistics.

pub mod histogram;
pub mod ids;
pub mod interrupt;
pub mod machine;
pub mod named;
pub mod prefetch;
pub mod quantile;
pub mod random;
pub mod stats;
pub mod time;
