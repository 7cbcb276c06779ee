//! Live runs of one policy, between a rate that holds and a rate that fails.

use std::time::{Duration, Instant};

use tandem_model::base::time::Nanos;
use tandem_model::sched::PolicyFactory;
use tandem_model::sim::Arrivals;
use tandem_model::study::forecast::{Forecast, Planned};
use tandem_model::study::interval::{Z, half_width, sampled, scatter};
use tandem_model::study::{Progress, StudyError, Summary, Verdict};
use tandem_model::traffic::ArrivalProcess;

use super::search::{LiveSearch, Side, Vote};
use super::{Effort, Prediction, Question};
use crate::lab::{Calibration, LabError, LiveReport, LiveRunSpec, Node, ServiceRow, ServiceRun, SystemLoad};
use crate::live::{self, Course};

/// One live run.
#[derive(Clone, Debug, PartialEq)]
pub struct DrivenRun {
    /// Arrival rate, in queries per second.
    pub qps: f64,
    /// The seed of its arrivals and queries.
    pub seed: u64,
    /// Duration of the arrivals, in seconds.
    pub seconds: f64,
    /// The share of a recording of arrivals that the run played; 1 for drawn arrivals.
    pub covered_share: f64,
    /// The verdict under the objective.
    pub verdict: Verdict,
    /// Its delays; `None` if no query finished.
    pub summary: Option<Summary>,
    /// The forecast of the run with the prediction's costs; `None` if it was not simulated.
    pub predicted: Option<Forecast>,
    /// The simulated run with the costs of the backlogs; `None` if it was not simulated.
    pub rehearsed: Option<Summary>,
    /// Whether it kept [`KEPT_SHARE`](crate::lab::KEPT_SHARE) of its throughput.
    pub kept_up: bool,
    /// Whether it missed the objective only because the machine [paused](crate::lab::is_paused).
    pub is_paused: bool,
    /// Its thirds, and the gaps of the machine.
    pub course: Course,
    /// The load by other processes.
    pub load: SystemLoad,
    /// Time of a fixed loop on the workers' cores before and after the run; 0 without workers.
    pub fixed_loop: [Nanos; 2],
    /// The 99th percentile of the driver's delay in releasing queries.
    pub lag_p99: Nanos,
    /// The query costs of the run.
    pub service: Calibration,
    /// The number of its pair, if it took turns with a run of another policy on the same arrivals.
    pub pair: Option<u32>,
}

impl DrivenRun {
    /// The vote of the run on its rate.
    #[must_use]
    pub fn vote(&self) -> Vote {
        match (self.verdict.holds(), self.is_paused) {
            (true, _) => Vote::Held,
            (false, true) => Vote::Paused,
            (false, false) => Vote::Missed,
        }
    }

    /// The verdict in words; `paused` stands in place of `missed`.
    #[must_use]
    pub fn words(&self) -> String {
        let words = self.verdict.words();
        if self.is_paused { words.replacen("missed", "paused", 1) } else { words }
    }

    /// The run as a forecast takes it.
    pub(super) fn planned<'a>(&self, process: &'a ArrivalProcess, speed_sd: f64) -> Planned<'a> {
        Planned { process, qps: self.qps, queries: self.verdict.planned, live_seed: self.seed, speed_sd }
    }

    /// The mean time of the fixed loop, in microseconds.
    #[must_use]
    pub fn fixed_loop_us(&self) -> f64 {
        self.fixed_loop.map(Nanos::as_us).iter().sum::<f64>() / 2.0
    }
}

/// The results of a policy's live runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Driven {
    /// The policy's name.
    pub policy: String,
    /// The prediction before the first run.
    pub predicted: Prediction,
    /// The prediction with query costs of the last run that held at the answer; its error belongs to the simulator.
    pub hindsight_qps: Option<f64>,
    /// The live runs, in order.
    pub runs: Vec<DrivenRun>,
    /// The highest rate that held in enough runs.
    pub held: Option<Side>,
    /// The lowest rate that failed in enough runs.
    pub missed: Option<Side>,
    /// The rate up to which throughput was kept, if the machine's pauses miss the objective at any rate.
    pub pause_limited: Option<f64>,
    /// The standard error of the mean cost of the driven queries, as a sample of the log.
    pub sampled: f64,
    /// The precision of a sequential search.
    pub precision: Option<f64>,
    /// The source of GPU lanes: `real`, `replay` or `none`.
    pub gpu: &'static str,
}

/// A capacity from live runs: a rate that held, with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveCapacity {
    /// The rate that held.
    pub qps: f64,
    /// The lowest rate that failed.
    pub missed_qps: f64,
    /// Half-width of the 90 % interval, as a share of the rate; `None` if runs were shorter than their recording.
    pub half_width: Option<f64>,
}

impl LiveCapacity {
    /// The 90 % interval; `None` if it is not known.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.half_width.map(|half_width| (self.qps * (1.0 - half_width), self.qps * (1.0 + half_width)))
    }
}

