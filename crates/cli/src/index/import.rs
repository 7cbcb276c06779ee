//! `tandem index import`: makes an index from the index of another engine.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::parameters::{Bm25Arguments, ExchangeFormat};
use super::{Duplicates, IndexOut, say_repeated};
use crate::Failure;
use crate::defaults::progress;
use tandem_core::corpus::ciff::CiffReader;
use tandem_core::corpus::pisa::PisaReader;
use tandem_core::corpus::{ListSource, Tokenizer};
use tandem_core::index::Index;
use tandem_core::indexing::exchange::{ImportOptions, import};

/// The tokenizer of queries if neither the user nor the file names one.
const ASSUMED_TOKENIZER: &str = "ascii";

/// Import the index of another engine: CIFF, or a PISA or ds2i collection.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tandem index import other.ciff.gz -o my-index")]
pub(super) struct Arguments {
    /// CIFF file (.ciff, .ciff.gz), or the .docs file of a PISA or ds2i binary collection, with its .freqs and .sizes (and
    /// optional .terms and .documents) in the same folder
    file: PathBuf,
    #[command(flatten)]
    out: IndexOut,
    #[command(flatten)]
    duplicates: Duplicates,
    /// Format of the file [default: by its name]
    #[arg(long, value_enum)]
    format: Option<ExchangeFormat>,
    /// Tokenizer of the terms, for queries: `ascii`, `unicode`, `ascii+stem=english` or another one that `index info` prints
    /// [default: as in the file, if this program wrote it; else `ascii`]
    #[arg(long, value_name = "NAME")]
    tokenizer: Option<String>,
    #[command(flatten)]
    bm25: Bm25Arguments,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let bm25 = arguments.bm25.checked()?;
    arguments.out.check()?;
    if let Some(name) = &arguments.tokenizer {
        Tokenizer::from_name(name).map_err(|what| Failure::input(format!("--tokenizer: {what}")))?;
    }
    // CIFF has its documents at the end: a first pass finds them.
    let spinner = ProgressBar::new_spinner().with_message("reading documents");
    spinner.enable_steady_tick(Duration::from_millis(200));
    let mut source: Box<dyn ListSource> = match ExchangeFormat::of(&arguments.file, arguments.format)? {
        ExchangeFormat::Ciff => Box::new(CiffReader::open(&arguments.file)?),
        ExchangeFormat::Pisa => Box::new(PisaReader::open(&arguments.file)?),
    };
    spinner.finish_and_clear();
    let of_file = source.tokenizer_name().filter(|name| Tokenizer::from_name(name).is_ok());
    let said = arguments.tokenizer.clone().or(of_file);
    let is_assumed = said.is_none();
    let tokenizer = said.unwrap_or_else(|| ASSUMED_TOKENIZER.to_owned());
    let options = ImportOptions { bm25, tokenizer, may_repeat: arguments.duplicates.keeps_last() };

    let bar = progress("lists", source.num_lists());
    let imported = arguments.duplicates.apply(&arguments.out.out, |folder| {
        Ok(import(source.as_mut(), folder, &options, &|lists| bar.set_position(lists))?)
    });
    bar.finish_and_clear();
    let ((unreachable, repeated), all) = (imported?, source.num_lists());
    if unreachable > 0 {
        let name = &options.tokenizer;
        errln!(
            "note: {unreachable} of {all} terms cannot be asked for with tokenizer {name} (--tokenizer NAME says otherwise)"
        );
    }
    for note in source.notes() {
        errln!("note: {}: {note}", arguments.file.display());
    }
    // Reading the index back checks that it is complete.
    let index = Index::open(&arguments.out.out)?;
    outln!("documents  {:>15}", index.num_docs());
    outln!("tokens     {:>15}", index.num_tokens());
    outln!("terms      {:>15}", index.num_terms());
    outln!("postings   {:>15}", index.num_postings());
    say_repeated(repeated);
    outln!("time       {:>15.2} s", started.elapsed().as_secs_f64());
    let assumed = if is_assumed { " (assumed; --tokenizer NAME says otherwise)" } else { "" };
    outln!("tokenizer  {}{assumed}", index.tokenizer_name());
    outln!("index      {}", arguments.out.out.display());
    Ok(())
}
