//! `tandem index build`.

use crate::cli::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {}

pub(super) fn run(_arguments: &Arguments) -> Result<(), Failure> {
    Err(Failure::failed("not built yet"))
}
