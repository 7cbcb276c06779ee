//! From how many postings on the GPU gains over a core of the CPU.
//!
//! One query at a time, from submission to results, by the postings of its lists; each query's time is the
//! median of its rounds. Two kinds of queries are kept apart, because a conjunction's time depends on its
//! shortest list more than on all of them: those of the log, and pairs of terms of about equal frequency, of
//! every frequency that the index has.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::queries::K;
use crate::cli::{Failure, defaults};
use crate::exec::Executor;
use crate::exec::cpu::CpuExecutor;
use crate::files::{Provenance, write_atomically};
use crate::ids::{QueryId, TermId};
use crate::index::Index;
use crate::quantile::median;
use crate::query::{Mode, Query, QueryTerm};
use crate::random::Random;
use crate::report::number;
use crate::report::plot::{LineChart, Point, Series, Stroke};

/// Pairs of terms for each doubling of their frequency.
const PAIRS: usize = 24;
/// Terms that pairs are drawn from.
const DRAWN_TERMS: usize = 200_000;
/// Queries of the log that are taken along.
const LOG_QUERIES: usize = 200;
const ROUNDS: usize = 5;
const MODES: [Mode; 2] = [Mode::And, Mode::Or];

/// One query's times, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Sample {
    postings: f64,
    cpu_us: f64,
    gpu_us: f64,
}

/// Queries of one kind in one mode, ascending by postings.
#[derive(Debug)]
struct Run {
    mode: Mode,
    kind: &'static str,
    samples: Vec<Sample>,
}

/// Writes `gpu-crossover.csv`, and a drawing for each mode, into `out`; returns what they say, in words.
pub(super) fn measure(index: &Arc<Index>, queries: &[Query], rounds: usize, out: &Path) -> Result<String, Failure> {
    let mut cpu = CpuExecutor::new(Arc::clone(index), index.built_with());
    let mut gpu = defaults::gpu_executor(index, index.built_with(), None)?;
    let log = &queries[..queries.len().min(LOG_QUERIES)];
    let pairs = pairs(index);
    let mut runs = Vec::new();
    let mut text = format!("One query at a time against one core, top {K}: the least time in all, if the GPU gets\n");
    for mode in MODES {
        for (kind, queries) in [("pairs", pairs.as_slice()), ("log", log)] {
            let mut samples = Vec::with_capacity(queries.len());
            for query in queries {
                samples.push(Sample {
                    postings: query.terms.iter().map(|term| f64::from(term.doc_freq)).sum(),
                    cpu_us: time_us(&mut cpu, query, mode, rounds.min(ROUNDS))?,
                    gpu_us: time_us(&mut gpu, query, mode, rounds.min(ROUNDS))?,
                });
            }
            samples.sort_by(|a, b| a.postings.total_cmp(&b.postings));
            let which = match crossover(&samples) {
                Some(postings) => format!("those from {postings:.0} postings on"),
                None => String::from("none"),
            };
            text += &format!("  {}, {}: {which}\n", mode.name(), words(kind));
            runs.push(Run { mode, kind, samples });
        }
    }
    write(&out.join("gpu-crossover.csv"), &runs)?;
    for mode in MODES {
        let stem = out.join(format!("gpu-crossover-{}", mode.name()));
        chart(mode, &runs).write(&stem)?;
    }
    Ok(text)
}

fn words(kind: &str) -> &'static str {
    if kind == "log" { "queries of the log" } else { "pairs of equally frequent terms" }
}

fn time_us(executor: &mut dyn Executor, query: &Query, mode: Mode, rounds: usize) -> Result<f64, Failure> {
    let mut hits = Vec::new();
    let mut times_us = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let began = Instant::now();
        executor.search(query, mode, K, &mut hits)?;
        times_us.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(times_us))
}

