//! Tatikonda et al., figure 4: throughput and latency by number of cores, and what FGQP's pool threshold does.

use super::bench::{Bench, Load, Measured, Method, PAPERS_CORES, PAPERS_THRESHOLD};
use crate::papers::{Chart, Context, ExperimentError, Findings, Line};

/// Numbers of workers: the paper's, and what today's machine has beyond.
const WORKERS: [usize; 8] = [1, 2, 4, 6, 8, 12, 15, 16];
/// The paper's thresholds.
const THRESHOLDS: [usize; 7] = [5, 10, 20, 50, 75, 100, 150];
/// Every measurement is taken in so many rounds, and the best counts.
const ROUNDS: usize = 2;

const METHODS: [Method; 6] = [
    Method::Inter,
    Method::DocpUi,
    Method::DocpPi,
    Method::Fgqp(150),
    Method::Fgqp(PAPERS_THRESHOLD),
    Method::Adaptive,
];

/// What the paper's text tells of eight cores: times the throughput and the latency of INTER on one. The latency of
/// FGQP at 150 follows from "3.7-fold".
fn papers(method: Method) -> Option<(f64, Option<f64>)> {
    match method {
        Method::Inter => Some((7.9, Some(1.0))),
        Method::DocpUi => Some((5.1, Some(9.27 / 1.9))),
        Method::DocpPi => Some((4.8, Some(9.27 / 1.9))),
        Method::Fgqp(150) => Some((7.6, Some(3.7))),
        // 16 % below INTER's.
        Method::Fgqp(PAPERS_THRESHOLD) => Some((7.9 * 0.84, Some(5.75))),
        _ => None,
    }
}

pub(in crate::papers) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let bench = Bench::new(context)?;
    let load = bench.whole_load()?;
    let mut findings = Findings::default();
    bench.describe(&mut findings);

    let workers = bench.workers(&WORKERS);
    let (by_workers, alone) = measure(&bench, &load, &workers)?;
    let one = alone.iter().copied().reduce(Measured::better).unwrap_or(load.alone);
    findings.compare("INTER, 1 worker: throughput", "q/s", 850.0 / 7.9, one.throughput_qps);
    findings.compare("INTER, 1 worker: latency", "ms", 9.27, one.latency_ms);
    for (&method, measured) in METHODS.iter().zip(&by_workers) {
        for ((&workers, measured), one) in workers.iter().zip(measured).zip(&alone).skip(1) {
            let papers = papers(method).filter(|_| workers == PAPERS_CORES);
            let Some((busy, quiet)) = measured else { continue };
            let name = format!("{method}, {workers} workers");
            let times = busy.throughput_qps / one.throughput_qps;
            findings.compare(format!("{name}: throughput"), "x 1", papers.map(|(times, _)| times), times);
            let times = one.latency_ms / busy.latency_ms;
            findings.compare(format!("{name}: latency, all waiting"), "x less", papers.and_then(|p| p.1), times);
            let times = one.latency_ms / quiet.latency_ms;
            findings.compare(format!("{name}: latency, one at a time"), "x less", None, times);
        }
    }
    findings.chart(chart("throughput", "Throughput", "throughput (queries/s)", &workers, &by_workers, |m| {
        m.0.throughput_qps
    }));
    findings.chart(chart("latency", "Latency", "mean latency (ms)", &workers, &by_workers, |m| m.0.latency_ms));
    let title = "Latency of one query at a time";
    findings.chart(chart("latency-quiet", title, "mean latency (ms)", &workers, &by_workers, |m| m.1.latency_ms));
    thresholds(&bench, &load, one, &mut findings)?;
    findings.note(
        "Latency counts from a query's begin. With all queries waiting FGQP works on several at once; one at a time is \
         the latency of an unloaded machine, which the paper doesn't tell apart.",
    );
    Ok(findings)
}

/// Busy and quiet, by method and number of workers.
type ByWorkers = Vec<Vec<Option<(Measured, Measured)>>>;

