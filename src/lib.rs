//! Tandem: a scheduling lab for search nodes that have both CPUs and GPUs.
//!
//! What query rate can this machine sustain within this deadline, under which scheduling policy, and how do we know?
//! This library re-exports the members of the workspace. Each room imports only from those above it:
//!
//! | member | room | what lives there |
//! | --- | --- | --- |
//! | `tandem-base` | [`base`], [`files`] | time, identifiers, processors, seeded randomness, statistics; reading and writing files safely |
//! | | [`traffic`] | arrivals, traces, priorities, features of queries |
//! | `tandem-model` | [`cost`] | measured workloads, cost models, service times |
//! | | [`sched`], [`sim`] | policies, the dispatcher, the run log; the simulator |
//! | | [`study`] | capacity searches, comparisons, sweeps and plans on simulated machines |
//! | `tandem-engine` | [`corpus`] | readers of text collections and of other engines' files, tokenizers |
//! | | [`index`], [`indexing`] | block-compressed postings, BM25, the memory-mapped file; what makes them |
//! | | [`query`], [`search`] | queries and query logs; devices, and the executors on CPU and GPU |
//! | `tandem-drive` | [`live`], [`profile`], [`lab`] | real time; measurement; answers, predicted and measured |
//! | `tandem-http` | `http` | search servers behind HTTP, and Tandem's own (feature `http`) |
//! | `tandem-report` | [`report`] | summaries, CSV files, plots |
//! | `tandem-papers` | `papers` | methods and experiments of the five papers (feature `papers`) |
//!
//! The program is `main.rs` with its modules beside this file (feature `cli`).

#[doc(inline)]
pub use tandem_drive::{lab, live, profile};
#[doc(inline)]
pub use tandem_engine::{corpus, index, indexing, query, search};
#[cfg(feature = "http")]
pub use tandem_http as http;
#[doc(inline)]
pub use tandem_model::{base, cost, files, sched, sim, study, traffic};
#[cfg(feature = "papers")]
pub use tandem_papers as papers;
pub use tandem_report as report;
