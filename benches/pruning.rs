//! Times of the disjunctive algorithms on one thread:
//! `cargo bench --bench pruning -- INDEX QUERIES [LIMIT [ROUNDS [K [ALGORITHMS]]]]`.
//!
//! For every algorithm, with and without (`-`) initial thresholds, it prints the mean, p50, p95 and p99 over the queries in
//! microseconds, of the least time of each query over the rounds. Algorithms take turns query by query, so that the load of
//! other processes affects all of them. In the first round, results are compared with those of the exhaustive algorithm, bit
//! for bit. `ALGORITHMS` are names separated by commas. Not measured: reading and preparing the query, first touches of
//! memory, several threads.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tandem::base::quantile::Times;
use tandem::corpus::Tokenizer;
use tandem::index::Index;
use tandem::query::{LogOptions, look_up, read_log};
use tandem::search::cpu::{Algorithm, CpuExecutor};
use tandem::search::{Executor, Hit};
use tandem::traffic::Mode;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds the argument `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let number = |position: usize, default: usize| arguments.get(position).map_or(Ok(default), |text| text.parse());
    let [folder, log, ..] = arguments.as_slice() else { return Err("usage: pruning INDEX QUERIES [LIMIT ..]".into()) };
    let (limit, rounds, k) = (number(2, 2000)?, number(3, 5)?, number(4, 10)?);
    let algorithms = match arguments.get(5) {
        Some(names) => {
            let named = |name| Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name);
            names.split(',').map(|name| named(name).ok_or(format!("no algorithm {name}"))).collect::<Result<_, _>>()?
        }
        None => Algorithm::ALL.to_vec(),
    };

    let index = Arc::new(Index::open(Path::new(folder))?);
    let tokenizer = Tokenizer::from_name(index.tokenizer_name())?;
    let mut entries = read_log(Path::new(log), &LogOptions::default())?.entries;
    entries.truncate(limit);
    let queries = look_up(&entries, &index, |text| tokenizer.terms(text)).queries;

    let reference = CpuExecutor::new(Arc::clone(&index), index.built_with()).with_algorithm(Algorithm::Exhaustive);
    let mut executors = Vec::new();
    for algorithm in algorithms {
        let ways: &[bool] = if algorithm == Algorithm::Exhaustive { &[true] } else { &[true, false] };
        for &is_seeded in ways {
            let name = format!("{algorithm}{}", if is_seeded { "" } else { " -" });
            executors.push((name, reference.clone_for_worker().with_algorithm(algorithm).with_seeds(is_seeded)));
        }
    }
    let (mut expected, mut hits): (Vec<Hit>, Vec<Hit>) = (Vec::new(), Vec::new());
    let mut reference = reference;
    let mut least = vec![vec![Duration::MAX; executors.len()]; queries.len()];
    for round in 0..rounds {
        for (query, least) in queries.iter().zip(&mut least) {
            if round == 0 {
                reference.search(query, Mode::Or, k, &mut expected)?;
            }
            // Another algorithm begins in every round, because the first one finds the query's lists in slower caches.
            let num_executors = executors.len();
            for turn in 0..num_executors {
                let position = (turn + round) % num_executors;
                let ((name, executor), least) = (&mut executors[position], &mut least[position]);
                let began = Instant::now();
                executor.search(query, Mode::Or, k, &mut hits)?;
                *least = began.elapsed().min(*least);
                if round == 0 && hits != expected {
                    return Err(format!("{name} differs from the exhaustive result for query {}", query.label).into());
                }
            }
        }
    }
    println!("{} queries, k {k}, {rounds} rounds, {}", queries.len(), reference.device());
    println!("{:<14} {:>9} {:>9} {:>9} {:>9}", "algorithm", "mean us", "p50", "p95", "p99");
    for (position, (name, _)) in executors.iter().enumerate() {
        let us: Vec<f64> = least.iter().map(|least| least[position].as_secs_f64() * 1e6).collect();
        let times = Times::of(us);
        let mean = times.mean_us();
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|q| times.quantile_us(q));
        println!("{name:<14} {mean:>9.1} {p50:>9.1} {p95:>9.1} {p99:>9.1}");
    }
    Ok(())
}
