//! A document of a collection, and how much text is parsed at a time.

use std::borrow::Cow;

/// Text in a batch, roughly: large enough that a batch's vocabulary repeats, small enough that every thread holds one.
pub(super) const BATCH_BYTES: usize = 8 << 20;

/// One document, borrowed from its batch.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// Its name in the collection.
    pub id: Cow<'a, str>,
    /// Its title; empty where it has none.
    pub title: Cow<'a, str>,
    /// Its text.
    pub text: Cow<'a, str>,
    /// The line that it stands on, where it stands on one.
    pub line: Option<u64>,
}
