//! Everything that the policies share: index, queries, measured costs, estimates, and a fleet of workers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Arguments;
use super::calibration::Calibration;
use crate::cli::live::lab::lanes;
use crate::cli::options::GpuChoice;
use crate::cli::{Failure, defaults};
use crate::cost::{
    Cost, CostModel, MachineModel, ProfileOptions, RecordedGpu, TrainOptions, Workload, WorkloadRow,
    cross_validated_estimates, profile, replay_gpu_times, train,
};
use crate::exec::Executor;
use crate::exec::cpu::CpuExecutor;
use crate::files::Provenance;
use crate::ids::QueryId;
use crate::index::Index;
use crate::live::{self, Fleet, GpuLane, LiveOutcome, LiveQuery, LiveRun, QuerySet};
use crate::machine::{Class, Machine, PerClass};
use crate::query::{ArrivalProcess, Query, at_rate, draw_queries, unit_arrivals};
use crate::report::number::counted;
use crate::report::table::Table;
use crate::report::validation::{ServiceRow, ServiceRun};
use crate::sched::{Job, Policy, PolicyFactory, PolicyKind, PolicyOptions};
use crate::sim::{SimQuery, bounds};
use crate::time::Nanos;

/// A backlog is what arrives in this time at the rate above which no scheduler is stable, or so many queries.
const CALIBRATION_SECONDS: f64 = 0.05;
const CALIBRATION_QUERIES: usize = 1000;
/// The rate at which its queries arrive, as a multiple of that: nobody waits for work.
const CALIBRATION_OVERLOAD: f64 = 2.0;
/// How long workers are kept busy before: clocks rise from idle within it.
const WARM_UP: Duration = Duration::from_millis(200);

/// When queries arrive, at one a second, and which each is.
type Draw = (Vec<f64>, Vec<u32>);

/// What a real GPU costs, or where replayed times come from.
enum Gpu {
    Real(String),
    Replay(RecordedGpu),
    None,
}

pub(super) struct Lab {
    fleet: Fleet,
    gpu: Gpu,
    cpu: String,
    index_note: String,
    fingerprint: u64,
    seed: u64,
    out: PathBuf,
    /// Costs as measured here; where the GPU is replayed, with its recorded times.
    workload: Workload,
    /// Estimates of models that did not see the query.
    estimates: Vec<(QueryId, PerClass<Cost>)>,
    /// Backlogs served so far: each has draws of its own.
    backlogs: u64,
    /// When the workers were ready.
    ready: Instant,
    service: Vec<ServiceRow>,
}

impl Lab {
    /// Makes or opens the index, profiles the queries on this machine, starts the workers.
    pub(super) fn set_up(arguments: &Arguments) -> Result<Self, Failure> {
        let (index, queries, index_note) = open(arguments)?;
        let cpu = CpuExecutor::new(Arc::clone(&index), index.built_with()).with_algorithm(arguments.algorithm);
        let real_gpu = arguments.gpu.executor(&index)?;
        let gpu_name = real_gpu.as_ref().map(|gpu| gpu.device());
        let mut executors: Vec<Box<dyn Executor>> = vec![Box::new(cpu.clone_for_worker())];
        executors.extend(real_gpu);

        let mut workload = measure(arguments, &mut executors, &queries, &index)?;
        workload.write(&arguments.out.join("here.workload.csv"))?;
        let gpu = match (gpu_name, arguments.gpu) {
            (Some(name), _) => Gpu::Real(name),
            (None, GpuChoice::None) => Gpu::None,
            (None, _) => Gpu::Replay(replay_gpu_times(&mut workload)?),
        };
        if let Gpu::Replay(source) = &gpu {
            outln!("No GPU here: the GPU's lane, whose rows say `replay`, REPLAYS\n  {source}.");
        }
        let lane = match &gpu {
            Gpu::None => GpuLane::None,
            Gpu::Replay(_) => GpuLane::Replay,
            Gpu::Real(_) => GpuLane::Real,
        };
        let real_gpu = executors.pop_if(|executor| executor.class() == Class::GPU);
        Ok(Self {
            fleet: spawn(arguments, &workload, &queries, &cpu, lane, real_gpu)?,
            gpu,
            cpu: cpu.device(),
            index_note,
            fingerprint: index.fingerprint(),
            seed: arguments.seed,
            out: arguments.out.clone(),
            estimates: Vec::new(),
            workload,
            backlogs: 0,
            ready: Instant::now(),
            service: Vec::new(),
        })
    }

