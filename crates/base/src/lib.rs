//! What the model and the search engine share: small types, files, and the features and arrivals of queries.

pub mod base;
pub mod files;
pub mod traffic;
