//! Wei and JaJa, section IV: the spread of three trials.
//!
//! "We report results averaged over three trials and in all our tests the differences between the fastest and slowest execution times
//! have been less than 2%". A first trial warms up.

use super::bench::{Bench, PAPERS_CPU_INDEXERS};
use crate::{Context, Findings, Result};

const TRIALS: usize = 3;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::new(context, findings)?;
    let cpus = PAPERS_CPU_INDEXERS.min(bench.cores());
    let parsers = bench.parsers_for(cpus);
    bench.index(parsers, cpus, 0)?;
    let mut times_s = Vec::new();
    for trial in 1..=TRIALS {
        let seconds = bench.index(parsers, cpus, 0)?.total_s();
        findings.add(format!("trial {trial}: in all"), "s", seconds);
        times_s.push(seconds);
    }
    let mean = times_s.iter().sum::<f64>() / TRIALS as f64;
    let (least, most) = times_s.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &s| (least.min(s), most.max(s)));
    findings.compare("fastest to slowest, of the mean", "%", 2.0, 100.0 * (most - least) / mean);
    findings.note(format!("{parsers} parsers and {cpus} CPU indexers on {} cores.", bench.cores()));
    Ok(())
}
