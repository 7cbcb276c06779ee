//! What each CPU operator costs on one thread: `cargo bench --bench cpu -- [INDEX QUERIES [LIMIT [ROUNDS [NAME]]]]`.
//!
//! For every operator: mean, p50, p95 and p99 over the queries, in microseconds, of each query's least time over the
//! rounds, and how many of the lists' postings that makes a second (those that an operator need not look at count,
//! too). All operators take turns query by query, so that another process's load falls on all alike; NAME keeps those
//! whose name contains it. Without arguments the index is synthetic: lists of all densities over a million documents,
//! queries of two and three. Left out: reading and preparing the query, first touches of memory, several threads.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tandem::corpus::Tokenizer;
use tandem::exec::Executor;
use tandem::exec::cpu::{Algorithm, CpuExecutor};
use tandem::ids::QueryId;
use tandem::index::Index;
use tandem::measure::Times;
use tandem::query::{Mode, Query, look_up, read_log};
use tandem::random::mix;

/// Name, mode, k, and the algorithm for OR.
const OPERATORS: [(&str, Mode, usize, Algorithm); 13] = [
    ("AND", Mode::And, 10, Algorithm::Auto),
    ("AND+OR", Mode::AndOr, 10, Algorithm::Auto),
    ("OR exhaustive", Mode::Or, 10, Algorithm::Exhaustive),
    ("OR WAND", Mode::Or, 10, Algorithm::Wand),
    ("OR BMW", Mode::Or, 10, Algorithm::Bmw),
    ("OR MaxScore", Mode::Or, 10, Algorithm::Maxscore),
    ("OR BMM", Mode::Or, 10, Algorithm::Bmm),
    ("OR ranges", Mode::Or, 10, Algorithm::Ranges),
    ("OR auto", Mode::Or, 10, Algorithm::Auto),
    ("AND, k 1000", Mode::And, 1000, Algorithm::Auto),
    ("OR exhaustive, k 1000", Mode::Or, 1000, Algorithm::Exhaustive),
    ("OR MaxScore, k 1000", Mode::Or, 1000, Algorithm::Maxscore),
    ("OR auto, k 1000", Mode::Or, 1000, Algorithm::Auto),
];

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds a `--bench` of its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let number = |position: usize, default: usize| arguments.get(position).map_or(Ok(default), |text| text.parse());
    let (limit, rounds) = (number(2, 2000)?, number(3, 7)?);
    let (index, queries) = match arguments.as_slice() {
        [index, log, ..] => real(Path::new(index), Path::new(log), limit)?,
        _ => synthetic()?,
    };
    let name = arguments.get(4).map_or("", String::as_str);
    let cpu = CpuExecutor::new(Arc::clone(&index), index.built_with());
    let mut operators: Vec<_> = (OPERATORS.into_iter())
        .filter(|(operator, ..)| operator.contains(name))
        .map(|(name, mode, k, algorithm)| (name, mode, k, cpu.clone_for_worker().with_algorithm(algorithm)))
        .collect();
    let mut hits = Vec::new();
    let mut least = vec![vec![Duration::MAX; operators.len()]; queries.len()];
    for _ in 0..rounds {
        for (query, least) in queries.iter().zip(&mut least) {
            for ((_, mode, k, executor), least) in operators.iter_mut().zip(least) {
                // Twice, so that the second finds in the caches what the first left there, as a server's next does.
                for _ in 0..2 {
                    let began = Instant::now();
                    executor.search(query, *mode, *k, &mut hits)?;
                    *least = began.elapsed().min(*least);
                }
            }
        }
    }
    let postings: u64 = queries.iter().flat_map(|query| &query.terms).map(|term| u64::from(term.doc_freq)).sum();
    println!("{} queries, {postings} postings, {rounds} rounds, {}", queries.len(), cpu.device());
    println!("{:<24} {:>9} {:>9} {:>9} {:>9} {:>12}", "operator", "mean us", "p50", "p95", "p99", "M postings/s");
    for (position, (name, ..)) in operators.iter().enumerate() {
        let us: Vec<f64> = least.iter().map(|least| least[position].as_secs_f64() * 1e6).collect();
        let times = Times::of(us);
        let (mean, rate) = (times.mean_us(), postings as f64 / times.sum_us());
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|q| times.quantile_us(q));
        println!("{name:<24} {mean:>9.1} {p50:>9.1} {p95:>9.1} {p99:>9.1} {rate:>12.0}");
    }
    Ok(())
}

/// The first `limit` queries of a log, on an index from disk.
fn real(index: &Path, log: &Path, limit: usize) -> Result<(Arc<Index>, Vec<Query>), Box<dyn Error>> {
    let index = Index::open(index)?;
    let tokenizer = Tokenizer::from_name(index.tokenizer_name())?;
    let mut entries = read_log(log)?;
    entries.truncate(limit);
    let queries = look_up(&entries, &index, |text| tokenizer.terms(text)).queries;
    Ok((Arc::new(index), queries))
}

/// Lists of 16 to half a million of a million documents, and all pairs and triples of them.
fn synthetic() -> Result<(Arc<Index>, Vec<Query>), Box<dyn Error>> {
    const NUM_DOCS: u32 = 1 << 20;
    let lists: Vec<(String, Vec<(u32, u32)>)> = (1..=16_u32)
        .map(|halvings| {
            let is_here = |doc: &u32| mix(u64::from(*doc) << 8 | u64::from(halvings)) >> (64 - halvings) == 0;
            let freq =
                |doc: u32| 1 + (mix(u64::from(doc) << 8 | u64::from(halvings)) as u32 & 0xff).leading_zeros() - 24;
            (format!("t{halvings:02}"), (0..NUM_DOCS).filter(is_here).map(|doc| (doc, freq(doc))).collect())
        })
        .collect();
    let index = Index::from_lists(&lists)?;
    let mut queries = Vec::new();
    for first in 0..lists.len() {
        for second in first + 1..lists.len() {
            for third in second..lists.len() {
                // The third may be the second again: a pair.
                let mut words = vec![lists[first].0.as_str(), lists[second].0.as_str(), lists[third].0.as_str()];
                words.dedup();
                let id = QueryId(queries.len() as u32);
                queries.extend(Query::prepare(id, &words.join(" "), &words, &index));
            }
        }
    }
    Ok((Arc::new(index), queries))
}
