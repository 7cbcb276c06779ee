//! A machine at work: lanes that wait for queries, what these cost, and what policies are told.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::live_record::LiveRecord;
use super::machine::simulated::profiled_machine;
use super::machine::{SystemLoad, SystemLoadProbe};
use super::{
    Calibration, Criterion, Estimates, GpuChoice, LabError, Objective, Processors, QueryLengths, Summary, Verdict,
    sim_queries,
};
use crate::base::ids::QueryId;
use crate::base::machine::{Class, Idle, LaneFault, Machine, PerClass};
use crate::base::time::Nanos;
use crate::cost::{
    BatchSizes, Contention, Cost, MachineFile, MachineModel, ProfileOptions, Workload, replay_gpu_times,
};
use crate::index::Index;
use crate::live::{self, Ending, LanePool, LiveError, LiveOutcome, LiveQuery, LiveRun, QuerySet};
use crate::query::{ArrivalProcess, Features, Query};
use crate::sched::PolicyFactory;
use crate::sim::{Arrivals, Experiment, SimQuery, bounds};

/// Whose times a GPU lane takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuSource {
    /// This GPU's.
    Real(String),
    /// Recorded ones; whose, in words.
    Replay(String),
    /// There is no such lane: it was declined.
    Declined,
    /// There is no such lane: this machine has no GPU, and recorded times were not asked for.
    Missing,
}

/// What is driven.
#[derive(Clone, Copy, Debug)]
pub struct LiveRunSpec<'a> {
    /// Queries a second.
    pub rate_qps: f64,
    /// When they come, and which they are.
    pub arrivals: &'a Arrivals,
    /// What the run is judged by, with the deadline of queries.
    pub criterion: Criterion,
    /// Whether the run may end once it has failed and its backlog only grows.
    pub gives_up: bool,
    /// The run ends when its oldest query has waited so long.
    pub abandon_after: Option<Nanos>,
    /// The log of so many queries is kept whole; of more queries that of every second, fourth... batch.
    pub keep: usize,
    /// The workload's row that stands for the first of the arrivals' rows.
    pub(super) first_row: usize,
}

/// What came of a live run.
#[derive(Debug)]
pub struct LiveReport {
    /// What was measured.
    pub outcome: LiveOutcome,
    /// Delays of all queries that were sent; `None` if none finished.
    pub summary: Option<Summary>,
    /// Whether the run came up to the objective.
    pub verdict: Verdict,
    /// What else kept the machine busy meanwhile.
    pub load: SystemLoad,
}

/// The log of a run is kept whole for so many queries unless more are asked for: some 200 MB.
const KEPT_QUERIES: usize = 1_000_000;

/// A backlog is what arrives in this time, or so many queries.
const BACKLOG_SECONDS: f64 = 0.1;
const BACKLOG_QUERIES: usize = 1000;
/// Of a policy that is far slower than its queries come, what it serves in this time.
const BACKLOG_MOST: Nanos = Nanos(400_000_000);
/// The rate at which its queries arrive, over what the policy is thought to sustain: nobody waits for work, but no more
/// queries wait than near the capacity. Where thousands do, a policy that may choose finds some that suit a processor
/// uncommonly well: `stealing` then had its CPU at 1.0 times the time alone, and at 1.2 in live runs.
const BACKLOG_OVERLOAD: f64 = 1.1;
/// The same, over the rate above which the policy is not stable, as long as nothing better is known.
const FLOOD: f64 = 2.0;

impl<'a> LiveRunSpec<'a> {
    /// A run that is given up when it has become hopeless.
    #[must_use]
    pub fn new(rate_qps: f64, arrivals: &'a Arrivals, criterion: Criterion) -> Self {
        Self { rate_qps, arrivals, criterion, gives_up: true, abandon_after: None, keep: KEPT_QUERIES, first_row: 0 }
    }

    /// The same run, of the queries of `node` that are [driven](Node::driven_rows).
    #[must_use]
    pub(super) fn of_driven_rows(self, node: &Node) -> Self {
        Self { first_row: node.driven_rows().start, ..self }
    }

    /// A run that is measured and not judged: nobody waits for its answers.
    #[must_use]
    pub(super) fn unjudged(rate_qps: f64, arrivals: &'a Arrivals) -> Self {
        let criterion = Objective::NoMiss.within(Nanos::MAX);
        Self { gives_up: false, ..Self::new(rate_qps, arrivals, criterion) }
    }
}

