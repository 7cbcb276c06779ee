//! Ding et al., figure 7: delay against arrival rate for GPU, CPU, the better of both per query, and both at once.
//!
//! The experiment simulates, as the paper does: Poisson arrivals, deadlines of 500 ms, and a run fails if one query misses
//! its deadline. The paper does not give the length of its runs; here a run has ten thousand queries. The sustained rate is
//! the last one before the first failure on the way up, in the median over seeds, and at most the stability bound, because a
//! short run can hide a growing backlog. The paper's M5 rules on its four features estimate queries; they are fitted to
//! 3000 other queries, and their errors are compared with the paper's. Tandem's stealing also runs with boosted trees.
//!
//! Costs are measurements: those of Tandem's executors, on collections with independent and with correlated terms, and those of the
//! published methods by `ding-costs`. They are used twice. As measured, the deadline is as many mean CPU
//! costs as in the paper. Scaled by one factor per processor, the mean costs equal the paper's. The gain of a combination
//! depends on how differently two processors rank queries, so that the bound of any scheduler is given as well.

use std::fmt::Display;
use std::ops::Range;
use std::path::PathBuf;

use rayon::prelude::*;
use tandem_model::base::machine::{Class, Machine};
use tandem_model::base::quantile::median;
use tandem_model::base::time::Nanos;
use tandem_model::cost::{ModelKind, TrainOptions, Workload, WorkloadRow, train};
use tandem_model::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use tandem_model::sim::{Arrivals, Experiment, SimQuery};
use tandem_model::study::{Estimates, Tally, named_workload_in, sim_queries};
use tandem_model::traffic::{ArrivalProcess, Mode};

use crate::findings::{Chart, Curve};
use crate::{Context, ExperimentError, Findings, Result};

/// "Maximum acceptable delay".
const DEADLINE_MS: f64 = 500.0;
/// Queries of the workload, as many as the paper measured. Among more, one would exceed the deadline on a CPU at any rate.
const QUERIES: usize = 1000;
/// Queries that M5 is trained on, as in the paper.
const TRAINING: usize = 3000;
const RUN: usize = 10_000;
/// Runs with different arrivals.
const SEEDS: u64 = 9;
/// Ratio between neighbouring rates, which start at a quarter of the slower processor's rate.
const STEP: f64 = 1.03;
/// Maximum number of rates. A run lasts dozens of deadlines, and this many steps are a factor of a thousand.
const MOST_STEPS: usize = 240;
const POINTS: usize = 24;
/// The paper's mean milliseconds of AND queries on CPU and GPU (its table 2).
const PAPERS_MS: [f64; 2] = [8.71, 7.66];
/// Mean relative errors of the paper's estimates in percent: CPU, GPU.
const PAPERS_ERRORS: [f64; 2] = [20.0, 22.0];

/// Cost models: the paper's and Tandem's.
const MODELS: [ModelKind; 2] = [ModelKind::M5, ModelKind::Boosting];
/// Policies with the number of their model and the rate in the paper's text, in queries per second.
const CONFIGURATIONS: [(PolicyKind, usize, Option<f64>); 6] = [
    (PolicyKind::GpuOnly, 0, None),
    (PolicyKind::CpuOnly, 0, Some(100.0)),
    (PolicyKind::BestOf, 0, None),
    (PolicyKind::StealingPublished, 0, Some(300.0)),
    (PolicyKind::Stealing, 0, None),
    (PolicyKind::Stealing, 1, None),
];

/// Workloads that ship with the program.
const SHIPPED: [(&str, &str); 2] = [("synthetic-gov2-h200", "size of GOV2"), ("enwiki-tb05-h200", "Wikipedia")];

/// Costs on lists with correlated terms, which make ANDs longer than independent lists do.
const CORRELATED: &str = "traces/synthetic-gov2-correlated-h200.workload.csv.zst";
/// Costs of the published methods, measured by `ding-costs` on a synthetic collection and on the Wikipedia slice.
const PUBLISHED: [(&str, &str); 2] = [
    ("synthetic", "traces/ding-published-1m-correlated-h100.workload.csv.zst"),
    ("real", "traces/ding-published-enwiki-tb05-h100.workload.csv.zst"),
];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let mode = context.mode(Mode::And);
    findings.provenance("mode", mode.name());
    findings.provenance("input", "recorded costs of a GPU and a core of its host; simulated");
    findings.provenance("M5 trained on", format!("the next {TRAINING} queries, where the workload has as many"));
    let mut steps = context.steps("workloads", SHIPPED.len());
    for (name, what) in SHIPPED {
        let (_, mut workload) =
            named_workload_in(Some(name), mode).map_err(|e| ExperimentError::Input(e.to_string()))?;
        workload.rows.truncate(QUERIES + TRAINING);
        both_scales(context, &workload, (name, what), findings)?;
        steps.done();
    }
    for (name, what, mut workload) in recorded(context, mode, findings)? {
        workload.rows.truncate(QUERIES + TRAINING);
        both_scales(context, &workload, (&name, &what), findings)?;
        steps.done();
    }
    drop(steps);
    findings.note(
        "A workload \
         scaled to the paper's means keeps the measured spread and correlation of costs. Long queries are slow on the CPU and \
         hardly slower on the GPU, so that a pair can exceed the sum of its parts. \"No scheduler\" is the rate above which \
         the pair is unstable under any assignment.",
    );
    Ok(())
}

