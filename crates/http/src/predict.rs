//! The model of a foreign server, in the form of a machine file, and the capacity that the simulator finds with it.
//!
//! ```text
//!   service times ── one query each ─▶ c servers with the ladder's slowdown        the front decides how many, and
//!   noise, moments ─▶ variation         pauses stop all of them at once             what happens to late queries
//! ```

use std::collections::BTreeMap;

use tandem_core::base::ids::QueryId;
use tandem_core::base::machine::{Class, Idle, Machine, PerClass};
use tandem_core::base::quantile::interpolated;
use tandem_core::base::time::Nanos;
use tandem_core::cost::machine_file::{AfterIdle, Crowding, DispatcherFile, InUse, LaneFile, Quantile, Stalls};
use tandem_core::cost::{Cost, MachineFile, MachineModel};
use tandem_core::lab::{Capacities, CapacitySearch, Judge, Question, RunLength, Summary, Tally, Verdict, draw_all};
use tandem_core::sched::{BuiltIn, PolicyKind, PolicyOptions, Shed};
use tandem_core::sim::{Experiment, SimQuery};

use crate::{HttpError, ServerProfile};

/// Points of a distribution in a machine file.
const POINTS: usize = 64;

/// What stands in front of the servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Front {
    /// One queue, first come, first served.
    #[default]
    Fcfs,
    /// At most this number of queries is served at once.
    Limit(usize),
    /// Queries that cannot be answered before their deadline are rejected.
    Shed,
}

impl Front {
    /// Parses `fcfs`, `limit=N` or `shed`.
    ///
    /// # Errors
    /// A text that says which forms are expected.
    pub fn from_text(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("limit=").map(str::parse)) {
            ("fcfs", _) => Ok(Self::Fcfs),
            ("shed", _) => Ok(Self::Shed),
            (_, Some(Ok(limit))) if limit > 0 => Ok(Self::Limit(limit)),
            _ => Err(format!("{text:?}, expected fcfs, limit=N or shed")),
        }
    }
}

/// The simulated server.
#[derive(Clone, Debug)]
pub struct Simulated {
    model: MachineModel,
    queries: Vec<SimQuery>,
    policy: BuiltIn,
}

impl ServerProfile {
    /// The server as a machine file, with its pauses at full load.
    #[must_use]
    pub fn machine_file(&self) -> MachineFile {
        let neutral = |idle_us| AfterIdle { idle_us, hand_over_us: 0.0, times: 1.0 };
        let lanes = LaneFile {
            stream: 1.0,
            spacing: 1.0,
            in_use: vec![InUse { share: 0.0, times: 1.0, plus_us: 0.0 }],
            memory_ms: 10.0,
            after_idle: vec![neutral(1.0)],
            hand_back_us: 0.0,
            crowding: self.slowdown().into_iter().map(|(busy, times)| Crowding { busy, times }).collect(),
            beside: BTreeMap::new(),
            batch_host: 1.0,
            batch_device: 1.0,
            speeds: distribution(&self.moments),
            speed_lasts_ms: 100.0,
            noise: distribution(&self.noise_within_moments()),
            stalls: Stalls::default(),
        };
        // Garbage is made per query: pauses come with the throughput.
        let per_query = self.pauses_us.len() as f64 / self.observed.max(1) as f64;
        let stalls = Stalls { per_s: per_query * self.highest_qps(), us: distribution(&self.pauses_us) };
        let dispatcher = DispatcherFile { stalls, ..DispatcherFile::default() };
        MachineFile::new(BTreeMap::new(), Idle::default(), BTreeMap::from([(Class::CPU, lanes)]), dispatcher)
    }

    /// The noise without the variation of the moments, which is played by itself.
    fn noise_within_moments(&self) -> Vec<f64> {
        let variance = |values: &[f64]| {
            let count = values.len().max(1) as f64;
            let mean = values.iter().sum::<f64>() / count;
            (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count)
        };
        let ((mean, all), (_, moments)) = (variance(&self.noise), variance(&self.moments));
        let share = if all > 0.0 { (1.0 - moments / all).max(0.0).sqrt() } else { 1.0 };
        self.noise.iter().map(|value| (mean + share * (value - mean)).max(0.01)).collect()
    }

    /// The service time of the ladder's single client over the mean of the profile, which saw each query several times.
    fn stream(&self) -> f64 {
        let alone = self.ladder.first().map_or(0.0, |rung| rung.qps);
        let pauses = self.pauses_us.iter().sum::<f64>() / self.observed.max(1) as f64;
        if alone > 0.0 { ((1e6 / alone - pauses) / self.mean_us()).max(0.1) } else { 1.0 }
    }

