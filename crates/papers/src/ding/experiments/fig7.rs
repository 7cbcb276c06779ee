//! Ding et al., figure 7: delay against arrival rate for a GPU, a CPU, the better of both one query at a time, and both.
//!
//! Simulated, as in the paper: Poisson arrivals, deadlines of 500 ms, and a run fails if one query misses its own. How long
//! its runs were the paper doesn't tell; here they are ten thousand queries. A rate is sustained up to the first failure on
//! its way up, in the median over some seeds, and at most what is stable in the long run: a short run forgives a backlog that
//! grows. Queries are estimated by the paper's M5 rules on its four features, fitted to other queries; their errors stand
//! beside the paper's. Stealing as the lab has it is run with these estimates, and with the lab's own, by boosted trees.
//!
//! Costs are measured ones that ship with the program. As they are, they are those of today's machine, and the deadline is
//! as many mean costs of the CPU as in the paper; and scaled, on each processor by one factor, so that their means are the
//! paper's. What a combination can gain hangs on how differently the
//! two processors like the same queries: what no scheduler could exceed with these costs is told, too.

use std::ops::Range;

use rayon::prelude::*;

use crate::{Chart, Context, ExperimentError, Findings, Line};
use tandem_core::base::machine::{Class, Machine};
use tandem_core::base::quantile::median;
use tandem_core::base::time::Nanos;
use tandem_core::cost::{ModelKind, Workload};
use tandem_core::lab::{Estimates, Tally, named_workload_in, sim_queries};
use tandem_core::query::{ArrivalProcess, Mode};
use tandem_core::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use tandem_core::sim::{Arrivals, Experiment, SimQuery};

/// "Maximum acceptable delay".
const DEADLINE_MS: f64 = 500.0;
/// Queries of a workload that are drawn from: as many as the paper measured.
const QUERIES: usize = 1000;
/// Queries of a run.
const RUN: usize = 10_000;
/// Runs, each with arrivals of its own.
const SEEDS: u64 = 9;
/// Rates tried are so many times the one before, from a fourth of what the slower processor bears on.
const STEP: f64 = 1.03;
/// Rates that a line is drawn through.
const POINTS: usize = 24;
/// Milliseconds of a query in the mean, CPU and GPU, AND: table 2 there.
const PAPERS_MS: [f64; 2] = [8.71, 7.66];
/// Mean relative errors of the paper's estimates, in percent: CPU, GPU.
const PAPERS_ERRORS: [f64; 2] = [20.0, 22.0];

/// The models that estimate queries: the paper's, and the lab's.
const MODELS: [ModelKind; 2] = [ModelKind::M5, ModelKind::Boosting];
/// The paper's four configurations, the last as published; and the last as the lab has it. Each with the place of its model.
const CONFIGURATIONS: [(PolicyKind, usize); 6] = [
    (PolicyKind::GpuOnly, 0),
    (PolicyKind::CpuOnly, 0),
    (PolicyKind::BestOf, 0),
    (PolicyKind::StealingPublished, 0),
    (PolicyKind::Stealing, 0),
    (PolicyKind::Stealing, 1),
];

/// What the text tells of each, in queries a second: less than 100 for the CPU alone, beyond 300 for both.
fn papers_qps(policy: PolicyKind) -> Option<f64> {
    match policy {
        PolicyKind::CpuOnly => Some(100.0),
        PolicyKind::StealingPublished => Some(300.0),
        _ => None,
    }
}

/// Measured costs that ship.
const SHIPPED: [(&str, &str); 2] = [("synthetic-gov2-h200", "size of GOV2"), ("enwiki-tb05-h200", "Wikipedia")];

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mode = context.mode(Mode::And);
    findings.provenance("mode", mode.name());
    findings.provenance("input", "workloads that ship, measured on an H200 and a core beside it; simulated");
    let mut steps = context.steps("workloads", 2 * SHIPPED.len());
    for (name, what) in SHIPPED {
        let (_, mut workload) =
            named_workload_in(Some(name), mode).map_err(|e| ExperimentError::Input(e.to_string()))?;
        // As many as the paper's: among more there is one that a CPU can't answer within the deadline at any rate.
        workload.rows.truncate(QUERIES);
        let scaled = with_means(&workload, PAPERS_MS)?;
        for (workload, costs, is_papers) in [(&scaled, "the paper's means", true), (&workload, "as measured", false)] {
            findings.section(format!("{what}, {costs}"));
            let stem = format!("{name}-{}", if is_papers { "papers" } else { "measured" });
            compare(context, workload, (stem, format!("{what}, {costs}")), is_papers, &mut findings)?;
            steps.done();
        }
    }
    drop(steps);
    findings.note(
        "The paper's figure: the CPU alone sustains less than 100 queries a second, both together beyond 300. A workload \
         scaled to the paper's means keeps what was measured of how costs spread and go together: where long queries are \
         slow on the CPU and hardly slower on the GPU, a pair is worth more than the sum of its parts. \"No scheduler\" is the \
         rate above which the pair is not stable, whoever assigns the queries.",
    );
    Ok(findings)
}

