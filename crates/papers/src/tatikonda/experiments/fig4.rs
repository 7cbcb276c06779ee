//! Tatikonda et al., figure 4: throughput and latency by number of cores, and what FGQP's pool threshold does.
//!
//! Two numbers explain what differs from the paper. DOCP waits for the slowest of its ranges: timed alone, one after
//! another, they tell what all of them at once can gain at most. And a query cut while γ tasks wait is answered after
//! these: with `n` tasks a query, `w` cores gain no more than `w / (1 + γ / n)` of latency.

use super::bench::{Bench, Engine, Load, Measured, Method, PAPERS_CORES, PAPERS_THRESHOLD, Way};
use crate::{Chart, Context, ExperimentError, Findings, Line};

/// Numbers of workers: the paper's, and what today's machine has beyond.
const WORKERS: [usize; 6] = [1, 2, 4, 6, 8, 15];
/// The paper's thresholds.
const THRESHOLDS: [usize; 7] = [5, 10, 20, 50, 75, 100, 150];
/// Every measurement is taken in so many rounds, and the best counts.
const ROUNDS: usize = 2;

const WAYS: [Way; 11] = [
    Way::published(Method::Inter),
    Way::published(Method::DocpUi),
    Way::published(Method::DocpPi),
    Way::published(Method::Fgqp(150)),
    Way::published(Method::Fgqp(PAPERS_THRESHOLD)),
    Way::tandem(Method::Inter),
    Way::tandem(Method::DocpUi),
    Way::tandem(Method::DocpPi),
    Way::tandem(Method::Fgqp(150)),
    Way::tandem(Method::Fgqp(PAPERS_THRESHOLD)),
    Way::tandem(Method::Adaptive),
];

/// What the paper's text tells of eight cores: times the throughput and the latency of INTER on one. The latency of
/// FGQP at 150 follows from "3.7-fold".
fn papers(way: Way) -> Option<(f64, Option<f64>)> {
    match way.method {
        _ if way.engine == Engine::Tandem => None,
        Method::Inter => Some((7.9, Some(1.0))),
        Method::DocpUi => Some((5.1, Some(9.27 / 1.9))),
        Method::DocpPi => Some((4.8, Some(9.27 / 1.9))),
        Method::Fgqp(150) => Some((7.6, Some(3.7))),
        // 16 % below INTER's.
        Method::Fgqp(PAPERS_THRESHOLD) => Some((7.9 * 0.84, Some(5.75))),
        _ => None,
    }
}

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let bench = Bench::new(context)?;
    let load = bench.whole_load()?;
    let mut findings = Findings::default();
    bench.describe(&mut findings);

    let workers = bench.workers(&WORKERS);
    let ways = bench.ways(&WAYS);
    let measured = measure(context, &bench, &load, &workers, &ways)?;
    let figure = Figure { workers, ways, measured };
    figure.tell(&mut findings);
    figure.draw(&mut findings);
    if let Some(one) = figure.baseline(Engine::Published) {
        explain(&bench, &load, &mut findings);
        thresholds(context, &bench, &load, one, &mut findings)?;
    }
    findings.note(
        "Latency counts from a query's begin. With all queries waiting FGQP works on several at once; one at a time is \
         the latency of an unloaded machine, which the paper doesn't tell apart. Tandem's DOCP-PI cuts the index into \
         parts whose lists are too short for the direct forms that its whole lists have.",
    );
    Ok(findings)
}

/// What was measured, by way and number of workers.
struct Figure {
    workers: Vec<usize>,
    ways: Vec<Way>,
    measured: Vec<Vec<Option<Point>>>,
}

impl Figure {
    /// The best that one worker alone has shown with an engine, if that was measured.
    fn baseline(&self, engine: Engine) -> Option<Measured> {
        let at = self.ways.iter().position(|&way| way == Way { engine, method: Method::Inter })?;
        self.measured[at].iter().flatten().map(|point| point.alone).reduce(Measured::better)
    }

