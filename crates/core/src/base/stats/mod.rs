//! Confidence intervals of means, medians, quantiles and shares, and a test whether a run has settled.
//!
//! [`quantile`](crate::base::quantile) defines the quantiles themselves. `statrs` provides the distributions.

mod drift;
mod interval;
mod rounding;

pub use drift::{Drift, drift, drift_of_means};
pub use interval::{Interval, mean_interval, quantile_interval, share_interval};
pub use rounding::significant;
