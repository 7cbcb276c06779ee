//! A machine that serves a workload: lanes, query costs, and the estimates that policies see.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_engine::search::device::EnergyProbe;
use tandem_model::base::ids::{DeviceId, QueryId};
use tandem_model::base::machine::{Class, Idle, LaneFault, Machine, PerClass};
use tandem_model::base::time::Nanos;
use tandem_model::cost::{BatchSizes, Cost, MachineModel, MachineProfile, Workload, replay_gpu_times};
use tandem_model::sched::{Job, PolicyFactory};
use tandem_model::sim::{Arrivals, Experiment, SimQuery, bounds};
use tandem_model::study::simulated::profiled_machine;
use tandem_model::study::{
    Bound, Criterion, Estimates, Objective, QueryLengths, StudyError, Summary, Verdict, sim_queries,
};
use tandem_model::traffic::ArrivalProcess;

use super::live_record::{LiveRecord, LiveResults};
use super::machine::{SystemLoad, SystemLoadProbe, dispatcher};
use super::simulated_node::SimulatedNode;
use super::{Calibration, GpuChoice, LabError, Processors};
use crate::live::{self, Ending, LanePool, LiveError, LiveOutcome, LiveQuery, LiveRun, QuerySet};
use crate::profile::ProfileOptions;

/// The source of the times of GPU lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuSource {
    /// The GPU of this name.
    Real(String),
    /// Recorded times; the text names their source.
    Replay(String),
    /// No GPU lane, because the user declined one.
    Declined,
    /// No GPU lane, because this machine has no GPU and no recorded times were requested.
    Missing,
}

/// The specification of a live run.
#[derive(Clone, Copy, Debug)]
pub struct LiveRunSpec<'a> {
    /// Arrival rate, in queries per second.
    pub rate_qps: f64,
    /// The arrival times and the queries.
    pub arrivals: &'a Arrivals,
    /// The criterion that judges the run; it holds the deadline.
    pub criterion: Criterion,
    /// Whether the run may end once it has failed and its backlog only grows.
    pub gives_up: bool,
    /// The run ends when its oldest query has waited for this time.
    pub abandon_after: Option<Nanos>,
    /// Queries whose full log is kept. Beyond that the log keeps every second batch, then every fourth, and so on.
    pub keep: usize,
    /// The row of the workload at which the rows of the arrivals start.
    pub(super) first_row: usize,
}

/// The results of a live run.
#[derive(Debug)]
pub struct LiveReport {
    /// The measurements.
    pub outcome: LiveOutcome,
    /// Delays of all queries that were sent; `None` if none finished.
    pub summary: Option<Summary>,
    /// The delays of each priority's queries, by its name; empty if all are alike.
    pub priorities: Vec<(String, Summary)>,
    /// The verdict under the criterion.
    pub verdict: Verdict,
    /// Whether the run kept [`KEPT_SHARE`](super::KEPT_SHARE) of its throughput.
    pub kept_up: bool,
    /// Whether it missed the objective only because the machine [paused](super::is_paused).
    pub is_paused: bool,
    /// The load by other processes during the run.
    pub load: SystemLoad,
}

/// Default number of queries whose full log is kept: about 200 MB.
const KEPT_QUERIES: usize = 1_000_000;

/// Duration of a backlog's arrivals, and its least number of queries.
const BACKLOG_SECONDS: f64 = 0.1;
const BACKLOG_QUERIES: usize = 1000;
/// Time limit of a backlog, for policies much slower than the arrivals.
const BACKLOG_MOST: Nanos = Nanos(400_000_000);
/// Arrival rate of a backlog, as a multiple of the expected capacity. Lanes never idle, and queues stay realistic: in
/// longer ones `stealing` finds unusually suitable queries, and its CPU slowdown was 1.0 where live runs had 1.2.
const BACKLOG_OVERLOAD: f64 = 1.1;
/// Arrival rate of a backlog, as a multiple of the stability limit, if no capacity is known.
const FLOOD: f64 = 2.0;

impl<'a> LiveRunSpec<'a> {
    /// A run that is given up once it is hopeless.
    #[must_use]
    pub fn new(rate_qps: f64, arrivals: &'a Arrivals, criterion: Criterion) -> Self {
        Self { rate_qps, arrivals, criterion, gives_up: true, abandon_after: None, keep: KEPT_QUERIES, first_row: 0 }
    }

