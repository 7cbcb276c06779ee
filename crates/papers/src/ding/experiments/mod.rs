//! Experiments of Ding et al.

#[cfg(feature = "gpu")]
mod caching;
#[cfg(feature = "gpu")]
mod common;
#[cfg(feature = "gpu")]
pub(crate) mod costs;
pub(crate) mod fig3;
#[cfg(feature = "gpu")]
pub(crate) mod fig4;
#[cfg(feature = "gpu")]
pub(crate) mod fig6;
pub(crate) mod fig7;
pub(crate) mod quantised;
pub(crate) mod skipping;
#[cfg(feature = "gpu")]
pub(crate) mod table1;
#[cfg(feature = "gpu")]
pub(crate) mod table2;
#[cfg(feature = "gpu")]
pub(crate) mod table3;
