//! The client: one or more threads, each with a loop over its own connections.
//!
//! ```text
//!   due? ──▶ a free connection, or a new one ──▶ write at once
//!   wait ──▶ spin on a core of its own; else sleep until just before the next query is due
//!   socket ready ──▶ read its response ──▶ a record, and the connection is free
//! ```
//!
//! | what | rule |
//! | --- | --- |
//! | connections | kept alive, one request at a time; all busy: the query waits, and its latency grows |
//! | several servers | the lab's routing names one when a query is due |
//! | time limit | the query is given up, and its connection closed |
//! | status other than 200 | a separate kind of miss; redirects are never followed |
//! | response too large | given up as soon as the limit is reached |
//! | closed while idle | a new connection, without a miss |
//! | no answer for some seconds, and many failures | the run ends: [`Ending::ServerGone`] |

mod worker;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tandem_model::base::time::Nanos;
use tandem_model::sim::{Arrivals, Routing};

use self::worker::Worker;
use crate::HttpError;
use crate::requests::Requests;
use crate::run::{Ending, Outcome, Record, Run};
use crate::source::{Closed, Open};
use crate::target::Target;

/// Highest rate of an open loop.
const MOST_RATE_QPS: f64 = 1_000_000.0;
/// Longest run, in seconds.
const MOST_SECONDS: f64 = 86_400.0;
/// Most queries of a run, whose records take 48 bytes each.
const MOST_QUERIES: usize = 20_000_000;
/// Most queries of a probe that find nothing, and failures that end it.
const PROBED: usize = 20;
const PROBED_FAILURES: usize = 3;
/// Limits of the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Most connections.
    pub connections: usize,
    /// Threads of an open loop.
    pub threads: usize,
    /// Time limit of a query from its request on.
    pub timeout: Duration,
    /// Largest body of a response, in bytes.
    pub body_bytes: usize,
    /// Whether threads never sleep. Without it they do not either on machines with many cores for each.
    pub spins: bool,
}

impl Limits {
    /// 256 connections, one thread, 8 MiB, and the larger of one second and ten deadlines.
    #[must_use]
    pub fn for_deadline(deadline: Nanos) -> Self {
        let timeout =
            Duration::from_nanos(deadline.0.saturating_mul(10)).clamp(Duration::from_secs(1), Duration::from_secs(60));
        Self { connections: 256, threads: 1, timeout, body_bytes: 8 << 20, spins: false }
    }
}

/// A client of a server.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// The servers, at least one, with equal answers.
    pub targets: &'a [Target],
    /// The choice of the server for a query.
    pub routing: Routing,
    /// The prepared requests.
    pub requests: &'a Requests,
    /// Limits.
    pub limits: Limits,
}

/// The result of a thread.
pub(crate) struct Part {
    pub(crate) records: Vec<Record>,
    pub(crate) ending: Ending,
    pub(crate) failure: Option<String>,
}

impl<'a> Client<'a> {
    /// A client of one server.
    #[must_use]
    pub fn of_one(target: &'a Target, requests: &'a Requests, limits: Limits) -> Self {
        Self { targets: std::slice::from_ref(target), routing: Routing::default(), requests, limits }
    }