    /// This run with the [driven](Node::driven_rows) queries of `node`.
    #[must_use]
    pub(super) fn of_driven_rows(self, node: &Node) -> Self {
        Self { first_row: node.driven_rows().start, ..self }
    }

    /// A run that is measured but not judged: its queries have no deadline.
    #[must_use]
    pub(super) fn unjudged(rate_qps: f64, arrivals: &'a Arrivals) -> Self {
        let criterion = Objective::from(Bound::NoMiss).within(Nanos::MAX);
        Self { gives_up: false, ..Self::new(rate_qps, arrivals, criterion) }
    }
}

/// A machine that serves a workload; it is shared by all policies, rates and seeds.
#[derive(Debug)]
pub struct Node {
    lane_pool: LanePool,
    workload: Workload,
    queries: Vec<SimQuery>,
    /// The machine as predicted, without a machine profile.
    profiled: MachineModel,
    /// The cost estimates that policies see.
    estimates: Vec<(QueryId, PerClass<Cost>)>,
    /// Why these are exact though others were asked for.
    estimates_instead: Option<String>,
    gpu: GpuSource,
    cpu_name: String,
    /// Rows at the end of the workload that are driven but hidden from predictions; 0 if both use all rows.
    held_out: usize,
}

impl Node {
    /// The lengths of the queries, for length-based policies.
    #[must_use]
    pub fn lengths(&self) -> QueryLengths {
        let estimates: Vec<PerClass<Cost>> = self.estimates.iter().map(|&(_, estimate)| estimate).collect();
        QueryLengths::of(&self.workload, &estimates, self.model())
    }

