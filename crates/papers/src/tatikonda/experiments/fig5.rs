//! Tatikonda et al., figure 5: delay against arrival rate; latency and throughput by query length.
//!
//! Long queries are slow because of the lists that they add: how much longer these are is told beside the times. Where a
//! real collection is at hand, lengths are those of questions that people asked.

use super::bench::{Bench, Engine, LENGTHS, Load, Measured, Method, PAPERS_CORES, PAPERS_THRESHOLD, Way};
use crate::{Chart, Context, ExperimentError, Findings, Line, RealLog};

/// Rates, as shares of what INTER sustains on all eight cores; the paper's 100 to 1400 queries a second, of 800.
const SHARES: [f64; 9] = [0.125, 0.25, 0.4, 0.5, 0.65, 0.8, 0.95, 1.1, 1.6];
/// Of figure 6, which has more lines.
pub(super) const FEW_SHARES: [f64; 7] = [0.125, 0.3, 0.5, 0.7, 0.85, 1.0, 1.3];
/// A mean delay of so many latencies of one core counts as saturated.
const SATURATED: f64 = 5.0;
/// Of a real log, so many queries are looked at for some of each length.
const REAL_QUERIES: usize = 12_000;

/// The paper's, and the best of Tandem's.
pub(super) const WAYS: [Way; 5] = [
    Way::published(Method::Inter),
    Way::published(Method::DocpUi),
    Way::published(Method::Fgqp(PAPERS_THRESHOLD)),
    Way::tandem(Method::Inter),
    Way::tandem(Method::Adaptive),
];

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let bench = Bench::new(context)?;
    let load = bench.whole_load()?;
    let mut findings = Findings::default();
    bench.describe(&mut findings);

    let ways = bench.ways(&WAYS);
    let all = bench.eight();
    let half = (all / 2).max(1);
    let numbers = if half < all { vec![half, all] } else { vec![all] };
    let mut steps = context.steps("arrival rates", numbers.len() * ways.len());
    for (engine, stem, of) in
        [(Engine::Published, "delay", "as published"), (Engine::Tandem, "delay-tandem", "Tandem's")]
    {
        let ways: Vec<Way> = ways.iter().copied().filter(|way| way.engine == engine).collect();
        if ways.is_empty() {
            continue;
        }
        let full_qps = bench.saturate(Way { engine, method: Method::Inter }, all, &load)?.throughput_qps;
        let mut lines = Vec::new();
        for &workers in &numbers {
            let papers_rate = match workers {
                4 => Some(400.0 / 850.0),
                PAPERS_CORES => Some(800.0 / 850.0),
                _ => None,
            };
            for &way in &ways {
                let delays = delays(&bench, &load, way, workers, full_qps, &SHARES)?;
                let saturated = delays.iter().find(|(_, delay)| *delay > SATURATED * load.alone(engine).latency_ms);
                let papers = papers_rate.filter(|_| way == Way::published(Method::Inter));
                let rate = saturated.map(|(rate, _)| rate / full_qps);
                findings.compare(format!("{way}, {workers} workers: saturates at"), "of INTER's full", papers, rate);
                lines.push(line(format!("{way}, {workers}"), lines.len(), delays));
                steps.done();
            }
        }
        let papers = papers_only(all, 850.0).filter(|_| engine == Engine::Published);
        let inter = Way { engine, method: Method::Inter };
        findings.compare(format!("{inter}, {all} workers: sustains"), "q/s", papers, full_qps);
        let title = format!("Delay by arrival rate, {of} (Tatikonda et al., figure 5 a)");
        findings.chart(delay_chart(stem, title, lines));
    }
    drop(steps);
    by_length(context, &bench, "", &mut findings)?;
    if let Some(input) = context.real_input(RealLog::Questions, REAL_QUERIES, &mut findings)? {
        by_length(context, &Bench::on(input, context)?, "questions, real lists", &mut findings)?;
    }
    findings.note(
        "Query lengths: the log's own queries where it has a hundred of every length, else two terms of a query each \
         with further, more frequent terms of the log. The paper's CPU decodes all blocks of all lists, so that a \
         query takes as long as its lists are: the ratio of their postings stands beside that of the times. Tandem looks \
         documents up, and more terms leave fewer of them. Saturation is the first rate tried at which the mean delay is \
         above five times the latency of one core.",
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
    way: Way,
    workers: usize,
    full_qps: f64,
    shares: &[f64],
) -> Result<Vec<(f64, f64)>, ExperimentError> {
    let at_share = |share: &f64| {
        let rate_qps = share * full_qps;
        Ok((rate_qps, bench.at_rate(way, workers, load, rate_qps)?.delay_ms))
    };
    shares.iter().map(at_share).collect()
}

