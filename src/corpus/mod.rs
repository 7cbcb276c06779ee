//! What can be indexed: collections of text, and synthetic ones.
//!
//! A collection is read as a stream of [`Batch`]es of a few megabytes, each of which any thread can parse by itself:
//!
//! ```text
//! file or folder ──Collection──▶ Batch ──▶ documents (id, title, text) ──Tokenizer──▶ terms
//!                                Batch ──▶ ...
//! ```
//!
//! Exchange files hold collections that are inverted already: [`ciff`] and [`pisa`] read them as
//! [`ListSource`]s, list by list.
//!
//! Documents are numbered in the order of the collection, whatever the number of threads.

mod batch;
pub mod ciff;
mod document;
mod folder;
mod inverted;
mod jsonl;
pub mod pisa;
mod stop_words;
mod tokenizer;

pub use batch::{Batch, Collection};
pub use document::Document;
pub use inverted::{DocumentTable, ListSource, TermList};
pub use tokenizer::{Cutter, Tokenizer, Words};
