//! Ding, He, Yan, Suel: Using graphics processors for high performance IR query processing (WWW 2009).

#[cfg(feature = "gpu")]
mod caching;
pub(super) mod fig3;
#[cfg(feature = "gpu")]
pub(super) mod fig4;
#[cfg(feature = "gpu")]
pub(super) mod fig6;
pub(super) mod fig7;
#[cfg(feature = "gpu")]
mod gpu;
mod lists;
#[cfg(feature = "gpu")]
pub(super) mod table1;
#[cfg(feature = "gpu")]
pub(super) mod table2;
#[cfg(feature = "gpu")]
pub(super) mod table3;
