//! Live runs that tell whether what was simulated is true.

use std::time::Duration;

use super::{LiveCheck, LiveRate, Question};
use crate::lab::{Calibration, Criterion, Drive, Judge, LabError, Node, Progress, RunLength, Verdict, draw};
use crate::live;
use crate::sched::PolicyFactory;

/// Runs at the capacity, of which one has to hold.
const ATTEMPTS: u32 = 2;
/// How far beyond the capacity another run is driven.
const BEYOND: f64 = 1.1;
/// Where the run at the capacity fails, lower ones are tried: these shares of it.
const BELOW: [f64; 3] = [0.9, 0.75, 0.5];
/// A live run has no more queries than this, all of whose log is kept.
const MOST_QUERIES: usize = 3_000_000;
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
    /// Drives at the capacity and beyond, and below where that fails.
    pub(super) fn check(mut self, qps: f64) -> Result<(Option<LiveCheck>, Option<LiveRate>), LabError> {
        let Some(at) = self.try_rate(qps, ATTEMPTS)? else { return Ok((None, None)) };
        let Some(beyond) = self.try_rate(qps * BEYOND, 1)? else { return Ok((None, None)) };
        let mut held_below = None;
        if !at.verdict.holds() {
            for share in BELOW {
                held_below = self.try_rate(qps * share, 1)?.filter(|lower| lower.verdict.holds());
                if held_below.is_some() || live::interrupted() {
                    break;
                }
            }
        }
        Ok((Some(LiveCheck { at, beyond }), held_below))
    }

    /// Another program on the machine can hold up a run for longer than the deadline: one that fails may be repeated,
    /// and the better one counts. `None` if it was interrupted.
    fn try_rate(&mut self, qps: f64, attempts: u32) -> Result<Option<LiveRate>, LabError> {
        let mut best: Option<LiveRate> = None;
        for attempt in 1..=attempts {
            let Some((verdict, slowdown)) = self.drive(qps)? else { return Ok(None) };
            let this = LiveRate { qps, verdict, attempts: attempt, slowdown };
            let first = best.filter(|first| first.verdict.late <= verdict.late && !verdict.holds());
            let kept = first.map_or(this, |first| LiveRate { attempts: attempt, ..first });
            best = Some(kept);
            if kept.verdict.holds() {
                break;
            }
        }
        Ok(best)
    }

    /// The verdict, and how much slower the machine was than when it was calibrated.
    fn drive(&mut self, qps: f64) -> Result<Option<(Verdict, f64)>, LabError> {
        let Question { deadline, objective, process, seeds } = self.question;
        let criterion: Criterion = objective.within(*deadline);
        // As long as a run that tells must be, whatever a search may do with less.
        let count = RunLength::full(&criterion, qps).min(MOST_QUERIES);
        let lasts = Duration::from_secs_f64((count as f64 / qps).min(LONGEST_S));
        self.progress.lasts(&format!("live: {} at {qps:.0} q/s", self.policy.name()), lasts);
        let seed = seeds.last().map_or(0, |seed| seed.wrapping_add(1));
        let arrivals = draw(process, seed, count, self.node.workload().rows.len());
        let outcome = self.node.drive_well(self.policy, Drive::new(qps, &arrivals, criterion.limit.max(*deadline)))?;
        if outcome.interrupted() || live::interrupted() {
            return Ok(None);
        }
        let now = self.node.calibration(&outcome);
        let slowdown =
            self.node.machine().classes().map(|class| now.slowdown[class] / self.calibration.slowdown[class]);
        let slowdown = slowdown.fold(0.0, f64::max);
        Ok(Some((Judge::of_log(criterion, &outcome.log, count, qps), slowdown)))
    }
}
