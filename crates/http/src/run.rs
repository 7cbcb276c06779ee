//! A run: the outcome of each query, and statistics.
//!
//! ```text
//!   intended ──── late ────▶ sent ──── service time ────▶ answered
//!   └──────────────────── latency ─────────────────────┘
//! ```
//!
//! Latency counts from the intended start, so that a slow server does not slow down its own measurement. A query without
//! an answer has no latency: percentiles are over the answered queries, and objectives count the others as late.
//!
//! A server has a *gap* while it answers nothing although requests are outstanding, for a millisecond longer than four times
//! the longest profiled service time. A server at work ends one of its queries in this time, whatever it does first.

use hdrhistogram::Histogram;
use serde::Serialize;
use tandem_drive::lab::{KEPT_SHARE, above_floor, is_paused};
use tandem_drive::live::{Course, Gap, GapOf, LEAST_GAP, SLACK};
use tandem_model::base::ids::{JobId, ProcessorId, QueryId};
use tandem_model::base::machine::{Class, PerClass};
use tandem_model::base::quantile::select_nearest_rank;
use tandem_model::base::time::Nanos;
use tandem_model::sched::{LogRow, Sink};
use tandem_model::study::{Criterion, Judge, Summary, Verdict};

/// The percentiles of tables and files.
pub const PERCENTILES: [f64; 7] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];
/// The share of the deadline that the 99th percentile of the lateness may reach.
const MOST_LATENESS: f64 = 0.01;
/// Longest latency of histograms, in nanoseconds: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant digits of histograms.
const DIGITS: u8 = 3;

/// The outcome of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A valid answer.
    Answered,
    /// Status 429.
    Rejected,
    /// Status 500 to 599.
    ServerError,
    /// Another status. Redirects are not followed.
    OtherStatus,
    /// An answer that the server itself calls incomplete.
    Partial,
    /// No complete answer within the time limit.
    Timeout,
    /// The connection was refused, reset or closed before the answer was complete.
    Reset,
    /// The response is not HTTP, not JSON, or has no hits.
    Malformed,
    /// The response is larger than allowed.
    TooLarge,
}

/// Why a query has no answer: the kind of miss, and the reason in words.
pub(crate) type Fault = (Outcome, String);

impl Outcome {
    /// All outcomes, in the order of files.
    pub const ALL: [Self; 9] = [
        Self::Answered,
        Self::Rejected,
        Self::ServerError,
        Self::OtherStatus,
        Self::Partial,
        Self::Timeout,
        Self::Reset,
        Self::Malformed,
        Self::TooLarge,
    ];

    /// The name in tables and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Rejected => "rejected",
            Self::ServerError => "server-error",
            Self::OtherStatus => "other-status",
            Self::Partial => "partial",
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::Malformed => "malformed",
            Self::TooLarge => "too-large",
        }
    }

    /// The outcome of a response with this status; only 200 can be an answer.
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            200 => Self::Answered,
            429 => Self::Rejected,
            500..=599 => Self::ServerError,
            _ => Self::OtherStatus,
        }
    }
}

/// One query of a run. Times are nanoseconds since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// Number of the arrival.
    pub job: u32,
    /// Position of the query in the log.
    pub query: u32,
    /// Intended start.
    pub intended: u64,
    /// When the request was written.
    pub sent: u64,
    /// When the response was complete, or the query given up.
    pub finished: u64,
    /// The client's own delay: `sent` after the intended start, less any wait for a free connection.
    pub lateness: u32,
    /// The outcome.
    pub outcome: Outcome,
    /// Number of hits.
    pub hits: u32,
    /// The server's own time in milliseconds; NaN if unknown.
    pub server_ms: f32,
}

impl Record {
    /// Time from the intended start.
    #[must_use]
    pub fn latency(&self) -> Nanos {
        Nanos(self.finished.saturating_sub(self.intended))
    }

    /// Time from the request to the response.
    #[must_use]
    pub fn service(&self) -> Nanos {
        Nanos(self.finished.saturating_sub(self.sent))
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// All queries were sent.
    Complete,
    /// For some seconds no query was answered and many failed; the rest was not sent.
    ServerGone,
    /// A signal came.
    Interrupted,
}

/// The judgement of a run.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The verdict; every query without an answer is late.
    pub verdict: Verdict,
    /// Whether the server kept its throughput.
    pub kept_up: bool,
    /// Whether it missed the objective only because the server paused.
    pub is_paused: bool,
    /// The server's gaps.
    pub course: Course,
}

/// A distribution of times, in nanoseconds.
pub type Times = Histogram<u64>;