impl Driven {
    /// The live capacity; `None` if either side is unknown.
    #[must_use]
    pub fn capacity(&self) -> Option<LiveCapacity> {
        let (held, missed) = (self.held?, self.missed?);
        let (qps, half_width) = match self.precision {
            // The runs' own scatter is in the estimate.
            Some(_) => {
                let estimate = self.votes().estimate();
                (estimate.qps, estimate.half_width().hypot(Z * self.sampled))
            }
            None => (held.qps, half_width(held.qps, missed.qps, self.machine_scatter(), self.sampled)),
        };
        let half_width = Some(half_width).filter(|_| self.runs.iter().all(|run| run.covered_share >= 1.0));
        Some(LiveCapacity { qps, missed_qps: missed.qps, half_width })
    }

    /// The measured and the predicted summaries of its runs in pairs with another policy, by pair.
    #[must_use]
    pub fn pairs(&self, other: &Self) -> Vec<[[Summary; 2]; 2]> {
        let of = |driven: &Self, pair: u32| {
            let run = driven.runs.iter().find(|run| run.pair == Some(pair))?;
            Some([run.summary?, run.predicted.as_ref()?.summary])
        };
        let of_pair = |pair| {
            let ([measured, predicted], [other_measured, other_predicted]) = (of(self, pair)?, of(other, pair)?);
            Some([[measured, other_measured], [predicted, other_predicted]])
        };
        (1..=2).filter_map(of_pair).collect()
    }

    /// The votes of all runs.
    fn votes(&self) -> LiveSearch {
        let mut search = LiveSearch::new(self.predicted.qps(), Effort::usual());
        self.runs.iter().for_each(|run| search.note(run.qps, run.vote()));
        search
    }

    /// The range of the prediction error: relative to the failed rate and to the rate that held.
    #[must_use]
    pub fn error(&self) -> Option<(f64, f64)> {
        let (held, missed) = (self.held?, self.missed?);
        let predicted = self.predicted.qps();
        Some((predicted / missed.qps - 1.0, predicted / held.qps - 1.0))
    }

    /// What is known of the capacity, by however few runs: see [`LiveSearch::bounds`].
    #[must_use]
    pub fn bounds(&self) -> [Option<Side>; 2] {
        self.votes().bounds()
    }

    /// The highest rate up to which runs kept their throughput; 0 without any.
    #[must_use]
    pub fn kept_qps(&self) -> f64 {
        highest_below(&self.runs, |run| run.kept_up)
    }

    /// A search for the rate up to which throughput is kept, after the runs so far.
    #[must_use]
    pub fn throughput_search(&self, effort: Effort) -> LiveSearch {
        let mut search =
            LiveSearch::new(self.predicted.qps(), Effort { needed: 1, all: false, precision: None, ..effort });
        self.runs.iter().for_each(|run| search.note(run.qps, if run.kept_up { Vote::Held } else { Vote::Missed }));
        search
    }

    /// The run at a rate that shows its delays: the one with the median p99.
    #[must_use]
    pub fn typical_run(&self, qps: f64) -> Option<&DrivenRun> {
        let mut at_rate: Vec<&DrivenRun> = self.runs.iter().filter(|run| run.qps == qps).collect();
        at_rate.sort_by_key(|run| run.verdict.p99);
        at_rate.get(at_rate.len() / 2).copied()
    }

    /// The relative standard deviation of the machine's speed over the runs, by query costs and by the fixed loop.
    #[must_use]
    pub fn machine_scatter(&self) -> f64 {
        let served: Vec<f64> = self.runs.iter().map(|run| run.service.slowest_of_all()).collect();
        scatter(&served).max(scatter(&self.fixed_loops()))
    }

    /// The slowest fixed loop relative to the fastest, minus 1.
    fn drift(&self) -> f64 {
        let loops = self.fixed_loops();
        let (least, most) =
            loops.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &us| (least.min(us), most.max(us)));
        if most > 0.0 { most / least - 1.0 } else { 0.0 }
    }

    fn fixed_loops(&self) -> Vec<f64> {
        self.runs.iter().map(DrivenRun::fixed_loop_us).filter(|&us| us > 0.0).collect()
    }

    /// The queries and the late queries of all runs at a rate.
    #[must_use]
    pub fn totals(&self, side: &Side) -> (usize, usize) {
        let at = self.runs.iter().filter(|run| run.qps == side.qps);
        at.fold((0, 0), |(sent, late), run| (sent + run.verdict.sent, late + run.verdict.late))
    }

    /// The mean load by other processes during the runs.
    #[must_use]
    pub fn load(&self) -> SystemLoad {
        SystemLoad::mean(&self.runs.iter().map(|run| run.load).collect::<Vec<_>>())
    }
}

pub(super) struct LiveRuns<'a> {
    pub(super) node: &'a mut Node,
    pub(super) policy: &'a dyn PolicyFactory,
    pub(super) question: &'a Question,
    pub(super) progress: &'a dyn Progress,
    pub(super) seed: u64,
    /// The start of the whole question, and the deadline for the last run.
    pub(super) began: Instant,
    pub(super) until: Instant,
    pub(super) service: &'a mut Vec<ServiceRow>,
}

