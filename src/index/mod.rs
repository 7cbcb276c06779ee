//! `tandem index`: makes indexes (from text, from other engines, synthetic ones), and exchanges, renumbers or describes them.

mod build;
mod export;
mod import;
mod info;
mod parameters;
mod quantise;
mod reorder;
mod synth;

use std::path::{Path, PathBuf};

pub(super) use build::build_showing;

use serde_json::{Value, json};
use tandem_engine::index::{FILE_NAME, Index};
use tandem_engine::indexing::reorder::keep_last;
use tandem_model::files::{check_writable, remove_dir_all};

pub(super) use self::parameters::bytes;
use super::output::{is_json, result};
use crate::failure::Failure;

/// Make, change, describe and exchange indexes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tandem index build articles.jsonl.zst -o my-index")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

commands! {
    "Make an index" {
        Build: build;
        Synth: synth;
        Import: import;
    }
    "Change an index" {
        Reorder: reorder;
        Quantise: quantise;
    }
    "Look at an index, or hand it on" {
        Info: info;
        Export: export;
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.command.run()
}

/// Adds the facts of an index, and `more` facts, to the JSON document.
fn give(index: &Index, dir: &Path, more: Value) {
    if !is_json() {
        return;
    }
    let mut facts = json!({
        "path": dir.display().to_string(),
        "documents": index.num_docs(),
        "tokens": index.num_tokens(),
        "terms": index.num_terms(),
        "postings": index.num_postings(),
        "tokenizer": index.tokenizer_name(),
        "fingerprint": format!("{:016x}", index.fingerprint()),
    });
    if let (Value::Object(facts), Value::Object(more)) = (&mut facts, more) {
        facts.extend(more);
    }
    result("index", facts);
}

/// The folder of a new index.
#[derive(Debug, clap::Args)]
struct IndexOut {
    /// Folder of the new index
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Replace the index that the folder holds
    #[arg(long)]
    force: bool,
}

impl IndexOut {
    /// Checks that an index can be written into the folder, before the work.
    fn check(&self) -> Result<(), Failure> {
        let file = self.out.join(FILE_NAME);
        check_writable(&file)?;
        if file.exists() && !self.force {
            return Err(Failure::input(format!("{} holds an index already (--force replaces it)", self.out.display())));
        }
        Ok(())
    }
}

/// The rule for documents of one id.
#[derive(Debug, clap::Args)]
struct Duplicates {
    /// Keep the last of several documents with one id [default: an error that names both places]
    #[arg(long, value_name = "last", value_parser = ["last"])]
    duplicates: Option<String>,
}

/// Subfolder for an index that also holds documents of repeated ids. An interrupted build finds it again.
const WITH_ALL: &str = ".tandem-with-repeated";

impl Duplicates {
    fn keeps_last(&self) -> bool {
        self.duplicates.is_some()
    }

    /// Makes an index in `out` by `make`, which gets its folder. Also returns the number of documents left out.
    fn apply<T>(&self, out: &Path, make: impl FnOnce(&Path) -> Result<T, Failure>) -> Result<(T, u32), Failure> {
        if !self.keeps_last() {
            return Ok((make(out)?, 0));
        }
        let folder = out.join(WITH_ALL);
        let made = make(&folder)?;
        let repeated = keep_last(&Index::open(&folder)?, out)?;
        remove_dir_all(&folder)?;
        Ok((made, repeated))
    }
}

fn say_repeated(repeated: u32) {
    if repeated > 0 {
        outln!("repeated   {repeated:>15} documents whose id came again, left out");
    }
}
