//! What builds took, as jobs for the lab: a group of slots in a run each.

use std::collections::BTreeMap;

use super::indexer::SlotWork;
use super::report::{RunReport, TrieReport};
use crate::lab::indexing::{Company, IndexJob, IndexRun, IndexTrace};
use crate::time::Nanos;

/// Slots of the trie are so many groups: slot mod groups.
const GROUPS: usize = 256;
/// A node of 512 bytes holds some 22 of 31 keys; and half of a term is behind its cache.
const TREE_BYTES_A_TERM: u64 = 28;

/// What threads do to each other, and what parsing takes one of them.
#[derive(Clone, Debug)]
pub struct ParsedInCompany {
    /// How many times as long parsing took by so many parsers at once.
    pub company: Company,
    /// All of it parsed by one.
    pub alone: TrieReport,
}

/// Parses a collection by 1, 2, 3... parsers up to `most`, by what `parse` does, and nothing else beside them.
///
/// # Errors
/// Those of `parse`.
pub fn parse_in_company<E>(
    most: usize,
    mut parse: impl FnMut(usize) -> Result<TrieReport, E>,
) -> Result<ParsedInCompany, E> {
    let alone = parse(1)?;
    let alone_s = parsing_s_per_byte(&alone, 1);
    let mut measured = Vec::new();
    for parsers in 2..=most {
        measured.push((parsers as u32, parsing_s_per_byte(&parse(parsers)?, parsers) / alone_s));
    }
    Ok(ParsedInCompany { company: Company::new(measured), alone })
}

/// What a byte of text took a parser, in rounds in which all of them parsed; but for the first, in which their memory is new, if
/// there are others.
fn parsing_s_per_byte(report: &TrieReport, parsers: usize) -> f64 {
    let rounds = report.runs.len() / parsers;
    let (first, end) = match rounds {
        0 => (0, report.runs.len()),
        1 => (0, parsers),
        _ => (parsers, rounds * parsers),
    };
    let runs = &report.runs[first..end];
    let seconds: f64 = runs.iter().map(|run| run.unpacking_s + run.parsing_s).sum();
    seconds / runs.iter().map(|run| run.text_bytes).sum::<u64>().max(1) as f64
}

/// The jobs of a build by one parser and one CPU indexer beside it, and of one by a GPU, if there is one: of the same runs as were
/// parsed in company. Both kept what slots took.
#[must_use]
pub fn trace_of(parsed: &ParsedInCompany, on_cpu: &TrieReport, on_gpu: Option<&TrieReport>) -> IndexTrace {
    let ParsedInCompany { company, alone } = parsed;
    let reading_s = alone.reading_s / alone.runs.len().max(1) as f64;
    // The parser was at work beside the indexer.
    let times = company.times(2);
    let runs = on_cpu.runs.iter().zip(&alone.runs).enumerate().map(|(number, (run, parsed))| {
        let gpu = on_gpu.and_then(|report| report.runs.get(number));
        IndexRun {
            text_bytes: run.text_bytes,
            reading: Nanos::from_secs(reading_s),
            unpacking: Nanos::from_secs(parsed.unpacking_s),
            parsing: Nanos::from_secs(parsed.parsing_s),
            preparing: Nanos::from_secs(gpu.map_or(0.0, |run| run.preparing_s / times)),
            collecting: Nanos::from_secs(run.collecting_s / times),
            jobs: jobs(run, gpu, times),
        }
    });
    IndexTrace { runs: runs.collect(), company: company.clone() }
}

/// `times` is how many times as long as alone a CPU's work took.
fn jobs(run: &RunReport, gpu: Option<&RunReport>, times: f64) -> Vec<IndexJob> {
    let mut jobs = vec![IndexJob { cpu: Some(Nanos(0)), ..IndexJob::default() }; GROUPS];
    let group_of = |work: &SlotWork| usize::from(work.slot) % GROUPS;
    for work in &run.work {
        let job = &mut jobs[group_of(work)];
        job.tokens += u64::from(work.tokens);
        job.stream_bytes += work.stream_bytes;
        job.tree_bytes += u64::from(work.terms) * TREE_BYTES_A_TERM;
        job.cpu = job.cpu.map(|all| Nanos(all.0 + work.ns));
    }
    for job in &mut jobs {
        job.cpu = job.cpu.map(|all| all.scaled(1.0 / times));
    }
    let Some(gpu) = gpu else { return jobs };
    let mut times: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for work in &gpu.work {
        let (all, longest) = times.entry(group_of(work)).or_default();
        *all += work.ns;
        *longest = (*longest).max(work.ns);
    }
    for (group, job) in jobs.iter_mut().enumerate() {
        let (all, longest) = times.get(&group).copied().unwrap_or_default();
        job.gpu = Some((Nanos(all), Nanos(longest)));
    }
    jobs
}