    /// Fits the models, prints how wrong they are on queries they have not seen, and keeps such estimates.
    pub(super) fn print_models(&mut self, options: &TrainOptions) -> Result<(), Failure> {
        let file = train(&self.workload, options)?;
        file.write(&self.out.join("model.json"))?;
        let mut table = Table::grouped([
            ("", &["kind", "mode", "queries", "mean us"][..]),
            ("error", &["mean", "median", "p95"]),
            ("mean error of", &["always the mean cost"]),
        ]);
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        for model in file.models() {
            let Some(e) = &model.evaluation else { continue };
            let times = self.workload.rows.iter().filter_map(|row| row.measured[model.kind].map(|m| m.median_us));
            let mean_us = times.sum::<f64>() / e.samples as f64;
            table.row([
                model.kind.to_string(),
                model.mode.to_string(),
                e.samples.to_string(),
                format!("{mean_us:.1}"),
                percent(e.mean_relative_error),
                percent(e.median),
                percent(e.p95),
                percent(e.baseline_mean_relative_error),
            ]);
        }
        outln!(
            "\nCost models: regression trees on list lengths; {}-fold cross-validation, so each query is estimated by a \
             tree\nthat has not seen it:\n{table}",
            options.folds
        );

        let crossed = cross_validated_estimates(&self.workload, options)?;
        let estimates = self.workload.rows.iter().zip(crossed).map(|(row, estimate_us)| {
            // A replayed time that a model made is its own estimate; elsewhere the query's own fold is left out.
            let estimate = |class| estimate_us[class].or_else(|| file.predict_us(class, row.mode, &row.features));
            (row.query_id, self.workload.batches.costs(row.mode, PerClass::from_fn(estimate)))
        });
        self.estimates = estimates.collect();
        Ok(())
    }

    /// Keeps the workers busy for a while: clocks rise from idle.
    pub(super) fn warm_up(&mut self) -> Result<(), Failure> {
        Ok(self.fleet.warm_up(WARM_UP)?)
    }

    /// Measures how this machine serves under a policy now: a backlog of queries, drawn as no other run draws them.
    pub(super) fn calibrate(&mut self, kind: PolicyKind, options: &PolicyOptions) -> Result<Calibration, Failure> {
        let region_qps = self.region_qps(&self.sim_queries(None))?;
        let count = ((region_qps * CALIBRATION_SECONDS) as usize).max(CALIBRATION_QUERIES);
        let rate_qps = region_qps * CALIBRATION_OVERLOAD;
        self.backlogs += 1;
        let draw = self.draw_with(self.seed.wrapping_add(self.backlogs), count);
        let outcome = self.drive_drawn(self.policy(kind, options)?, rate_qps, draw, Nanos::MAX, None)?;
        Ok(self.note_service(kind, ServiceRun::Backlog, rate_qps, &outcome))
    }

    /// What queries cost in a run. Keeps it for [`Lab::service`].
    pub(super) fn note_service(
        &mut self,
        policy: PolicyKind,
        run: ServiceRun,
        rate_qps: f64,
        outcome: &LiveOutcome,
    ) -> Calibration {
        let ids = self.workload.rows.iter().map(|row| row.query_id);
        let costs: HashMap<QueryId, PerClass<Cost>> = ids.zip(self.workload.costs()).collect();
        let found = Calibration::of(outcome, self.fleet.model(), |query| costs[&query]);
        self.service.push(ServiceRow {
            policy: policy.name().to_owned(),
            at: self.ready.elapsed(),
            run,
            rate_qps,
            queries: outcome.log.rows.len(),
            slowdown: found.slowdown,
            handoff: found.handoff,
        });
        found
    }

