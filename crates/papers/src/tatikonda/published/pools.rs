//! FGQP: one producer cuts queries into tasks; free threads take tasks from a pool.
//!
//! ```text
//! producer   while the pool has at most γ tasks: cut the next query         (algorithm 2)
//! all        an intersection from the pool ─▶ its documents to the scoring pool
//!            a scoring from that pool      ─▶ the query's best               (algorithm 3)
//! ```
//!
//! The producer takes tasks like the others while the pool is full. A query is answered when its last scoring is done.
//! Scorings go first, because they finish started queries.

use std::iter;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crossbeam_deque::{Injector, Steal};
use tandem_engine::index::Bm25;
use tandem_engine::query::QueryTerm;
use tandem_engine::search::cpu::multicore::{Cores, Served, Stream, digest};
use tandem_engine::search::{ExecError, Hit, TopK, check};
use tandem_model::base::time::Nanos;

use super::gang::wait;
use super::tasks::{Needed, create_tasks, skips};
use crate::ding::daat::cursor::{Advance, Cursor};
use crate::ding::daat::lists::CodedLists;
use crate::ding::daat::small_adaptive::intersect;

/// A query cut into tasks.
#[derive(Debug)]
struct InFlight {
    position: usize,
    started: Nanos,
    terms: Vec<QueryTerm>,
    /// Skips of the rarest list. A task covers the documents from one skip to the next.
    rarest: Vec<u32>,
    /// Blocks of every list for each task, task after task.
    needed: Vec<Needed>,
    left: AtomicUsize,
    best: Mutex<TopK>,
}

/// A task of one of the two pools.
#[derive(Debug)]
enum Task {
    /// An intersection: the number of its task.
    Intersection(Arc<InFlight>, usize),
    Scoring(Arc<InFlight>, Candidates),
}

/// Documents of a task, and the place of each one in every list.
#[derive(Debug, Default)]
struct Candidates {
    docs: Vec<u32>,
    places: Vec<u32>,
}

/// The pools and the shared state of all threads.
///
/// A task takes tens of microseconds, and a thread that sleeps on a lock wakes later than that. So the pools are queues without locks,
/// and threads reuse the memory of candidates instead of freeing that of another thread, which locks the allocator.
struct PoolState<'a> {
    lists: &'a CodedLists,
    clock: Instant,
    k: usize,
    intersections: Injector<Task>,
    scorings: Injector<Task>,
    /// Memory of scored candidates.
    spare: Injector<Candidates>,
    /// Number of tasks in the first pool.
    unintersected: AtomicUsize,
    is_over: AtomicBool,
    answered: Mutex<Vec<(usize, Served)>>,
    num_answered: AtomicUsize,
    is_crowded: bool,
}

/// Answers a stream of ANDs with `workers` cores and the pool's threshold. The caller is the producer and is pinned to
/// the first core. Fails if `k` or a query is out of range, or if a thread panicked.
pub(crate) fn serve_by_tasks(
    lists: &CodedLists,
    workers: usize,
    threshold: usize,
    stream: &Stream<'_>,
    cores: &Cores,
) -> Result<Vec<Served>, ExecError> {
    stream.queries.iter().try_for_each(|query| check(query, stream.k))?;
    let shared = PoolState {
        lists,
        clock: stream.start(),
        k: stream.k,
        intersections: Injector::new(),
        scorings: Injector::new(),
        spare: Injector::new(),
        unintersected: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        answered: Mutex::default(),
        num_answered: AtomicUsize::new(0),
        is_crowded: cores.len() < workers,
    };
    let outcome = std::thread::scope(|scope| {
        let shared = &shared;
        let consumers: Vec<_> = (1..workers)
            .map(|number| {
                scope.spawn(move || {
                    cores.pin(number);
                    shared.consume();
                })
            })
            .collect();
        cores.pin(0);
        shared.produce(stream, threshold, || consumers.iter().any(|consumer| consumer.is_finished()));
        shared.is_over.store(true, Ordering::Release);
        consumers.into_iter().try_for_each(|consumer| consumer.join().map_err(|_| ExecError::Panicked))
    });
    outcome?;
    let mut served = vec![Served::default(); stream.order.len()];
    for (position, one) in shared.answered.into_inner().unwrap_or_else(PoisonError::into_inner) {
        served[position] = Served { arrival: stream.arrival(position), ..one };
    }
    Ok(served)
}

