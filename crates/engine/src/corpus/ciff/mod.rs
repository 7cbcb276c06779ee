//! CIFF, the Common Index File Format: one index for many engines.
//!
//! A file, often inside gzip, is a row of protobuf messages, each after its length in bytes (a varint):
//!
//! ```text
//! Header | PostingsList x num_postings_lists | DocRecord x num_docs
//! ```
//!
//! | MESSAGE | FIELD | MEANING |
//! | --- | --- | --- |
//! | Header | 1 int32 | version, 1 |
//! | | 2, 3 int32 | lists and documents in the file |
//! | | 4, 5 int32 | lists and documents in the collection; more, where the file is a part |
//! | | 6 int64 | tokens in the collection |
//! | | 7 double | mean number of tokens per document |
//! | | 8 string | description |
//! | PostingsList | 1 string | term |
//! | | 2, 3 int64 | documents that contain it, occurrences |
//! | | 4 Posting, repeated | |
//! | Posting | 1 int32 | document: its number, from 0, for the first posting, then the distance to the one before |
//! | | 2 int32 | frequency |
//! | DocRecord | 1 int32 | document |
//! | | 2 string | its name in the collection |
//! | | 3 int32 | tokens |
//!
//! A field that is 0 or empty is left out. Lists come before the documents, in any order: the reader passes over the file
//! twice, and holds the documents and one list. `wire` implements the few protobuf rules needed: a list's message may
//! have hundreds of megabytes, so it is decoded as a stream, and errors name the byte. Source: Lin et al., "Supporting
//! Interoperability Between Open-Source Search Engines with the Common Index File Format", SIGIR 2020;
//! `CommonIndexFileFormat.proto`, osirrc/ciff.

mod message;
mod read;
mod wire;
mod write;

pub use message::CiffHeader;
pub use read::CiffReader;
pub use write::CiffWriter;

#[cfg(test)]
mod tests;