    /// What queries cost in each run so far.
    pub(super) fn service(&self) -> &[ServiceRow] {
        &self.service
    }

    /// The rate above which no scheduler is stable.
    pub(super) fn region_qps(&self, queries: &[SimQuery]) -> Result<f64, Failure> {
        let region = bounds::region(queries.iter().map(|query| query.service), self.fleet.model());
        let region = region.ok_or_else(|| Failure::failed("queries take no time at all: nothing to schedule"))?;
        Ok(region.rate_qps)
    }

    pub(super) fn machine(&self) -> &Machine {
        self.fleet.machine()
    }

    pub(super) fn policy(&self, kind: PolicyKind, options: &PolicyOptions) -> Result<Box<dyn Policy>, Failure> {
        Ok(kind.with(*options).build(self.fleet.model())?)
    }

    /// The queries as the simulator plays them, as slow as a calibration found; without one, as profiled.
    pub(super) fn sim_queries(&self, calibration: Option<&Calibration>) -> Vec<SimQuery> {
        let rows = self.workload.costs().into_iter().zip(&self.estimates);
        rows.map(|(profiled, &(id, estimate))| {
            let service = calibration.map_or(profiled, |calibration| calibration.service(&profiled));
            SimQuery { id, service, estimate }
        })
        .collect()
    }

    /// The machine as the simulator plays it, with the hand-over that a calibration found; without one, as profiled.
    pub(super) fn model(&self, calibration: Option<&Calibration>) -> MachineModel {
        let model = self.fleet.model().clone();
        calibration.map_or(model.clone(), |calibration| MachineModel {
            handoff: calibration.handoff,
            decision: calibration.decision,
            ..model
        })
    }

    /// Arrivals at one query a second, and which query each is: the same for the simulator and the live driver, and for
    /// every policy and rate.
    pub(super) fn draw(&self, queries: usize) -> Draw {
        self.draw_with(self.seed, queries)
    }

    fn draw_with(&self, seed: u64, queries: usize) -> Draw {
        let arrivals = unit_arrivals(&ArrivalProcess::Poisson, seed, queries);
        (arrivals, draw_queries(seed, queries, self.workload.rows.len()))
    }

    /// One live run.
    pub(super) fn drive(
        &mut self,
        policy: Box<dyn Policy>,
        rate_qps: f64,
        queries: usize,
        deadline: Nanos,
        abandon_after: Option<Nanos>,
    ) -> Result<LiveOutcome, Failure> {
        self.drive_drawn(policy, rate_qps, self.draw(queries), deadline, abandon_after)
    }

    fn drive_drawn(
        &mut self,
        policy: Box<dyn Policy>,
        rate_qps: f64,
        (unit, drawn): Draw,
        deadline: Nanos,
        abandon_after: Option<Nanos>,
    ) -> Result<LiveOutcome, Failure> {
        let jobs: Vec<Job> = live::plan(at_rate(&unit, rate_qps).zip(drawn), &self.estimates, deadline);
        let run = LiveRun { policy, jobs: &jobs, abandon_after, keep_journal: false };
        let outcome = live::run(&mut self.fleet, run)?;
        if let live::Ending::Failed(e) = &outcome.ending {
            return Err(Failure::failed(e.to_string()));
        }
        Ok(outcome)
    }

