//! Tatikonda et al., figure 5: delay against arrival rate; latency and throughput by query length.

use super::bench::{Bench, LENGTHS, Load, Measured, Method, PAPERS_CORES, PAPERS_THRESHOLD};
use crate::papers::{Chart, Context, ExperimentError, Findings, Line};

/// Rates, as shares of what INTER sustains on all eight cores; the paper's 100 to 1400 queries a second, of 800.
const SHARES: [f64; 9] = [0.125, 0.25, 0.4, 0.5, 0.65, 0.8, 0.95, 1.1, 1.6];
/// Of figure 6, which has more lines.
pub(super) const FEW_SHARES: [f64; 7] = [0.125, 0.3, 0.5, 0.7, 0.85, 1.0, 1.3];
/// A mean delay of so many latencies of one core counts as saturated.
const SATURATED: f64 = 5.0;

pub(super) const METHODS: [Method; 4] =
    [Method::Inter, Method::DocpUi, Method::Fgqp(PAPERS_THRESHOLD), Method::Adaptive];

pub(in crate::papers) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let bench = Bench::new(context)?;
    let load = bench.whole_load()?;
    let mut findings = Findings::default();
    bench.describe(&mut findings);

    let all = bench.eight();
    let full_qps = bench.saturate(Method::Inter, all, &load)?.throughput_qps;
    let half = (all / 2).max(1);
    let mut lines = Vec::new();
    for workers in if half < all { vec![half, all] } else { vec![all] } {
        let papers_rate = match workers {
            4 => Some(400.0 / 850.0),
            PAPERS_CORES => Some(800.0 / 850.0),
            _ => None,
        };
        for method in METHODS {
            let delays = delays(&bench, &load, method, workers, full_qps, &SHARES)?;
            let saturated = delays.iter().find(|(_, delay)| *delay > SATURATED * load.alone.latency_ms);
            let papers = papers_rate.filter(|_| method == Method::Inter);
            let rate = saturated.map(|(rate, _)| rate / full_qps);
            findings.compare(format!("{method}, {workers} workers: saturates at"), "of INTER's full", papers, rate);
            lines.push((format!("{method}, {workers}"), delays));
        }
    }
    findings.compare(format!("INTER, {all} workers: sustains"), "q/s", papers_only(all, 850.0), full_qps);
    let lines = lines.into_iter().enumerate().map(|(colour, (name, points))| line(name, colour, points)).collect();
    findings.chart(delay_chart("delay", "Delay by arrival rate (Tatikonda et al., figure 5 a)".to_owned(), lines));
    by_length(&bench, &mut findings)?;
    findings.note(
        "Query lengths: the log's own queries where it has a hundred of every length, else two terms of a query each \
         with further, more frequent terms of the log; an AND leaves the longer ones fewer documents to look up. \
         Saturation is the first rate tried at which the mean delay is above five times the latency of one core.",
    );
    Ok(findings)
}

/// The paper's number, where as many workers as the paper's were used.
fn papers_only(workers: usize, value: f64) -> Option<f64> {
    (workers == PAPERS_CORES).then_some(value)
}

/// Mean delay in milliseconds at rates that are `shares` of `full_qps`.
pub(super) fn delays(
    bench: &Bench,
    load: &Load,
    method: Method,
    workers: usize,
    full_qps: f64,
    shares: &[f64],
) -> Result<Vec<(f64, f64)>, ExperimentError> {
    let at_share = |share: &f64| {
        let rate_qps = share * full_qps;
        Ok((rate_qps, bench.at_rate(method, workers, load, rate_qps)?.delay_ms))
    };
    shares.iter().map(at_share).collect()
}

/// A measured line.
pub(super) fn line(name: String, colour: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name, is_papers: false, colour, points }
}

/// Delay against rate.
pub(super) fn delay_chart(stem: &'static str, title: String, lines: Vec<Line>) -> Chart {
    Chart {
        stem,
        title,
        x_label: String::from("arrival rate (queries/s)"),
        y_label: String::from("mean delay (ms)"),
        is_x_log: false,
        is_y_log: true,
        lines,
    }
}

/// Figure 5 (b) and (c).
fn by_length(bench: &Bench, findings: &mut Findings) -> Result<(), ExperimentError> {
    let workers = bench.eight();
    let mut measured: Vec<Vec<(f64, Measured)>> = vec![Vec::new(); METHODS.len()];
    for num_terms in LENGTHS {
        let queries = bench.queries_of_length(num_terms);
        if queries.is_empty() {
            continue;
        }
        let load = bench.load(queries)?;
        for (&method, measured) in METHODS.iter().zip(&mut measured) {
            measured.push((num_terms as f64, bench.saturate(method, workers, &load)?));
        }
    }
    for (method, measured) in METHODS.iter().zip(&measured) {
        if let (Some((_, two)), Some((_, ten))) = (measured.first(), measured.last()) {
            // The paper tells of ten times the latency, and an eleventh of the throughput, whatever the method.
            let is_papers = *method != Method::Adaptive;
            let (slower, fewer) = (ten.latency_ms / two.latency_ms, two.throughput_qps / ten.throughput_qps);
            let papers = |value| papers_only(workers, value).filter(|_| is_papers);
            findings.compare(format!("{method}: latency of 10 terms over 2"), "x", papers(10.0), slower);
            findings.compare(format!("{method}: throughput of 2 terms over 10"), "x", papers(11.0), fewer);
        }
    }
    let panel = |stem, title, y_label: &str, value: fn(&Measured) -> f64| {
        let lines = METHODS.iter().zip(&measured).enumerate().map(|(colour, (method, measured))| {
            line(method.to_string(), colour, measured.iter().map(|(x, measured)| (*x, value(measured))).collect())
        });
        Chart {
            stem,
            title: format!("{title} by query length, {workers} workers (Tatikonda et al., figure 5)"),
            x_label: String::from("terms in the query"),
            y_label: y_label.to_owned(),
            is_x_log: false,
            is_y_log: false,
            lines: lines.collect(),
        }
    };
    findings.chart(panel("length-latency", "Latency", "mean latency (ms)", |measured| measured.latency_ms));
    let throughput = "throughput (queries/s)";
    findings.chart(panel("length-throughput", "Throughput", throughput, |measured| measured.throughput_qps));
    Ok(())
}
