//! Frequent English words that carry little meaning of their own.

/// In byte order. The 33 words that Lucene's classic English analyser drops.
pub(super) const ENGLISH: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
];
