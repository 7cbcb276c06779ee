//! What can be indexed: collections of text, and synthetic ones.
