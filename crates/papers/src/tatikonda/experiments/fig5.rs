//! Tatikonda et al., figure 5: delay against arrival rate; latency and throughput by query length.
//!
//! Long queries are slow because of the lists that they add. The ratio of their postings is given next to that of the times.
//! If there is a real collection, a second part uses the lengths of questions that people asked.

use super::bench::{Bench, LENGTHS, Load, Measured, Method, PAPERS_CORES, PAPERS_THRESHOLD};
use crate::findings::{Chart, Curve};
use crate::{Context, Findings, RealLog, Result};

/// Rates as shares of INTER's throughput on all eight cores; the paper's are 100 to 1400 queries per second, of 800.
const SHARES: [f64; 9] = [0.125, 0.25, 0.4, 0.5, 0.65, 0.8, 0.95, 1.1, 1.6];
/// Rates of figure 6, which has more curves.
pub(crate) const FEW_SHARES: [f64; 7] = [0.125, 0.3, 0.5, 0.7, 0.85, 1.0, 1.3];
/// Mean delay that counts as saturated, in latencies of one core.
const SATURATED: f64 = 5.0;
/// Queries of a real log that are searched for each length.
const REAL_QUERIES: usize = 12_000;

pub(crate) const METHODS: [Method; 3] = [Method::Inter, Method::DocpUi, Method::Fgqp(PAPERS_THRESHOLD)];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open(context, findings)?;
    let load = bench.whole_load()?;
    let all = bench.eight();
    let half = (all / 2).max(1);
    let numbers = if half < all { vec![half, all] } else { vec![all] };
    let mut steps = context.steps("arrival rates", numbers.len() * METHODS.len());
    let full_qps = bench.saturate(Method::Inter, all, &load)?.throughput_qps;
    let mut curves = Vec::new();
    for &workers in &numbers {
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
            curves.push(Curve::ours(format!("{method}, {workers}"), curves.len(), delays));
            steps.done();
        }
    }
    findings.compare(format!("INTER, {all} workers: sustains"), "q/s", papers_only(all, 850.0), full_qps);
    findings.chart(delay_chart("Delay by arrival rate (Tatikonda et al., figure 5 a)", curves));
    drop(steps);
    by_length(context, &bench, "", findings)?;
    if let Some(input) = context.real_input(RealLog::Questions, REAL_QUERIES, findings)? {
        by_length(context, &Bench::on(input, context)?, "questions, real lists", findings)?;
    }
    findings.note(
        "Query lengths: the log's own queries if it has a hundred of every length, else two terms of a query each with \
         further, more frequent terms of the log. The paper's CPU decodes all blocks of all lists, so that the time of a query \
         follows the length of its lists: the ratio of their postings is given next to that of the times. Saturation is the first rate at which the mean delay exceeds five \
         times the latency of one core.",
    );
    Ok(())
}

/// Returns the paper's number if the machine runs as many workers as the paper's.
fn papers_only(workers: usize, value: f64) -> Option<f64> {
    (workers == PAPERS_CORES).then_some(value)
}

/// Returns rates, which are `shares` of `full_qps`, with mean delays in milliseconds.
pub(crate) fn delays(
    bench: &Bench,
    load: &Load,
    method: Method,
    workers: usize,
    full_qps: f64,
    shares: &[f64],
) -> Result<Vec<(f64, f64)>> {
    let at_share = |share: &f64| {
        let rate_qps = share * full_qps;
        Ok((rate_qps, bench.at_rate(method, workers, load, rate_qps)?.delay_ms))
    };
    shares.iter().map(at_share).collect()
}

/// Draws delay against rate into `NAME-delaySUFFIX`.
pub(crate) fn delay_chart(title: impl Into<String>, curves: Vec<Curve>) -> Chart {
    let labels = ["arrival rate (queries/s)", "mean delay (ms)"];
    Chart::new("delay", title, labels, curves).log_y()
}

/// Adds a section with figure 5 (b) and (c) on the queries of `bench`.
fn by_length(context: &Context<'_>, bench: &Bench, section: &str, findings: &mut Findings) -> Result<()> {
    findings.section(section);
    let workers = bench.eight();
    let mut measured: Vec<Vec<(f64, Measured)>> = vec![Vec::new(); METHODS.len()];
    let mut postings = Vec::new();
    let mut steps = context.steps("query lengths", LENGTHS.count() * METHODS.len());
    for num_terms in LENGTHS {
        let queries = bench.queries_of_length(num_terms);
        if queries.is_empty() {
            continue;
        }
        let sum = queries.iter().flat_map(|query| &query.terms).map(|term| f64::from(term.doc_freq)).sum::<f64>();
        postings.push(sum / queries.len() as f64);
        let load = bench.load(queries)?;
        for (method, measured) in METHODS.into_iter().zip(&mut measured) {
            measured.push((num_terms as f64, bench.saturate(method, workers, &load)?));
            steps.done();
        }
    }
    drop(steps);
    if let (Some(two), Some(ten)) = (postings.first(), postings.last()) {
        findings.add("postings of 10 terms over 2", "x", ten / two);
    }
    for (method, measured) in METHODS.into_iter().zip(&measured) {
        if let (Some((_, two)), Some((_, ten))) = (measured.first(), measured.last()) {
            // The paper reports ten times the latency and an eleventh of the throughput for every method.
            let (slower, fewer) = (ten.latency_ms / two.latency_ms, two.throughput_qps / ten.throughput_qps);
            findings.compare(format!("{method}: latency of 10 terms over 2"), "x", papers_only(workers, 10.0), slower);
            findings.compare(
                format!("{method}: throughput of 2 terms over 10"),
                "x",
                papers_only(workers, 11.0),
                fewer,
            );
        }
    }
    let (stem, log) = if section.is_empty() { ("length", "") } else { ("questions", ", questions") };
    type Value = fn(&Measured) -> f64;
    let panels: [(&str, &str, &str, Value); 2] = [
        ("latency", "Latency", "mean latency (ms)", |measured| measured.latency_ms),
        ("throughput", "Throughput", "throughput (queries/s)", |measured| measured.throughput_qps),
    ];
    for (panel, title, y_label, value) in panels {
        let curves = METHODS.into_iter().zip(&measured).enumerate().map(|(colour, (method, measured))| {
            let points = measured.iter().map(|(x, measured)| (*x, value(measured))).collect();
            Curve::ours(method.to_string(), colour, points)
        });
        let title = format!("{title} by query length{log}, {workers} workers (Tatikonda et al., figure 5)");
        findings.chart(Chart::new(format!("{stem}-{panel}"), title, ["terms in the query", y_label], curves));
    }
    Ok(())
}