/// A machine at work: the same for every policy, rate and seed.
#[derive(Debug)]
pub struct Node {
    lane_pool: LanePool,
    workload: Workload,
    queries: Vec<SimQuery>,
    /// The machine as profiled: without what a machine file says.
    profiled: MachineModel,
    /// The costs that policies are given.
    estimates: Vec<(QueryId, PerClass<Cost>)>,
    gpu: GpuSource,
    cpu_name: String,
    /// Rows at the end of the workload that are driven, and that predictions do not know; 0 where both have all rows.
    held_out: usize,
}

impl Node {
    /// How long this node's queries are: what policies that go by length know.
    #[must_use]
    pub fn lengths(&self) -> QueryLengths {
        let estimates: Vec<PerClass<Cost>> = self.estimates.iter().map(|&(_, estimate)| estimate).collect();
        QueryLengths::of(&self.workload, &estimates, self.model())
    }

    /// Starts the processors on a workload, whose queries' words are in `log`. Recorded times stand in a
    /// GPU's place if they are asked for.
    ///
    /// # Errors
    /// If nothing real is to be driven, a query's words or costs are missing, or a thread can't be had.
    pub fn start(
        processors: Processors,
        name: &str,
        mut workload: Workload,
        log: Vec<Query>,
        index: &Index,
        estimates: &Estimates,
    ) -> Result<Self, LabError> {
        let gpu = match processors.gpu_name() {
            Some(device) => GpuSource::Real(device),
            None => replay(processors.wanted().gpu, name, &mut workload)?,
        };
        if processors.wanted().cpus == 0 && !matches!(gpu, GpuSource::Real(_)) {
            return Err(LabError::NothingReal);
        }
        let set = query_set(name, &workload, log, index)?;
        let cpu_name = processors.cpu_name().to_owned();
        let (faults, run_clock) = (processors.faults().clone(), processors.run_clock());
        let (machine, work) = processors.into_lanes(matches!(gpu, GpuSource::Replay(_)));
        let queries = sim_queries(&workload, estimates, &machine)?;
        // Recorded times take exactly what policies are told of batches; what a real GPU takes differs.
        let told = matches!(gpu, GpuSource::Real(_)).then_some(estimates);
        let model = MachineModel { faults, ..profiled_machine(machine, &workload, told) };
        let estimates = queries.iter().map(|query| (query.id, query.estimate)).collect();
        let profiled = model.clone();
        let mut lane_pool = LanePool::spawn(model, work, Arc::new(set), workload.costs())?;
        lane_pool.set_run_clock(run_clock);
        Ok(Self { lane_pool, workload, queries, profiled, estimates, gpu, cpu_name, held_out: 0 })
    }

    /// Holds the last `rows` of the workload back from predictions: those are driven, and no others.
    pub fn hold_out(&mut self, rows: usize) {
        self.held_out = if rows < self.queries.len() { rows } else { 0 };
    }

    /// The rows of the workload that predictions know.
    #[must_use]
    pub fn predicted_rows(&self) -> Range<usize> {
        0..self.queries.len() - self.held_out
    }

    /// The rows that live runs ask: those held out, or all.
    #[must_use]
    pub fn driven_rows(&self) -> Range<usize> {
        if self.held_out > 0 { self.queries.len() - self.held_out..self.queries.len() } else { 0..self.queries.len() }
    }

    /// Its lanes.
    #[must_use]
    pub fn lane_pool(&self) -> &LanePool {
        &self.lane_pool
    }

    /// Its machine with what is known of it beforehand.
    #[must_use]
    pub fn model(&self) -> &MachineModel {
        self.lane_pool.model()
    }