    /// Starts the processors on a workload. `log` holds the words of its queries. Recorded times replace a GPU if
    /// requested.
    ///
    /// # Errors
    /// If there is no real processor, the words or costs of a query are missing, or a thread cannot start.
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
        let (estimates, estimates_instead) = estimates.clone().suited_to(&workload);
        let queries = sim_queries(&workload, &estimates, &machine)?;
        // Recorded times take exactly what policies are told of batches; what a real GPU takes differs.
        let told = matches!(gpu, GpuSource::Real(_)).then_some(&estimates);
        let model = MachineModel { faults, ..profiled_machine(machine, &workload, told) };
        let estimates = queries.iter().map(|query| (query.id, query.estimate)).collect();
        let profiled = model.clone();
        let mut lane_pool = LanePool::spawn(model, work, Arc::new(set), workload.costs())?;
        lane_pool.set_run_clock(run_clock);
        Ok(Self { lane_pool, workload, queries, profiled, estimates, estimates_instead, gpu, cpu_name, held_out: 0 })
    }

    /// Reserves the last `rows` of the workload for live runs; predictions use the others.
    pub fn hold_out(&mut self, rows: usize) {
        self.held_out = if rows < self.queries.len() { rows } else { 0 };
    }

    /// The rows that predictions use.
    #[must_use]
    pub fn predicted_rows(&self) -> Range<usize> {
        0..self.queries.len() - self.held_out
    }

    /// The rows that live runs use: the held-out rows, or all.
    #[must_use]
    pub fn driven_rows(&self) -> Range<usize> {
        if self.held_out > 0 { self.queries.len() - self.held_out..self.queries.len() } else { 0..self.queries.len() }
    }

    /// Why policies are given exact costs though estimates by a model were asked for; `None` where they are not.
    #[must_use]
    pub fn estimates_instead(&self) -> Option<&str> {
        self.estimates_instead.as_deref()
    }

    /// Its lanes.
    #[must_use]
    pub fn lane_pool(&self) -> &LanePool {
        &self.lane_pool
    }

    /// The machine model: the workload's predictions, and the machine profile if one was set.
    #[must_use]
    pub fn model(&self) -> &MachineModel {
        self.lane_pool.model()
    }

    /// The processors.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        self.lane_pool.machine()
    }

    /// The workload, with recorded GPU times if these are replayed.
    #[must_use]
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// The source of the times of the GPU lanes.
    #[must_use]
    pub fn gpu(&self) -> &GpuSource {
        &self.gpu
    }

    /// The name of the CPU.
    #[must_use]
    pub fn cpu_name(&self) -> &str {
        &self.cpu_name
    }

    /// The profiled cost of each query when it runs alone.
    #[must_use]
    pub fn profiled(&self) -> HashMap<QueryId, PerClass<Cost>> {
        self.workload.rows.iter().map(|row| row.query_id).zip(self.workload.costs()).collect()
    }

    /// The rate above which no scheduler is stable; `None` if all costs are 0.
    #[must_use]
    pub fn region_qps(&self) -> Option<f64> {
        let services = self.queries.iter().map(|query| query.service);
        Some(bounds::region(services, self.model(), BatchSizes::Any)?.rate_qps)
    }

    /// The rate above which a policy is unstable, given where it may place queries and whether it makes batches.
    #[must_use]
    pub fn region_of_qps(&self, policy: &dyn PolicyFactory) -> Option<f64> {
        Some(self.experiment(None, Vec::new(), Nanos::MAX).region_of(policy, 0.0)?.rate_qps)
    }

    /// Applies a machine profile to simulations and idle lanes. Lanes with recorded times keep these times.
    pub fn set_machine(&mut self, profile: &MachineProfile) {
        let is_recorded =
            |class| self.machine().processors().any(|(lane, on)| on.class == class && self.lane_pool.is_replayed(lane));
        let model = profile.model(&self.profiled, is_recorded);
        self.lane_pool.set_model(model);
        self.lane_pool.set_idle(profile.idle);
    }

    /// Measures what the dispatcher takes under these policies now, a fifth of a second for each. It replaces the costs of a
    /// machine profile.
    ///
    /// # Errors
    /// If a thread cannot start, or a run fails.
    pub fn measure_dispatcher(&mut self, policies: &[&dyn PolicyFactory]) -> Result<(), LabError> {
        let gpus = self.machine().processors().filter(|(_, processor)| processor.class.is_gpu()).count();
        let found = dispatcher::measure((self.machine().len() - gpus, gpus), self.lane_pool.idle(), policies)?;
        let dispatcher = Some(Arc::new(found));
        let model = MachineModel { dispatcher: dispatcher.clone(), ..self.model().clone() };
        self.lane_pool.set_model(model);
        self.profiled.dispatcher = dispatcher;
        Ok(())
    }

    /// The queries for the simulator: true costs and estimates.
    #[must_use]
    pub fn queries(&self) -> &[SimQuery] {
        &self.queries
    }

    /// The node in the simulator, with the queries that predictions may use.
    pub(super) fn simulated(&self) -> SimulatedNode<'_> {
        let queries = &self.queries[self.predicted_rows()];
        SimulatedNode { profiled: &self.profiled, model: self.model(), queries }
    }

    /// The node as an experiment. Costs come from the machine profile at the speed that `backlogs` show, without a profile from
    /// the backlogs alone, and without backlogs from the profile or the workload as they are.
    #[must_use]
    pub fn experiment(&self, backlogs: Option<&Calibration>, arrivals: Vec<Arrivals>, deadline: Nanos) -> Experiment {
        self.simulated().experiment(backlogs, arrivals, deadline)
    }

    /// Sets what lanes do between the queries of a run.
    pub fn set_idle(&mut self, idle: Idle) {
        self.lane_pool.set_idle(idle);
    }

    /// Keeps all lanes busy for `time`, so that caches fill, clocks rise and wrong answers show.
    ///
    /// # Errors
    /// The first error of an executor.
    pub fn warm_up(&mut self, time: Duration) -> Result<(), LabError> {
        Ok(self.lane_pool.warm_up(time)?)
    }

    /// The queries per second that the lanes of each class answer, as [`LanePool::flood`].
    ///
    /// # Errors
    /// The first error of an executor.
    pub fn flood(&mut self, queries: &PerClass<u32>, time: Duration) -> Result<PerClass<f64>, LabError> {
        Ok(self.lane_pool.flood(queries, time)?)
    }

    /// Serves a backlog of queries under a policy; returns the arrival rate and the outcome.
    ///
    /// The rate is 1.1 times `sustained_qps`, or twice the stability limit if that is unknown, so that lanes never
    /// idle. The backlog ends in less than half a second.
    ///
    /// # Errors
    /// If the policy does not fit the machine, all costs are 0, or the run fails.
    pub fn serve_backlog(
        &mut self,
        policy: &dyn PolicyFactory,
        sustained_qps: Option<f64>,
        seed: u64,
    ) -> Result<(f64, LiveOutcome), LabError> {
        let region_qps = self.region_of_qps(policy).ok_or(StudyError::NothingToSchedule)?;
        let rate_qps = sustained_qps.map_or(FLOOD * region_qps, |qps| BACKLOG_OVERLOAD * qps);
        let count = ((rate_qps * BACKLOG_SECONDS) as usize).max(BACKLOG_QUERIES);
        let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, seed, count, self.predicted_rows().len());
        let run = LiveRunSpec { abandon_after: Some(BACKLOG_MOST), ..LiveRunSpec::unjudged(rate_qps, &arrivals) };
        Ok((rate_qps, self.run_strict(policy, run)?.outcome))
    }

    /// The query costs of a run.
    #[must_use]
    pub fn calibration(&self, outcome: &LiveOutcome) -> Calibration {
        let costs = self.profiled();
        Calibration::of(outcome, &self.profiled, |row| costs[&row.query])
    }

    /// Drives one live run.
    ///
    /// # Errors
    /// If the policy does not fit the machine, or the run cannot begin. The outcome's ending reports later failures.
    pub fn drive(&mut self, policy: &dyn PolicyFactory, run: LiveRunSpec<'_>) -> Result<LiveReport, LabError> {
        let LiveRunSpec { rate_qps, arrivals, criterion, gives_up, abandon_after, keep, first_row } = run;
        // Job numbers have 32 bits.
        if u32::try_from(arrivals.len()).is_err() {
            return Err(LabError::TooManyQueries { queries: arrivals.len() });
        }
        let of_workload = arrivals.at_rate(rate_qps).map(|(time, row)| (time, row + first_row as u32));
        let priorities = arrivals.priorities().map(AsRef::as_ref);
        let levels = priorities.map(|priorities| priorities.of_run(arrivals.seed));
        let jobs = live::plan_ahead(of_workload, &self.estimates, criterion.deadline).map(move |job| match levels {
            Some(levels) => {
                let (priority, allowance) = levels.of(job.id.0);
                Job { priority, deadline: job.arrival + allowance, ..job }
            }
            None => job,
        });
        let policy = policy.build(self.lane_pool.model())?;
        let mut record =
            LiveRecord::new(criterion, (arrivals.len(), rate_qps), (self.lane_pool.machine(), priorities), gives_up);
        let load = SystemLoadProbe::start();
        let energy = self.start_energy();
        let run = LiveRun { policy, jobs, abandon_after, keep, record: &mut record };
        let outcome = live::run(&mut self.lane_pool, run)?;
        let (load, gpu_energy_j) = (load.cores(), energy.joules());
        let LiveResults { summary, verdict, kept_up, is_paused, priorities } = record.into_results(&outcome.course);
        let summary = summary.map(|summary| Summary { gpu_energy_j, ..summary });
        Ok(LiveReport { outcome, summary, priorities, verdict, kept_up, is_paused, load })
    }

    /// Starts to measure the energy of the GPUs that serve.
    pub(super) fn start_energy(&self) -> EnergyProbe {
        let machine = self.lane_pool.machine();
        let all: usize =
            Class::ALL.into_iter().filter(|class| class.is_gpu()).map(|class| machine.num_devices(class)).sum();
        let real = if matches!(self.gpu, GpuSource::Real(_)) { all as u32 } else { 0 };
        EnergyProbe::start((0..real).map(DeviceId))
    }

    /// Calls [`drive`](Self::drive) and treats every failure during the run as an error.
    ///
    /// # Errors
    /// The errors of [`drive`](Self::drive), and every lane fault, even if the run survived it.
    pub fn run_strict(&mut self, policy: &dyn PolicyFactory, run: LiveRunSpec<'_>) -> Result<LiveReport, LabError> {
        let report = self.drive(policy, run)?;
        if let Some(LaneFault { processor, what, .. }) = report.outcome.log.faults.first() {
            return Err(LiveError::LaneFailed { processor: *processor, what: what.clone() }.into());
        }
        match report.outcome.ending {
            Ending::Failed(e) => Err(e.into()),
            ending => Ok(LiveReport { outcome: LiveOutcome { ending, ..report.outcome }, ..report }),
        }
    }
}

/// The GPU source without a real GPU: recorded times if requested.
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
        // Another log may use the same numbers for other queries.
        let query = by_log_id.get(&row.log_id).filter(|query| query.features(index).postings == row.features.postings);
        let missing = || LabError::NotInLog { workload: name.to_owned(), query: row.query_id, log_id: row.log_id };
        let query = query.cloned().ok_or_else(missing)?;
        Ok(LiveQuery { id: row.query_id, query, mode: row.mode, results: Some(row.results) })
    });
    Ok(QuerySet::new(k, live.collect::<Result<Vec<_>, LabError>>()?))
}