/// A measured line.
pub(super) fn line(name: String, colour: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name, is_papers: false, colour, points }
}

/// Delay against rate.
pub(super) fn delay_chart(stem: &str, title: String, lines: Vec<Line>) -> Chart {
    Chart {
        stem: stem.to_owned(),
        title,
        x_label: String::from("arrival rate (queries/s)"),
        y_label: String::from("mean delay (ms)"),
        is_x_log: false,
        is_y_log: true,
        lines,
    }
}

/// Figure 5 (b) and (c), on the queries of `bench`; `of` is the section of what is found.
fn by_length(context: &Context<'_>, bench: &Bench, of: &str, findings: &mut Findings) -> Result<(), ExperimentError> {
    findings.section(of);
    let workers = bench.eight();
    let ways = bench.ways(&WAYS);
    let mut measured: Vec<Vec<(f64, Measured)>> = vec![Vec::new(); ways.len()];
    let mut postings = Vec::new();
    let mut steps = context.steps("query lengths", LENGTHS.count() * ways.len());
    for num_terms in LENGTHS {
        let queries = bench.queries_of_length(num_terms);
        if queries.is_empty() {
            continue;
        }
        let of_query = queries.iter().flat_map(|query| &query.terms).map(|term| f64::from(term.doc_freq)).sum::<f64>();
        postings.push(of_query / queries.len() as f64);
        let load = bench.load(queries)?;
        for (&way, measured) in ways.iter().zip(&mut measured) {
            measured.push((num_terms as f64, bench.saturate(way, workers, &load)?));
            steps.done();
        }
    }
    drop(steps);
    if let (Some(two), Some(ten)) = (postings.first(), postings.last()) {
        findings.compare("postings of 10 terms over 2", "x", None, ten / two);
    }
    for (way, measured) in ways.iter().zip(&measured) {
        if let (Some((_, two)), Some((_, ten))) = (measured.first(), measured.last()) {
            // The paper tells of ten times the latency, and an eleventh of the throughput, whatever the method.
            let (slower, fewer) = (ten.latency_ms / two.latency_ms, two.throughput_qps / ten.throughput_qps);
            let papers = |value| papers_only(workers, value).filter(|_| way.engine == Engine::Published);
            findings.compare(format!("{way}: latency of 10 terms over 2"), "x", papers(10.0), slower);
            findings.compare(format!("{way}: throughput of 2 terms over 10"), "x", papers(11.0), fewer);
        }
    }
    let (stem, log) = if of.is_empty() { ("length", "") } else { ("questions", ", questions") };
    let panel = |panel, title, y_label: &str, value: fn(&Measured) -> f64| {
        let lines = ways.iter().zip(&measured).enumerate().map(|(colour, (way, measured))| {
            line(way.to_string(), colour, measured.iter().map(|(x, measured)| (*x, value(measured))).collect())
        });
        Chart {
            stem: format!("{stem}-{panel}"),
            title: format!("{title} by query length{log}, {workers} workers (Tatikonda et al., figure 5)"),
            x_label: String::from("terms in the query"),
            y_label: y_label.to_owned(),
            is_x_log: false,
            is_y_log: false,
            lines: lines.collect(),
        }
    };
    findings.chart(panel("latency", "Latency", "mean latency (ms)", |measured| measured.latency_ms));
    let throughput = "throughput (queries/s)";
    findings.chart(panel("throughput", "Throughput", throughput, |measured| measured.throughput_qps));
    Ok(())
}
