//! A peak over time: when queries of a recording were late, how long the backlog took to clear, and how many machines avoid it.
//!
//! ```text
//!   rate      ──────┐▁▁▁▁┌────────────
//!   wait            ╱╲___                late minutes: more queries are late than the objective allows
//!             first ↑ ↑ ↑ last           the backlog is gone as soon as a query no longer waits
//!                  longest
//! ```

use super::{Fleet, StudyError};
use crate::base::time::Nanos;
use crate::sched::{LogRow, PolicyFactory, ShedJob, Sink};
use crate::sim::Arrivals;
use crate::traffic::{ArrivalProcess, Recording};

/// Length of the windows in which the objective must hold.
const WINDOW: Nanos = Nanos(60_000_000_000);
/// A query that waits for at most this share of the limit finds no backlog.
const NO_WAIT: f64 = 0.01;
/// Larger fleets are not tried.
const MOST_GROUPS: usize = 1024;
/// The seed of the queries.
const SEED: u64 = 1;

/// A recording as one fleet serves it. Times are those of the recording's own clock, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Peak {
    /// The share of late queries.
    pub late_share: f64,
    /// The share of late queries in the worst minute.
    pub worst_share: f64,
    /// Arrivals of the first and the last late query in minutes with more of them than the objective allows; `None` if there is
    /// no such minute.
    pub late: Option<(f64, f64)>,
    /// The longest delay in seconds, and the arrival of its query.
    pub longest_s: f64,
    /// The arrival of this query.
    pub longest_at_s: f64,
    /// Time from this arrival to the first later one that does not wait; `None` if the recording ends before.
    pub clear_s: Option<f64>,
}

/// Late queries by arrival.
struct Lateness {
    limit: Nanos,
    windows: Vec<Window>,
    longest: (Nanos, Nanos),
    no_wait: Option<Nanos>,
}

#[derive(Clone, Copy)]
struct Window {
    queries: usize,
    late: usize,
    first: Nanos,
    last: Nanos,
}

impl Lateness {
    fn add(&mut self, arrival: Nanos, delay: Nanos) {
        let at = (arrival.0 / WINDOW.0) as usize;
        let empty = Window { queries: 0, late: 0, first: Nanos::MAX, last: Nanos::ZERO };
        self.windows.resize(self.windows.len().max(at + 1), empty);
        let window = &mut self.windows[at];
        window.queries += 1;
        if delay > self.limit {
            window.late += 1;
            (window.first, window.last) = (window.first.min(arrival), window.last.max(arrival));
        }
    }
}

impl Sink for Lateness {
    fn record(&mut self, row: &LogRow) {
        self.add(row.arrival, row.delay());
        if row.delay() > self.longest.0 {
            (self.longest, self.no_wait) = ((row.delay(), row.arrival), None);
        } else if self.no_wait.is_none()
            && row.arrival > self.longest.1
            && row.started.since(row.arrival) <= self.limit.scaled(NO_WAIT)
        {
            self.no_wait = Some(row.arrival);
        }
    }

    fn shed(&mut self, job: &ShedJob) {
        self.add(job.arrival, Nanos::MAX);
    }
}

/// Plays a recording once at a rate through this many groups.
///
/// # Errors
/// If the policy does not fit the machine or breaks its contract.
pub fn peak(
    fleet: &Fleet,
    policy: &dyn PolicyFactory,
    (recording, rate_qps): (&Recording, f64),
    groups: usize,
) -> Result<Peak, StudyError> {
    let (experiment, objective) = fleet.of(groups, 1.0);
    let criterion = objective.within(experiment.deadline);
    let count = (recording.seconds() * rate_qps) as usize;
    let process = ArrivalProcess::Recorded(recording.clone());
    let arrivals = Arrivals::drawn(&process, SEED, count, experiment.queries.len());
    let sink =
        Lateness { limit: criterion.limit, windows: Vec::new(), longest: (Nanos::ZERO, Nanos::ZERO), no_wait: None };
    let Lateness { windows, longest, no_wait, .. } = experiment.play(policy, rate_qps, &arrivals, sink, |_| false)?;
    let share = |of: &Window| of.late as f64 / of.queries.max(1) as f64;
    let bad = || windows.iter().filter(|of| of.late > criterion.allowed(of.queries));
    let clock = |at: Nanos| recording.clock_s(at.as_secs());
    let late = bad().map(|of| of.first).min().zip(bad().map(|of| of.last).max());
    let (late_all, all) = windows.iter().fold((0, 0), |(late, all), of| (late + of.late, all + of.queries));
    Ok(Peak {
        late_share: late_all as f64 / all.max(1) as f64,
        worst_share: windows.iter().map(share).fold(0.0, f64::max),
        late: late.map(|(first, last)| (clock(first), clock(last))),
        longest_s: longest.0.as_secs(),
        longest_at_s: clock(longest.1),
        clear_s: no_wait.map(|at| at.since(longest.1).as_secs()),
    })
}

/// The fewest groups, from `from` on, that have no minute with more late queries than the objective allows; `None` if 1,024 do
/// not suffice.
///
/// # Errors
/// As for [`peak`].
pub fn avoids_peak(
    fleet: &Fleet,
    policy: &dyn PolicyFactory,
    recording: (&Recording, f64),
    from: usize,
) -> Result<Option<usize>, StudyError> {
    let avoids = |groups: usize| Ok::<bool, StudyError>(peak(fleet, policy, recording, groups)?.late.is_none());
    let (mut fails, mut holds) = (from.saturating_sub(1), from);
    while !avoids(holds)? {
        (fails, holds) = (holds, 2 * holds);
        if holds > MOST_GROUPS {
            return Ok(None);
        }
    }
    while holds - fails > 1 {
        let middle = fails + (holds - fails) / 2;
        if avoids(middle)? { holds = middle } else { fails = middle }
    }
    Ok(Some(holds))
}