impl PoolState<'_> {
    /// Algorithm 2: cuts queries while the pool is small, else works like the others, until all queries are answered or
    /// a consumer `is_broken`.
    fn produce(&self, stream: &Stream<'_>, threshold: usize, is_broken: impl Fn() -> bool) {
        let mut next = 0;
        while self.num_answered.load(Ordering::Acquire) < stream.order.len() {
            let in_flight = next - self.num_answered.load(Ordering::Acquire);
            let is_due = self.unintersected.load(Ordering::Relaxed) <= threshold && in_flight < stream.most_at_once;
            if let Some(started) = stream.due(next, self.clock).filter(|_| is_due) {
                self.cut(next, started, &stream.query(next).terms);
                next += 1;
            } else if let Some(task) = self.take() {
                self.work(task);
            } else if is_broken() {
                return;
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Algorithm 3: takes tasks until the end.
    fn consume(&self) {
        loop {
            wait(self.is_crowded, || self.has_tasks() || self.is_over.load(Ordering::Acquire));
            match self.take() {
                Some(task) => self.work(task),
                None if self.is_over.load(Ordering::Acquire) => return,
                None => {}
            }
        }
    }

    /// Cuts a query and adds its tasks to the pool.
    fn cut(&self, position: usize, started: Nanos, terms: &[QueryTerm]) {
        let lists: Vec<Vec<u32>> = terms.iter().map(|term| skips(&self.lists.cursor(term.term))).collect();
        let mut needed = Vec::new();
        create_tasks(&lists, &mut needed);
        let num_tasks = needed.len() / terms.len().max(1);
        let mut best = TopK::default();
        best.reset(self.k);
        let query = Arc::new(InFlight {
            position,
            started,
            terms: terms.to_vec(),
            rarest: lists.into_iter().next().unwrap_or_default(),
            needed,
            left: AtomicUsize::new(num_tasks),
            best: Mutex::new(best),
        });
        if num_tasks == 0 {
            return self.answer(&query);
        }
        // Counted first, so that a thread that takes a task never counts below zero.
        self.unintersected.fetch_add(num_tasks, Ordering::Relaxed);
        (0..num_tasks).for_each(|task| self.intersections.push(Task::Intersection(Arc::clone(&query), task)));
    }

    fn has_tasks(&self) -> bool {
        !self.scorings.is_empty() || !self.intersections.is_empty()
    }

    /// Takes the oldest task, a scoring if there is one.
    fn take(&self) -> Option<Task> {
        steal(&self.scorings).or_else(|| {
            let task = steal(&self.intersections)?;
            self.unintersected.fetch_sub(1, Ordering::Relaxed);
            Some(task)
        })
    }

    fn work(&self, task: Task) {
        match task {
            Task::Intersection(query, number) => self.intersect(query, number),
            Task::Scoring(query, candidates) => {
                self.score(&query, &candidates);
                self.spare.push(candidates);
            }
        }
    }

    /// Intersects a task's blocks, and adds a scoring of its documents.
    fn intersect(&self, query: Arc<InFlight>, number: usize) {
        let width = query.terms.len();
        let needed = &query.needed[number * width..][..width];
        let mut cursors: Vec<Cursor<'_>> = query.terms.iter().map(|term| self.lists.cursor(term.term)).collect();
        for (cursor, &(first, _)) in cursors.iter_mut().zip(needed) {
            cursor.start_at(first as usize);
        }
        let first = number.checked_sub(1).map_or(0, |before| query.rarest[before] + 1);
        let end = query.rarest[number] + 1;
        let mut candidates = steal(&self.spare).unwrap_or_default();
        let Candidates { docs, places } = &mut candidates;
        docs.clear();
        places.clear();
        intersect(&mut cursors, first, end, Advance::BlockByBlock, |doc, cursors| {
            docs.push(doc);
            places.extend(cursors.iter().map(|cursor| cursor.place() as u32));
        });
        if docs.is_empty() {
            self.spare.push(candidates);
            return self.finish(&query);
        }
        self.scorings.push(Task::Scoring(query, candidates));
    }

    /// Scores a task's documents, and offers the best of them to the query, whose lock is then held for k documents only.
    fn score(&self, query: &Arc<InFlight>, Candidates { docs, places }: &Candidates) {
        let mut lists: Vec<(Cursor<'_>, f32)> =
            query.terms.iter().map(|term| (self.lists.cursor(term.term), self.lists.weight(term))).collect();
        let mut best = TopK::default();
        best.reset(self.k);
        for (&doc, places) in docs.iter().zip(places.chunks(lists.len())) {
            let norm = self.lists.norm(doc);
            let shares = lists
                .iter_mut()
                .zip(places)
                .map(|((cursor, weight), &place)| Bm25::score(*weight, cursor.freq(place as usize), norm));
            best.offer(doc, shares.reduce(|score, share| score + share).unwrap_or(0.0));
        }
        let mut hits = Vec::with_capacity(self.k);
        best.drain_into(&mut hits);
        let mut best = query.best.lock().unwrap_or_else(PoisonError::into_inner);
        hits.iter().for_each(|hit| best.offer(hit.doc.0, hit.score));
        drop(best);
        self.finish(query);
    }

    /// Finishes a task; the thread of the last one answers the query.
    fn finish(&self, query: &Arc<InFlight>) {
        if query.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.answer(query);
        }
    }

    fn answer(&self, query: &Arc<InFlight>) {
        let mut hits: Vec<Hit> = Vec::new();
        query.best.lock().unwrap_or_else(PoisonError::into_inner).drain_into(&mut hits);
        let finished = Nanos(self.clock.elapsed().as_nanos() as u64);
        let one = Served { arrival: Nanos::ZERO, started: query.started, finished, digest: digest(&hits) };
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).push((query.position, one));
        self.num_answered.fetch_add(1, Ordering::Release);
    }
}

/// Takes the oldest entry of a queue. A thread that takes the same entry first makes this one try again.
fn steal<T>(queue: &Injector<T>) -> Option<T> {
    iter::repeat_with(|| queue.steal()).find(|taken| !taken.is_retry()).and_then(Steal::success)
}
