//! Capacities beside their bound; `capacity.csv`.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::summary::Source;
use tandem_core::files::{Digits, Provenance, Record, write_csv};
use tandem_core::lab::{Capacities, Capacity, Driven, Side};

/// A line of `capacity.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityRow<'a> {
    /// What was found by simulation.
    pub capacity: Capacity,
    /// Live runs of the policy, where there were any.
    pub driven: Option<&'a Driven>,
}

impl<'a> CapacityRow<'a> {
    /// Of a policy that was not driven.
    #[must_use]
    pub fn simulated(capacity: Capacity) -> Self {
        Self { capacity, driven: None }
    }

    /// The rows of a policy: the objective's has its live runs.
    pub fn all(capacities: &Capacities, driven: &'a [Driven]) -> impl Iterator<Item = Self> {
        let of_policy = driven.iter().find(|driven| driven.policy == capacities.objective.policy);
        let rows: Vec<Self> = capacities.iter().cloned().map(Self::simulated).collect();
        rows.into_iter().enumerate().map(move |(at, row)| Self { driven: of_policy.filter(|_| at == 0), ..row })
    }
}

/// A line of `capacity.csv`, as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    source: Cow<'static, str>,
    policy: String,
    deadline_ms: Digits<12>,
    max_rate_qps: Digits<6>,
    low_qps: Digits<6>,
    high_qps: Option<Digits<6>>,
    bound_qps: Option<Digits<6>>,
    flips: usize,
    region_qps: Option<Digits<6>>,
    queries: usize,
    seeds: usize,
    objective: String,
    confidence: Digits<4>,
    failing_qps: Option<Digits<6>>,
    confirmed_queries: usize,
    is_cut_off: bool,
    live_qps: Option<Digits<6>>,
    live_queries: Option<usize>,
    live_late: Option<usize>,
    live_held: Option<bool>,
    beyond_qps: Option<Digits<6>>,
    beyond_queries: Option<usize>,
    beyond_late: Option<usize>,
    beyond_held: Option<bool>,
    held_qps: Option<Digits<6>>,
    stable_qps: Option<Digits<6>>,
    answer_low_qps: Option<Digits<6>>,
    answer_high_qps: Option<Digits<6>>,
    live_runs: Option<u32>,
    live_run_s: Option<Digits<4>>,
    others_cores: Option<Digits<3>>,
    gpu: Option<Cow<'static, str>>,
}

impl Record for Line {}

/// Writes `capacity.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_capacities(path: &Path, provenance: &Provenance, rows: &[CapacityRow<'_>]) -> io::Result<()> {
    let line = |CapacityRow { capacity, driven }: &CapacityRow<'_>| {
        let sides = |of: fn(&Driven) -> Option<Side>| {
            driven.and_then(|driven| of(driven).map(|side| (side, driven.totals(&side))))
        };
        let (at, beyond) = (sides(|driven| driven.held), sides(|driven| driven.missed));
        let interval = driven.and_then(Driven::capacity).map(|capacity| capacity.interval());
        Line {
            source: Source::Simulated.name().into(),
            policy: capacity.policy.clone(),
            deadline_ms: Digits(capacity.criterion.deadline.as_ms()),
            max_rate_qps: Digits(capacity.qps),
            low_qps: Digits(capacity.interval.low),
            high_qps: Some(Digits(capacity.interval.high)),
            bound_qps: Some(Digits(capacity.bound_qps)),
            flips: capacity.flips,
            region_qps: Some(Digits(capacity.region_qps)),
            queries: capacity.queries,
            seeds: capacity.seeds,
            objective: capacity.criterion.to_string(),
            confidence: Digits(capacity.interval.confidence),
            failing_qps: capacity.failing_qps.map(Digits),
            confirmed_queries: capacity.confirmed_queries,
            is_cut_off: capacity.is_cut_off,
            live_qps: at.map(|(side, _)| Digits(side.qps)),
            live_queries: at.map(|(_, (sent, _))| sent),
            live_late: at.map(|(_, (_, late))| late),
            live_held: at.map(|_| true),
            beyond_qps: beyond.map(|(side, _)| Digits(side.qps)),
            beyond_queries: beyond.map(|(_, (sent, _))| sent),
            beyond_late: beyond.map(|(_, (_, late))| late),
            beyond_held: beyond.map(|_| false),
            held_qps: at.map(|(side, _)| Digits(side.qps)),
            stable_qps: Some(Digits(capacity.stable_qps)),
            answer_low_qps: interval.map(|(low, _)| Digits(low)),
            answer_high_qps: interval.map(|(_, high)| Digits(high)),
            live_runs: at.map(|(side, _)| side.runs() + beyond.map_or(0, |(side, _)| side.runs())),
            live_run_s: driven.and_then(|driven| driven.runs.last()).map(|run| Digits(run.seconds)),
            others_cores: driven.and_then(|driven| driven.load().others).map(Digits),
            gpu: driven.map(|driven| driven.gpu.into()),
        }
    };
    write_csv(path, provenance, rows.iter().map(line))
}