/// Adds sections with a workload's costs scaled to the paper's means, and as measured.
fn both_scales(
    context: &Context<'_>,
    workload: &Workload,
    (name, what): (&str, &str),
    findings: &mut Findings,
) -> Result<()> {
    let scaled = with_means(workload, PAPERS_MS)?;
    for (workload, costs, is_papers) in [(&scaled, "the paper's means", true), (workload, "as measured", false)] {
        let section = format!("{what}, {costs}");
        findings.section(&section);
        let stem = format!("{name}-{}", if is_papers { "papers" } else { "measured" });
        compare(context, workload, (stem, section), is_papers, findings)?;
    }
    findings.section("");
    Ok(())
}

/// Costs in files, with a name and a description each: those of the repository, and those that `ding-costs` left in the output folder.
fn recorded(context: &Context<'_>, mode: Mode, findings: &mut Findings) -> Result<Vec<(String, String, Workload)>> {
    let mut files = vec![(
        "synthetic-gov2-correlated-h200".into(),
        "size of GOV2, correlated terms".into(),
        PathBuf::from(CORRELATED),
    )];
    for (lists, recorded) in PUBLISHED {
        let left = context.scratch.join(format!("ding-published-{lists}.workload.csv"));
        let path = if left.exists() { left } else { PathBuf::from(recorded) };
        files.push((format!("published-{lists}"), format!("published methods, {lists} lists"), path));
    }
    let mut found = Vec::new();
    for (name, what, path) in files {
        if path.exists() {
            let (_, workload) =
                named_workload_in(path.to_str(), mode).map_err(|e| ExperimentError::Input(e.to_string()))?;
            found.push((name, what, workload));
        } else {
            findings.note(format!("{what}: left out, no file {} here; the repository has it.", path.display()));
        }
    }
    Ok(found)
}

/// Scales the costs of a workload, so that those of the measured queries have these means, in milliseconds.
fn with_means(workload: &Workload, means_ms: [f64; 2]) -> Result<Workload> {
    let mut scaled = workload.clone();
    for (class, mean_ms) in [Class::CPU, Class::GPU].into_iter().zip(means_ms) {
        let rows = &workload.rows[..workload.rows.len().min(QUERIES)];
        let times = || rows.iter().filter_map(|row| row.measured[class]).map(|time| time.median_us);
        if times().count() < rows.len() {
            return Err(ExperimentError::Input(format!(
                "the workload has queries that were not measured on a {class}"
            )));
        }
        let factor = 1e3 * mean_ms * rows.len() as f64 / times().sum::<f64>();
        for measured in scaled.rows.iter_mut().filter_map(|row| row.measured[class].as_mut()) {
            measured.median_us *= factor;
            measured.spread_us *= factor;
            measured.device_us = measured.device_us.map(|us| us * factor);
        }
    }
    Ok(scaled)
}

