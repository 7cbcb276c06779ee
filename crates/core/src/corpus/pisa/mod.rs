//! PISA's (and ds2i's) binary collection: an inverted index before compression, as five files with a common base name.
//!
//! The binary files are rows of little-endian 32-bit numbers; a **sequence** is its length, then that many numbers.
//!
//! | FILE | HOLDS |
//! | --- | --- |
//! | `X.docs` | the sequence `1, N` (N documents), then a sequence per term: its documents, ascending from 0 |
//! | `X.freqs` | a sequence per term: its frequencies, in the order of its documents |
//! | `X.sizes` | one sequence: the N documents' lengths in tokens |
//! | `X.terms` | text: one line per term, in the order of the lists |
//! | `X.documents` | text: one line per document, its name in the collection |
//!
//! The last two may be missing: a term's name is then its number, as in PISA's query files without a lexicon, and
//! documents have no names. A list's position follows only from the lists before it: terms in byte order are streamed,
//! any other order takes a pass over the lengths first. Source: Ottaviano and others, ds2i, README; Mallia et al., "PISA:
//! Performant Indexes and Search for Academia", 2019.

mod read;
mod sequence;
mod write;

use std::path::{Path, PathBuf};

pub use read::PisaReader;
pub use write::PisaWriter;

/// The path of `docs` (`X.docs`) with another extension.
fn sibling(docs: &Path, extension: &str) -> PathBuf {
    docs.with_extension(extension)
}

#[cfg(test)]
mod tests;
