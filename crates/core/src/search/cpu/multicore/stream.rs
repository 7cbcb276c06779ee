//! Streams of queries: who takes the next one, and when each was answered.
//!
//! The paper's queue before the cores: a query waits from its arrival until a lane takes it. A lane is an executor on a
//! thread of its own, whether that is one core (INTER, adaptive) or a team's first (DOCP). Taking the next query is a
//! compare-and-swap of its position, and only once it has arrived, so that the first to be free gets the first to come.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::backoff::Backoff;
use super::cores::Cores;
use super::pool::CachePadded;
use crate::base::random::mix;
use crate::base::time::Nanos;
use crate::query::{Mode, Query};
use crate::search::{ExecError, Executor, Help, Hit, MAX_K, TopK};

/// Queries in order of arrival.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    /// The different ones.
    pub queries: &'a [Query],
    /// Which of them comes when: positions in `queries`.
    pub order: Vec<u32>,
    /// When each comes, ascending; empty if all are there from the beginning.
    pub arrivals: Vec<Nanos>,
    /// So many queries are worked on at once at most: with 1, each is begun when the one before is answered.
    pub most_at_once: usize,
    /// How terms combine.
    pub mode: Mode,
    /// Documents asked for.
    pub k: usize,
}

/// What became of one query of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// When it came.
    pub arrival: Nanos,
    /// When it was begun.
    pub started: Nanos,
    /// When it was answered.
    pub finished: Nanos,
    /// Scrambles the answer's documents and scores: equal answers have equal ones.
    pub digest: u64,
}

/// Time for all threads to get ready.
const HEAD_START: Duration = Duration::from_millis(2);

impl Stream<'_> {
    /// The clock's beginning, a moment from now.
    pub fn start(&self) -> Instant {
        Instant::now() + HEAD_START
    }

    /// When the query at `position` comes.
    pub fn arrival(&self, position: usize) -> Nanos {
        self.arrivals.get(position).copied().unwrap_or(Nanos::ZERO)
    }

    /// The query at `position`.
    pub fn query(&self, position: usize) -> &Query {
        &self.queries[self.order[position] as usize]
    }

    /// The time now, if there is a query at `position` and it has come.
    pub fn due(&self, position: usize, clock: Instant) -> Option<Nanos> {
        if position >= self.order.len() {
            return None;
        }
        let now = Instant::now().checked_duration_since(clock).map(nanos)?;
        (self.arrival(position) <= now).then_some(now)
    }
}

/// Scrambles an answer into one number.
pub fn digest(hits: &[Hit]) -> u64 {
    hits.iter().fold(0, |digest, hit| mix(digest ^ TopK::key(hit.doc.0, hit.score)))
}

pub(super) fn nanos(time: Duration) -> Nanos {
    Nanos(time.as_nanos() as u64)
}

/// Where lanes meet.
#[derive(Debug, Default)]
struct Queue {
    /// The next query to be taken: changed by every lane with every query.
    next: CachePadded<AtomicUsize>,
    /// Counted only where a stream limits how many are worked on at once.
    answered: CachePadded<AtomicUsize>,
    /// Read by every lane with every query, and hardly ever changed.
    has_failed: CachePadded<AtomicBool>,
}

/// Answers a stream of queries: a thread for each lane, tied to the core of the lane's number in `cores`. What comes
/// back is in the stream's order.
///
/// # Errors
/// The first that a lane reports; the others then stop.
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

/// One lane's share of a stream.
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
            match lane.help() {
                Help::Given => backoff.reset(),
                // Helping goes on after the last query has come; a lane that finds nothing to help with is done.
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
