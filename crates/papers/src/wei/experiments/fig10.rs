//! Wei and JaJa, figure 10: MB/s by number of parsers.
//!
//! The figure has three curves. In each, M of eight cores parse. In the first, they parse alone. In the second, the other 8 - M
//! cores index. In the third, two GPUs index as well. A point is measured only if each thread has a core of its own.

use tandem_model::base::quantile::median;

use super::bench::{Bench, MB, PAPERS_CORES, PAPERS_GPUS, PAPERS_PARSERS, mb_per_s};
use crate::findings::{Chart, Curve};
use crate::wei::trie::TrieReport;
use crate::{Context, Findings, Result};

/// Intake of six parsers in the paper's model, in MB/s.
const PAPERS_INTAKE: f64 = 469.0;

const REPEATS: usize = 3;

/// Threads of a curve: M parsers alone, or M parsers, 8 - M CPU indexers and some GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    Parsers,
    Indexers { gpus: usize },
}

impl Threads {
    fn name(self) -> String {
        match self {
            Self::Parsers => String::from("parsers alone"),
            Self::Indexers { gpus: 0 } => String::from("M + (8 - M) CPU"),
            Self::Indexers { gpus } => format!("M + (8 - M) CPU + {gpus} GPUs"),
        }
    }

    /// Returns the MB/s in the text of the paper.
    fn papers(self, parsers: usize) -> Option<f64> {
        match self {
            Self::Indexers { gpus: 0 } if parsers == PAPERS_PARSERS => Some(207.47),
            Self::Indexers { gpus: PAPERS_GPUS } if parsers == PAPERS_PARSERS => Some(269.29),
            _ => None,
        }
    }
}

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::new(context, findings)?;
    let alone = bench.parse(1)?;
    let mut curves = Vec::new();
    let settings = [
        (Threads::Parsers, None),
        (Threads::Indexers { gpus: 0 }, Some(5.0)),
        (Threads::Indexers { gpus: PAPERS_GPUS }, Some(6.0)),
    ];
    for (colour, (threads, papers_best)) in settings.into_iter().enumerate() {
        let mut measured = Vec::new();
        for parsers in 1..PAPERS_CORES {
            let found = measure(&bench, threads, parsers)?;
            findings.compare(format!("{}, M = {parsers}", threads.name()), "MB/s", threads.papers(parsers), found);
            measured.extend(found.map(|rate| (parsers as f64, rate)));
        }
        let best = measured.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|point| point.0);
        findings.compare(format!("{}: best M", threads.name()), "parsers", papers_best, best);
        curves.push(Curve::ours(threads.name(), colour, measured));
    }
    add_intake(&alone, findings);
    let title = "Indexing by number of parsers (Wei and JaJa, figure 10)";
    findings.chart(Chart::new("parsers", title, ["parsers M", "MB/s (2^20 bytes)"], curves));
    findings.note(format!(
        "Points are measured if each thread has a core. This machine has {} cores for the paper's eight, and {} GPUs for the \
         paper's two.",
        bench.cores(),
        bench.gpus
    ));
    Ok(())
}

/// Returns the rate of a point, the median of some runs; `None` if cores or GPUs are missing.
fn measure(bench: &Bench<'_>, threads: Threads, parsers: usize) -> Result<Option<f64>> {
    let cores = bench.cores().min(PAPERS_CORES);
    let mut rates = Vec::new();
    for _ in 0..REPEATS {
        let (text_bytes, seconds) = match threads {
            Threads::Parsers if parsers <= cores => {
                let report = bench.parse(parsers)?;
                (report.text_bytes(), report.parsers_s)
            }
            Threads::Indexers { gpus } if cores == PAPERS_CORES && (gpus == 0 || bench.gpus > 0) => {
                let report = bench.index(parsers, PAPERS_CORES - parsers, gpus.min(bench.gpus))?;
                (report.text_bytes(), report.indexers_s)
            }
            _ => return Ok(None),
        };
        rates.push(mb_per_s(text_bytes, seconds));
    }
    Ok(Some(median(rates)))
}

/// Adds the paper's model of the intake of files: seconds per GB are reading plus decompressing over M.
fn add_intake(report: &TrieReport, findings: &mut Findings) {
    let gb = report.text_bytes() as f64 / MB / 1024.0;
    let (reading, unpacking) = (report.reading_s / gb, report.sum(|run| run.unpacking_s) / gb);
    findings.compare("reading", "s/GB", 1.6, reading);
    findings.compare("decompressing", "s/GB", 3.2, unpacking);
    let rate = |reading: f64, unpacking: f64| 1024.0 / (reading + unpacking / PAPERS_PARSERS as f64);
    findings.compare("intake of 6 parsers, by the model", "MB/s", PAPERS_INTAKE, rate(reading, unpacking));
}
