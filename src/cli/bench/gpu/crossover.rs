//! From how many postings on the GPU gains over a core of the CPU.
//!
//! One query at a time, from submission to results, by the postings of its lists. The log's queries are joined by pairs of terms of about
//! equal frequency, so that all lengths occur. Each query's time is the median of its rounds; queries are put in bins by the
//! logarithm of their postings, and a bin's time is the median of its queries.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::median;
use super::queries::K;
use crate::cli::Failure;
use crate::exec::Executor;
use crate::exec::cpu::CpuExecutor;
use crate::exec::gpu::GpuExecutor;
use crate::files::{Provenance, write_atomically};
use crate::ids::{QueryId, TermId};
use crate::index::Index;
use crate::query::{Mode, Query, QueryTerm};
use crate::random::Random;
use crate::report::number;
use crate::report::plot::{LineChart, Point, Series, Stroke};

/// Pairs of terms for each bin.
const PAIRS: usize = 24;
/// Terms that pairs are drawn from.
const DRAWN_TERMS: usize = 200_000;
/// Queries of the log that are taken along.
const LOG_QUERIES: usize = 200;
const ROUNDS: usize = 5;

/// The times of a bin, in microseconds.
#[derive(Clone, Debug)]
struct Bin {
    /// The median of its queries' postings.
    postings: f64,
    cpu_us: f64,
    gpu_us: f64,
    queries: usize,
}

/// Writes `gpu-crossover.csv`, `.svg` and `.png` into `out`; returns what they say, in words.
pub(super) fn measure(index: &Arc<Index>, queries: &[Query], rounds: usize, out: &Path) -> Result<String, Failure> {
    let mut queries: Vec<Query> = queries.iter().take(LOG_QUERIES).cloned().collect();
    queries.extend(pairs(index));
    let mut cpu = CpuExecutor::new(Arc::clone(index), index.built_with());
    let mut gpu = GpuExecutor::new(index, index.built_with())?;
    let rounds = rounds.min(ROUNDS);
    let mut text = String::new();
    let mut modes = Vec::new();
    for mode in [Mode::And, Mode::Or] {
        let bins = bins(&queries, |query| {
            let on = |executor: &mut dyn Executor| -> Result<f64, Failure> {
                let mut hits = Vec::new();
                let mut times_us = Vec::with_capacity(rounds);
                for _ in 0..rounds {
                    let began = Instant::now();
                    executor.search(query, mode, K, &mut hits)?;
                    times_us.push(began.elapsed().as_secs_f64() * 1e6);
                }
                Ok(median(times_us))
            };
            Ok((on(&mut cpu)?, on(&mut gpu)?))
        })?;
        text += &match crossover(&bins) {
            Some(postings) => format!("{}: the GPU gains from about {postings:.0} postings on\n", mode.name()),
            None => format!("{}: the GPU gains nowhere\n", mode.name()),
        };
        modes.push((mode, bins));
    }
    write(&out.join("gpu-crossover.csv"), &modes)?;
    chart(&modes).write(&out.join("gpu-crossover")).map_err(|e| Failure::failed(e.to_string()))?;
    Ok(format!("One query at a time against one core, top {K}\n{text}"))
}

/// Pairs of terms of about equal frequency, of all frequencies.
fn pairs(index: &Index) -> Vec<Query> {
    let mut random = Random::new(1, 0);
    let mut by_length: BTreeMap<u32, Vec<(u32, TermId)>> = BTreeMap::new();
    for _ in 0..DRAWN_TERMS {
        let term = TermId(random.below(index.num_terms()));
        let doc_freq = index.list(term).doc_freq();
        by_length.entry(doc_freq.max(1).ilog2()).or_default().push((doc_freq, term));
    }
    let mut pairs = Vec::new();
    for terms in by_length.values_mut() {
        terms.sort_unstable();
        terms.dedup();
        for _ in 0..PAIRS.min(terms.len() / 2) {
            let first = random.below(terms.len() as u32 - 1) as usize;
            let number = pairs.len() as u32;
            let terms = terms[first..first + 2].iter().map(|&(doc_freq, term)| QueryTerm { term, doc_freq, qtf: 1 });
            pairs.push(Query {
                id: QueryId(number),
                label: format!("pair {number}"),
                terms: terms.collect(),
                dropped_terms: 0,
            });
        }
    }
    pairs
}

