//! Wei and JaJa, figure 10: MB/s by number of parsers.
//!
//! The figure has three curves. In each, M of eight cores parse. In the first, they parse alone. In the second, the other 8 - M
//! cores index. In the third, two GPUs index as well. A point is measured only if each thread has a core of its own.

use super::bench::{Bench, MB, PAPERS_CORES, PAPERS_GPUS, PAPERS_PARSERS, mb_per_s};
use crate::wei::trie::TrieReport;
use crate::{Chart, Context, ExperimentError, Findings, Line};
use tandem_core::base::quantile::median;

/// What the paper's model gives for six parsers, in MB/s.
const PAPERS_INTAKE: f64 = 469.0;

/// Runs a point.
const REPEATS: usize = 3;

/// A curve: M parsers alone, or M + (8 - M) with so many GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    Parsers,
    Indexers { gpus: usize },
}

impl Curve {
    fn name(self) -> String {
        match self {
            Self::Parsers => String::from("parsers alone"),
            Self::Indexers { gpus: 0 } => String::from("M + (8 - M) CPU"),
            Self::Indexers { gpus } => format!("M + (8 - M) CPU + {gpus} GPUs"),
        }
    }

    /// The paper's MB/s, as far as its text tells.
    fn papers(self, parsers: usize) -> Option<f64> {
        match self {
            Self::Indexers { gpus: 0 } if parsers == PAPERS_PARSERS => Some(207.47),
            Self::Indexers { gpus: PAPERS_GPUS } if parsers == PAPERS_PARSERS => Some(269.29),
            _ => None,
        }
    }
}

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let bench = Bench::new(context, &mut findings)?;
    let alone = bench.parse(1)?;
    let mut lines = Vec::new();
    let curves = [Curve::Parsers, Curve::Indexers { gpus: 0 }, Curve::Indexers { gpus: PAPERS_GPUS }];
    for (number, curve) in curves.into_iter().enumerate() {
        let mut measured = Vec::new();
        for parsers in 1..PAPERS_CORES {
            let found = measure(&bench, curve, parsers)?;
            findings.compare(format!("{}, M = {parsers}", curve.name()), "MB/s", curve.papers(parsers), found);
            measured.extend(found.map(|rate| (parsers as f64, rate)));
        }
        let best = |points: &[(f64, f64)]| points.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|point| point.0);
        let papers_best = match curve {
            Curve::Parsers => None,
            Curve::Indexers { gpus: 0 } => Some(5.0),
            Curve::Indexers { .. } => Some(6.0),
        };
        findings.compare(format!("{}: best M", curve.name()), "parsers", papers_best, best(&measured));
        lines.push(Line { name: curve.name(), is_papers: false, colour: number, points: measured });
    }
    intake(&alone, &mut findings);
    findings.chart(Chart {
        stem: String::from("parsers"),
        title: String::from("Indexing by number of parsers (Wei and JaJa, figure 10)"),
        x_label: String::from("parsers M"),
        y_label: String::from("MB/s (2^20 bytes)"),
        is_x_log: false,
        is_y_log: false,
        lines: lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
    });
    findings.note(format!(
        "Measured: the points whose threads have a core each, of {} here and the paper's eight; with GPUs: {} of the paper's two.",
        bench.cores(),
        bench.gpus
    ));
    findings.note("The paper draws the curves without numbers: it calls them nearly linear up to M = 5.");
    Ok(findings)
}

/// The rate of a point of a curve, the median of some runs; `None` where cores or GPUs are missing.
fn measure(bench: &Bench<'_>, curve: Curve, parsers: usize) -> Result<Option<f64>, ExperimentError> {
    let cores = bench.cores().min(PAPERS_CORES);
    let mut rates = Vec::new();
    for _ in 0..REPEATS {
        let (text_bytes, seconds) = match curve {
            Curve::Parsers if parsers <= cores => {
                let report = bench.parse(parsers)?;
                (report.text_bytes(), report.parsers_s)
            }
            Curve::Indexers { gpus } if cores == PAPERS_CORES && (gpus == 0 || bench.gpus > 0) => {
                let report = bench.index(parsers, PAPERS_CORES - parsers, gpus.min(bench.gpus))?;
                (report.text_bytes(), report.indexers_s)
            }
            _ => return Ok(None),
        };
        rates.push(mb_per_s(text_bytes, seconds));
    }
    Ok(Some(median(rates)))
}

/// The paper's model of how fast files come in: 1 GB in reading plus decompressing over M, in seconds.
fn intake(report: &TrieReport, findings: &mut Findings) {
    let gb = report.text_bytes() as f64 / MB / 1024.0;
    let (reading, unpacking) = (report.reading_s / gb, report.sum(|run| run.unpacking_s) / gb);
    findings.compare("reading", "s/GB", 1.6, reading);
    findings.compare("decompressing", "s/GB", 3.2, unpacking);
    let rate = |reading: f64, unpacking: f64| 1024.0 / (reading + unpacking / PAPERS_PARSERS as f64);
    findings.compare("intake of 6 parsers, by the model", "MB/s", PAPERS_INTAKE, rate(reading, unpacking));
}
