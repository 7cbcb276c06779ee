//! `tandem demo`: the whole loop in a minute, on text that the program contains, and what to do next.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Command, FromArgMatches};
use serde_json::json;
use tandem_drive::lab::HostInfo;
use tandem_engine::corpus::{Collection, Tokenizer, Words};
use tandem_engine::index::{Bm25, Index};
use tandem_engine::indexing::BuildOptions;
use tandem_model::base::random::Random;
use tandem_model::files::{check_writable, free_memory_bytes, write_atomically};

use super::index::build_showing;
use super::validate;
use crate::failure::Failure;
use tandem_report::number::counted;
use tandem_report::page::{Folder, page};

/// Show all of Tandem in a minute: index, measure, predict, drive two policies live, and compare.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tandem demo\n\nIt needs no input. Its index, results and page go to out/demo.")]
pub(super) struct Arguments {}

const OUT: &str = "out/demo";
/// The text: pages of the documentation.
const PAGES: [&str; 7] = [
    include_str!("../README.md"),
    include_str!("../ARCHITECTURE.md"),
    include_str!("../docs/guide/commands.md"),
    include_str!("../docs/guide/concepts.md"),
    include_str!("../docs/guide/files.md"),
    include_str!("../docs/guide/servers.md"),
    include_str!("../docs/tried.md"),
];
/// Number of documents: a query takes tens of microseconds.
const DOCS: u32 = 40_000;
/// Sentences of a document.
const SENTENCES: u32 = 12;
const QUERIES: u32 = 1000;
/// Options of the validation. Its length is chosen for a minute on two cores.
const VALIDATION: &str = "--limit 300 --live-seconds 1 --seeds 1:5";
/// Port of OpenSearch and Elasticsearch.
const PORT: u16 = 9200;

pub(super) fn run(_: &Arguments) -> Result<(), Failure> {
    let out = Path::new(OUT);
    let (index, log, results) = (out.join("index"), out.join("queries.tsv"), out.join("results"));
    let shown = results.join("report.html");
    check_writable(&shown)?;
    make(&index, &log)?;
    let named = [index.display().to_string(), String::from("--queries"), log.display().to_string()];
    let of_results = [String::from("--out"), results.display().to_string()];
    let options = named.into_iter().chain(of_results).chain(VALIDATION.split(' ').map(str::to_owned));
    let command = validate::Arguments::augment_args(Command::new("validate").no_binary_name(true));
    let matched =
        command.try_get_matches_from(options).and_then(|matches| validate::Arguments::from_arg_matches(&matches));
    validate::run(&matched.map_err(|e| Failure::failed(e.to_string()))?)?;
    let html = page(&Folder::read(&[results])?);
    write_atomically(&shown, |file| file.write_all(html.as_bytes()))?;
    let address = shown.canonicalize().unwrap_or(shown);
    outln!("\nThe same as a page:\nfile://{}\n\n{}", address.display(), next_steps().trim_end());
    Ok(())
}

/// Tells what Tandem is and where to begin, in ten lines.
pub(super) fn welcome() -> String {
    format!(
        "Tandem: what query rate can this machine sustain within a deadline, and how sure is the answer?\n\n  \
         tandem demo        the whole loop in a minute: predicted and measured\n  \
         tandem simulate    policies on recorded costs of a GPU and a core\n\n{}\n\
         `tandem --help` lists all commands.",
        next_steps()
    )
}

