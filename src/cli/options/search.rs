//! How a query is searched for.

use crate::exec::cpu::Algorithm;
use crate::query::Mode;

/// What every query of a run is asked for, and how.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(in crate::cli) struct SearchArguments {
    /// How the terms of a query combine
    #[arg(long, value_enum, default_value_t = Mode::Or)]
    pub(in crate::cli) mode: Mode,
    /// How the CPU finds the best documents with any of the words; all give the same result
    #[arg(long, value_enum, default_value_t = Algorithm::Auto)]
    pub(in crate::cli) algorithm: Algorithm,
    /// Documents that a query asks for
    #[arg(short, value_name = "K", default_value_t = 10)]
    pub(in crate::cli) k: usize,
}
