//! Queries on one core as in both papers: compressed lists with skips, document at a time.
//!
//! A list is coded block by block. The documents before the blocks are stored uncompressed as **skips**. A cursor
//! decodes its current block, and finds another one without decoding those in between:
//!
//! ```text
//! skips       -1          120         233          the document before each block
//! blocks     [ 3 ... 120 ][ 121 ... 233 ][ 240 ...
//! cursor                       ▲ decoded; seek(250) passes 120 and 233, and decodes the third block
//! ```
//!
//! | file | contents |
//! | --- | --- |
//! | `lists.rs` | lists of some terms, coded by any [`Codec`](crate::codec::Codec) |
//! | `cursor.rs` | cursors, by skips or block after block |
//! | `small_adaptive.rs` | AND by eliminators (Tatikonda et al., section 3.1, after Demaine et al.) |
//! | `executor.rs` | Ding et al., section 2: AND by forward seeks, OR by merging all postings |
//!
//! As on the papers' CPUs, nothing is pruned, and only decoding is vectorised. Scores have the bits of all other
//! executors, because shares are added in the query's order.

pub(crate) mod cursor;
pub(crate) mod executor;
pub(crate) mod lists;
pub(crate) mod small_adaptive;
#[cfg(test)]
mod tests;
