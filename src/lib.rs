//! Tandem: a scheduling lab for search nodes that have both CPUs and GPUs.
//!
//! What query rate can this machine sustain within this deadline, under which scheduling policy, and how do we know?
//! The layers, each importing only from those above it:
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`base`], [`files`] | time, identifiers, processors, seeded randomness, statistics; reading and writing files safely |
//! | [`corpus`] | readers of text collections and of other engines' files, tokenizers |
//! | [`index`] | block-compressed postings, BM25, the memory-mapped file |
//! | [`indexing`] | text and foreign collections to an index; synthetic, renumbered and quantised ones |
//! | [`query`] | queries, logs, features, arrivals |
//! | [`search`] | devices, and the executors on CPU and GPU |
//! | [`cost`] | measured workloads, cost models |
//! | [`profile`] | measurement of every query on each class of processor |
//! | [`sched`] | policies, the dispatcher, the run log |
//! | [`sim`], [`live`] | two loops around the dispatcher: simulated time, real time |
//! | [`lab`] | the parts that commands share: processors, workloads, calibration, capacity, validation |
//! | `http` | search servers behind HTTP, and Tandem's own (feature `http`) |
//! | [`report`] | summaries, CSV files, plots |
//! | [`papers`] | methods and experiments of the five papers (feature `papers`) |
//! | `cli` | the commands (feature `cli`) |

#[cfg(feature = "cli")]
pub use tandem_cli as cli;
#[doc(inline)]
pub use tandem_core::{base, corpus, cost, files, index, indexing, lab, live, profile, query, sched, search, sim};
#[cfg(feature = "http")]
pub use tandem_http as http;
#[cfg(feature = "papers")]
pub use tandem_papers as papers;
pub use tandem_report as report;