    /// Sends `arrivals` at `rate_qps`. The first `warm_up` seconds are kept apart.
    ///
    /// # Errors
    /// If the run would exceed a limit, or the system refuses a poller or a thread.
    pub fn drive(&self, arrivals: &Arrivals, rate_qps: f64, warm_up: f64) -> Result<Run, HttpError> {
        if !(rate_qps > 0.0 && rate_qps <= MOST_RATE_QPS) {
            return Err(HttpError::Limit(format!("rate {rate_qps} q/s, expected above 0, at most {MOST_RATE_QPS}")));
        }
        let seconds = arrivals.len() as f64 / rate_qps;
        if arrivals.len() > MOST_QUERIES || seconds > MOST_SECONDS {
            let count = arrivals.len();
            let most = format!("{MOST_QUERIES} queries and {MOST_SECONDS} s");
            return Err(HttpError::Limit(format!(
                "a run of {count} queries in {seconds:.0} s, expected at most {most}"
            )));
        }
        let threads = self.limits.threads.clamp(1, self.limits.connections.max(1));
        let stop = AtomicBool::new(false);
        // All threads share one start, after all of them are ready.
        let start = Instant::now() + Duration::from_millis(20);
        let share = |first| {
            let source = Open::new(arrivals.at_rate(rate_qps), first, threads);
            let count = arrivals.len() / threads + 1;
            Worker::new(self, first, self.limits.connections / threads, start, &stop)?.run(source, count)
        };
        let shares: Vec<Result<Part, HttpError>> = std::thread::scope(|scope| {
            let running: Vec<_> = (1..threads).map(|first| scope.spawn(move || share(first))).collect();
            let own = share(0);
            let joined = running.into_iter().map(|thread| match thread.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(own).chain(joined).collect()
        });
        let mut run = Run {
            rate_qps,
            planned: 0,
            records: Vec::new(),
            warm_up: Vec::new(),
            seconds: start.elapsed().as_secs_f64(),
            ending: Ending::Complete,
            failure: None,
        };
        for part in shares {
            let Part { records, ending, failure } = part?;
            run.failure = run.failure.or(failure);
            run.records.extend(records);
            run.ending = if ending == Ending::Complete { run.ending } else { ending };
        }
        run.records.sort_unstable_by_key(|record| record.job);
        let warm_up = (warm_up.max(0.0) * 1e9) as u64;
        let warm = arrivals.at_rate(rate_qps).take_while(|(at, _)| at.0 < warm_up).count();
        let at = run.records.partition_point(|record| (record.job as usize) < warm);
        let measured = run.records.split_off(at);
        run.warm_up = std::mem::replace(&mut run.records, measured);
        run.planned = arrivals.len() - warm;
        Ok(run)
    }

    /// Sends queries in a closed loop.
    ///
    /// # Errors
    /// If the system refuses a poller.
    pub fn closed(&self, source: Closed<'_>) -> Result<Run, HttpError> {
        let (stop, start) = (AtomicBool::new(false), Instant::now());
        let Part { mut records, ending, failure } =
            Worker::new(self, 0, self.limits.connections, start, &stop)?.run(source, 0)?;
        records.sort_unstable_by_key(|record| record.job);
        let (planned, seconds) = (records.len(), start.elapsed().as_secs_f64());
        Ok(Run { rate_qps: f64::NAN, planned, records, warm_up: Vec::new(), seconds, ending, failure })
    }

    /// Asks each server the first queries and returns a line about each: status, hits, times and encoding.
    ///
    /// # Errors
    /// If the first queries of a server fail, or all of them find nothing: with the request and the reason.
    pub fn probe(&self) -> Result<Vec<String>, HttpError> {
        self.targets.iter().map(|target| Client::of_one(target, self.requests, self.limits).probe_one()).collect()
    }

    fn probe_one(&self) -> Result<String, HttpError> {
        let url = &self.targets[0].url;
        let mut failures: Vec<String> = Vec::new();
        let (mut empty, mut last) = (0, 0);
        for query in 0..self.requests.len().min(PROBED) as u32 {
            let (record, why) = self.ask(query)?;
            last = query;
            if record.outcome != Outcome::Answered {
                failures.push(why);
                if failures.len() == PROBED_FAILURES {
                    break;
                }
            } else if record.hits == 0 {
                empty += 1;
            } else {
                let ms = |ms: f64| (ms * 100.0).round() / 100.0;
                let own = Some(record.server_ms).filter(|ms| ms.is_finite());
                let own = own.map_or(String::new(), |own| format!(" (the server says {} ms)", ms(own.into())));
                let (hits, time) = (record.hits, ms(record.service().as_ms()));
                let failed = failures.first().map_or(String::new(), |why| {
                    format!("; {} of the first {} failed: {why}", failures.len(), last + 1)
                });
                let none = if empty > 0 {
                    format!("; {empty} of the first {} found nothing", last + 1)
                } else {
                    String::new()
                };
                return Ok(format!("{url}: status 200, {hits} hits in {time} ms{own}, not compressed{none}{failed}"));
            }
        }
        let what = match failures.first() {
            Some(why) => format!("{} of the first {} requests failed: {why}", failures.len(), last + 1),
            None => {
                format!("all of the first {empty} answers are empty: does the dialect ask the right field or index?")
            }
        };
        let (dialect, request) = (&self.requests.dialect.name, self.requests.shown(last as usize));
        Err(HttpError::NoAnswer(format!("{url}, dialect {dialect}: {what}\nThe request was: {request}")))
    }

    /// Sends one query and returns what became of it, with the reason of a failure.
    fn ask(&self, query: u32) -> Result<(Record, String), HttpError> {
        let (stop, start) = (AtomicBool::new(false), Instant::now());
        Worker::new(self, 0, 1, start, &stop)?.ask(query)
    }
}