/// All queries of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Intended rate; NaN in a closed loop.
    pub rate_qps: f64,
    /// Number of planned queries, without warm-up.
    pub planned: usize,
    /// Queries in order of their numbers, without warm-up.
    pub records: Vec<Record>,
    /// Queries of the warm-up, which count nowhere else.
    pub warm_up: Vec<Record>,
    /// Seconds from the start of the run to its end.
    pub seconds: f64,
    /// How it ended.
    pub ending: Ending,
    /// The reason of the first failure, in words.
    pub failure: Option<String>,
}

/// A percentile of a distribution in milliseconds; `None` if nothing was measured.
#[must_use]
pub fn percentile_ms(times: &Times, percentile: f64) -> Option<f64> {
    (!times.is_empty()).then(|| times.value_at_percentile(percentile) as f64 / 1e6)
}

impl Run {
    /// Number of queries with this outcome.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        self.records.iter().filter(|record| record.outcome == outcome).count()
    }

    /// Number of queries that were planned but not sent.
    #[must_use]
    pub fn not_sent(&self) -> usize {
        self.planned - self.records.len()
    }

    /// The answered queries.
    pub fn answered(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| record.outcome == Outcome::Answered)
    }

    /// Number of answers without a hit.
    #[must_use]
    pub fn empty(&self) -> usize {
        self.answered().filter(|record| record.hits == 0).count()
    }

    /// Answers per second from the first intended start to the last answer.
    #[must_use]
    pub fn throughput_qps(&self) -> f64 {
        let first = self.records.iter().map(|record| record.intended).min();
        let last = self.answered().map(|record| record.finished).max();
        match (first, last) {
            (Some(first), Some(last)) if last > first => self.answered().count() as f64 * 1e9 / (last - first) as f64,
            _ => 0.0,
        }
    }

    /// The distribution of `time` over the answered queries, to three digits.
    #[must_use]
    pub fn histogram(&self, time: impl Fn(&Record) -> Nanos) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("constant bounds are valid");
        self.answered().for_each(|record| histogram.saturating_record(time(record).0));
        histogram
    }

    /// The 99th percentile of the client's own delay; `None` without queries.
    #[must_use]
    pub fn lateness_p99(&self) -> Option<Nanos> {
        let mut all: Vec<u32> = self.records.iter().map(|record| record.lateness).collect();
        select_nearest_rank(&mut all, 0.99).map(|late| Nanos(late.into()))
    }

    /// Whether the client was too late for a miss to be the server's. Lateness only adds to latencies, so that a run that held
    /// counts, and so does a run that would miss with a punctual client.
    #[must_use]
    pub fn is_rejected(&self, criterion: &Criterion, verdict: &Verdict) -> bool {
        let is_late = |late: Nanos| late.0 as f64 > MOST_LATENESS * criterion.deadline.0 as f64;
        let is_missed = |verdict: &Verdict| !verdict.holds() && !verdict.is_undecided();
        !verdict.holds()
            && self.lateness_p99().is_some_and(is_late)
            && !is_missed(&self.clone().if_punctual().verdict(criterion))
    }

    /// A bound on the run that a punctual client would have seen. If no request of a busy period is later than `d`, its answers
    /// come at most `d` earlier with punctual requests: in a queue that is served in order, all requests later by `d` would
    /// shift all answers by `d`, and the actual requests are no later than these.
    fn if_punctual(mut self) -> Self {
        let (mut latest, mut busy_until) = (0_u64, 0_u64);
        for record in &mut self.records {
            if record.sent > busy_until {
                latest = 0;
            }
            latest = latest.max(record.lateness.into());
            busy_until = busy_until.max(record.finished);
            record.finished = record.finished.saturating_sub(latest).max(record.intended);
        }
        self
    }

    /// The verdict; every query without an answer is late.
    #[must_use]
    pub fn verdict(&self, criterion: &Criterion) -> Verdict {
        self.judged(criterion, Nanos::MAX).verdict
    }

    /// Judges the run of a server whose longest profiled service time is known.
    #[must_use]
    pub fn judged(&self, criterion: &Criterion, longest: Nanos) -> Judged {
        let gaps = self.gaps(longest);
        let has_waited = |record: &Record| {
            let next = gaps.partition_point(|gap| gap.until.0 <= record.intended);
            gaps.get(next).is_some_and(|gap| gap.from.0 < record.finished)
        };
        let mut judge = Judge::new(*criterion, self.planned, self.rate_qps);
        let mut waited = judge.clone();
        let first = self.records.first().map_or(0, |record| record.job);
        for record in &self.records {
            let (job, query) = (JobId(record.job - first), QueryId(record.query));
            let (arrival, finished) = (Nanos(record.intended), Nanos(record.finished));
            let (processor, class, deadline) = (ProcessorId(0), Class::CPU, arrival + criterion.deadline);
            let predicted = PerClass::default();
            let row = LogRow {
                job,
                query,
                arrival,
                released: Nanos(record.sent),
                started: Nanos(record.sent),
                finished,
                processor,
                class,
                batch: record.job,
                deadline,
                priority: 0,
                predicted,
                stolen: false,
                again: false,
                lanes: 1,
                helped: Nanos::ZERO,
            };
            for judge in [Some(&mut judge), has_waited(record).then_some(&mut waited)].into_iter().flatten() {
                if record.outcome == Outcome::Answered { judge.record(&row) } else { judge.shed(&row.dropped()) }
            }
        }
        // The work of queries inside the server is not known, so that it may be near saturation.
        let verdict = above_floor(judge.verdict(), &judge, 0.0, 1.0);
        let kept_up = self.keeps_up();
        let mut course = Course::default();
        let end = self.records.iter().map(|record| record.finished).max().unwrap_or(0).max(1);
        gaps.iter().for_each(|&gap| course.note((3 * gap.until.0 / end).min(2) as usize, gap));
        let is_paused = is_paused(&verdict, kept_up, judge.holds_without(&waited));
        Judged { verdict, kept_up, is_paused, course }
    }

    /// Whether answers came as fast as requests, apart from the latency of a fast answer.
    fn keeps_up(&self) -> bool {
        let mut latencies: Vec<u64> = self.answered().map(|record| record.latency().0).collect();
        let fast = select_nearest_rank(&mut latencies, 0.1).unwrap_or(0);
        let ends = |of: fn(&Record) -> u64| self.records.iter().map(of).max().unwrap_or(0);
        let (first, sent, answered) = (
            self.records.first().map_or(0, |record| record.intended),
            ends(|one| one.intended),
            ends(|one| one.finished),
        );
        let share = self.answered().count() as f64 / self.records.len().max(1) as f64;
        share * sent.saturating_sub(first) as f64 >= KEPT_SHARE * answered.saturating_sub(first + fast) as f64
    }

    /// The times without an answer, beyond what queries of the `longest` service time explain.
    fn gaps(&self, longest: Nanos) -> Vec<Gap> {
        let mut events: Vec<(u64, bool)> = self.records.iter().map(|record| (record.sent, true)).collect();
        events
            .extend(self.records.iter().filter(|one| one.outcome != Outcome::Timeout).map(|one| (one.finished, false)));
        events.sort_unstable();
        let explained = Nanos(longest.0.saturating_mul(SLACK));
        let (mut outstanding, mut since, mut gaps) = (0_usize, Nanos::ZERO, Vec::new());
        for (at, is_sent) in events {
            let at = Nanos(at);
            if is_sent {
                since = if outstanding == 0 { at } else { since };
                outstanding += 1;
                continue;
            }
            if at.since(since + explained) > LEAST_GAP {
                gaps.push(Gap { of: GapOf::Lanes, from: since + explained, until: at });
            }
            (since, outstanding) = (at, outstanding.saturating_sub(1));
        }
        gaps
    }

    /// Its statistics in the form of live runs; `None` if nothing was answered.
    #[must_use]
    pub fn summary(&self, verdict: &Verdict) -> Option<Summary> {
        let latency = self.histogram(Record::latency);
        let queries = self.answered().count();
        let ms = |percentile| percentile_ms(&latency, percentile).unwrap_or(f64::NAN);
        (queries > 0).then(|| Summary {
            queries,
            mean_ms: latency.mean() / 1e6,
            p50_ms: ms(50.0),
            p95_ms: ms(95.0),
            p99_ms: ms(99.0),
            p999_ms: ms(99.9),
            max_ms: latency.max() as f64 / 1e6,
            missed: verdict.missed,
            utilisation: PerClass::default(),
            stolen: 0,
            throughput_qps: self.throughput_qps(),
            lag_max_ms: self.records.iter().map(|record| record.lateness).max().unwrap_or(0) as f64 / 1e6,
            shed: self.records.len() - queries,
            again: 0,
            lane_faults: 0,
            gpu_energy_j: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::study::Objective;

    fn run(outcomes: &[(Outcome, u64)]) -> Run {
        let record = |(job, &(outcome, latency)): (u32, &(Outcome, u64))| {
            let intended = u64::from(job) * 1_000_000;
            let (sent, finished) = (intended + 1000, intended + latency);
            Record { job, query: 0, intended, sent, finished, lateness: 1000, outcome, hits: 0, server_ms: f32::NAN }
        };
        Run {
            rate_qps: 1000.0,
            planned: 100,
            records: (0..).zip(outcomes).map(record).collect(),
            warm_up: Vec::new(),
            seconds: 0.1,
            ending: Ending::Complete,
            failure: None,
        }
    }

    #[test]
    fn failures_are_misses_and_each_query_is_counted_once() {
        let mut outcomes = vec![(Outcome::Answered, 2_000_000); 98];
        outcomes.extend([(Outcome::Rejected, 1), (Outcome::Reset, 1)]);
        let all = run(&outcomes);
        let criterion = Objective::default().within(Nanos::from_ms(5.0));
        let verdict = all.verdict(&criterion);
        assert_eq!((verdict.late, verdict.missed, verdict.holds()), (2, 2, false));
        assert_eq!(Outcome::ALL.map(|outcome| all.count(outcome)).iter().sum::<usize>() + all.not_sent(), 100);
        assert!((all.summary(&verdict).unwrap().p99_ms - 2.0).abs() < 0.01);
        let half = run(&outcomes[..50]);
        assert_eq!((half.not_sent(), half.verdict(&criterion).is_undecided()), (50, true));
    }

    #[test]
    fn a_miss_is_rejected_if_a_punctual_client_might_have_seen_none() {
        let of = |latency: u64, deadline: u64| {
            let all = run(&[(Outcome::Answered, latency); 100]);
            assert_eq!((all.lateness_p99(), run(&[]).lateness_p99()), (Some(Nanos(1000)), None));
            let criterion = Objective::default().within(Nanos(deadline));
            let verdict = all.verdict(&criterion);
            (verdict.holds(), all.is_rejected(&criterion, &verdict))
        };
        // Requests are 1 us late.
        assert_eq!(of(2000, 2001), (true, false));
        assert_eq!(of(2000, 1500), (false, true));
        assert_eq!(of(2000, 900), (false, false));
        assert_eq!(of(200_000, 199_500), (false, false), "a lateness below 1 % of the deadline");
        // Failures are the server's.
        let failed = run(&[(Outcome::ServerError, 1500); 100]);
        let criterion = Objective::default().within(Nanos(1500));
        assert!(!failed.is_rejected(&criterion, &failed.verdict(&criterion)));
        // An early request of the same busy period was 5 us late; one after a pause is not.
        let mut all = run(&[(Outcome::Answered, 2000), (Outcome::Answered, 2000)]);
        (all.records[0].lateness, all.records[0].finished) = (5000, 1_500_000);
        let bound = all.clone().if_punctual();
        assert_eq!(bound.records[1].finished, all.records[1].intended);
        all.records[0].finished = 6000;
        assert_eq!(all.if_punctual().records[1].latency(), Nanos(1000));
    }

    #[test]
    fn nothing_measured_is_no_zero() {
        let none = run(&[(Outcome::OtherStatus, 2000)]);
        let latency = none.histogram(Record::latency);
        assert_eq!((percentile_ms(&latency, 99.0), none.empty()), (None, 0));
        assert_eq!(run(&[(Outcome::Answered, 2000)]).empty(), 1);
    }

    #[test]
    fn a_server_pauses_if_it_answers_nothing_while_requests_wait() {
        // Answers take 0.2 ms, and for 30 ms there are none.
        let paused = |job: u64| if (40..70).contains(&job) { (70 - job) * 1_000_000 } else { 0 };
        let outcomes: Vec<_> = (0..100).map(|job| (Outcome::Answered, 200_000 + paused(job))).collect();
        let all = run(&outcomes);
        let criterion = Objective::default().within(Nanos::from_ms(5.0));
        let judged = all.judged(&criterion, Nanos::from_ms(1.0));
        assert!(judged.kept_up && judged.is_paused && !judged.verdict.holds(), "{judged:?}");
        // The gap begins when a query of a millisecond would have ended, at a quarter of its speed.
        let gap = judged.course.longest[0];
        assert_eq!((judged.course.longest.len(), gap.until), (1, Nanos(70_200_000)));
        assert!((gap.from.as_ms() - 44.0).abs() < 0.01, "{gap:?}");
        // A query of 8 ms explains it, and a client that waits for nothing knows of no gap.
        assert!(!all.judged(&criterion, Nanos::from_ms(8.0)).is_paused);
        let idle: Vec<_> = [0, 90].map(|_| (Outcome::Answered, 200_000)).into();
        assert!(run(&idle).judged(&criterion, Nanos::ZERO).course.longest.is_empty());
    }
}
