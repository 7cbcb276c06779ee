//! Wei and JaJa, figure 10: MB/s by number of parsers.
//!
//! Three curves, each with M of eight cores parsing: M parsers alone; the other 8 - M cores indexing; and two GPUs beside those.
//! What has a core each is measured; all of it is predicted, too, from what parsing and indexing took one parser and one
//! indexer, and from how far parsers slowed each other in runs of their own, by the lab's simulation of the pipeline. On a machine
//! with fewer cores than eight only the predicted curves are whole: they are called simulated.

use super::bench::{Bench, MB, PAPERS_CORES, PAPERS_CPU_INDEXERS, PAPERS_GPUS, PAPERS_PARSERS, mb_per_s};
use crate::lab::indexing::{IndexMachine, IndexPolicy, IndexTrace, lp_bound, simulate_indexing};
use crate::papers::trie::{TrieReport, parse_in_company, trace_of};
use crate::papers::{Chart, Context, ExperimentError, Findings, Line};
use crate::quantile::median;

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

pub(in crate::papers) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let bench = Bench::new(context, &mut findings)?;
    // What everything costs: parsers alone, one indexer; and once more on a GPU.
    let parsed = parse_in_company(bench.cores().min(PAPERS_CORES), |parsers| bench.parse(parsers))?;
    let on_cpu = bench.index_keeping_work(1, 1, 0)?;
    let on_gpu = if bench.gpus > 0 { Some(bench.index_keeping_work(1, 0, 1)?) } else { None };
    let trace = trace_of(&parsed, &on_cpu, on_gpu.as_ref());
    let mut lines = Vec::new();
    let curves = [Curve::Parsers, Curve::Indexers { gpus: 0 }, Curve::Indexers { gpus: PAPERS_GPUS }];
    for (colour, curve) in curves.into_iter().enumerate() {
        let is_known = !matches!(curve, Curve::Indexers { gpus } if gpus > 0 && on_gpu.is_none());
        let (mut measured, mut simulated) = (Vec::new(), Vec::new());
        for parsers in 1..PAPERS_CORES {
            let predicted = is_known.then(|| predict(&trace, curve, parsers));
            let found = measure(&bench, curve, parsers)?;
            let name = curve.name();
            findings.compare(format!("{name}, M = {parsers}"), "MB/s", curve.papers(parsers), found);
            findings.compare(format!("{name}, M = {parsers}: simulated"), "MB/s", None, predicted);
            measured.extend(found.map(|rate| (parsers as f64, rate)));
            simulated.extend(predicted.map(|rate| (parsers as f64, rate)));
        }
        let best = |points: &[(f64, f64)]| points.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|point| point.0);
        let papers_best = match curve {
            Curve::Parsers => None,
            Curve::Indexers { gpus: 0 } => Some(5.0),
            Curve::Indexers { .. } => Some(6.0),
        };
        findings.compare(format!("{}: best M", curve.name()), "parsers", papers_best, best(&measured));
        findings.compare(format!("{}: best M, simulated", curve.name()), "parsers", papers_best, best(&simulated));
        let line = |suffix: &str, colour, points| Line {
            name: format!("{}{suffix}", curve.name()),
            is_papers: false,
            colour,
            points,
        };
        lines.push(line("", 2 * colour, measured));
        lines.push(line(", simulated", 2 * colour + 1, simulated));
    }
    intake(&parsed.alone, &mut findings);
    compare_policies(&trace, on_gpu.is_some(), &mut findings)?;
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
        "Measured: what has a core each, of {} here and the paper's eight, and with GPUs {} of the paper's two. Simulated: the \
         pipeline played with what each run took one parser and one indexer, each thread slowed by so many others as parsers were by \
         parsers in runs before.",
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

fn predict(trace: &IndexTrace, curve: Curve, parsers: usize) -> f64 {
    let (machine, policy) = match curve {
        Curve::Parsers => (IndexMachine::new(parsers, 1, 0), None),
        Curve::Indexers { gpus } => {
            (IndexMachine::new(parsers, PAPERS_CORES - parsers, gpus), Some(IndexPolicy::Split))
        }
    };
    simulate_indexing(trace, &machine, policy).bytes_per_s() / MB
}

/// What the lab's policies would make of the paper's best configuration, and what none could pass.
fn compare_policies(trace: &IndexTrace, has_gpu: bool, findings: &mut Findings) -> Result<(), ExperimentError> {
    let gpus = if has_gpu { PAPERS_GPUS } else { 0 };
    let (parsers, cpus) = if has_gpu { (PAPERS_PARSERS, PAPERS_CPU_INDEXERS) } else { (5, 3) };
    let machine = IndexMachine::new(parsers, cpus, gpus);
    for policy in IndexPolicy::ALL {
        let rate = simulate_indexing(trace, &machine, Some(policy)).bytes_per_s() / MB;
        findings.compare(format!("{parsers} + {cpus} CPU + {gpus} GPUs, {policy}: simulated"), "MB/s", None, rate);
    }
    let bound = lp_bound(trace, &machine).map_err(ExperimentError::Wrong)?;
    findings.compare(format!("{parsers} + {cpus} CPU + {gpus} GPUs: no policy passes"), "MB/s", None, bound / MB);
    Ok(())
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
