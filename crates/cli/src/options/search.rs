//! How a query is searched for.

use super::names::choice;
use tandem_core::query::Mode;
use tandem_core::search::cpu::Algorithm;

/// What every query of a run is asked for, and how.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct SearchArguments {
    /// How the terms of a query combine
    #[arg(long, value_parser = choice::<Mode>(), default_value = Mode::Or.name())]
    pub(crate) mode: Mode,
    /// Algorithm by which the CPU finds the best documents with any of the terms; all give the same result
    #[arg(long, value_parser = choice::<Algorithm>(), default_value = Algorithm::Auto.name())]
    pub(crate) algorithm: Algorithm,
    /// Number of documents that a query asks for
    #[arg(short, value_name = "K", default_value_t = 10)]
    pub(crate) k: usize,
}
