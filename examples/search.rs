//! A folder of text becomes an index, and every algorithm answers a query with the same bits.
//!
//! `cargo run --release --example search -- src "posting list blocks"` (a folder or a file of JSON lines, and a query)

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tandem::base::ids::QueryId;
use tandem::corpus::{Collection, Tokenizer};
use tandem::index::{Bm25, Index};
use tandem::indexing::{BuildOptions, build_from_text};
use tandem::query::Query;
use tandem::search::Executor;
use tandem::search::cpu::{Algorithm, CpuExecutor};
use tandem::traffic::Mode;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "src".to_owned());
    let words = arguments.next().unwrap_or_else(|| "posting list blocks".to_owned());

    let dir = tempfile::tempdir()?;
    let options = BuildOptions {
        tokenizer: Tokenizer::from_name("ascii")?,
        bm25: Bm25::default(),
        threads: 2,
        memory_bytes: None,
    };
    build_from_text(Collection::open(Path::new(&folder), 2)?, dir.path(), &options, &|_| {})?;
    let index = Arc::new(Index::open(dir.path())?);
    println!("{folder}: {} documents, {} postings", index.num_docs(), index.num_postings());

    let terms: Vec<&str> = words.split_whitespace().collect();
    let Some(query) = Query::prepare(QueryId(0), "0", &terms, &index) else {
        return Err(format!("no term of {words:?} is in {folder}").into());
    };
    let mut reference = Vec::new();
    for algorithm in Algorithm::ALL {
        let mut executor = CpuExecutor::new(Arc::clone(&index), Bm25::default()).with_algorithm(algorithm);
        let mut hits = Vec::new();
        let start = Instant::now();
        executor.search(&query, Mode::Or, 5, &mut hits)?;
        println!("{:>10} {:>6} us", algorithm.name(), start.elapsed().as_micros());
        if reference.is_empty() {
            reference.clone_from(&hits);
        }
        assert_eq!(hits, reference, "{algorithm} gave another answer");
    }
    for hit in &reference {
        println!("{:>10.4}  {}", hit.score, index.external_id(hit.doc));
    }
    Ok(())
}
