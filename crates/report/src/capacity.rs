//! Capacities with their bounds, as `capacity.csv`.

use std::io;
use std::path::Path;

use tandem_drive::lab::{Driven, Side};
use tandem_model::files::{Digits, Provenance, write_csv};
use tandem_model::study::Capacity;

use crate::row::{Text, row};
use crate::summary::Source;

/// A policy's capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityRow<'a> {
    /// The simulated capacity.
    pub capacity: Capacity,
    /// Live runs of the policy, where there were any.
    pub driven: Option<&'a Driven>,
}

impl<'a> CapacityRow<'a> {
    /// The row of a policy that was not driven.
    pub fn simulated(capacity: Capacity) -> Self {
        Self { capacity, driven: None }
    }

    /// The row of a policy, with its live runs if it is among `driven`.
    pub fn compared(capacity: Capacity, driven: &'a [Driven]) -> Self {
        let driven = driven.iter().find(|driven| driven.policy == capacity.policy);
        Self { capacity, driven }
    }
}

row! {
    struct CapacityLine of (row: &CapacityRow<'_>) with {
        found = &row.capacity;
        driven = row.driven;
        at = side(driven, |driven| driven.held);
        beyond = side(driven, |driven| driven.missed);
        known = found.known_interval();
        verdict = found.verdict;
        interval = driven.and_then(Driven::capacity).and_then(|capacity| capacity.interval());
    } {
        source: Text = Source::Simulated.name().into(),
        policy: String = found.policy.clone(),
        deadline_ms: Digits<12> = Digits(found.criterion.deadline.as_ms()),
        max_rate_qps: Digits<6> = Digits(found.qps),
        low_qps: Option<Digits<6>> = known.map(|known| Digits(known.low)),
        high_qps: Option<Digits<6>> = known.map(|known| Digits(known.high)),
        bound_qps: Option<Digits<6>> = Some(Digits(found.bound_qps)),
        flips: usize = found.flips,
        region_qps: Option<Digits<6>> = Some(Digits(found.region_qps)),
        queries: usize = found.queries,
        seeds: usize = found.seeds,
        objective: String = found.criterion.to_string(),
        confidence: Option<Digits<4>> = known.map(|known| Digits(known.confidence)),
        failing_qps: Option<Digits<6>> = found.failing_qps.map(Digits),
        confirmed_queries: usize = found.confirmed_queries,
        is_cut_off: bool = found.is_cut_off,
        live_qps: Option<Digits<6>> = at.map(|(side, _)| Digits(side.qps)),
        live_queries: Option<usize> = at.map(|(_, (sent, _))| sent),
        live_late: Option<usize> = at.map(|(_, (_, late))| late),
        live_held: Option<bool> = at.map(|_| true),
        beyond_qps: Option<Digits<6>> = beyond.map(|(side, _)| Digits(side.qps)),
        beyond_queries: Option<usize> = beyond.map(|(_, (sent, _))| sent),
        beyond_late: Option<usize> = beyond.map(|(_, (_, late))| late),
        beyond_held: Option<bool> = beyond.map(|_| false),
        held_qps: Option<Digits<6>> = at.map(|(side, _)| Digits(side.qps)),
        stable_qps: Option<Digits<6>> = Some(Digits(found.stable_qps)),
        seeds_low_qps: Option<Digits<6>> = Some(Digits(found.interval.low)),
        seeds_high_qps: Option<Digits<6>> = Some(Digits(found.interval.high)),
        query_error: Option<Digits<3>> = found.query_error.map(|error| Digits(error.share)),
        measured_queries: Option<usize> = found.query_error.map(|error| error.queries),
        covered_share: Digits<4> = Digits(found.covered_share),
        answer_low_qps: Option<Digits<6>> = interval.map(|(low, _)| Digits(low)),
        answer_high_qps: Option<Digits<6>> = interval.map(|(_, high)| Digits(high)),
        live_runs: Option<u32> = at.map(|(side, _)| side.runs() + beyond.map_or(0, |(side, _)| side.runs())),
        live_run_s: Option<Digits<4>> = driven.and_then(|driven| driven.runs.last()).map(|run| Digits(run.seconds)),
        others_cores: Option<Digits<3>> = driven.and_then(|driven| driven.load().others).map(Digits),
        gpu: Option<Text> = driven.map(|driven| driven.gpu.into()),
        predicted_half_width: Option<Digits<3>> = driven.map(|driven| Digits(driven.predicted.half_width())),
        rehearsal_qps: Option<Digits<6>> = driven.and_then(|driven| driven.predicted.rehearsal_qps).map(Digits),
        linear_qps: Option<Digits<6>> = driven.and_then(|driven| driven.predicted.linear_qps).map(Digits),
        p99_ms: Option<Digits<6>> = verdict.map(|verdict| Digits(verdict.p99.as_ms())),
        p999_ms: Option<Digits<6>> = verdict.map(|verdict| Digits(verdict.p999.as_ms())),
        longest_ms: Option<Digits<6>> = verdict.map(|verdict| Digits(verdict.longest.as_ms())),
        late_share: Option<Digits<4>> = verdict.map(|verdict| Digits(verdict.late_share())),
        utilisation: Option<Digits<4>> = verdict.and_then(|verdict| verdict.utilisation).map(Digits),
        utilisation_error: Option<Digits<3>> = found.query_error.map(|error| Digits(error.of_limit)),
        is_tail_of_idle: Option<bool> = found.criterion.has_tail().then(|| found.criterion.tail_is_of_idle()),
    }
}

/// A side of the live answer, with its queries sent and late.
fn side(driven: Option<&Driven>, of: fn(&Driven) -> Option<Side>) -> Option<(Side, (usize, usize))> {
    driven.and_then(|driven| of(driven).map(|side| (side, driven.totals(&side))))
}

/// Writes `capacity.csv` atomically.
pub fn write_capacities(path: &Path, provenance: &Provenance, rows: &[CapacityRow<'_>]) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().map(CapacityLine::of))
}
