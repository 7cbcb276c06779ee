//! Live runs that tell whether what was simulated is true.

use std::time::Duration;

use super::{LiveRate, Question};
use crate::lab::{Calibration, Criterion, LabError, LiveReport, LiveRunSpec, Node, Progress, RunLength, Verdict};
use crate::live;
use crate::sched::PolicyFactory;
use crate::sim::Arrivals;

/// Runs at the capacity, of which one has to hold.
const ATTEMPTS: u32 = 2;
/// How far beyond the capacity another run is driven.
const BEYOND: f64 = 1.1;
/// Where simulation stays with a capacity that failed, lower rates are tried: these shares of it.
const BELOW: [f64; 7] = [0.95, 0.9, 0.8, 0.65, 0.5, 0.3, 0.1];
/// A live run has no more queries than this, all of whose log is kept.
const MOST_QUERIES: usize = 10_000_000;
/// Times beyond this are not told apart: a year.
const LONGEST_S: f64 = 3e7;

/// The live runs of the best policy.
pub(super) struct Trial<'a> {
    pub(super) node: &'a mut Node,
    pub(super) policy: &'a dyn PolicyFactory,
    pub(super) calibration: Calibration,
    pub(super) question: &'a Question,
    pub(super) progress: &'a dyn Progress,
}

impl Trial<'_> {
    /// Drives at the capacity; with what queries cost then. `None` if it was interrupted.
    pub(super) fn at(&mut self, qps: f64) -> Result<Option<(LiveRate, Calibration)>, LabError> {
        self.try_rate(qps, ATTEMPTS)
    }

    /// Drives beyond it.
    pub(super) fn beyond(&mut self, qps: f64) -> Result<Option<LiveRate>, LabError> {
        Ok(self.try_rate(qps * BEYOND, 1)?.map(|(rate, _)| rate))
    }

    /// The highest of some lower rates that holds.
    pub(super) fn below(&mut self, qps: f64) -> Result<Option<LiveRate>, LabError> {
        for share in BELOW {
            let lower = self.try_rate(qps * share, 1)?.map(|(rate, _)| rate);
            let held = lower.filter(|lower| lower.verdict.holds());
            if held.is_some() || live::interrupted() {
                return Ok(held);
            }
        }
        Ok(None)
    }

    /// Another program on the machine can hold up a run for longer than the deadline: one that fails may be repeated,
    /// and the better one counts. `None` if it was interrupted.
    fn try_rate(&mut self, qps: f64, attempts: u32) -> Result<Option<(LiveRate, Calibration)>, LabError> {
        let mut best: Option<(LiveRate, Calibration)> = None;
        for attempt in 1..=attempts {
            let Some((verdict, answered_qps, cost)) = self.drive(qps)? else { return Ok(None) };
            let this = LiveRate { qps, verdict, attempts: attempt, slowdown: self.slowdown(&cost), answered_qps };
            let first = best.filter(|(first, _)| first.verdict.late <= verdict.late && !verdict.holds());
            let kept = first.map_or((this, cost), |(first, cost)| (LiveRate { attempts: attempt, ..first }, cost));
            best = Some(kept);
            if kept.0.verdict.holds() {
                break;
            }
        }
        Ok(best)
    }

    /// How much slower the machine is than when it was calibrated, on the class where that is most.
    fn slowdown(&self, now: &Calibration) -> f64 {
        let of = |class| now.slowest(class) / self.calibration.slowest(class);
        self.node.machine().classes().map(of).fold(0.0, f64::max)
    }

    /// The verdict, how many queries a second were answered, and what they cost.
    fn drive(&mut self, qps: f64) -> Result<Option<(Verdict, f64, Calibration)>, LabError> {
        let Question { deadline, objective, process, seeds, live_most } = self.question;
        let criterion: Criterion = objective.within(*deadline);
        let count = queries_of_run(&criterion, qps, *live_most);
        let lasts = Duration::from_secs_f64((count as f64 / qps).min(LONGEST_S));
        self.progress.lasts(&format!("live: {} at {qps:.0} q/s", self.policy.name()), lasts);
        let seed = seeds.last().map_or(0, |seed| seed.wrapping_add(1));
        let arrivals = Arrivals::drawn(process, seed, count, self.node.workload().rows.len());
        let LiveReport { outcome, verdict, .. } =
            self.node.run_strict(self.policy, LiveRunSpec::new(qps, &arrivals, criterion))?;
        if outcome.interrupted() || live::interrupted() {
            return Ok(None);
        }
        let cost = self.node.calibration(&outcome);
        let last = outcome.log.rows.iter().map(|row| row.finished).max().unwrap_or_default();
        let answered_qps = outcome.log.rows.len() as f64 / last.as_secs().max(f64::MIN_POSITIVE);
        Ok(Some((verdict, answered_qps, cost)))
    }
}

/// As many as tell, whatever a search may do with less: but no more than come while a run may last.
fn queries_of_run(criterion: &Criterion, qps: f64, live_most: Duration) -> usize {
    let most = (live_most.as_secs_f64() * qps).max(RunLength::of_limits(criterion, qps));
    RunLength::full(criterion, qps).min(most.ceil() as usize).clamp(1, MOST_QUERIES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Nanos;
    use crate::lab::Objective;

    #[test]
    fn a_live_run_has_the_queries_that_tell_unless_they_would_take_too_long() {
        let criterion = Objective::default().within(Nanos::from_ms(50.0));
        let of = |qps| queries_of_run(&criterion, qps, Duration::from_secs(60));
        // A hundred limits are 5 s, and p99 asks for 10 000 queries; at 1.7 a second those would be hours.
        assert_eq!([of(40_000.0), of(1000.0), of(1.7), of(1e9)], [200_000, 10_000, 102, MOST_QUERIES]);
        // A hundred limits are not cut off.
        let slow = Objective::default().within(Nanos::from_ms(2000.0));
        assert_eq!(queries_of_run(&slow, 1.7, Duration::from_secs(60)), 340);
    }
}