fn compare(
    context: &Context<'_>,
    workload: &Workload,
    (stem, section): (String, String),
    is_papers: bool,
    findings: &mut Findings,
) -> Result<()> {
    let machine = Machine::new(1, 1);
    let input = |e: &dyn Display| ExperimentError::Input(e.to_string());
    let part = |rows: &[WorkloadRow]| Workload { rows: rows.to_vec(), ..workload.clone() };
    let (measured, training) = workload.rows.split_at(workload.rows.len().min(QUERIES));
    let measured = part(measured);
    let estimates = |kind: ModelKind| -> Result<Estimates> {
        match training.len() {
            // The paper trains on other queries of the log.
            TRAINING if kind == MODELS[0] => {
                let options = TrainOptions { model: kind, ..TrainOptions::default() };
                let model = train(&part(training), &options).map_err(|e| input(&e))?;
                Ok(Estimates::Model(kind.name().to_owned(), Box::new(model)))
            }
            _ => Ok(Estimates::Fitted(kind)),
        }
    };
    let [papers, own] = MODELS.map(|kind| sim_queries(&measured, &estimates(kind)?, &machine).map_err(|e| input(&e)));
    let queries = [papers?, own?];
    add_costs(&queries, is_papers, findings);
    let deadline_ms = DEADLINE_MS / PAPERS_MS[0] * mean_ms(&queries[0], Class::CPU);
    let experiments = queries.map(|queries| {
        let seeds = context.seed..context.seed + SEEDS;
        let drawn = |seed| Arrivals::drawn(&ArrivalProcess::Poisson, seed, RUN, queries.len());
        let arrivals = seeds.map(drawn).collect();
        let deadline = Nanos::from_ms(deadline_ms);
        Experiment { cluster: None, model: machine.clone().into(), queries, deadline, arrivals }
    });
    findings.compare("deadline", "ms", is_papers.then_some(DEADLINE_MS), deadline_ms);
    let region = experiments[0].region().map(|region| region.rate_qps);
    findings.add("no scheduler is stable above", "q/s", region);
    let mut curves = Vec::new();
    for (colour, (kind, model, papers_qps)) in CONFIGURATIONS.into_iter().enumerate() {
        let (policy, experiment) = (kind.with(PolicyOptions::default()), &experiments[model]);
        let name = if model == 0 { kind.to_string() } else { format!("{kind}, {} estimates", MODELS[model].name()) };
        let seconds = |class: Class| experiment.queries.iter().map(|q| q.service[class].alone.as_secs()).sum::<f64>();
        let mean_s = |class| seconds(class) / experiment.queries.len() as f64;
        let slowest_s = match kind {
            PolicyKind::CpuOnly => mean_s(Class::CPU),
            PolicyKind::GpuOnly => mean_s(Class::GPU),
            _ => mean_s(Class::CPU).max(mean_s(Class::GPU)),
        };
        let rates = 1.0 / slowest_s / 4.0..region.unwrap_or(f64::INFINITY);
        let found: Result<Vec<f64>> =
            experiment.arrivals.par_iter().map(|arrivals| sustained(experiment, &policy, arrivals, &rates)).collect();
        let qps = median(found?);
        findings.compare(format!("{name} sustains"), "q/s", papers_qps.filter(|_| is_papers), qps);
        let at = |point: usize| {
            let rate_qps = qps * point as f64 / POINTS as f64;
            Ok((rate_qps, mean_delay_ms(experiment, &policy, rate_qps)?))
        };
        // A query that exceeds the deadline alone leaves no rate.
        let points: Result<_> = (1..=POINTS).into_par_iter().filter(|_| qps > 0.0).map(at).collect();
        curves.push(Curve::ours(name, colour, points?));
    }
    let title = format!("Mean delay by arrival rate, {section} (Ding et al., figure 7)");
    findings.chart(Chart::new(stem, title, ["arrival rate (queries/s)", "mean delay (ms)"], curves).log_y());
    Ok(())
}

/// Adds mean and highest costs by class, and the mean errors of each model.
fn add_costs(queries: &[Vec<SimQuery>; 2], is_papers: bool, findings: &mut Findings) {
    for (place, class) in [Class::CPU, Class::GPU].into_iter().enumerate() {
        let papers_ms = is_papers.then_some(PAPERS_MS[place]);
        findings.compare(format!("mean cost, {class}"), "ms", papers_ms, mean_ms(&queries[0], class));
        let longest_ms = queries[0].iter().map(|query| query.service[class].alone.as_ms()).fold(0.0, f64::max);
        findings.add(format!("highest cost, {class}"), "ms", longest_ms);
        for (model, queries) in queries.iter().enumerate() {
            let error = |query: &SimQuery| {
                let (truth, estimate) = (query.service[class].alone.as_ms(), query.estimate[class].alone.as_ms());
                (estimate - truth).abs() / truth.max(1e-6)
            };
            let mean_error = 100.0 * queries.iter().map(error).sum::<f64>() / queries.len() as f64;
            let papers = (model == 0).then_some(PAPERS_ERRORS[place]);
            findings.compare(format!("estimates' error, {class}, {}", MODELS[model].name()), "%", papers, mean_error);
        }
    }
}

fn mean_ms(queries: &[SimQuery], class: Class) -> f64 {
    queries.iter().map(|query| query.service[class].alone.as_ms()).sum::<f64>() / queries.len() as f64
}

/// Returns the highest of ascending `rates` before the first one at which a query misses its deadline.
fn sustained(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    arrivals: &Arrivals,
    rates: &Range<f64>,
) -> Result<f64> {
    let mut rate_qps = rates.start;
    let mut held = 0.0;
    for _ in 0..MOST_STEPS {
        if rate_qps > rates.end {
            break;
        }
        let tally = Tally::new(&experiment.model.machine, RUN);
        let tally = experiment.play(policy, rate_qps, arrivals, tally, Tally::has_missed)?;
        if tally.has_missed() {
            break;
        }
        held = rate_qps;
        rate_qps *= STEP;
    }
    Ok(held)
}

/// Returns the mean delay over the runs of all seeds.
fn mean_delay_ms(experiment: &Experiment, policy: &dyn PolicyFactory, rate_qps: f64) -> Result<f64> {
    let mut sum_ms = 0.0;
    for arrivals in &experiment.arrivals {
        let tally = Tally::new(&experiment.model.machine, RUN);
        let tally = experiment.play(policy, rate_qps, arrivals, tally, |_| false)?;
        sum_ms += tally.summary().map_or(0.0, |summary| summary.mean_ms);
    }
    Ok(sum_ms / experiment.arrivals.len() as f64)
}
