//! `tandem index import`: makes an index from the index of another engine, or from vectors of weighted terms.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use tandem_engine::corpus::ciff::CiffReader;
use tandem_engine::corpus::{Impacts, ListSource, Tokenizer, VectorReader};
use tandem_engine::index::{Bm25, Index};
use tandem_engine::indexing::exchange::{ImportOptions, import};

use super::parameters::{Bm25Arguments, is_ciff};
use super::{Duplicates, IndexOut, say_repeated};
use crate::defaults::progress;
use crate::failure::Failure;

/// The tokenizer of queries if neither the user nor the file names one.
const ASSUMED_TOKENIZER: &str = "ascii";

/// Import the index of another engine: CIFF, or vectors in JSON.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem index import other.ciff.gz -o my-index\n  tandem index import splade.jsonl.gz -o my-impacts"
)]
pub(super) struct Arguments {
    /// CIFF file (.ciff, .ciff.gz), or JSON lines with vectors (.jsonl, .jsonl.gz, .jsonl.zst)
    file: PathBuf,
    #[command(flatten)]
    out: IndexOut,
    #[command(flatten)]
    duplicates: Duplicates,
    /// Format of the file [default: by its name]
    #[arg(long, value_enum)]
    format: Option<ImportFormat>,
    /// The file's frequencies are impacts, as learned sparse models make them: a score is the sum of weight times impact.
    /// Impacts above 255 are scaled, so that the largest is 255. Vectors (JSON lines) always hold impacts
    #[arg(long, conflicts_with_all = ["k1", "b", "idf"])]
    impacts: bool,
    /// Tokenizer of the terms, for queries: `ascii`, `unicode`, `ascii+stem=english` or another one that `index info` prints
    /// [default: as in the file, if this program wrote it; else `ascii`]
    #[arg(long, value_name = "NAME")]
    tokenizer: Option<String>,
    #[command(flatten)]
    bm25: Bm25Arguments,
}

/// A format of files to import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ImportFormat {
    /// Common Index File Format: `.ciff`, or `.ciff.gz` inside gzip
    Ciff,
    /// Anserini's vectors, one JSON object per line: `{"id": "7", "vector": {"tides": 12, "ocean": 3}}`
    Vectors,
}

impl ImportFormat {
    /// The `given` format, or the format by the file's name.
    fn of(path: &Path, given: Option<Self>) -> Result<Self, Failure> {
        if let Some(format) = given {
            return Ok(format);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_ciff(path) {
            Ok(Self::Ciff)
        } else if [".jsonl", ".jsonl.gz", ".jsonl.zst"].iter().any(|end| name.ends_with(end)) {
            Ok(Self::Vectors)
        } else {
            let what = "the name ends in none of .ciff, .ciff.gz and .jsonl (--format names the format)";
            Err(Failure::input(format!("{}: {what}", path.display())))
        }
    }
}

fn open(path: &Path, format: ImportFormat, has_impacts: bool) -> Result<Box<dyn ListSource>, Failure> {
    Ok(match (format, has_impacts) {
        (ImportFormat::Ciff, false) => Box::new(CiffReader::open(path)?),
        (ImportFormat::Ciff, true) => Box::new(Impacts::open(|| CiffReader::open(path))?),
        (ImportFormat::Vectors, _) => Box::new(VectorReader::open(path)?),
    })
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let format = ImportFormat::of(&arguments.file, arguments.format)?;
    let has_impacts = arguments.impacts || format == ImportFormat::Vectors;
    let bm25 = arguments.bm25.checked()?;
    if has_impacts && bm25 != Bm25::default() {
        let what = "vectors hold impacts, which have no parameters of BM25";
        return Err(Failure::input(format!("--k1, --b, --idf: {what}")));
    }
    let bm25 = if has_impacts { Bm25::IMPACTS } else { bm25 };
    arguments.out.check()?;
    if let Some(name) = &arguments.tokenizer {
        Tokenizer::from_name(name).map_err(|what| Failure::input(format!("--tokenizer: {what}")))?;
    }
    // CIFF has its documents at the end: a first pass finds them.
    let spinner = ProgressBar::new_spinner().with_message("reading documents");
    spinner.enable_steady_tick(Duration::from_millis(200));
    let mut source = open(&arguments.file, format, has_impacts)?;
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
    // Weighted queries name terms as they are.
    if unreachable > 0 && !has_impacts {
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