/// Measures all methods with each number of workers; and beside each number, in the same rounds, one worker alone: the
/// machine is not as fast all the time.
fn measure(bench: &Bench, load: &Load, workers: &[usize]) -> Result<(ByWorkers, Vec<Measured>), ExperimentError> {
    let mut measured: ByWorkers = vec![vec![None; workers.len()]; METHODS.len()];
    let mut alone: Vec<Option<Measured>> = vec![None; workers.len()];
    for (w, &workers) in workers.iter().enumerate() {
        for _ in 0..ROUNDS {
            let one = bench.saturate(Method::Inter, 1, load)?;
            alone[w] = Some(alone[w].map_or(one, |best| best.better(one)));
            for (m, &method) in METHODS.iter().enumerate() {
                // On one core there is nothing to share: INTER is the baseline.
                if workers == 1 && method != Method::Inter {
                    continue;
                }
                let busy = bench.saturate(method, workers, load)?;
                let quiet = bench.one_at_a_time(method, workers, load)?;
                let best = measured[m][w].map_or((busy, quiet), |(b, q)| (busy.better(b), quiet.better(q)));
                measured[m][w] = Some(best);
            }
        }
    }
    Ok((measured, alone.into_iter().flatten().collect()))
}

fn chart(
    stem: &'static str,
    title: &str,
    y_label: &str,
    workers: &[usize],
    measured: &ByWorkers,
    value: fn(&(Measured, Measured)) -> f64,
) -> Chart {
    let lines = METHODS.iter().zip(measured).enumerate().map(|(colour, (method, measured))| Line {
        name: method.to_string(),
        is_papers: false,
        colour,
        points: workers.iter().zip(measured).filter_map(|(&w, m)| Some((w as f64, value(m.as_ref()?)))).collect(),
    });
    Chart {
        stem,
        title: format!("{title} by workers (Tatikonda et al., figure 4)"),
        x_label: String::from("workers"),
        y_label: y_label.to_owned(),
        is_x_log: false,
        is_y_log: false,
        lines: lines.collect(),
    }
}

/// Figure 4 (c): throughput lost and latency won, by the pool's threshold.
fn thresholds(bench: &Bench, load: &Load, one: Measured, findings: &mut Findings) -> Result<(), ExperimentError> {
    let workers = bench.eight();
    let mut inter = bench.saturate(Method::Inter, workers, load)?;
    let mut by_threshold: Vec<Option<Measured>> = vec![None; THRESHOLDS.len()];
    for _ in 0..ROUNDS {
        inter = inter.better(bench.saturate(Method::Inter, workers, load)?);
        for (best, &threshold) in by_threshold.iter_mut().zip(&THRESHOLDS) {
            let measured = bench.saturate(Method::Fgqp(threshold), workers, load)?;
            *best = Some(best.map_or(measured, |best| measured.better(best)));
        }
    }
    let (mut lost, mut won) = (Vec::new(), Vec::new());
    for (&threshold, measured) in THRESHOLDS.iter().zip(by_threshold.into_iter().flatten()) {
        let loss = 100.0 * (1.0 - measured.throughput_qps / inter.throughput_qps);
        let gain = one.latency_ms / measured.latency_ms;
        let papers = match threshold {
            _ if workers < PAPERS_CORES => (None, None),
            5 => (Some(16.0), Some(5.75)),
            150 => (Some(3.3), Some(3.7)),
            _ => (None, None),
        };
        findings.compare(format!("γ = {threshold}, {workers} workers: throughput lost"), "%", papers.0, loss);
        findings.compare(format!("γ = {threshold}, {workers} workers: latency"), "x less", papers.1, gain);
        lost.push((threshold as f64, loss));
        won.push((threshold as f64, gain));
    }
    let line = |name: &str, is_papers, colour, points| Line { name: name.to_owned(), is_papers, colour, points };
    findings.chart(Chart {
        stem: "threshold",
        title: format!("FGQP's pool threshold, {workers} workers (Tatikonda et al., figure 4 c)"),
        x_label: String::from("pool threshold (tasks)"),
        y_label: String::from("% of throughput, times less latency"),
        is_x_log: true,
        is_y_log: false,
        lines: vec![
            line("throughput lost", false, 0, lost),
            line("latency gained", false, 1, won),
            line("throughput lost", true, 0, vec![(5.0, 16.0), (150.0, 3.3)]),
            line("latency gained", true, 1, vec![(5.0, 5.75), (150.0, 3.7)]),
        ],
    });
    Ok(())
}