/// What to do next, by what is found: GPUs, query logs in this folder, and a server on this host.
fn next_steps() -> String {
    let log = query_log(Path::new("."));
    let log_name = log.as_deref().unwrap_or("LOG");
    let mut text = match &log {
        Some(log) => format!("Next, with {log}, which looks like a query log, and your text:\n"),
        None => String::from("Next, with your text and a log of queries, one per line:\n"),
    };
    let _ = writeln!(text, "  tandem index build TEXT -o my-index");
    let _ = writeln!(text, "  tandem capacity my-index --queries {log_name} --deadline-ms 100");
    let gpus = HostInfo::detect().gpus;
    if gpus > 0 {
        let _ = writeln!(text, "{} found: `capacity` drives it beside the cores.", counted(gpus, "GPU", "GPUs"));
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    if cfg!(feature = "http") && TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok() {
        let _ = writeln!(
            text,
            "A server answers on port {PORT}: its rate, measured over HTTP:\n  tandem capacity --target http://127.0.0.1:{PORT}/INDEX --dialect opensearch --queries {log_name}"
        );
    }
    text
}

/// The first file of a folder whose name is that of a query log.
fn query_log(folder: &Path) -> Option<String> {
    let is_log = |name: &String| {
        let name = name.to_lowercase();
        let is_text = [".tsv", ".csv", ".txt", ".log", ".jsonl", ".gz", ".zst"].iter().any(|end| name.ends_with(end));
        is_text && ["quer", "topics", "searches", "slowlog"].iter().any(|part| name.contains(part))
    };
    let files = folder.read_dir().ok()?.filter_map(|entry| entry.ok().filter(|entry| entry.path().is_file()));
    files.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_log).min()
}

/// Makes the index and the log of queries, unless an earlier run has made them.
fn make(folder: &Path, log: &Path) -> Result<(), Failure> {
    if log.exists() && Index::open(folder).is_ok() {
        return Ok(());
    }
    let sentences = sentences();
    let mut random = Random::new(1, 0);
    let mut any = || sentences[random.below(sentences.len() as u32) as usize].as_str();
    let (mut text, mut queries) = (String::new(), String::new());
    for id in 0..DOCS {
        let body: Vec<&str> = (0..SENTENCES).map(|_| any()).collect();
        let _ = writeln!(text, "{}", json!({ "id": id.to_string(), "text": body.join(". ") }));
    }
    for id in 0..QUERIES {
        let words: Vec<&str> = any().split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 3).collect();
        let _ = writeln!(queries, "{id}\t{}", words[..words.len().min(3)].join(" "));
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let memory_bytes = free_memory_bytes().map(|free| free / 2);
    let options =
        BuildOptions { tokenizer: Tokenizer::new(Words::Unicode), bm25: Bm25::default(), threads, memory_bytes };
    let collection = Collection::of_bytes(&PathBuf::from("text.jsonl"), 0, text.into_bytes())?;
    build_showing(collection, folder, &options)?;
    errln!("made an index of {DOCS} documents, drawn from the sentences of Tandem's documentation");
    Ok(write_atomically(log, |file| file.write_all(queries.as_bytes()))?)
}

/// The sentences of the documentation, without code, tables and headings.
fn sentences() -> Vec<String> {
    let mut all = Vec::new();
    for page in PAGES {
        let mut is_code = false;
        let mut prose = String::new();
        for line in page.lines() {
            is_code ^= line.starts_with("```");
            if !is_code && !line.starts_with(['`', '|', '#', '<', '!']) {
                prose += line.trim_start_matches("- ");
                prose.push(' ');
            }
        }
        let is_whole = |sentence: &&str| sentence.split(' ').filter(|word| word.len() > 3).count() >= 4;
        all.extend(prose.split(". ").filter(is_whole).map(str::to_owned));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_suffices_for_documents_and_queries() {
        let mut all = sentences();
        all.sort_unstable();
        all.dedup();
        assert!(all.len() > 500, "{}", all.len());
        assert!(all.iter().all(|sentence| !sentence.contains("```")));
    }

    #[test]
    fn a_log_is_found_by_its_name_and_no_other_file_is() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["notes.txt", "queries.rs", "articles.jsonl"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        assert_eq!(query_log(dir.path()), None);
        std::fs::write(dir.path().join("user-Queries.tsv.gz"), "x").unwrap();
        assert_eq!(query_log(dir.path()).as_deref(), Some("user-Queries.tsv.gz"));
    }
}
