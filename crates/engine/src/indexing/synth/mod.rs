//! Synthetic collections: an index of any size with the shape of a web collection, without text.
//!
//! The cost of a search depends on the lengths of its lists and the places of their documents. These are modelled, and
//! words are not. Four laws of real collections hold:
//!
//! | law | here |
//! | --- | --- |
//! | vocabulary grows as a power of the collection (Heaps) | `V = 200 N^0.6`, unless given |
//! | document frequencies fall as a power of the rank (Zipf, Mandelbrot) | [`Vocabulary`]: `df(r) = 0.9 N ((1 + q) / (r + q))^1.2` |
//! | neighbours resemble each other: gaps are bursty | `cascade.rs`: topics at all scales, a random field for each term |
//! | words of one topic occur together | `correlation`, if given: terms of a topic share a field |
//! | long documents have more terms, and repeat them more | [`Documents`]: lognormal lengths, shared by all terms |
//!
//! Every term has its own random stream, so terms are made in parallel and the index is the same, byte for byte, on any
//! number of threads and any machine. A list of n postings takes at most O(n log n) time, independent of the
//! collection's size.
//!
//! Document lengths are the shared array, not the sums of the drawn terms. The two agree on average.

mod build;
mod cascade;
mod documents;
mod queries;
mod size;
mod text;
mod vocabulary;

use tandem_base::base::random::mix;

pub use build::{SynthOptions, SynthReport, build_synthetic, draw_queries};
pub use documents::Documents;
pub use queries::{MEAN_QUERY_SHARE, synthetic_queries, write_queries};
pub use text::{TextOptions, write_text};
pub use vocabulary::Vocabulary;

/// Numbers of random streams. Terms start at [`TERM_STREAMS`], chunks of documents at [`LENGTH_STREAMS`].
const QUERY_STREAM: u64 = 1;
const LENGTH_STREAMS: u64 = 1 << 32;
const TERM_STREAMS: u64 = 1 << 33;

/// Number of topics. Two independent terms rarely share one.
const TOPICS: u64 = 32;
const TOPIC_SALT: u64 = 0x746f_7069_6373;

/// The field of a term's topic.
fn topic_of(seed: u64, term: usize) -> u64 {
    mix(seed ^ TOPIC_SALT ^ (mix(term as u64 ^ seed) % TOPICS) << 32)
}

#[cfg(test)]
mod tests;
