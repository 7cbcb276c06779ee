//! `tandem index export`: writes an index as files that other engines read.

use std::path::PathBuf;

use indicatif::HumanBytes;

use super::parameters::ExchangeFormat;
use crate::Failure;
use crate::defaults::progress;
use tandem_core::index::Index;
use tandem_core::indexing::exchange::{export_ciff, export_pisa};

/// Write an index as a CIFF file or a PISA binary collection, for other engines.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folder of the index
    index: PathBuf,
    /// A CIFF file (x.ciff, or x.ciff.gz inside gzip), or the .docs file of a PISA binary collection (x.docs), beside
    /// which x.freqs, x.sizes, x.terms and x.documents are written
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// What to write [default: by the file's name]
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
    for file in files {
        outln!("{:>12}  {}", HumanBytes(file.metadata()?.len()).to_string(), file.display());
    }
    Ok(())
}