/// Times all queries on the CPU and the GPU, and puts them in bins, two for each doubling of the postings.
fn bins(
    queries: &[Query],
    mut time_us: impl FnMut(&Query) -> Result<(f64, f64), Failure>,
) -> Result<Vec<Bin>, Failure> {
    let mut by_length: BTreeMap<i64, Vec<[f64; 3]>> = BTreeMap::new();
    for query in queries {
        let postings: f64 = query.terms.iter().map(|term| f64::from(term.doc_freq)).sum();
        let (cpu_us, gpu_us) = time_us(query)?;
        by_length.entry((2.0 * postings.log2()) as i64).or_default().push([postings, cpu_us, gpu_us]);
    }
    let bin = |queries: Vec<[f64; 3]>| {
        let [postings, cpu_us, gpu_us] = [0, 1, 2].map(|i| median(queries.iter().map(|query| query[i]).collect()));
        Bin { postings, cpu_us, gpu_us, queries: queries.len() }
    };
    Ok(by_length.into_values().map(bin).collect())
}

/// The postings from which on the GPU is the faster one in every bin: between the last bin where it is not and the next, where the
/// two times' ratio, a straight line between the two in logarithms, is one.
fn crossover(bins: &[Bin]) -> Option<f64> {
    let gain = |bin: &Bin| (bin.cpu_us / bin.gpu_us).ln();
    let last_loss = bins.iter().rposition(|bin| gain(bin) <= 0.0);
    let first_gain = last_loss.map_or(0, |last| last + 1);
    let after = bins.get(first_gain)?;
    let Some(before) = last_loss.map(|last| &bins[last]) else { return Some(after.postings) };
    let share = -gain(before) / (gain(after) - gain(before));
    Some((before.postings.ln() + share * (after.postings / before.postings).ln()).exp())
}

fn write(path: &Path, modes: &[(Mode, Vec<Bin>)]) -> Result<(), Failure> {
    let provenance = Provenance::new().with_command_and_machine().with("k", K);
    write_atomically(path, |file| {
        provenance.write_to(file)?;
        let mut csv = csv::Writer::from_writer(file);
        csv.write_record(["mode", "postings", "queries", "cpu_us", "gpu_us"])?;
        for (mode, bins) in modes {
            for bin in bins {
                let numbers = [bin.postings, bin.queries as f64, bin.cpu_us, bin.gpu_us];
                let cells = numbers.map(|value| number::text(value, 6));
                csv.write_record(std::iter::once(mode.name()).chain(cells.iter().map(String::as_str)))?;
            }
        }
        csv.flush()
    })?;
    Ok(())
}

fn chart(modes: &[(Mode, Vec<Bin>)]) -> LineChart {
    let series = modes.iter().enumerate().flat_map(|(colour, (mode, bins))| {
        let line = |name: &str, stroke, us: fn(&Bin) -> f64| Series {
            name: format!("{} on the {name}", mode.name()),
            points: bins.iter().map(|bin| Point { x: bin.postings, y: us(bin), is_hollow: false }).collect(),
            stroke,
            colour: Some(colour),
        };
        [line("CPU, one core", Stroke::Dashed, |bin| bin.cpu_us), line("GPU", Stroke::Solid, |bin| bin.gpu_us)]
    });
    LineChart {
        title: format!("One query at a time, top {K}: CPU and GPU"),
        x_label: String::from("postings of the query's lists"),
        y_label: String::from("time (us)"),
        is_x_log: true,
        is_y_log: true,
        series: series.collect(),
        ..LineChart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(postings: f64, cpu_us: f64, gpu_us: f64) -> Bin {
        Bin { postings, cpu_us, gpu_us, queries: 1 }
    }

    #[test]
    fn the_gpu_gains_from_where_it_no_longer_loses() {
        let bins = [bin(1e3, 1.0, 10.0), bin(1e4, 20.0, 10.0), bin(1e5, 5.0, 10.0), bin(1e7, 20.0, 10.0)];
        assert!((crossover(&bins).unwrap() - 1e6).abs() < 1.0);
        assert_eq!(crossover(&bins[3..]), Some(1e7));
        assert_eq!(crossover(&bins[..3]), None);
        assert_eq!(crossover(&[]), None);
    }
}
