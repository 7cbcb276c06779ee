//! Tatikonda et al., figure 4: throughput and latency by number of cores, and the effect of FGQP's pool threshold.
//!
//! Two numbers explain differences from the paper. DOCP waits for the slowest of its ranges; ranges timed one after another
//! give the most that all of them at once can gain. A query that is cut while γ tasks wait is answered after these tasks:
//! with `n` tasks per query, `w` cores reduce latency by at most `w / (1 + γ / n)`.

use super::bench::{Bench, Load, Measured, Method, PAPERS_CORES, PAPERS_THRESHOLD};
use crate::findings::{Chart, Curve};
use crate::{Context, Findings, Result};

/// Numbers of workers: the paper's, and more for the machines of today.
const WORKERS: [usize; 6] = [1, 2, 4, 6, 8, 15];
const THRESHOLDS: [usize; 7] = [5, 10, 20, 50, 75, 100, 150];
/// Rounds of each measurement, of which the best counts.
const ROUNDS: usize = 2;
/// Maximum number of tasks per query in the second part of figure 4 (c), and its smallest number of queries.
const FEW_TASKS: usize = 8;
const LEAST_QUERIES: usize = 20;

const METHODS: [Method; 5] =
    [Method::Inter, Method::DocpUi, Method::DocpPi, Method::Fgqp(150), Method::Fgqp(PAPERS_THRESHOLD)];

/// Returns the gains on eight cores over INTER on one in the text of the paper: throughput and latency.
fn papers(method: Method) -> Option<(f64, Option<f64>)> {
    match method {
        Method::Inter => Some((7.9, Some(1.0))),
        Method::DocpUi => Some((5.1, Some(9.27 / 1.9))),
        Method::DocpPi => Some((4.8, Some(9.27 / 1.9))),
        // The latency follows from "3.7-fold".
        Method::Fgqp(150) => Some((7.6, Some(3.7))),
        // The throughput is 16 % below INTER's.
        Method::Fgqp(PAPERS_THRESHOLD) => Some((7.9 * 0.84, Some(5.75))),
        _ => None,
    }
}

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open(context, findings)?;
    let load = bench.whole_load()?;
    let workers = bench.workers(&WORKERS);
    let measured = measure(context, &bench, &load, &workers)?;
    let figure = Figure { workers, measured };
    figure.add_rows(findings);
    figure.add_charts(findings);
    explain(&bench, &load, findings);
    if let Some(one) = figure.baseline() {
        thresholds(context, &bench, &load, one, findings)?;
    }
    overhead(&bench, &load, findings)?;
    // With many tasks per query the pool never runs dry, so that γ has nothing to gain.
    let few = bench.queries_of_few_tasks(FEW_TASKS);
    if few.len() >= LEAST_QUERIES {
        let load = bench.load(few)?;
        findings.section("few tasks a query");
        findings.add("FGQP: tasks a query", "", bench.tasks_per_query(&load));
        thresholds(context, &bench, &load, load.alone, findings)?;
        findings.section("");
    }
    findings.note(
        "Latency counts from the start of a query. With all queries waiting, FGQP works on several at once. One at a time is \
         the latency of an unloaded machine, which the paper does not separate.",
    );
    Ok(())
}

struct Figure {
    workers: Vec<usize>,
    /// By method and number of workers.
    measured: Vec<Vec<Option<Point>>>,
}

impl Figure {
    /// Returns the best measurement of one worker alone.
    fn baseline(&self) -> Option<Measured> {
        self.measured[0].iter().flatten().map(|point| point.alone).reduce(Measured::better)
    }

    fn add_rows(&self, findings: &mut Findings) {
        if let Some(one) = self.baseline() {
            findings.compare("INTER, 1 worker: throughput", "q/s", 850.0 / 7.9, one.throughput_qps);
            findings.compare("INTER, 1 worker: latency", "ms", 9.27, one.latency_ms);
        }
        for (method, points) in METHODS.into_iter().zip(&self.measured) {
            for (&workers, point) in self.workers.iter().zip(points).skip(1) {
                let papers = papers(method).filter(|_| workers == PAPERS_CORES);
                let Some(Point { busy, quiet, alone, quiet_alone }) = point else { continue };
                let name = format!("{method}, {workers} workers");
                let times = busy.throughput_qps / alone.throughput_qps;
                findings.compare(format!("{name}: throughput"), "x 1", papers.map(|(times, _)| times), times);
                let times = alone.latency_ms / busy.latency_ms;
                findings.compare(format!("{name}: latency, all waiting"), "x less", papers.and_then(|p| p.1), times);
                let times = quiet_alone.latency_ms / quiet.latency_ms;
                findings.add(format!("{name}: latency, one at a time"), "x less", times);
            }
        }
    }

    /// Adds a chart of each quantity if several numbers of workers were measured.
    fn add_charts(&self, findings: &mut Findings) {
        type Value = fn(&Point) -> f64;
        let panels: [(&str, &str, &str, Value); 3] = [
            ("throughput", "Throughput", "throughput (queries/s)", |p| p.busy.throughput_qps),
            ("latency", "Latency", "mean latency (ms)", |p| p.busy.latency_ms),
            ("latency-quiet", "Latency of one query at a time", "mean latency (ms)", |p| p.quiet.latency_ms),
        ];
        for (panel, title, y_label, value) in panels.into_iter().filter(|_| self.workers.len() > 1) {
            let curves = METHODS.into_iter().zip(&self.measured).enumerate().map(|(colour, (method, points))| {
                let points = self.workers.iter().zip(points);
                let points = points.filter_map(|(&workers, point)| Some((workers as f64, value(point.as_ref()?))));
                Curve::ours(method.to_string(), colour, points.collect())
            });
            let title = format!("{title} by workers (Tatikonda et al., figure 4)");
            findings.chart(Chart::new(panel, title, ["workers", y_label], curves));
        }
    }
}

