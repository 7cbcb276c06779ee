//! A document of a collection, and how much text is parsed at a time.

use std::borrow::Cow;

/// Text in a batch, roughly: small enough that all threads have work until the end, large enough that handing it over
/// costs nothing. An interrupted build goes on only with batches of the same size.
pub(super) const BATCH_BYTES: usize = 2 << 20;

/// One document, borrowed from its batch.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// Its name in the collection.
    pub id: Cow<'a, str>,
    /// Its title; empty where it has none.
    pub title: Cow<'a, str>,
    /// Its text.
    pub text: Cow<'a, str>,
    /// The line that it stands on, or the byte that it begins at; `None` where a file holds no other.
    pub line: Option<u64>,
}
