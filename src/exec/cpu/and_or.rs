//! AND+OR: the documents with all terms, unless they are too few; then those with any.
//!
//! Web search wants few results with all words rather than many with some, but never an empty page. The OR
//! starts afresh: its k best need not contain what the AND found.

/// Whether the OR must run after an AND that found `found` documents for a query of `terms` terms.
///
/// For one term both are the same, so nothing is gained by the second.
pub(super) fn needs_or(found: usize, k: usize, terms: usize) -> bool {
    found < k && terms > 1
}