/// A workload whose mean costs are these, in milliseconds.
fn with_means(workload: &Workload, means_ms: [f64; 2]) -> Result<Workload, ExperimentError> {
    let mut scaled = workload.clone();
    for (class, mean_ms) in [Class::CPU, Class::GPU].into_iter().zip(means_ms) {
        let times = || workload.rows.iter().filter_map(|row| row.measured[class]).map(|time| time.median_us);
        if times().count() < workload.rows.len() {
            return Err(ExperimentError::Input(format!(
                "the workload has queries that were not measured on a {class}"
            )));
        }
        let factor = 1e3 * mean_ms * workload.rows.len() as f64 / times().sum::<f64>();
        for measured in scaled.rows.iter_mut().filter_map(|row| row.measured[class].as_mut()) {
            measured.median_us *= factor;
            measured.spread_us *= factor;
            measured.device_us = measured.device_us.map(|us| us * factor);
        }
    }
    Ok(scaled)
}

/// Plays all policies on one workload.
fn compare(
    context: &Context<'_>,
    workload: &Workload,
    (stem, name): (String, String),
    is_papers: bool,
    findings: &mut Findings,
) -> Result<(), ExperimentError> {
    let machine = Machine::new(1, 1);
    let queries = MODELS.map(|kind| {
        sim_queries(workload, &Estimates::Fitted(kind), &machine).map_err(|e| ExperimentError::Input(e.to_string()))
    });
    let [papers, own] = queries;
    let queries = [papers?, own?];
    tell_costs(&queries, is_papers, findings);
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
    findings.compare("no scheduler is stable above", "q/s", None, region);
    let mut lines = Vec::new();
    for (colour, (kind, model)) in CONFIGURATIONS.into_iter().enumerate() {
        let (policy, experiment) = (kind.with(PolicyOptions::default()), &experiments[model]);
        let name = if model == 0 { kind.to_string() } else { format!("{kind}, {} estimates", MODELS[model].name()) };
        let from = slowest_qps(&experiment.queries, kind) / 4.0;
        let rates = from..region.unwrap_or(f64::INFINITY);
        let found: Result<Vec<f64>, ExperimentError> =
            experiment.arrivals.par_iter().map(|arrivals| sustained(experiment, &policy, arrivals, &rates)).collect();
        let qps = median(found?);
        let papers = papers_qps(kind).filter(|_| is_papers);
        findings.compare(format!("{name} sustains"), "q/s", papers, qps);
        lines.push(Line { name, is_papers: false, colour, points: delays(experiment, &policy, qps)? });
    }
    findings.chart(Chart {
        stem,
        title: format!("Mean delay by arrival rate, {name} (Ding et al., figure 7)"),
        x_label: String::from("arrival rate (queries/s)"),
        y_label: String::from("mean delay (ms)"),
        is_x_log: false,
        is_y_log: true,
        lines,
    });
    Ok(())
}

/// What queries cost in the mean on each class, and by how much each model's estimates err.
fn tell_costs(queries: &[Vec<SimQuery>; 2], is_papers: bool, findings: &mut Findings) {
    for (place, class) in [Class::CPU, Class::GPU].into_iter().enumerate() {
        let papers_ms = is_papers.then_some(PAPERS_MS[place]);
        findings.compare(format!("mean cost, {class}"), "ms", papers_ms, mean_ms(&queries[0], class));
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

/// Mean delays at rates up to what a policy sustains.
fn delays(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    sustained_qps: f64,
) -> Result<Vec<(f64, f64)>, ExperimentError> {
    let at = |point: usize| {
        let rate_qps = sustained_qps * point as f64 / POINTS as f64;
        Ok((rate_qps, mean_delay_ms(experiment, policy, rate_qps)?))
    };
    (1..=POINTS).into_par_iter().map(at).collect()
}

/// A rate that the slowest of a policy's choices is sure to bear.
fn slowest_qps(queries: &[SimQuery], kind: PolicyKind) -> f64 {
    let mean_s = |class: Class| {
        queries.iter().map(|query: &SimQuery| query.service[class].alone.as_secs()).sum::<f64>() / queries.len() as f64
    };
    match kind {
        PolicyKind::CpuOnly => 1.0 / mean_s(Class::CPU),
        PolicyKind::GpuOnly => 1.0 / mean_s(Class::GPU),
        _ => 1.0 / mean_s(Class::CPU).max(mean_s(Class::GPU)),
    }
}

/// The highest rate before the first at which a query misses its deadline, of `rates` from the lowest upwards.
fn sustained(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    arrivals: &Arrivals,
    rates: &Range<f64>,
) -> Result<f64, ExperimentError> {
    let mut rate_qps = rates.start;
    let mut held = 0.0;
    // A run is dozens of deadlines long at any rate that one processor bears: a few times that is never sustained, and these
    // steps are a factor of a thousand.
    for _ in 0..240 {
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

/// The mean over all seeds' runs.
fn mean_delay_ms(experiment: &Experiment, policy: &dyn PolicyFactory, rate_qps: f64) -> Result<f64, ExperimentError> {
    let mut sum_ms = 0.0;
    for arrivals in &experiment.arrivals {
        let tally = Tally::new(&experiment.model.machine, RUN);
        let tally = experiment.play(policy, rate_qps, arrivals, tally, |_| false)?;
        sum_ms += tally.summary().map_or(0.0, |summary| summary.mean_ms);
    }
    Ok(sum_ms / experiment.arrivals.len() as f64)
}
