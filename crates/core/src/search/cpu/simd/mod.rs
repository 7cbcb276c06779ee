//! Vector instructions, and a portable twin of each that gives the same bits.
//!
//! | file | what it does to several numbers at once |
//! | --- | --- |
//! | `detection.rs` | asks the processor, and keeps the proof |
//! | `comparison.rs` | which of them are above or below another one |
//! | `compaction.rs` | keeps those that are above, in order |
//! | `expansion.rs` | spreads packed frequencies to where a bitmap has its bits |

mod compaction;
mod comparison;
mod detection;
mod expansion;

pub(crate) use compaction::{Docs, sift};
pub(crate) use comparison::{STEP, above, below};
pub(crate) use detection::Avx2;
pub(crate) use expansion::{EXPANSIONS, WORD_DOCS, WORD_FREQS, bits_before};
