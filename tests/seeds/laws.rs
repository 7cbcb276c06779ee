//! The laws that hold for every scenario.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tandem::base::ids::JobId;
use tandem::base::time::Nanos;
use tandem::cost::{BatchLoad, MachineModel};
use tandem::live::{self, Ending, LanePool, LiveRun};
use tandem::sched::{LogRow, PolicyFactory, PolicyKind, RunLog, Sink};
use tandem::sim::{Experiment, OtherNodes, SimQuery, SimRun, bounds, simulate};
use tandem::study::{Bound, Judge, Objective, Tally};
use tandem::traffic::{ArrivalProcess, unit_arrivals};

use crate::scenario::Scenario;

/// A broken law and the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    pub law: &'static str,
    pub evidence: String,
}

/// A change of the simulated log before it is checked; tests of the checker plant errors with it.
pub type Spoil = dyn Fn(&Scenario, &mut RunLog) + Sync;

/// Checks all laws.
pub fn check(scenario: &Scenario) -> Result<(), Broken> {
    check_spoilt(scenario, &|_, _| {})
}

/// As [`check`], with an error planted in the log. Panics are broken laws, too.
pub fn check_spoilt(scenario: &Scenario, spoil: &Spoil) -> Result<(), Broken> {
    catch_unwind(AssertUnwindSafe(|| check_all(scenario, spoil))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Err(Broken { law: "nothing panics", evidence: text.unwrap_or_default() })
    })
}

macro_rules! law {
    ($holds:expr, $law:literal, $($evidence:tt)+) => {
        let holds: bool = $holds;
        if !holds {
            return Err(Broken { law: $law, evidence: format!($($evidence)+) });
        }
    };
}

pub struct Case<'a> {
    scenario: &'a Scenario,
    pub model: MachineModel,
    queries: Vec<SimQuery>,
    factory: Box<dyn PolicyFactory>,
}

fn check_all(scenario: &Scenario, spoil: &Spoil) -> Result<(), Broken> {
    let Some(case) = Case::of(scenario) else { return Ok(()) };
    let mut log = case.play()?;
    spoil(scenario, &mut log);
    case.answered_once(&log)?;
    case.lanes_hold_what_they_can(&log)?;
    case.littles_law(&log)?;
    case.objective(&log)?;
    case.bounds(&log)?;
    case.lindley(&log)?;
    case.manual_clock(&log)?;
    case.shards(&log)
}

impl<'c> Case<'c> {
    /// `None` if the machine lacks what the policy needs.
    pub fn of(scenario: &'c Scenario) -> Option<Self> {
        let model = scenario.model();
        let factory = Box::new(scenario.policy.with(scenario.options));
        factory.build(&model).ok()?;
        let queries = scenario.queries(&model.machine);
        Some(Self { scenario, model, queries, factory })
    }

    /// The log of one node.
    pub fn play(&self) -> Result<RunLog, Broken> {
        simulate(self.run(None)).map_err(|e| Broken { law: "a policy keeps its contract", evidence: e.to_string() })
    }

    /// The log of the scenario's cluster.
    pub fn play_cluster(&self) -> Result<RunLog, Broken> {
        let cluster = self.scenario.cluster(&self.queries);
        let others = 1..cluster.shape().nodes();
        let policies = others.map(|_| self.factory.build(&self.model).expect("it was built before")).collect();
        simulate(self.run(Some(OtherNodes { cluster: &cluster, policies })))
            .map_err(|e| Broken { law: "a policy keeps its contract", evidence: e.to_string() })
    }

