//! `tandem index quantise`: an index of impacts of eight bits.

use std::path::PathBuf;

use serde_json::json;

use super::{check_not_itself, check_out, give};
use crate::Failure;
use tandem_core::index::Index;
use tandem_core::indexing::quantise;

/// Replace an index's frequencies by impacts of eight bits: faster searches, another ranking.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folder of the index
    index: PathBuf,
    /// Folder of the new index
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_out(&arguments.out)?;
    let index = Index::open(&arguments.index)?;
    check_not_itself(&arguments.index, &arguments.out, "its frequencies")?;
    if index.is_quantised() {
        let dir = arguments.index.display();
        return Err(Failure::input(format!("{dir}: holds impacts already, expected an index of frequencies")));
    }
    quantise(&index, &arguments.out)?;
    // Reading it back is the proof that the index is whole.
    let quantised = Index::open(&arguments.out)?;
    outln!("documents  {:>15}", quantised.num_docs());
    outln!("postings   {:>15}", quantised.num_postings());
    outln!("index      {}", arguments.out.display());
    give(&quantised, &arguments.out, json!({}));
    Ok(())
}
