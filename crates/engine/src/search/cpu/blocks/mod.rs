//! Reading of posting lists: blocks of 128 postings, or bitmaps of dense lists.
//!
//! | file | content |
//! | --- | --- |
//! | `term.rs` | a query's term with its list, its weight, and bounds of its scores |
//! | `search.rs` | searches for a block, a place in a block, and common documents |
//! | `scored_block.rs` | term at a time: every block, decoded and scored as a whole |
//! | `bitmap_tile.rs` | dense lists: a row of documents without decoding |

pub(crate) mod bitmap_tile;
pub(crate) mod scored_block;
pub(crate) mod search;
pub(crate) mod term;
