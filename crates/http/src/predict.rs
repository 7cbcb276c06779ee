//! The model of a foreign server, in the form of a machine profile, and the capacity that the simulator finds with it.
//!
//! ```text
//!   service times ── one query each ─▶ c servers, each of which resamples the times       the front decides how many, and
//!   ladder ── by busy servers ─▶ observed times over their medians, with pauses            how late queries are treated
//! ```
//!
//! Pauses that stop all servers at once are played for each server separately.

use std::collections::BTreeMap;

use tandem_drive::lab::Question;
use tandem_model::base::ids::QueryId;
use tandem_model::base::machine::{Class, Idle, Machine, PerClass};
use tandem_model::base::time::Nanos;
use tandem_model::cost::machine_profile::{DispatcherProfile, LaneProfile, Slowdown, Spread};
use tandem_model::cost::{Cost, MachineModel, MachineProfile};
use tandem_model::sched::{BuiltIn, PolicyKind, PolicyOptions, Shed};
use tandem_model::sim::{Cluster, ClusterShape, Experiment, Routing, ShardCosts, SimQuery};
use tandem_model::study::{Capacity, CapacitySearch, Forecast, RunLength, draw_all};

use crate::{HttpError, ServerProfile};

/// The rule in front of the servers.
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
    cluster: Option<Cluster>,
}

impl ServerProfile {
    /// The server as a machine profile. Its queries take the medians of the service times, times what was observed.
    #[must_use]
    pub fn machine_profile(&self) -> MachineProfile {
        let at_once = self.at_once();
        // With all servers busy, the ceiling holds; with one client, the ladder does.
        let slower = |clients: usize| 1.0 + (1.0 / self.ceiling.unwrap_or(1.0) - 1.0) * clients as f64 / at_once as f64;
        let rungs = self.ladder.iter().filter(|rung| rung.clients <= at_once && !rung.times.is_empty());
        let slowdown = rungs.map(|rung| Slowdown {
            busy: rung.clients as u32,
            work: slower(rung.clients) * rung.times.iter().sum::<f64>() / rung.times.len() as f64,
            spread: Spread::Factors(rung.times.clone()),
            ..Slowdown::default()
        });
        let lanes = LaneProfile { slowdown: slowdown.collect(), ..LaneProfile::default() };
        let classes = BTreeMap::from([(Class::CPU, lanes)]);
        MachineProfile::new(BTreeMap::new(), Idle::default(), classes, DispatcherProfile::default())
    }

    /// The server behind a front, for the simulator.
    #[must_use]
    pub fn simulated(&self, front: Front) -> Simulated {
        let servers = match front {
            Front::Limit(limit) => self.at_once().min(limit),
            Front::Fcfs | Front::Shed => self.at_once(),
        };
        let model = self.machine_profile().model(&Machine::new(servers, 0).into(), |_| false);
        let query = |query: &crate::profile::QueryTime| {
            let cost = Cost::alone(Nanos::from_us(query.median_us));
            let costs = PerClass::from_fn(|class| if class == Class::CPU { cost } else { Cost::NEVER });
            SimQuery { id: QueryId(query.query), service: costs, estimate: costs }
        };
        let shed = if front == Front::Shed { Shed::Late } else { Shed::Nothing };
        let options = PolicyOptions { shed, ..PolicyOptions::default() };
        let policy = PolicyKind::CpuOnly.with(options);
        Simulated { model, queries: self.queries.iter().map(query).collect(), policy, cluster: None }
    }
}

impl Simulated {
    /// Several such servers, with a queue for each: the times of each over those of this one.
    #[must_use]
    pub fn replicated(self, paces: &[f64], routing: Routing) -> Self {
        let shape = ClusterShape { shards: 1, replicas: paces.len(), routing, costs: ShardCosts::Independent };
        let cluster = (paces.len() > 1).then(|| Cluster::new(shape, &self.queries).with_paces(paces));
        Self { cluster, ..self }
    }

    /// The longest profiled service time.
    pub(crate) fn longest(&self) -> Nanos {
        self.queries.iter().map(|query| query.service[Class::CPU].alone).max().unwrap_or(Nanos::MAX)
    }

    fn experiment(&self, question: &Question, seeds: &[u64], count: usize) -> Experiment {
        let arrivals = draw_all(&question.process, seeds, count, self.queries.len());
        let Self { model, queries, cluster, .. } = self.clone();
        Experiment { model, queries, deadline: question.deadline, arrivals, cluster }
    }

    /// Its capacity.
    ///
    /// # Errors
    /// If no rate can be simulated.
    pub fn capacity(&self, question: &Question) -> Result<Capacity, HttpError> {
        let experiment = self.experiment(question, &question.seeds, 0);
        let search = CapacitySearch::new(&experiment, question.objective, RunLength::default())?.of_sampled_queries();
        Ok(search.of(&self.policy).map_err(tandem_model::study::StudyError::from)?)
    }