    /// The server behind a front, for the simulator.
    #[must_use]
    pub fn simulated(&self, front: Front) -> Simulated {
        let servers = match front {
            Front::Limit(limit) => self.servers().min(limit),
            Front::Fcfs | Front::Shed => self.servers(),
        };
        let model = self.machine_file().model(&Machine::new(servers, 0).into(), None, |_| false);
        let stream = self.stream();
        let query = |query: &crate::profile::QueryTime| {
            let cost = Cost::alone(Nanos::from_us(query.median_us * stream));
            let costs = PerClass::from_fn(|class| if class == Class::CPU { cost } else { Cost::NEVER });
            SimQuery { id: QueryId(query.query), service: costs, estimate: costs }
        };
        let shed = if front == Front::Shed { Shed::Late } else { Shed::Nothing };
        let options = PolicyOptions { shed, ..PolicyOptions::default() };
        let policy = PolicyKind::CpuOnly.with(options);
        Simulated { model, queries: self.queries.iter().map(query).collect(), policy }
    }
}

impl Simulated {
    fn experiment(&self, question: &Question, seeds: &[u64], count: usize) -> Experiment {
        let arrivals = draw_all(&question.process, seeds, count, self.queries.len());
        let (model, queries) = (self.model.clone(), self.queries.clone());
        Experiment { model, queries, deadline: question.deadline, arrivals, cluster: None }
    }

    /// Its capacity.
    ///
    /// # Errors
    /// If no rate can be simulated.
    pub fn capacity(&self, question: &Question) -> Result<Capacities, HttpError> {
        let experiment = self.experiment(question, &question.seeds, 0);
        let search = CapacitySearch::new(&experiment, question.objective, RunLength::default())?.of_sampled_queries();
        Ok(search.of(&self.policy).map_err(tandem_core::lab::LabError::from)?)
    }

    /// A run at a rate: its delays and its verdict; `None` if nothing finished.
    ///
    /// # Errors
    /// If the rate cannot be simulated.
    pub fn run(
        &self,
        question: &Question,
        rate_qps: f64,
        count: usize,
    ) -> Result<Option<(Summary, Verdict)>, HttpError> {
        let Some(first) = question.seeds.get(..1) else { return Ok(None) };
        let experiment = self.experiment(question, first, count);
        let criterion = question.objective.within(question.deadline);
        let sinks = (Tally::new(&self.model.machine, count), Judge::new(criterion, count));
        let played = experiment.play(&self.policy, rate_qps, &experiment.arrivals[0], sinks, |_| false);
        let (tally, judge) = played.map_err(tandem_core::lab::LabError::from)?;
        Ok(tally.summary().map(|summary| (summary, judge.verdict(rate_qps))))
    }
}

/// The quantiles of ascending values.
fn distribution(ascending: &[f64]) -> Vec<Quantile> {
    if ascending.is_empty() {
        return Vec::new();
    }
    let point = |at: usize| {
        let share = at as f64 / (POINTS - 1) as f64;
        Quantile { share, value: interpolated(ascending, share) }
    };
    (0..POINTS).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::ladder;
    use tandem_core::lab::{Effort, Objective};
    use tandem_core::query::ArrivalProcess;

    fn question(deadline_ms: f64) -> Question {
        Question {
            deadline: Nanos::from_ms(deadline_ms),
            objective: Objective::default(),
            process: ArrivalProcess::Poisson,
            seeds: vec![1, 2, 3],
            effort: Effort::quick(),
            log_queries: 100,
        }
    }

    #[test]
    fn a_steady_server_has_the_capacity_of_a_queue_with_fixed_service_times() {
        // M/D/2 with 1.25 ms each: 1600 q/s at most, and nearly all of it with a long deadline.
        let profile = ladder(&[(1, 1000.0, 0), (2, 1600.0, 0), (4, 1600.0, 0)]);
        let capacity = |front| profile.simulated(front).capacity(&question(100.0)).unwrap().objective.qps;
        let fcfs = capacity(Front::Fcfs);
        assert!((1480.0..1600.0).contains(&fcfs), "{fcfs}");
        // One server of 1 ms each.
        let limited = capacity(Front::Limit(1));
        assert!((930.0..1000.0).contains(&limited), "{limited}");
    }

    #[test]
    fn pauses_make_queries_late() {
        let steady = ladder(&[(1, 1000.0, 0)]);
        let paused = ServerProfile { pauses_us: vec![20_000.0; 8], ..steady.clone() };
        let missed = |profile: &ServerProfile| {
            let run = profile.simulated(Front::Fcfs).run(&question(15.0), 500.0, 20_000).unwrap();
            run.map_or(0, |(summary, _)| summary.missed)
        };
        assert!(missed(&steady) < 20 && missed(&paused) > 1000, "{} {}", missed(&steady), missed(&paused));
    }

    #[test]
    fn fronts_are_parsed() {
        assert_eq!(Front::from_text("limit=3"), Ok(Front::Limit(3)));
        for bad in ["", "limit=0", "limit=x", "FCFS"] {
            assert!(Front::from_text(bad).is_err(), "{bad}");
        }
    }
}
