//! `tandem index export`: writes an index as files that other engines read.

use std::path::PathBuf;

use indicatif::HumanBytes;

use super::parameters::ExchangeFormat;
use crate::Failure;
use crate::defaults::progress;
use tandem_core::index::Index;
use tandem_core::indexing::exchange::{export_ciff, export_pisa};

/// Export an index to other engines: CIFF, or a PISA binary collection.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tandem index export my-index -o mine.ciff.gz")]
pub(super) struct Arguments {
    /// Folder of the index
    index: PathBuf,
    /// CIFF file to write (x.ciff, or x.ciff.gz compressed), or the .docs file of a PISA binary collection (x.docs), with
    /// x.freqs, x.sizes, x.terms and x.documents in the same folder
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Format of the file [default: by its name]
    #[arg(long, value_enum)]
    format: Option<ExchangeFormat>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let format = ExchangeFormat::of(&arguments.out, arguments.format)?;
    let index = Index::open(&arguments.index)?;
    let bar = progress("lists", index.num_terms().into());
    let report = |lists| bar.set_position(lists);
    let written = match format {
        ExchangeFormat::Ciff => export_ciff(&index, &arguments.out, &report),
        ExchangeFormat::Pisa => export_pisa(&index, &arguments.out, &report),
    };
    bar.finish_and_clear();
    written?;
    let files: Vec<PathBuf> = match format {
        ExchangeFormat::Ciff => vec![arguments.out.clone()],
        ExchangeFormat::Pisa => ["docs", "freqs", "sizes", "terms", "documents"]
            .map(|extension| arguments.out.with_extension(extension))
            .to_vec(),
    };
    if index.built_with().is_impacts() {
        errln!("note: the frequencies are impacts: `tandem index import --impacts` reads them as such");
    }
    for file in files {
        outln!("{:>12}  {}", HumanBytes(file.metadata()?.len()).to_string(), file.display());
    }
    Ok(())
}