    fn run<'a>(&'a self, others: Option<OtherNodes<'a>>) -> SimRun<'a, impl Iterator<Item = (Nanos, u32)> + use<'a>> {
        SimRun {
            model: &self.model,
            policy: self.factory.build(&self.model).expect("it was built before"),
            seed: self.scenario.seed,
            queries: &self.queries,
            arrivals: self.scenario.arrivals.iter().map(|&(at, row)| (Nanos(at), row)),
            deadline: Nanos(self.scenario.deadline),
            priorities: None,
            others,
        }
    }

    fn answered_once(&self, log: &RunLog) -> Result<(), Broken> {
        let mut jobs: Vec<JobId> =
            log.rows.iter().map(|row| row.job).chain(log.shed.iter().map(|shed| shed.job)).collect();
        jobs.sort_unstable();
        let expected = (0..self.scenario.arrivals.len() as u32).map(JobId);
        law!(jobs.iter().copied().eq(expected), "every query is answered once", "jobs {jobs:?}");
        for row in &log.rows {
            let (at, query) = self.scenario.arrivals[row.job.index()];
            let is_in_order = row.arrival.0 == at && row.arrival <= row.released && row.released <= row.started;
            let is_right = is_in_order && row.started <= row.finished && row.query.0 == query;
            law!(is_right, "a row is of its query, in order of time", "{row:?}");
            law!(self.model.machine.class(row.processor) == row.class, "a row names its lane", "{row:?}");
        }
        let sheds = self.scenario.options.shed != tandem::sched::Shed::Nothing;
        law!(sheds || log.shed.is_empty(), "nothing is dropped without shedding", "{:?}", log.shed);
        Ok(())
    }

    /// Batches take their time, and a lane holds no more of them than its depth.
    fn lanes_hold_what_they_can(&self, log: &RunLog) -> Result<(), Broken> {
        for (processor, lane) in self.model.machine.processors() {
            let mut rows: Vec<&LogRow> = log.rows.iter().filter(|row| row.processor == processor).collect();
            rows.sort_by_key(|row| row.batch);
            let batches: Vec<&[&LogRow]> = rows.chunk_by(|a, b| a.batch == b.batch).collect();
            for (number, batch) in batches.iter().enumerate() {
                let is_one =
                    batch.iter().all(|row| (row.started, row.finished) == (batch[0].started, batch[0].finished));
                law!(is_one, "a batch is one piece", "{batch:?}");
                if let Some(before) = number.checked_sub(lane.depth as usize) {
                    let is_free = batches[before][0].finished <= batch[0].started;
                    law!(is_free, "a lane holds no more batches than its depth", "{:?}, {:?}", batches[before], batch);
                }
                // Dropped queries leave a batch; fallbacks and machine files have other times.
                if self.is_plain() && log.shed.is_empty() {
                    let service = |row: &&LogRow| self.queries[row.query.index()].service[lane.class];
                    let load = batch.iter().fold(BatchLoad::default(), |load, row| load.with(service(row)));
                    let least = self.model.batch_time(lane.class, &load).total() + self.model.handoff[lane.class];
                    let took = batch[0].finished.since(batch[0].started);
                    law!(took >= least, "no batch is faster than its costs", "{took:?} of {least:?}: {batch:?}");
                }
            }
        }
        Ok(())
    }

    /// Whether all times follow from costs.
    fn is_plain(&self) -> bool {
        self.scenario.profile.is_empty() && self.scenario.faults.is_empty()
    }

    /// The number in the system, summed over time, is the sum of the delays; the summary agrees.
    fn littles_law(&self, log: &RunLog) -> Result<(), Broken> {
        let mut changes: Vec<(Nanos, i64)> =
            log.rows.iter().flat_map(|row| [(row.arrival, 1), (row.finished, -1)]).collect();
        changes.sort_unstable();
        let (mut number, mut since, mut area) = (0_i64, Nanos::ZERO, 0_i128);
        for (at, change) in changes {
            area += i128::from(number) * i128::from(at.since(since).0);
            (number, since) = (number + change, at);
        }
        let delays: i128 = log.rows.iter().map(|row| i128::from(row.delay().0)).sum();
        law!(
            number == 0 && area == delays,
            "Little's law",
            "{area} ns of queries in the system, {delays} ns of delays"
        );
        let mut tally = Tally::new(&self.model.machine, log.rows.len());
        let mut rows = log.rows.clone();
        rows.sort_by_key(|row| (row.finished, row.batch));
        rows.iter().for_each(|row| tally.record(row));
        if let Some(summary) = tally.summary() {
            let mean_ms = delays as f64 / 1e6 / log.rows.len() as f64;
            let is_so = (summary.mean_ms - mean_ms).abs() <= 1e-9 * mean_ms;
            law!(is_so, "the summary's mean is the log's", "{} and {mean_ms} ms", summary.mean_ms);
            let busiest = summary.utilisation.map(|share| share.unwrap_or(0.0));
            for class in self.model.machine.classes() {
                let share = busiest[class];
                law!(
                    (0.0..=1.0 + 1e-9).contains(&share),
                    "no class is busy for longer than the run",
                    "{class:?}: {share}"
                );
            }
        }
        Ok(())
    }

    /// The judge counts late queries, and a percentile is in time exactly if few enough are late.
    fn objective(&self, log: &RunLog) -> Result<(), Broken> {
        let (deadline, all) = (Nanos(self.scenario.deadline), self.scenario.arrivals.len());
        let bound = match self.scenario.objective {
            100.0 => Bound::NoMiss,
            percent => Bound::Percentile { share: percent / 100.0, within: None },
        };
        let mut judge = Judge::new(Objective::from(bound).within(deadline), all, 1.0);
        log.rows.iter().for_each(|row| judge.record(row));
        log.shed.iter().for_each(|shed| judge.shed(shed));
        let verdict = judge.verdict();
        let late = log.rows.iter().filter(|row| row.finished > row.deadline).count() + log.shed.len();
        law!(
            verdict.late == late && verdict.missed == late,
            "the judge counts late queries",
            "{verdict:?}, {late} late"
        );
        let mut delays: Vec<u64> = log.rows.iter().map(|row| row.delay().0).collect();
        delays.resize(all, u64::MAX);
        delays.sort_unstable();
        let rank = (self.scenario.objective * all as f64 / 100.0 - 1e-9).ceil().max(1.0) as usize;
        let is_in_time = all == 0 || delays[rank.min(all) - 1] <= deadline.0;
        law!(
            is_in_time == (late <= verdict.allowed),
            "a percentile is in time if few are late",
            "{verdict:?}, {delays:?}"
        );
        Ok(())
    }

    /// No run is faster than the bounds on all schedulers.
    fn bounds(&self, log: &RunLog) -> Result<(), Broken> {
        if !self.scenario.profile.is_empty() || log.rows.is_empty() {
            return Ok(());
        }
        let model = self.model.with_fallbacks();
        let asked = log.rows.iter().map(|row| self.queries[row.query.index()].service);
        if let Some(region) = bounds::region(asked, &model, tandem::cost::BatchSizes::Any) {
            let (first, last) =
                (log.rows.iter().map(|row| row.arrival).min(), log.rows.iter().map(|row| row.finished).max());
            let took = last.zip(first).map_or(0.0, |(last, first)| last.since(first).as_secs());
            let served = took * region.rate_qps;
            // The climb over prices and rounding to nanoseconds are exact to far less than this.
            let all = log.rows.len() as f64;
            law!(
                served >= all * (1.0 - 1e-6) - 1e-3,
                "no policy serves more than the region",
                "{all} queries, at most {served}"
            );
        }
        Ok(())
    }

    /// One CPU that serves in order of arrival: W' = max(0, W + S - A), Lindley 1952.
    fn lindley(&self, log: &RunLog) -> Result<(), Broken> {
        let is_single = self.model.machine.len() == 1 && self.scenario.policy == PolicyKind::CpuOnly;
        if !is_single || !self.is_plain() || self.scenario.decision > 0 || !log.shed.is_empty() {
            return Ok(());
        }
        let mut free = Nanos::ZERO;
        for row in &log.rows {
            let started = free.max(row.arrival);
            let class = self.model.machine.class(row.processor);
            free = started + self.queries[row.query.index()].service[class].alone + self.model.handoff[class];
            law!(
                (row.started, row.finished) == (started, free),
                "one server follows Lindley",
                "{row:?}, expected {started:?}, {free:?}"
            );
        }
        Ok(())
    }

    /// The live driver under a manual clock writes the simulator's log.
    fn manual_clock(&self, log: &RunLog) -> Result<(), Broken> {
        let services = self.queries.iter().map(|query| query.service).collect();
        let mut lane_pool = LanePool::recorded(self.model.clone(), services);
        let estimates: Vec<_> = self.queries.iter().map(|query| (query.id, query.estimate)).collect();
        let arrivals = self.scenario.arrivals.iter().map(|&(at, row)| (Nanos(at), row));
        let jobs = live::plan(arrivals, &estimates, Nanos(self.scenario.deadline));
        let policy = self.factory.build(&self.model).expect("it was built before");
        let driven = live::run_under_manual_clock(&mut lane_pool, LiveRun::new(policy, &jobs), self.scenario.seed);
        let driven = driven.map_err(|e| Broken { law: "the driver runs", evidence: e.to_string() })?;
        law!(matches!(driven.ending, Ending::Complete), "the driver completes", "{:?}", driven.ending);
        let differing = driven.log.rows.iter().zip(&log.rows).find(|(driven, simulated)| driven != simulated);
        law!(driven.log == *log, "the manual clock writes the simulator's log", "driven and simulated: {differing:?}");
        Ok(())
    }

    /// Every query of a cluster is answered once, and one node alone is a cluster.
    fn shards(&self, log: &RunLog) -> Result<(), Broken> {
        let nodes = self.scenario.shards * self.scenario.replicas;
        let sharded = self.play_cluster()?;
        let mut jobs: Vec<JobId> =
            sharded.rows.iter().map(|row| row.job).chain(sharded.shed.iter().map(|shed| shed.job)).collect();
        jobs.sort_unstable();
        let expected = (0..self.scenario.arrivals.len() as u32).map(JobId);
        law!(jobs.iter().copied().eq(expected), "a cluster answers every query once", "jobs {jobs:?}");
        let is_in_order = sharded.rows.iter().all(|row| row.arrival <= row.started && row.started <= row.finished);
        law!(is_in_order, "time passes in a cluster", "{:?}", sharded.rows);
        let ends = |log: &RunLog| log.rows.iter().map(|row| (row.job, row.finished)).collect::<Vec<_>>();
        law!(
            nodes > 1 || ends(&sharded) == ends(log),
            "one node is a cluster",
            "{:?}, {:?}",
            ends(&sharded),
            ends(log)
        );
        Ok(())
    }
}

