//! How sure a number is: intervals of means, medians, quantiles and shares, and whether a run has settled.
//!
//! Which value stands for a share of many is said in one place, [`quantile`](crate::base::quantile); here is how far it may be
//! off. Distributions are `statrs`'.

mod drift;
mod interval;
mod rounding;

pub use drift::{Drift, drift, drift_of_means};
pub use interval::{Interval, mean_interval, quantile_interval, share_interval, students_t};
pub use rounding::significant;
