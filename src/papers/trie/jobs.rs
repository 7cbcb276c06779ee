//! What builds took, as jobs for the lab: a group of slots in a run each.

use std::collections::BTreeMap;

use super::indexer::SlotWork;
use super::report::{RunReport, TrieReport};
use crate::lab::indexing::{IndexJob, IndexRun, IndexTrace};
use crate::time::Nanos;

/// Slots of the trie are so many groups: slot mod groups.
const GROUPS: usize = 256;
/// A node of 512 bytes holds some 22 of 31 keys; and half of a term is behind its cache.
const TREE_BYTES_A_TERM: u64 = 28;

/// The jobs of a build by one CPU indexer, and of one by a GPU, if there is one: of the same runs. Both kept what slots took.
#[must_use]
pub fn trace_of(on_cpu: &TrieReport, on_gpu: Option<&TrieReport>) -> IndexTrace {
    let reading_s = on_cpu.reading_s / on_cpu.runs.len().max(1) as f64;
    let runs = on_cpu.runs.iter().enumerate().map(|(number, run)| {
        let gpu = on_gpu.and_then(|report| report.runs.get(number));
        IndexRun {
            text_bytes: run.text_bytes,
            reading: Nanos::from_secs(reading_s),
            unpacking: Nanos::from_secs(run.unpacking_s),
            parsing: Nanos::from_secs(run.parsing_s),
            preparing: Nanos::from_secs(gpu.map_or(0.0, |run| run.preparing_s)),
            collecting: Nanos::from_secs(run.collecting_s),
            jobs: jobs(run, gpu),
        }
    });
    IndexTrace { runs: runs.collect() }
}

fn jobs(run: &RunReport, gpu: Option<&RunReport>) -> Vec<IndexJob> {
    let mut jobs = vec![IndexJob { cpu: Some(Nanos(0)), ..IndexJob::default() }; GROUPS];
    let group_of = |work: &SlotWork| usize::from(work.slot) % GROUPS;
    for work in &run.work {
        let job = &mut jobs[group_of(work)];
        job.tokens += u64::from(work.tokens);
        job.stream_bytes += work.stream_bytes;
        job.tree_bytes += u64::from(work.terms) * TREE_BYTES_A_TERM;
        job.cpu = job.cpu.map(|all| Nanos(all.0 + work.ns));
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
