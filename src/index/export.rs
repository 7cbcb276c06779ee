//! `tandem index export`: writes an index as files that other engines read.

use std::path::PathBuf;

use indicatif::HumanBytes;
use tandem_engine::index::Index;
use tandem_engine::indexing::exchange::export_ciff;

use super::parameters::is_ciff;
use crate::defaults::progress;
use crate::failure::Failure;

/// Export an index to other engines: a CIFF file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tandem index export my-index -o mine.ciff.gz")]
pub(super) struct Arguments {
    /// Folder of the index
    index: PathBuf,
    /// CIFF file to write: x.ciff, or x.ciff.gz compressed
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let out = &arguments.out;
    if !is_ciff(out) {
        return Err(Failure::input(format!("{}: the name ends in neither .ciff nor .ciff.gz", out.display())));
    }
    let index = Index::open(&arguments.index)?;
    let bar = progress("lists", index.num_terms().into());
    let report = |lists| bar.set_position(lists);
    let written = export_ciff(&index, out, &report);
    bar.finish_and_clear();
    written?;
    if index.built_with().is_impacts() {
        errln!("note: the frequencies are impacts: `tandem index import --impacts` reads them as such");
    }
    outln!("{:>12}  {}", HumanBytes(out.metadata()?.len()).to_string(), out.display());
    Ok(())
}
