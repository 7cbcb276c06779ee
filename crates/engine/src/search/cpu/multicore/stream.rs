//! Streams of queries: which lane takes the next one, and when each was answered.
//!
//! This is the paper's queue before the cores: a query waits from its arrival until a lane takes it. A lane is an
//! executor on its own thread, which is one core (INTER, adaptive) or the first of a team (DOCP). A compare-and-swap of
//! the position takes the next query once it has arrived.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tandem_base::base::random::mix;
use tandem_base::base::time::Nanos;
use tandem_base::traffic::Mode;

use super::cores::Cores;
use super::idle::Backoff;
use super::pool::claims::CachePadded;
use crate::query::Query;
use crate::search::{ExecError, Executor, Help, Hit, MAX_K, TopK};

/// Queries in order of arrival.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    /// The distinct queries.
    pub queries: &'a [Query],
    /// Positions in `queries`, in order of arrival.
    pub order: Vec<u32>,
    /// Ascending arrival times, or empty if all queries are present at the start.
    pub arrivals: Vec<Nanos>,
    /// The most queries in flight. With 1, each begins when the one before is answered.
    pub most_at_once: usize,
    /// How terms combine.
    pub mode: Mode,
    /// The number of requested documents.
    pub k: usize,
}

/// The times and the answer of one query of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Arrival time.
    pub arrival: Nanos,
    /// Start time.
    pub started: Nanos,
    /// Time of the answer.
    pub finished: Nanos,
    /// Hash of the answer's documents and scores.
    pub digest: u64,
}

const HEAD_START: Duration = Duration::from_millis(2);

impl Stream<'_> {
    /// The time origin, slightly in the future.
    pub fn start(&self) -> Instant {
        Instant::now() + HEAD_START
    }

    /// The arrival time of the query at `position`.
    pub fn arrival(&self, position: usize) -> Nanos {
        self.arrivals.get(position).copied().unwrap_or(Nanos::ZERO)
    }

    /// The query at `position`.
    pub fn query(&self, position: usize) -> &Query {
        &self.queries[self.order[position] as usize]
    }

    /// The current time, if there is a query at `position` and it has arrived.
    pub fn due(&self, position: usize, clock: Instant) -> Option<Nanos> {
        if position >= self.order.len() {
            return None;
        }
        let now = Instant::now().checked_duration_since(clock).map(nanos)?;
        (self.arrival(position) <= now).then_some(now)
    }
}

/// Hashes an answer.
pub fn digest(hits: &[Hit]) -> u64 {
    hits.iter().fold(0, |digest, hit| mix(digest ^ TopK::key(hit.doc.0, hit.score)))
}

pub(crate) fn nanos(time: Duration) -> Nanos {
    Nanos(time.as_nanos() as u64)
}

/// State shared by all lanes.
#[derive(Debug, Default)]
struct Queue {
    /// The position of the next query, changed by every lane with every query.
    next: CachePadded<AtomicUsize>,
    /// The number of answered queries, counted only for streams with a limit on queries in flight.
    answered: CachePadded<AtomicUsize>,
    /// Read by every lane with every query, and rarely changed.
    has_failed: CachePadded<AtomicBool>,
}

/// Answers a stream of queries in its order. Each lane gets a thread, pinned to the core of its number in `cores`.
/// Fails with the first error of a lane. The other lanes then stop.
pub fn serve(lanes: &mut [Box<dyn Executor>], stream: &Stream<'_>, cores: &Cores) -> Result<Vec<Served>, ExecError> {
    let queue = Queue::default();
    let is_crowded = cores.len() < lanes.len();
    let clock = stream.start();
    let outcomes: Vec<Result<Vec<(usize, Served)>, ExecError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = lanes
            .iter_mut()
            .enumerate()
            .map(|(number, lane)| {
                let queue = &queue;
                scope.spawn(move || {
                    cores.pin(number);
                    let outcome = serve_lane(lane.as_mut(), stream, clock, queue, is_crowded);
                    queue.has_failed.0.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    outcome
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Err(ExecError::Panicked))).collect()
    });
    let mut served = vec![Served::default(); stream.order.len()];
    for outcome in outcomes {
        for (position, one) in outcome? {
            served[position] = one;
        }
    }
    Ok(served)
}

fn serve_lane(
    lane: &mut dyn Executor,
    stream: &Stream<'_>,
    clock: Instant,
    queue: &Queue,
    is_crowded: bool,
) -> Result<Vec<(usize, Served)>, ExecError> {
    let mut served = Vec::with_capacity(stream.order.len());
    let mut hits = Vec::with_capacity(MAX_K);
    let mut backoff = Backoff::new(is_crowded);
    let is_limited = stream.most_at_once < stream.order.len();
    while !queue.has_failed.0.load(Ordering::Relaxed) {
        let position = queue.next.0.load(Ordering::Relaxed);
        let answered = || queue.answered.0.load(Ordering::Relaxed).min(position);
        let has_room = !is_limited || position - answered() < stream.most_at_once;
        let Some(started) = stream.due(position, clock).filter(|_| has_room) else {
            match lane.help(None) {
                Help::Given => backoff.reset(),
                // Helping continues after the last query has arrived, until there is no task left.
                _ if position >= stream.order.len() => break,
                _ => backoff.pause(),
            }
            continue;
        };
        if queue.next.0.compare_exchange(position, position + 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            continue;
        }
        lane.search(stream.query(position), stream.mode, stream.k, &mut hits)?;
        let finished = nanos(clock.elapsed());
        if is_limited {
            queue.answered.0.fetch_add(1, Ordering::Relaxed);
        }
        served.push((position, Served { arrival: stream.arrival(position), started, finished, digest: digest(&hits) }));
        backoff.reset();
    }
    Ok(served)
}