/// Pairs of terms of about equal frequency, of all frequencies.
pub(super) fn pairs(index: &Index) -> Vec<Query> {
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

/// The postings from which on queries should go to the GPU for all of them to take the least time together; `None` if
/// none should. The samples ascend by postings.
fn crossover(samples: &[Sample]) -> Option<f64> {
    let mut saved_us = 0.0;
    let mut most_us = 0.0;
    let mut from = None;
    for sample in samples.iter().rev() {
        saved_us += sample.cpu_us - sample.gpu_us;
        if saved_us > most_us {
            most_us = saved_us;
            from = Some(sample.postings);
        }
    }
    from
}

/// The medians of samples of about equal postings, two for each doubling.
fn bins(samples: &[Sample]) -> Vec<Sample> {
    let bin_of = |sample: &Sample| (2.0 * sample.postings.log2()) as i64;
    let of_bin = |bin: &[Sample]| {
        let of = |value: fn(&Sample) -> f64| median(bin.iter().map(value).collect());
        Sample { postings: of(|s| s.postings), cpu_us: of(|s| s.cpu_us), gpu_us: of(|s| s.gpu_us) }
    };
    samples.chunk_by(|a, b| bin_of(a) == bin_of(b)).map(of_bin).collect()
}

fn write(path: &Path, runs: &[Run]) -> Result<(), Failure> {
    let provenance = Provenance::new().with_command_and_machine().with("k", K);
    write_atomically(path, |file| {
        provenance.write_to(file)?;
        let mut csv = csv::Writer::from_writer(file);
        csv.write_record(["mode", "queries", "postings", "cpu_us", "gpu_us"])?;
        for Run { mode, kind, samples } in runs {
            for sample in samples {
                let cells = [sample.postings, sample.cpu_us, sample.gpu_us].map(|value| number::text(value, 6));
                csv.write_record([mode.name(), *kind].into_iter().chain(cells.iter().map(String::as_str)))?;
            }
        }
        csv.flush()
    })?;
    Ok(())
}

fn chart(mode: Mode, runs: &[Run]) -> LineChart {
    let runs = runs.iter().filter(|run| run.mode == mode);
    let series = runs.enumerate().flat_map(|(colour, run)| {
        let bins = bins(&run.samples);
        let line = |name: &str, stroke, us: fn(&Sample) -> f64| Series {
            name: format!("{}, {name}", run.kind),
            points: bins.iter().map(|bin| Point { x: bin.postings, y: us(bin), ..Point::default() }).collect(),
            stroke,
            colour: Some(colour),
        };
        [line("CPU core", Stroke::Dashed, |bin| bin.cpu_us), line("GPU", Stroke::Solid, |bin| bin.gpu_us)]
    });
    LineChart {
        title: format!("{}, top {K}, one query at a time: CPU and GPU", mode.name().to_uppercase()),
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

    fn sample(postings: f64, cpu_us: f64, gpu_us: f64) -> Sample {
        Sample { postings, cpu_us, gpu_us }
    }

    #[test]
    fn queries_go_to_the_gpu_from_where_that_saves_most() {
        let samples = [sample(1.0, 1.0, 5.0), sample(2.0, 9.0, 5.0), sample(3.0, 4.0, 5.0), sample(4.0, 9.0, 5.0)];
        assert_eq!(crossover(&samples), Some(2.0));
        assert_eq!(crossover(&samples[2..]), Some(4.0));
        assert_eq!(crossover(&samples[..1]), None);
        assert_eq!(crossover(&[]), None);
    }

    #[test]
    fn bins_are_medians() {
        let samples = [sample(8.0, 1.0, 5.0), sample(9.0, 2.0, 6.0), sample(10.0, 9.0, 7.0), sample(16.0, 3.0, 4.0)];
        let bins = bins(&samples);
        assert_eq!(bins.len(), 2);
        assert_eq!((bins[0].postings, bins[0].cpu_us, bins[0].gpu_us), (9.0, 2.0, 6.0));
    }
}
