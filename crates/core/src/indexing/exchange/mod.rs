//! Import and export of the exchange files of other engines: [CIFF](crate::corpus::ciff) and [PISA's binary
//! collections](crate::corpus::pisa).
//!
//! ```text
//! x.ciff ──CiffReader──┐                                               ┌──CiffWriter──▶ x.ciff
//!                      ├── ListSource ──import──▶ index ──export───────┤
//! x.docs ──PisaReader──┘                                               └──PisaWriter──▶ x.docs, ...
//! ```
//!
//! Postings, lengths, terms and names are equal after a round trip. Impacts and bounds are no part of either format.
//! They are computed on import.

mod export;
mod import;

pub use export::{export_ciff, export_pisa};
pub use import::{ImportOptions, import};

#[cfg(test)]
mod tests;