impl LiveRuns<'_> {
    /// Drives runs at `loads`, shares of the predicted capacity, then searches around it. `driven` keeps all runs in any
    /// case.
    pub(super) fn search(&mut self, driven: &mut Driven, loads: &[f64]) -> Result<(), LabError> {
        let predicted_qps = driven.predicted.qps();
        for load in loads {
            self.drive(load * predicted_qps, driven)?;
        }
        let mut search = LiveSearch::new(predicted_qps, self.question.effort);
        while let Some(qps) = search.next(self.runs_left(predicted_qps)) {
            // A run that was cut short without an interrupt has no verdict.
            let Some(vote) = self.drive(qps, driven)? else { return Ok(()) };
            search.note(qps, vote);
            search.drifts(driven.drift());
            (driven.held, driven.missed) = search.sides();
        }
        if search.is_pause_limited() {
            driven.pause_limited = Some(driven.kept_qps());
            let mut search = driven.throughput_search(self.question.effort);
            while let Some(qps) = search.next(self.runs_left(predicted_qps)) {
                if self.drive(qps, driven)?.is_none() {
                    break;
                }
                driven.pause_limited = Some(driven.kept_qps());
                search = driven.throughput_search(self.question.effort);
            }
        }
        Ok(())
    }

    /// Number of runs that fit into the remaining time.
    fn runs_left(&self, qps: f64) -> u32 {
        let left = self.until.saturating_duration_since(Instant::now());
        (left.as_secs_f64() / self.seconds(qps)).floor() as u32
    }

    /// Duration of the arrivals of a run at this rate.
    fn seconds(&self, qps: f64) -> f64 {
        self.question.effort.seconds(&self.question.objective.within(self.question.deadline), qps)
    }

    /// Drives a run, and returns its vote; `None` if it was cut short.
    pub(super) fn drive(&mut self, qps: f64, driven: &mut Driven) -> Result<Option<Vote>, LabError> {
        let Question { deadline, objective, process, .. } = self.question;
        let criterion = objective.within(*deadline);
        let seconds = self.seconds(qps);
        let count = ((seconds * qps) as usize).max(1);
        let what = format!("{}, live at {qps:.0} q/s", self.policy.name());
        self.progress.lasts(&what, Duration::from_secs_f64(count as f64 / qps));
        let arrivals = Arrivals::drawn(process, self.seed, count, self.node.driven_rows().len());
        let before = self.node.lane_pool().fixed_loop();
        let run = LiveRunSpec::new(qps, &arrivals, criterion).of_driven_rows(self.node);
        let report = self.node.run_strict(self.policy, run)?;
        let LiveReport { outcome, summary, verdict, kept_up, is_paused, load, .. } = report;
        if live::interrupted() {
            return Err(StudyError::Interrupted.into());
        }
        let after = self.node.lane_pool().fixed_loop();
        let service = self.node.calibration(&outcome);
        self.service.push(ServiceRow::of(
            self.policy.name(),
            self.began.elapsed(),
            (ServiceRun::Live, qps),
            verdict.sent,
            &service,
        ));
        let run = DrivenRun {
            qps,
            seed: self.seed,
            seconds,
            covered_share: if process.recording().is_some() { arrivals.covered_share(qps) } else { 1.0 },
            verdict,
            summary,
            kept_up,
            is_paused,
            course: outcome.course,
            predicted: None,
            rehearsed: None,
            load,
            fixed_loop: [before, after],
            lag_p99: outcome.lag.p99,
            service,
            pair: None,
        };
        self.seed = self.seed.wrapping_add(1);
        self.progress.told(&format!("{what}: {}; {}", run.words(), load.words()));
        let vote = (!verdict.is_undecided()).then(|| run.vote());
        driven.runs.push(run);
        Ok(vote)
    }
}

/// The highest rate at which `is_good` holds, below every rate at which it does not.
fn highest_below(runs: &[DrivenRun], is_good: impl Fn(&DrivenRun) -> bool) -> f64 {
    let bad = runs.iter().filter(|run| !is_good(run)).map(|run| run.qps).fold(f64::INFINITY, f64::min);
    runs.iter().map(|run| run.qps).filter(|&qps| qps < bad).fold(0.0, f64::max)
}

pub(super) fn sampled_queries(node: &Node, log_queries: usize) -> f64 {
    let costs = node.workload().costs();
    sampled(&costs[node.driven_rows()], log_queries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::study::Objective;

    #[test]
    fn no_run_is_shorter_than_asked_for() {
        let of = |limit_ms, qps| Effort::usual().seconds(&Objective::default().within(Nanos::from_ms(limit_ms)), qps);
        assert_eq!([0.05, 1.0, 100.0, 10_000.0].map(|limit_ms| of(limit_ms, 2000.0)), [10.0, 10.0, 10.0, 50.0]);
        // A p99 needs 10,000 queries.
        assert_eq!([of(100.0, 500.0), of(100.0, 5.0)], [20.0, 30.0]);
    }
}