    /// Each way beside the paper's numbers.
    fn tell(&self, findings: &mut Findings) {
        let engines = [(Engine::Published, "", Some((850.0 / 7.9, 9.27))), (Engine::Tandem, "Tandem, ", None)];
        for (engine, name, papers) in engines {
            if let Some(one) = self.baseline(engine) {
                let (papers_qps, papers_ms) = papers.unzip();
                findings.compare(format!("{name}INTER, 1 worker: throughput"), "q/s", papers_qps, one.throughput_qps);
                findings.compare(format!("{name}INTER, 1 worker: latency"), "ms", papers_ms, one.latency_ms);
            }
        }
        for (&way, points) in self.ways.iter().zip(&self.measured) {
            for (&workers, point) in self.workers.iter().zip(points).skip(1) {
                let papers = papers(way).filter(|_| workers == PAPERS_CORES);
                let Some(Point { busy, quiet, alone, quiet_alone }) = point else { continue };
                let name = format!("{way}, {workers} workers");
                let times = busy.throughput_qps / alone.throughput_qps;
                findings.compare(format!("{name}: throughput"), "x 1", papers.map(|(times, _)| times), times);
                let times = alone.latency_ms / busy.latency_ms;
                findings.compare(format!("{name}: latency, all waiting"), "x less", papers.and_then(|p| p.1), times);
                let times = quiet_alone.latency_ms / quiet.latency_ms;
                findings.compare(format!("{name}: latency, one at a time"), "x less", None, times);
            }
        }
    }

    /// A chart of each quantity for each engine that was measured with several numbers of workers.
    fn draw(&self, findings: &mut Findings) {
        for (engine, stem, of) in [(Engine::Published, "", "as published"), (Engine::Tandem, "-tandem", "Tandem's")] {
            if self.baseline(engine).is_none() || self.workers.len() < 2 {
                continue;
            }
            let panels: [(&str, &str, &str, Value); 3] = [
                ("throughput", "Throughput", "throughput (queries/s)", |p| p.busy.throughput_qps),
                ("latency", "Latency", "mean latency (ms)", |p| p.busy.latency_ms),
                ("latency-quiet", "Latency of one query at a time", "mean latency (ms)", |p| p.quiet.latency_ms),
            ];
            for (panel, title, y_label, value) in panels {
                findings.chart(Chart {
                    stem: format!("{panel}{stem}"),
                    title: format!("{title} by workers, {of} (Tatikonda et al., figure 4)"),
                    x_label: String::from("workers"),
                    y_label: y_label.to_owned(),
                    is_x_log: false,
                    is_y_log: false,
                    lines: self.lines(engine, value),
                });
            }
        }
    }

    /// A line for each of an engine's ways.
    fn lines(&self, engine: Engine, value: Value) -> Vec<Line> {
        let of_engine = self.ways.iter().zip(&self.measured).filter(|(way, _)| way.engine == engine).enumerate();
        let line = |(colour, (way, points)): (usize, (&Way, &Vec<Option<Point>>))| {
            let points = self.workers.iter().zip(points);
            let points =
                points.filter_map(|(&workers, point)| Some((workers as f64, value(point.as_ref()?)))).collect();
            Line { name: way.to_string(), is_papers: false, colour, points }
        };
        of_engine.map(line).collect()
    }
}

/// What of a point is drawn.
type Value = fn(&Point) -> f64;

/// A way with some workers, and one worker alone in the same rounds: the machine is not as fast all the time.
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