    /// The forecast of an open-loop run of a number of queries at a rate; `None` without queries. The live run has another seed,
    /// and the server's speed varies by a relative standard deviation.
    ///
    /// # Errors
    /// If the rate cannot be simulated.
    pub fn run(
        &self,
        question: &Question,
        run: (f64, usize),
        varied: (u64, f64),
    ) -> Result<Option<Forecast>, HttpError> {
        let experiment = self.experiment(question, &[], 0);
        let found = Forecast::of(&experiment, &self.policy, &question.process, run, varied);
        Ok(found.map_err(tandem_model::study::StudyError::from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::ladder;
    use tandem_drive::lab::Effort;
    use tandem_model::study::Objective;
    use tandem_model::traffic::ArrivalProcess;

    fn question(deadline_ms: f64) -> Question {
        Question {
            deadline: Nanos::from_ms(deadline_ms),
            objective: Objective::default(),
            process: ArrivalProcess::Poisson,
            seeds: vec![1, 2, 3],
            effort: Effort::quick(),
            log_queries: 100,
            loads: Vec::new(),
        }
    }

    #[test]
    fn a_steady_server_has_the_capacity_of_a_deterministic_queue() {
        // M/D/2 with 1.25 ms each: 1600 q/s at most, and nearly all of it with a long deadline.
        let profile = ladder(&[(1, 1000.0, 0), (2, 1600.0, 0), (4, 1600.0, 0)]);
        let capacity = |front| profile.simulated(front).capacity(&question(100.0)).unwrap().qps;
        let fcfs = capacity(Front::Fcfs);
        assert!((1480.0..1600.0).contains(&fcfs), "{fcfs}");
        // One server of 1 ms each.
        let limited = capacity(Front::Limit(1));
        assert!((930.0..1000.0).contains(&limited), "{limited}");
    }

    #[test]
    fn the_ceiling_of_an_open_loop_lowers_the_capacity_and_not_the_time_of_a_query_alone() {
        let closed = ladder(&[(1, 1000.0, 0), (2, 2000.0, 0), (4, 2000.0, 0)]);
        let open = ServerProfile { ceiling: Some(0.8), ..closed.clone() };
        let capacity = |profile: &ServerProfile| profile.simulated(Front::Fcfs).capacity(&question(100.0)).unwrap().qps;
        let ratio = capacity(&open) / capacity(&closed);
        assert!((0.78..0.84).contains(&ratio), "{ratio}");
        let mean_ms = |profile: &ServerProfile| {
            profile
                .simulated(Front::Fcfs)
                .run(&question(100.0), (20.0, 2000), (1, 0.0))
                .unwrap()
                .unwrap()
                .summary
                .mean_ms
        };
        assert!(mean_ms(&open) < 1.15 * mean_ms(&closed));
    }

    #[test]
    fn two_queues_need_a_routing_that_knows_them() {
        // 1.25 ms each, 3200 q/s at most.
        let profile = ladder(&[(1, 1000.0, 0), (2, 1600.0, 0), (4, 1600.0, 0)]);
        let missed = |paces: &[f64], routing, qps| {
            let two = profile.simulated(Front::Fcfs).replicated(paces, routing);
            two.run(&question(8.0), (qps, 20_000), (1, 0.0)).unwrap().map_or(0, |forecast| forecast.summary.missed)
        };
        let by = |routing| missed(&[1.0, 1.0], routing, 2600.0);
        let [least, random] = [Routing::LeastOutstanding, Routing::Random].map(by);
        assert!(least < 20 && random > 100, "{least} {random}");
        // With a server of twice the speed, 4800 q/s at most. In turns, the slower one has more than its 1600.
        let by = |routing| missed(&[1.0, 0.5], routing, 4000.0);
        let [least, in_turns] = [Routing::LeastOutstanding, Routing::RoundRobin].map(by);
        assert!(least < 200 && in_turns > 5000, "{least} {in_turns}");
    }

    #[test]
    fn pauses_make_queries_late() {
        let steady = ladder(&[(1, 1000.0, 0)]);
        let mut paused = steady.clone();
        for at in [3, 50] {
            paused.ladder[0].times[at] = 21.0;
        }
        let missed = |profile: &ServerProfile| {
            let run = profile.simulated(Front::Fcfs).run(&question(15.0), (500.0, 30_000), (1, 0.0)).unwrap();
            run.map_or(0, |forecast| forecast.summary.missed)
        };
        assert!(missed(&steady) < 30 && missed(&paused) > 1000, "{} {}", missed(&steady), missed(&paused));
    }

    #[test]
    fn fronts_are_parsed() {
        assert_eq!(Front::from_text("limit=3"), Ok(Front::Limit(3)));
        for bad in ["", "limit=0", "limit=x", "FCFS"] {
            assert!(Front::from_text(bad).is_err(), "{bad}");
        }
    }
}
