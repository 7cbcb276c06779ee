//! Ding, He, Yan, Suel: Using graphics processors for high performance IR query processing (WWW 2009).
//!
//! | folder | contents |
//! | --- | --- |
//! | `daat/` | the paper's CPU side: coded lists with skips, one document at a time on one core |
//! | `gpu/` | the paper's GPU methods as published; their kernels are in `kernels/ding/` |
//! | `experiments/` | the paper's tables and figures |

pub(crate) mod daat;
pub(crate) mod experiments;
#[cfg(feature = "gpu")]
pub mod gpu;