/// Measures all ways with each number of workers.
fn measure(
    context: &Context<'_>,
    bench: &Bench,
    load: &Load,
    workers: &[usize],
    ways: &[Way],
) -> Result<Vec<Vec<Option<Point>>>, ExperimentError> {
    let mut measured: Vec<Vec<Option<Point>>> = vec![vec![None; workers.len()]; ways.len()];
    let mut steps = context.steps("workers", workers.len() * ROUNDS * ways.len());
    for (w, &workers) in workers.iter().enumerate() {
        for _ in 0..ROUNDS {
            let mut alone = None;
            for (m, &way) in ways.iter().enumerate() {
                if way.method == Method::Inter {
                    alone = Some((bench.saturate(way, 1, load)?, bench.one_at_a_time(way, 1, load)?));
                }
                // On one core there is nothing to share: INTER is the baseline.
                if let Some((one, quiet_one)) = alone.filter(|_| workers > 1 || way.method == Method::Inter) {
                    let point = Point {
                        busy: bench.saturate(way, workers, load)?,
                        quiet: bench.one_at_a_time(way, workers, load)?,
                        alone: one,
                        quiet_alone: quiet_one,
                    };
                    measured[m][w] = Some(measured[m][w].map_or(point, |best| best.better(point)));
                }
                steps.done();
            }
        }
    }
    Ok(measured)
}

/// What bounds the methods on this log.
fn explain(bench: &Bench, load: &Load, findings: &mut Findings) {
    let workers = bench.eight();
    if let Some(bound) = bench.slowest_range_bound(load, workers) {
        findings.compare(format!("DOCP, {workers} ranges timed alone: what they can gain"), "x 1", None, bound);
    }
    let Some(tasks) = bench.tasks_a_query(load) else { return };
    findings.compare("FGQP: tasks a query", "", None, tasks);
    for threshold in [PAPERS_THRESHOLD, 150] {
        let most = workers as f64 / (1.0 + threshold as f64 / tasks);
        findings.compare(
            format!("FGQP(γ={threshold}), {workers} workers: latency that γ leaves"),
            "x less",
            None,
            most,
        );
    }
    if let Some((by_skips, block_by_block)) = bench.skipping(load) {
        let name = "INTER, 1 worker, passing over blocks by their skips: latency";
        findings.compare(name, "x less", None, block_by_block / by_skips);
    }
}

/// Figure 4 (c): throughput lost and latency won, by the pool's threshold.
fn thresholds(
    context: &Context<'_>,
    bench: &Bench,
    load: &Load,
    one: Measured,
    findings: &mut Findings,
) -> Result<(), ExperimentError> {
    let workers = bench.eight();
    let mut steps = context.steps("thresholds", ROUNDS * THRESHOLDS.len());
    let mut inter: Option<Measured> = None;
    let mut by_threshold: Vec<Option<Measured>> = vec![None; THRESHOLDS.len()];
    let or_better = |best: Option<Measured>, measured: Measured| Some(best.map_or(measured, |b| measured.better(b)));
    for _ in 0..ROUNDS {
        inter = or_better(inter, bench.saturate(Way::published(Method::Inter), workers, load)?);
        for (best, &threshold) in by_threshold.iter_mut().zip(&THRESHOLDS) {
            *best = or_better(*best, bench.saturate(Way::published(Method::Fgqp(threshold)), workers, load)?);
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
    let line = |name: &str, is_papers, colour, points| Line { name: name.to_owned(), is_papers, colour, points };
    let panels = [
        ("threshold-throughput", "throughput lost (%)", lost, [(5.0, 16.0), (150.0, 3.3)]),
        ("threshold-latency", "times less latency", won, [(5.0, 5.75), (150.0, 3.7)]),
    ];
    for (stem, y_label, ours, papers) in panels {
        findings.chart(Chart {
            stem: stem.to_owned(),
            title: format!("FGQP's pool threshold, {workers} workers (Tatikonda et al., figure 4 c)"),
            x_label: String::from("pool threshold (tasks)"),
            y_label: y_label.to_owned(),
            is_x_log: true,
            is_y_log: false,
            lines: vec![line("FGQP", false, 0, ours), line("FGQP, 8 workers", true, 0, papers.to_vec())],
        });
    }
    Ok(())
}
