//! Reading of posting lists: blocks of 128 postings, or bitmaps of dense lists.
//!
//! | file | content |
//! | --- | --- |
//! | `term.rs`, `impact_bounds.rs` | a query's term with its list, its weight, and bounds of its scores |
//! | `search.rs` | searches for a block, a place in a block, and common documents |
//! | `cursor.rs` | document at a time: seeks forward, decodes on demand |
//! | `scored_block.rs` | term at a time: every block, decoded and scored as a whole |
//! | `bitmap_tile.rs` | dense lists: a row of documents without decoding |

mod bitmap_tile;
mod cursor;
mod impact_bounds;
mod scored_block;
mod search;
mod term;

pub(crate) use bitmap_tile::{TILE_DOCS, TILE_WORDS, Tile, TilePostings, TileRoom};
pub(crate) use cursor::{Cursor, END};
pub(crate) use impact_bounds::ImpactBounds;
pub(crate) use scored_block::ScoredBlock;
pub(crate) use search::{find_block, first_geq, intersect};
pub(crate) use term::Term;