/// The capacity of equal lanes with equal service times and evenly spaced arrivals, D/D/c, is the number of lanes over
/// the service time.
pub fn even_queue(seed: u64) -> Result<(), Broken> {
    use tandem::base::machine::Machine;
    use tandem::base::random::Random;
    use tandem::study::{CapacitySearch, RunLength};
    let mut random = Random::new(seed, 35);
    let (lanes, service) = (1 + random.below(4) as usize, Nanos(1_000 + u64::from(random.below(5_000_000))));
    let deadline = service.scaled(1.5 + 3.0 * random.unit());
    let text = ["p99", "p90", "no-miss", "miss-share=0.05"][random.below(4) as usize];
    let cost = tandem::cost::Cost::on_cpu_and_gpu(service, Nanos::MAX);
    let query = SimQuery { id: tandem::base::ids::QueryId(0), service: cost, estimate: cost };
    let arrivals = tandem::sim::Arrivals::given(seed, unit_arrivals(&ArrivalProcess::Uniform, seed, RUN), vec![0; RUN]);
    let experiment = Experiment {
        model: Machine::new(lanes, 0).into(),
        queries: vec![query],
        deadline,
        arrivals: vec![arrivals],
        cluster: None,
    };
    let objective = Objective::from_text(text).map_err(|e| Broken { law: "an objective is read", evidence: e })?;
    let policy = PolicyKind::CpuOnly.with(Default::default());
    let found =
        CapacitySearch::new(&experiment, objective, RunLength::Exactly(RUN)).and_then(|search| Ok(search.of(&policy)?));
    let found = found.map_err(|e| Broken { law: "a search ends", evidence: e.to_string() })?;
    let expected = lanes as f64 / service.as_secs();
    let error = found.qps / expected - 1.0;
    law!(
        error <= 1e-9 && error > -0.02,
        "D/D/c has its capacity",
        "{lanes} lanes, {service:?}, {text}: {} of {expected} q/s",
        found.qps
    );
    Ok(())
}

/// Queries of a run for [`even_queue`]: an excess of a hundredth delays the last query by more than the deadline.
const RUN: usize = 4000;
