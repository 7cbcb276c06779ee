//! Inputs of experiments: the user's index, a synthetic one, or a real collection.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tandem_engine::corpus::{Collection, Tokenizer, Words};
use tandem_engine::index::{Bm25, Index};
use tandem_engine::indexing::BuildOptions;
use tandem_engine::indexing::synth::{SynthOptions, draw_queries};
use tandem_engine::query::{LogOptions, Query};
use tandem_model::files::free_memory_bytes;

use super::Arguments;
use crate::failure::Failure;
use crate::{defaults, index::build_showing};
use tandem_papers::{Input, RealLog};

/// With fewer cores than this, synthetic indexes are smaller, so that each experiment takes minutes.
const FEW_CORES: usize = 8;
/// The largest number of documents on few cores.
const DOCS_ON_FEW_CORES: u32 = 2_000_000;
/// Paths in a folder of real collections.
const REAL_CORPUS: &str = "corpus/enwiki-2014-261k.jsonl.zst";
const REAL_WEB_LOG: &str = "queries/trec-tb05-efficiency-50k.tsv";
const REAL_QUESTIONS: &str = "queries/natural-questions-12k.tsv";

/// The index and queries that the user names, else a synthetic index of `docs` documents. `limit` is the number of queries.
pub(super) fn chosen(arguments: &Arguments, docs: u32, limit: usize) -> Result<Input, Failure> {
    let limit = arguments.limit.map_or(limit, |limit| limit as usize);
    if let (Some(index), Some(queries)) = (&arguments.index, &arguments.queries) {
        let form = arguments.form.options();
        return input(Arc::new(Index::open(index)?), queries, &form, limit, &index.display().to_string());
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let docs = arguments.docs.unwrap_or_else(|| {
        let fewer = if cores < FEW_CORES { docs.min(DOCS_ON_FEW_CORES) } else { docs };
        if fewer < docs {
            errln!("{cores} cores: the index has {fewer} documents instead of {docs} (--docs {docs} makes it larger)");
        }
        fewer
    });
    let (index, log) = defaults::synthetic_index(&arguments.out, docs, arguments.seed)?;
    let log = synthetic_log(&log, docs, arguments.seed, limit)?;
    input(index, &log, &LogOptions::default(), limit, &format!("synthetic, {docs} documents, seed {}", arguments.seed))
}

/// The real collection in the folder that the user or `TANDEM_DATA` names, if it has one; it is indexed on first use.
pub(super) fn real(arguments: &Arguments, log: RealLog, limit: usize) -> Result<Option<Input>, Failure> {
    let named = arguments.data.clone();
    let Some(folder) = named.clone().or_else(|| std::env::var_os("TANDEM_DATA").map(PathBuf::from)) else {
        return Ok(None);
    };
    let corpus = folder.join(REAL_CORPUS);
    let queries = folder.join(match log {
        RealLog::Web => REAL_WEB_LOG,
        RealLog::Questions => REAL_QUESTIONS,
    });
    if !corpus.exists() || !queries.exists() {
        if named.is_some() {
            return Err(Failure::input(format!(
                "{}: expected {REAL_CORPUS}, {REAL_WEB_LOG} and {REAL_QUESTIONS} there",
                folder.display()
            )));
        }
        return Ok(None);
    }
    let index = real_index(&arguments.out, &corpus)?;
    let name = Path::new(REAL_CORPUS).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let limit = arguments.limit.map_or(limit, |limit| limit as usize);
    input(index, &queries, &LogOptions::default(), limit, &name).map(Some)
}

/// The index of a real collection, which is made in the folder of the results on first use.
fn real_index(out: &Path, corpus: &Path) -> Result<Arc<Index>, Failure> {
    let folder = out.join("real");
    if let Ok(index) = Index::open(&folder) {
        return Ok(Arc::new(index));
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let options = BuildOptions {
        tokenizer: Tokenizer::new(Words::Ascii),
        bm25: Bm25::default(),
        threads,
        memory_bytes: free_memory_bytes().map(|free| free / 2),
    };
    errln!("indexing {} into {}", corpus.display(), folder.display());
    build_showing(Collection::open(corpus, threads)?, &folder, &options)?;
    Ok(Arc::new(Index::open(&folder)?))
}

/// The log of a synthetic index with at least `limit` queries: its own log if that is long enough, else a longer one in the
/// same folder.
fn synthetic_log(log: &Path, docs: u32, seed: u64, limit: usize) -> Result<PathBuf, Failure> {
    if limit <= defaults::QUERIES {
        return Ok(log.to_owned());
    }
    let longer = log.with_file_name(format!("queries-{limit}.tsv"));
    if !longer.exists() {
        let mut options = SynthOptions::new(docs, seed);
        options.num_queries = limit;
        draw_queries(&options, &longer)?;
    }
    Ok(longer)
}

/// The first `limit` queries of a log on an index.
fn input(index: Arc<Index>, log: &Path, form: &LogOptions, limit: usize, name: &str) -> Result<Input, Failure> {
    let form = LogOptions { limit: Some(limit), ..*form };
    let mut queries: Vec<Query> = defaults::read_queries(log, &form, &index)?;
    queries.truncate(limit);
    if queries.is_empty() {
        return Err(Failure::input(format!("{}: no query has a term of this index", log.display())));
    }
    let log = log.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = format!("{name}, {log}; {} queries, {} postings", queries.len(), index.num_postings());
    Ok(Input { index, queries, name })
}
