//! Queries on one core as both papers ran them: compressed lists with skips, a document at a time.
//!
//! A list is coded block by block, and stands behind the document before each block, uncompressed: its **skips**. A
//! cursor decodes the block that it is in, and finds another one without decoding those between:
//!
//! ```text
//! skips       -1          120         233          the document before each block
//! blocks     [ 3 ... 120 ][ 121 ... 233 ][ 240 ...
//! cursor                       ▲ decoded; seek(250) goes by 120 and 233, and decodes the third block
//! ```
//!
//! | file | what |
//! | --- | --- |
//! | `lists.rs` | the lists of some terms, coded by any [`Codec`](crate::codec::Codec) |
//! | `cursor.rs` | reading them: by skips, or block after block |
//! | `conjunction.rs` | AND: forward seeks from the shortest list (Ding et al., section 2) |
//! | `disjunction.rs` | OR: every posting of every list, merged by documents |
//! | `small_adaptive.rs` | AND by eliminators (Tatikonda et al., section 3.1, after Demaine et al.) |
//! | `executor.rs` | AND, OR and AND+OR as an [`Executor`](tandem_core::search::Executor), for Ding et al.'s tables |
//!
//! Nothing is pruned and nothing vectorised but the decoding: what the papers' CPUs did, on today's. Scores have the bits
//! of every other executor: shares are added in the query's order.

#[cfg(feature = "gpu")]
mod conjunction;
pub(crate) mod cursor;
#[cfg(feature = "gpu")]
mod disjunction;
#[cfg(feature = "gpu")]
pub(crate) mod executor;
pub(crate) mod lists;
pub(crate) mod small_adaptive;
#[cfg(test)]
mod tests;