    /// `real`, `replay` or `none`.
    pub(super) fn gpu_name(&self) -> &'static str {
        self.fleet.gpu().name()
    }

    pub(super) fn out(&self) -> &Path {
        &self.out
    }

    pub(super) fn provenance(&self) -> Provenance {
        let gpu = match &self.gpu {
            Gpu::Real(name) => name.clone(),
            Gpu::Replay(source) => format!("replay of {source}"),
            Gpu::None => "none".to_owned(),
        };
        super::provenance(self.seed, &format!("{:016x} ({})", self.fingerprint, self.index_note), &gpu)
    }

    pub(super) fn title(&self) -> String {
        let gpu = match &self.gpu {
            Gpu::Real(name) => format!(" + {name}"),
            Gpu::Replay(_) => " + replayed GPU".to_owned(),
            Gpu::None => String::new(),
        };
        let workers = counted(self.machine().count(Class::CPU), "worker", "workers");
        format!("Predicted and measured: {workers} on {}{gpu}", self.cpu)
    }

    pub(super) fn print_gpu_note(&self) {
        if let Gpu::Replay(source) = &self.gpu {
            outln!(
                "The GPU was not here. Rows that say `replay` put in its place a lane that takes\n  {source};\n\
                 what ran on the CPU was executed and measured on this machine.\n"
            );
        }
    }
}

/// The index, its queries, and what to call it.
fn open(arguments: &Arguments) -> Result<(Arc<Index>, Vec<Query>, String), Failure> {
    let (index, queries_path, name) = match (&arguments.index, &arguments.queries) {
        (Some(index), Some(queries)) => (Arc::new(Index::open(index)?), queries.clone(), index.display().to_string()),
        _ => {
            let dir = arguments.out.join("index");
            let (index, queries) = defaults::synthetic_index(&dir, arguments.docs, arguments.seed)?;
            (index, queries, format!("synthetic, {} documents", arguments.docs))
        }
    };
    let mut queries = defaults::read_queries(&queries_path, &index)?;
    queries.truncate(arguments.limit as usize);
    outln!(
        "Index: {name}, {} terms, {} postings. {} queries, mode {}, top {}.",
        index.num_terms(),
        index.num_postings(),
        queries.len(),
        arguments.mode,
        arguments.k
    );
    Ok((index, queries, name))
}

/// What the queries cost on each of the executors.
fn measure(
    arguments: &Arguments,
    executors: &mut [Box<dyn Executor>],
    queries: &[Query],
    index: &Index,
) -> Result<Workload, Failure> {
    let options = ProfileOptions {
        modes: vec![arguments.mode],
        k: arguments.k,
        repeats: usize::from(arguments.repeats),
        seed: arguments.seed,
        ..ProfileOptions::default()
    };
    let bar = defaults::progress("profile", options.searches(executors.len(), queries.len()));
    let measured = profile(executors, queries, index, &options, &mut |done| bar.set_position(done));
    bar.finish_and_clear();
    let mut workload = measured?;
    workload.provenance = workload.provenance.with_command_and_machine();
    Ok(workload)
}

/// Starts the workers; says so where they have too few cores to be punctual.
fn spawn(
    arguments: &Arguments,
    workload: &Workload,
    queries: &[Query],
    cpu: &CpuExecutor,
    lane: GpuLane,
    gpu: Option<Box<dyn Executor>>,
) -> Result<Fleet, Failure> {
    let live_query = |(row, query): (&WorkloadRow, &Query)| LiveQuery {
        id: row.query_id,
        query: query.clone(),
        mode: row.mode,
        results: Some(row.results),
    };
    let live_queries = QuerySet::new(arguments.k, workload.rows.iter().zip(queries).map(live_query));
    let cpus = (0..arguments.cpus).map(|_| Box::new(cpu.clone_for_worker()) as Box<dyn Executor>).collect();
    let (machine, work) = lanes(cpus, lane, gpu);
    let model = MachineModel { batches: workload.batches.batch_costs(), ..machine.into() };
    let fleet = Fleet::spawn(model, work, Arc::new(live_queries), workload.costs())?;
    if !fleet.has_cores_enough() {
        errln!(
            "warning: {} CPU workers, the GPU's lane and the driver share fewer cores: delays come out too long",
            arguments.cpus
        );
    }
    Ok(fleet)
}
