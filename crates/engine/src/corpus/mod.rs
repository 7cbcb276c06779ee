//! Collections of text, and of posting lists.
//!
//! A collection is read as a stream of [`Batch`]es of a few megabytes, each of which any thread can parse alone:
//!
//! ```text
//! file or folder ──Collection──▶ Batch ──▶ documents (id, title, text) ──Tokenizer──▶ terms
//!                                Batch ──▶ ...
//! ```
//!
//! | collection | file |
//! | --- | --- |
//! | JSON lines | `jsonl.rs` |
//! | WARC, as web crawlers write it | `warc.rs` |
//! | TREC, `<DOC>` after `<DOC>` | `trec.rs` |
//! | a folder of text files | `folder.rs` |
//!
//! Files may be compressed (`.gz`, `.zst`); several threads decompress files of many frames or members (`unpack.rs`).
//! Text in other encodings than UTF-8 is recognised (`encoding.rs`).
//!
//! Exchange files hold collections that are inverted already: [`ciff`] reads them as a [`ListSource`], list by
//! list. So are vectors of weighted terms read (`vectors.rs`), and frequencies that are [`Impacts`].
//!
//! Documents are numbered in the order of the collection, for any number of threads.

mod batch;
pub mod ciff;
mod document;
mod encoding;
mod folder;
mod html;
mod impacts;
mod inverted;
mod jsonl;
mod skipped;
mod split;
mod stop_words;
mod tokenizer;
mod trec;
mod unpack;
mod vectors;
mod warc;

pub use batch::{Batch, Collection};
pub use document::Document;
pub use impacts::Impacts;
pub use inverted::{DocumentTable, ListSource, TermList};
pub use jsonl::LineBase;
pub use skipped::{Reason, Skipped};
pub use tokenizer::{Cutter, Tokenizer, Words};
pub use vectors::VectorReader;
