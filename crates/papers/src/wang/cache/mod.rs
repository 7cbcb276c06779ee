//! Which lists, or beginnings of lists, lie in a memory that is too small for all of them. Nothing here holds a posting:
//! lists are numbers with sizes, so that an executor and a simulation use the same machine.
//!
//! ```text
//!   training log ──▶ Visits ──▶ Admission (VFB, Qtf, QtfDf) ──▶ Prefixes: so many postings of each list are held
//!                                                                  │
//!   queries ───────────────────────────────────────────────────────┴──▶ BatchMaker: what each batch must bring along
//!                                                                          │ queries a batch, MB a query
//!   measured c(n), t(S_b) ──▶ ThroughputModel ◀───────────────────────────┘
//!                                  └──▶ how a memory is best divided into cache S_c and buffer S_b
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `sizes` | `Sizes`: how long lists are, and the bytes that a beginning of one takes |
//! | `visits` | `Visits`: how many queries of a log name a list, and how far into it they go |
//! | `vfb`, `qtf`, `qtf_df` | the orders in which lists, or blocks of them, are admitted |
//! | `admission` | `Admission`: such an order, cut where a budget ends |
//! | `prefixes` | `Prefixes`: what is held |
//! | `batches` | `BatchMaker`: queries with the lists that they miss, up to a buffer's size |
//! | `model` | `ThroughputModel`: `TP = 1 / (c(n) + t(S_b) dq(S_c))`, fitted, and the best division |
//! | `store` | `ListStore`: a budget, pins, and what goes when room is needed |
//! | `space`, `placed` | `PlacedLists`: such a store whose lists have places in one memory, and move when that is in pieces |
//!
//! Source of the static policies and of the model: Wang, Yu, Stones, Ren, Wang, Liu and Ren, "Efficient GPU-based Query
//! Processing with Pruned List Caching in Search Engines", ICPADS 2017.

mod admission;
mod batches;
mod error;
mod model;
#[cfg(any(feature = "gpu", test))]
mod placed;
mod prefixes;
mod qtf;
mod qtf_df;
mod sizes;
#[cfg(any(feature = "gpu", test))]
mod space;
#[cfg(any(feature = "gpu", test))]
mod store;
mod vfb;
mod visits;

pub(crate) use admission::{Admission, AdmissionPolicy};
#[cfg(any(feature = "gpu", test))]
pub(crate) use batches::Batch;
pub(crate) use batches::{BatchMaker, Footprint, Walk};
pub use error::CacheError;
pub(crate) use model::{Division, MeasuredBatch, ThroughputModel};
#[cfg(any(feature = "gpu", test))]
pub(crate) use placed::{Arrivals, PlacedLists};
pub(crate) use prefixes::Prefixes;
pub(crate) use sizes::Sizes;
#[cfg(any(feature = "gpu", test))]
pub(crate) use space::Move;
#[cfg(any(feature = "gpu", test))]
pub(crate) use store::{Eviction, KeepAll, LeastSaved, ListStore};
pub(crate) use visits::{CACHE_BLOCK_LEN, Visits};

#[cfg(test)]
mod tests;
