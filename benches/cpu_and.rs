//! AND against exhaustive OR on the CPU: what intersecting costs, from a rare leader to lists that are alike.
//!
//! `cargo bench --bench cpu_and` prints a table of times, in microseconds, of one query's `Executor::search` at k = 10:
//! the least of many rounds, in which all queries and both modes take turns, so that another process's load falls on
//! all alike. Lists are synthetic, over 16 Mi documents: each document is in a list with the same probability
//! (`scattered`), or only in every second stretch of 65,536 documents, the two lists in opposite ones but for one in
//! sixteen (`apart`). The index is in memory. Left out: reading the query, first touches of memory, several threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tandem::exec::Executor;
use tandem::exec::cpu::{Algorithm, CpuExecutor};
use tandem::ids::QueryId;
use tandem::index::Index;
use tandem::query::{Mode, Query};

const NUM_DOCS: u32 = 1 << 24;
const ROUNDS: u32 = 15;
const K: usize = 10;

/// Names of lists and their lengths, about; `x` and `y` are apart.
const LISTS: [(&str, u32); 12] = [
    ("1k", 1 << 10),
    ("10k", 10 << 10),
    ("100k", 100 << 10),
    ("100kb", 100 << 10),
    ("256k", 256 << 10),
    ("1m", 1 << 20),
    ("1mb", 1 << 20),
    ("2m", 2 << 20),
    ("4m", 4 << 20),
    ("4mb", 4 << 20),
    ("x", 1 << 20),
    ("y", 1 << 20),
];

const QUERIES: [&[&str]; 16] = [
    &["1k", "4m"],
    &["10k", "4m"],
    &["100k", "4m"],
    &["256k", "4m"],
    &["1m", "4m"],
    &["2m", "4m"],
    &["4m", "4mb"],
    &["1m", "1mb"],
    &["256k", "1m"],
    &["100k", "100kb"],
    &["x", "y"],
    &["4m"],
    &["1k", "1m", "4m"],
    &["1m", "2m", "4m"],
    &["1m", "1mb", "4m", "4mb"],
    &["10k", "100k", "1m", "2m", "4m"],
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lists: Vec<_> = LISTS.iter().map(|&(name, len)| (name, postings(name, len))).collect();
    let index = Arc::new(Index::from_lists(&lists)?);
    let prepare = |words: &&[&str]| {
        let terms: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Query::prepare(QueryId(0), &words.join(" "), &terms, &index)
    };
    let queries: Vec<Query> = QUERIES.iter().filter_map(prepare).collect();

    let mut executor = CpuExecutor::new(Arc::clone(&index), index.built_with()).with_algorithm(Algorithm::Exhaustive);
    let mut hits = Vec::new();
    let mut least = vec![[Duration::MAX; 2]; queries.len()];
    for _ in 0..ROUNDS {
        for (query, least) in queries.iter().zip(&mut least) {
            for (mode, least) in [Mode::And, Mode::Or].into_iter().zip(least) {
                let began = Instant::now();
                executor.search(query, mode, K, &mut hits)?;
                *least = began.elapsed().min(*least);
            }
        }
    }
    println!("{:<24} {:>10} {:>10} {:>10}", "lists", "AND us", "OR us", "AND / OR");
    for (query, [and, or]) in queries.iter().zip(least) {
        let [and_us, or_us] = [and, or].map(|time| time.as_secs_f64() * 1e6);
        println!("{:<24} {and_us:>10.1} {or_us:>10.1} {:>10.3}", query.label, and_us / or_us);
    }
    Ok(())
}

/// About `len` documents with frequencies of 1 to 8, small ones most.
fn postings(name: &str, len: u32) -> Vec<(u32, u32)> {
    let salt = name.bytes().fold(0, |salt, byte| mix(salt ^ u64::from(byte)));
    let limit = u64::from(len) * (u64::MAX / u64::from(NUM_DOCS));
    let is_here = |doc: u32, draw: u64| {
        let stretch = doc >> 16;
        let scattered = draw < limit;
        match name {
            "x" | "y" if !stretch.is_multiple_of(16) => draw / 2 < limit && stretch.is_multiple_of(2) == (name == "x"),
            _ => scattered,
        }
    };
    (0..NUM_DOCS)
        .map(|doc| (doc, mix(salt ^ u64::from(doc))))
        .filter(|&(doc, draw)| is_here(doc, draw))
        .map(|(doc, draw)| (doc, 1 + (draw as u32 & 0xff).leading_zeros() - 24))
        .map(|(doc, freq)| (doc, freq.min(8)))
        .collect()
}

/// SplitMix64's finalizer: neighbouring numbers become unrelated ones.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