    /// Its processors.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        self.lane_pool.machine()
    }

    /// The queries that it is asked, with recorded GPU times where these are replayed.
    #[must_use]
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Whose times its GPU lanes take.
    #[must_use]
    pub fn gpu(&self) -> &GpuSource {
        &self.gpu
    }

    /// What its CPU is called.
    #[must_use]
    pub fn cpu_name(&self) -> &str {
        &self.cpu_name
    }

    /// What each query costs by itself, as profiled.
    #[must_use]
    pub fn profiled(&self) -> HashMap<QueryId, PerClass<Cost>> {
        self.workload.rows.iter().map(|row| row.query_id).zip(self.workload.costs()).collect()
    }

    /// The rate above which no scheduler is stable; `None` if everything costs nothing.
    #[must_use]
    pub fn region_qps(&self) -> Option<f64> {
        let services = self.queries.iter().map(|query| query.service);
        Some(bounds::region(services, self.model(), BatchSizes::Any)?.rate_qps)
    }

    /// The rate above which a policy is not stable, as far as it says where queries may run and whether in batches.
    #[must_use]
    pub fn region_of_qps(&self, policy: &dyn PolicyFactory) -> Option<f64> {
        Some(self.experiment(None, Vec::new(), Nanos::MAX).region_of(policy, 0.0)?.rate_qps)
    }

    /// Takes on what a machine file says: simulations reckon with it, and lanes do between queries what they did when it
    /// was measured. Lanes that take recorded times take them as they are.
    pub fn set_machine(&mut self, file: &MachineFile) {
        let is_recorded =
            |class| self.machine().processors().any(|(lane, on)| on.class == class && self.lane_pool.is_replayed(lane));
        let model = file.model(&self.profiled, self.workload.contention.as_ref(), is_recorded);
        self.lane_pool.set_model(model);
        self.lane_pool.set_idle(file.idle);
    }

    /// The queries as they are simulated: what they cost, and what policies are told.
    #[must_use]
    pub fn queries(&self) -> &[SimQuery] {
        &self.queries
    }

    /// Keeps with the workload what its queries take in company: a machine file that is taken on from now on reckons with it.
    pub fn set_contention(&mut self, contention: Contention) {
        self.workload.contention = Some(contention);
    }

    /// The node as it is simulated: as slow as `calibration` found it; without one, as its machine file says, or as
    /// profiled if it has none.
    #[must_use]
    pub fn experiment(
        &self,
        calibration: Option<&Calibration>,
        arrivals: Vec<Arrivals>,
        deadline: Nanos,
    ) -> Experiment {
        let known = &self.queries[self.predicted_rows()];
        let (model, queries) = match calibration {
            Some(found) => (found.model(&self.profiled), known.iter().map(|query| found.query(query)).collect()),
            None => (self.model().clone(), in_stream(known, self.model())),
        };
        Experiment { model, queries, deadline, arrivals, cluster: None }
    }

    /// What its lanes do between queries of a run.
    pub fn set_idle(&mut self, idle: Idle) {
        self.lane_pool.set_idle(idle);
    }

    /// Keeps all lanes busy for a while: caches fill, clocks rise from idle, a wrong answer shows.
    ///
    /// # Errors
    /// The first that an executor reports.
    pub fn warm_up(&mut self, time: Duration) -> Result<(), LabError> {
        Ok(self.lane_pool.warm_up(time)?)
    }

    /// Serves a backlog of queries, drawn from this seed, under a policy: a tenth more than it is thought to sustain (or
    /// twice what it could at best, if that is not known), so that nobody waits for work, and for less than half a second.
    /// Gives the rate, too.
    ///
    /// # Errors
    /// If the policy does not fit the machine, everything costs nothing, or the run fails.
    pub fn serve_backlog(
        &mut self,
        policy: &dyn PolicyFactory,
        sustained_qps: Option<f64>,
        seed: u64,
    ) -> Result<(f64, LiveOutcome), LabError> {
        let region_qps = self.region_of_qps(policy).ok_or(LabError::NothingToSchedule)?;
        let rate_qps = sustained_qps.map_or(FLOOD * region_qps, |qps| BACKLOG_OVERLOAD * qps);
        let count = ((rate_qps * BACKLOG_SECONDS) as usize).max(BACKLOG_QUERIES);
        let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, seed, count, self.predicted_rows().len());
        let run = LiveRunSpec { abandon_after: Some(BACKLOG_MOST), ..LiveRunSpec::unjudged(rate_qps, &arrivals) };
        Ok((rate_qps, self.run_strict(policy, run)?.outcome))
    }

    /// What queries cost in a run.
    #[must_use]
    pub fn calibration(&self, outcome: &LiveOutcome) -> Calibration {
        let costs = self.profiled();
        Calibration::of(outcome, &self.profiled, |row| costs[&row.query])
    }

    /// One live run.
    ///
    /// # Errors
    /// If the policy does not fit the machine, or the run can't begin. What goes wrong later is the outcome's ending.
    pub fn drive(&mut self, policy: &dyn PolicyFactory, run: LiveRunSpec<'_>) -> Result<LiveReport, LabError> {
        let LiveRunSpec { rate_qps, arrivals, criterion, gives_up, abandon_after, keep, first_row } = run;
        // Jobs are numbered in 32 bits.
        if u32::try_from(arrivals.len()).is_err() {
            return Err(LabError::TooManyQueries { queries: arrivals.len() });
        }
        let of_workload = arrivals.at_rate(rate_qps).map(|(time, row)| (time, row + first_row as u32));
        let jobs = live::plan_ahead(of_workload, &self.estimates, criterion.deadline);
        let policy = policy.build(self.lane_pool.model())?;
        let mut record = LiveRecord::new(criterion, arrivals.len(), self.lane_pool.machine(), gives_up);
        let load = SystemLoadProbe::start();
        let run = LiveRun { policy, jobs, abandon_after, keep, record: &mut record };
        let outcome = live::run(&mut self.lane_pool, run)?;
        let load = load.cores();
        let (summary, verdict) = record.into_results(rate_qps);
        Ok(LiveReport { outcome, summary, verdict, load })
    }

    /// As [`drive`](Self::drive), for runs of which nothing counts unless all goes well.
    ///
    /// # Errors
    /// As there, and what has failed during the run, survived or not.
    pub fn run_strict(&mut self, policy: &dyn PolicyFactory, run: LiveRunSpec<'_>) -> Result<LiveReport, LabError> {
        let LiveReport { outcome, summary, verdict, load } = self.drive(policy, run)?;
        if let Some(LaneFault { processor, what, .. }) = outcome.log.faults.first() {
            return Err(LiveError::LaneFailed { processor: *processor, what: what.clone() }.into());
        }
        match outcome.ending {
            Ending::Failed(e) => Err(e.into()),
            ending => Ok(LiveReport { outcome: LiveOutcome { ending, ..outcome }, summary, verdict, load }),
        }
    }
}