/// A method with some workers, and one worker in the same rounds, because the speed of the machine varies.
#[derive(Clone, Copy, Debug)]
struct Point {
    busy: Measured,
    quiet: Measured,
    alone: Measured,
    quiet_alone: Measured,
}

impl Point {
    fn better(self, other: Self) -> Self {
        Self {
            busy: self.busy.better(other.busy),
            quiet: self.quiet.better(other.quiet),
            alone: self.alone.better(other.alone),
            quiet_alone: self.quiet_alone.better(other.quiet_alone),
        }
    }
}

/// Measures all methods with all numbers of workers: the best of some rounds.
fn measure(context: &Context<'_>, bench: &Bench, load: &Load, workers: &[usize]) -> Result<Vec<Vec<Option<Point>>>> {
    let mut measured: Vec<Vec<Option<Point>>> = vec![vec![None; workers.len()]; METHODS.len()];
    let mut steps = context.steps("workers", workers.len() * ROUNDS * METHODS.len());
    for (w, &workers) in workers.iter().enumerate() {
        for _ in 0..ROUNDS {
            let (alone, quiet_alone) =
                (bench.saturate(Method::Inter, 1, load)?, bench.one_at_a_time(Method::Inter, 1, load)?);
            for (method, measured) in METHODS.into_iter().zip(&mut measured) {
                // On one core only the baseline INTER runs, because there is nothing to share.
                if workers > 1 || method == Method::Inter {
                    let busy = bench.saturate(method, workers, load)?;
                    let quiet = bench.one_at_a_time(method, workers, load)?;
                    let point = Point { busy, quiet, alone, quiet_alone };
                    measured[w] = Some(measured[w].map_or(point, |best| best.better(point)));
                }
                steps.done();
            }
        }
    }
    Ok(measured)
}

/// Adds the bounds of the methods on this log.
fn explain(bench: &Bench, load: &Load, findings: &mut Findings) {
    let workers = bench.eight();
    let bound = bench.slowest_range_bound(load, workers);
    findings.add(format!("DOCP, {workers} ranges timed alone: what they can gain"), "x 1", bound);
    let tasks = bench.tasks_per_query(load);
    findings.add("FGQP: tasks a query", "", tasks);
    for threshold in [PAPERS_THRESHOLD, 150] {
        let most = workers as f64 / (1.0 + threshold as f64 / tasks);
        findings.add(format!("FGQP(γ={threshold}), {workers} workers: latency that γ leaves"), "x less", most);
    }
}

/// Adds the throughput that FGQP loses on one worker, where nothing is parallel: the overhead of tasks and pools.
fn overhead(bench: &Bench, load: &Load, findings: &mut Findings) -> Result<()> {
    let (mut inter_qps, mut fgqp_qps) = (0.0_f64, 0.0_f64);
    for _ in 0..ROUNDS {
        inter_qps = inter_qps.max(bench.saturate(Method::Inter, 1, load)?.throughput_qps);
        fgqp_qps = fgqp_qps.max(bench.saturate(Method::Fgqp(150), 1, load)?.throughput_qps);
    }
    findings.add("FGQP on 1 worker: throughput lost to INTER", "%", 100.0 * (1.0 - fgqp_qps / inter_qps));
    Ok(())
}

/// Adds figure 4 (c): throughput lost and latency gained by the pool threshold.
fn thresholds(context: &Context<'_>, bench: &Bench, load: &Load, one: Measured, findings: &mut Findings) -> Result<()> {
    let workers = bench.eight();
    let mut steps = context.steps("thresholds", ROUNDS * THRESHOLDS.len());
    let mut inter: Option<Measured> = None;
    let mut by_threshold: Vec<Option<Measured>> = vec![None; THRESHOLDS.len()];
    let or_better = |best: Option<Measured>, measured: Measured| Some(best.map_or(measured, |b| measured.better(b)));
    for _ in 0..ROUNDS {
        inter = or_better(inter, bench.saturate(Method::Inter, workers, load)?);
        for (best, &threshold) in by_threshold.iter_mut().zip(&THRESHOLDS) {
            *best = or_better(*best, bench.saturate(Method::Fgqp(threshold), workers, load)?);
            steps.done();
        }
    }
    let full_qps = inter.map_or(one.throughput_qps, |inter| inter.throughput_qps);
    let (mut lost, mut won) = (Vec::new(), Vec::new());
    for (&threshold, measured) in THRESHOLDS.iter().zip(by_threshold.into_iter().flatten()) {
        let loss = 100.0 * (1.0 - measured.throughput_qps / full_qps);
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
    if let (Some((_, few)), Some((_, many))) = (lost.first(), lost.last()) {
        let papers = (workers == PAPERS_CORES).then_some(16.0 - 3.3);
        findings.compare("throughput lost, γ 5 less γ 150", "points", papers, few - many);
    }
    if load.len() < bench.input.queries.len() {
        return Ok(());
    }
    let panels = [
        ("threshold-throughput", "throughput lost (%)", lost, [(5.0, 16.0), (150.0, 3.3)]),
        ("threshold-latency", "times less latency", won, [(5.0, 5.75), (150.0, 3.7)]),
    ];
    for (stem, y_label, ours, papers) in panels {
        let title = format!("FGQP's pool threshold, {workers} workers (Tatikonda et al., figure 4 c)");
        let curves = [Curve::ours("FGQP", 0, ours), Curve::papers("FGQP, 8 workers", 0, papers.to_vec())];
        findings.chart(Chart::new(stem, title, ["pool threshold (tasks)", y_label], curves).log_x());
    }
    Ok(())
}
