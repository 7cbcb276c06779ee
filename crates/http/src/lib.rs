//! Search servers behind HTTP as the system under test, and Tandem's own server.
//!
//! ```text
//!  engines/*.json ─▶ Dialect ─┐                          ┌─ closed loop: profile ─▶ model ─▶ predicted capacity
//!  URL, credentials ▶ Target ─┴─▶ Requests ─▶ Client ────┤                                       │
//!                                                        └─ open loop:   runs between a rate that held and a higher
//!                                                                        rate that missed ─▶ Answer
//!  Index ─▶ serve ─▶ the executors and the scheduler of the lab behind OpenSearch's dialect
//! ```
//!
//! The client reads HTTP/1.1 with `httparse` in a small loop over `mio`, without an asynchronous runtime, so that its thread can
//! spin for its schedule. rustls speaks TLS. The server is hyper on tokio.

mod answer;
mod client;
mod connection;
mod dialect;
mod files;
mod predict;
mod profile;
mod requests;
mod response;
mod run;
mod serve;
mod source;
mod target;

pub use answer::{Gate, ServerAnswer, check_rate, find_answer};
pub use client::{Client, Limits};
pub use dialect::Dialect;
pub use files::{RunReport, write_histograms, write_profile, write_requests, write_runs};
pub use predict::{Front, Simulated};
pub use profile::{ProfilePlan, QueryTime, Rung, ServerProfile, ceiling, measure_server, warm_up};
pub use requests::Requests;
pub use run::{Ending, Judged, Outcome, PERCENTILES, Record, Run, Times, percentile_ms};
pub use serve::{ServeOptions, Served, serve};
pub use source::{Closed, Open};
pub use target::{Credentials, Target};

/// Why a server could not be driven.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// A dialect or another file cannot be used.
    #[error(transparent)]
    Input(#[from] tandem_model::files::InputError),
    /// The URL, the host or the credentials are not allowed.
    #[error("{0}")]
    Target(String),
    /// The server gave no usable answer to the first queries.
    #[error("{0}")]
    NoAnswer(String),
    /// A limit of the program would be exceeded.
    #[error("{0}")]
    Limit(String),
    /// The system refused a socket, a thread or a file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The simulation failed.
    #[error(transparent)]
    Study(#[from] tandem_model::study::StudyError),
    /// Interrupted by a signal.
    #[error("interrupted")]
    Interrupted,
}