/// What queries take in a stream of others on a machine; what policies are told stays.
#[must_use]
pub fn in_stream(queries: &[SimQuery], model: &MachineModel) -> Vec<SimQuery> {
    queries.iter().map(|query| SimQuery { service: model.in_stream(&query.service), ..*query }).collect()
}

/// Recorded times in the GPU's place if they are asked for.
fn replay(choice: GpuChoice, name: &str, workload: &mut Workload) -> Result<GpuSource, LabError> {
    match choice {
        GpuChoice::None => return Ok(GpuSource::Declined),
        GpuChoice::Auto | GpuChoice::Real => return Ok(GpuSource::Missing),
        GpuChoice::Replay => {}
    }
    if workload.rows.iter().all(|row| row.measured[Class::GPU].is_some()) {
        let device = workload.provenance.get("gpu").unwrap_or("a GPU");
        return Ok(GpuSource::Replay(format!("the times recorded on {device} in {name}")));
    }
    Ok(GpuSource::Replay(replay_gpu_times(workload)?.to_string()))
}

/// The workload's queries as workers run them.
fn query_set(name: &str, workload: &Workload, log: Vec<Query>, index: &Index) -> Result<QuerySet, LabError> {
    let k = workload.provenance.get("k").and_then(|k| k.parse().ok()).unwrap_or(ProfileOptions::default().k);
    let by_log_id: HashMap<u32, Query> = log.into_iter().map(|query| (query.id.0, query)).collect();
    let live = workload.rows.iter().map(|row| {
        // A log of other queries may have numbers of its own.
        let query =
            by_log_id.get(&row.log_id).filter(|query| Features::of(query, index).postings == row.features.postings);
        let missing = || LabError::NotInLog { workload: name.to_owned(), query: row.query_id, log_id: row.log_id };
        let query = query.cloned().ok_or_else(missing)?;
        Ok(LiveQuery { id: row.query_id, query, mode: row.mode, results: Some(row.results) })
    });
    Ok(QuerySet::new(k, live.collect::<Result<Vec<_>, LabError>>()?))
}
