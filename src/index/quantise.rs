//! `tandem index quantise`: an index of impacts of eight bits.

use std::path::PathBuf;

use serde_json::json;
use tandem_engine::index::Index;
use tandem_engine::indexing::quantise;

use super::{IndexOut, give};
use crate::failure::Failure;

/// Replace frequencies by 8-bit impacts: faster searches, another ranking.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tandem index quantise my-index -o faster")]
pub(super) struct Arguments {
    /// Folder of the index
    index: PathBuf,
    #[command(flatten)]
    out: IndexOut,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.out.check()?;
    let index = Index::open(&arguments.index)?;
    if index.is_quantised() {
        let dir = arguments.index.display();
        return Err(Failure::input(format!("{dir}: holds impacts already, expected an index of frequencies")));
    }
    quantise(&index, &arguments.out.out)?;
    // Reading the index back checks that it is complete.
    let quantised = Index::open(&arguments.out.out)?;
    outln!("documents  {:>15}", quantised.num_docs());
    outln!("postings   {:>15}", quantised.num_postings());
    outln!("index      {}", arguments.out.out.display());
    give(&quantised, &arguments.out.out, json!({}));
    Ok(())
}
