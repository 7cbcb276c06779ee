//! The thread of a lane: takes orders, runs them on its executor, checks the answers.
//!
//! A lane of depth one runs one order after another. A deeper one whose executor has a
//! [`Pipeline`](tandem_engine::search::Pipeline) keeps it full, and compares the answers of the batch that has ended while the
//! device runs the next:
//!
//! ```text
//!   thread   |submit A|submit B|.poll.|done A|submit C|check A|.poll.|done B|submit D|check B| …
//!   device            |=========A=========||=========B==============||========C=======| …
//! ```

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tandem_engine::search::device::GpuError;
use tandem_engine::search::{Answers, ExecError, Execution, Executor, Help, Hit, MAX_K, Pipeline, Request};
use tandem_model::base::ids::ProcessorId;
use tandem_model::base::machine::{Class, FaultKind, PATIENCE};

use super::QuerySet;
use super::clock::since;
use super::ending::LiveError;
use super::ring::{Completion, Rings, Sleeper, Survived};

/// An idle worker polls this long for its next batch before it sleeps. Under load the next one comes within that time, and
/// waking a sleeping thread costs tens of microseconds that are no part of the query.
const POLL: Duration = Duration::from_micros(200);

/// Sleep between two looks of an idle worker that could help others.
const NAP: Duration = Duration::from_micros(100);

/// The longest sleep of an idle worker that cannot help others.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Number of looks for work between two looks at the clock.
const LOOKS: u32 = 16;

#[derive(Clone)]
pub(super) struct Worker {
    pub(super) processor: ProcessorId,
    pub(super) class: Class,
    pub(super) queries: Arc<QuerySet>,
    pub(super) rings: Arc<Rings>,
    /// The driver, which completions may wake.
    pub(super) driver: Arc<Sleeper>,
    /// Whether the driver sleeps; otherwise it polls while any lane works.
    pub(super) driver_sleeps: bool,
    pub(super) epoch: Instant,
    pub(super) depth: usize,
    /// Whether no other thread needs the core while this one polls.
    pub(super) owns_core: bool,
    /// Set while the thread is to poll for work without a time limit.
    pub(super) spins: Arc<AtomicBool>,
    /// The number of this thread on its lane: 0, or that of a thread that [took it over](Rings::hand_on).
    pub(super) thread: u32,
    pub(super) taken: u32,
    pub(super) completed: u32,
    /// The number of next batches that another executor had begun.
    pub(super) again: u32,
    /// Batches in a row for which there was no memory.
    pub(super) without_memory: u32,
    pub(super) last_done: u64,
}

impl Worker {
    /// Serves until the rings are closed or another thread has taken the lane over. The lane's fallback executor replaces
    /// `executor` if that fails.
    pub(super) fn serve(mut self, mut executor: Box<dyn Executor>) {
        self.rings.worker.attend();
        loop {
            let served = if self.depth > 1 && executor.pipeline().is_some() {
                self.serve_pipeline(executor.as_mut())
            } else {
                self.serve_singly(executor.as_mut())
            };
            // A failed executor may hang or panic once more when it is dropped, so it is leaked.
            match served {
                Served::Closed => return,
                Served::Lost => return std::mem::forget(executor),
                Served::Broken(fallback) => std::mem::forget(std::mem::replace(&mut executor, fallback)),
            }
            // The batches that the failed executor held are taken once more.
            self.again = self.taken.wrapping_sub(self.completed);
            self.taken = self.completed;
        }
    }

    /// Serves until the rings are closed, but only lets the time of each batch pass.
    pub(super) fn pretend(mut self) {
        self.rings.worker.attend();
        let mut rows = Vec::new();
        while self.wait_for_order(|_| Help::Never) {
            self.take(&mut rows);
            let picked_up = since(self.epoch);
            while since(self.epoch) < self.rings.until(self.taken) {
                self.pause();
            }
            self.complete(picked_up, BatchTimes::default(), Ok(()), false);
            self.rings.set_checked(self.completed);
        }
    }

    fn serve_singly(&mut self, executor: &mut dyn Executor) -> Served {
        let queries = Arc::clone(&self.queries);
        let mut desk = Desk::new();
        let mut rows = Vec::new();
        while self.wait_for_order(|lead| executor.help(lead)) {
            self.take(&mut rows);
            let picked_up = since(self.epoch);
            let lanes = self.rings.lanes(self.taken);
            let run = guarded(|| run(executor, &queries, &rows, lanes, &mut desk));
            let result = match run {
                Ok(()) => {
                    self.without_memory = 0;
                    Ok(false)
                }
                Err(fault) => self.weather(fault, &rows, &queries, &mut desk),
            };
            let result = match result {
                Ok(again) => self.check_all(&queries, &rows, &desk.answers).map(|()| again),
                Err(Storm::Error(error)) => Err(error),
                Err(Storm::Broken(fallback)) => return Served::Broken(fallback),
            };
            let again = result.as_ref().is_ok_and(|&again| again);
            if !self.complete(picked_up, BatchTimes::default(), result.map(|_| ()), again) {
                return Served::Lost;
            }
            self.rings.set_checked(self.completed);
        }
        if self.rings.belongs_to(self.thread) { Served::Closed } else { Served::Lost }
    }

    /// Runs a batch that an executor failed with on the fallback, if the lane is to be retried; the answers are then on the
    /// desk.
    ///
    /// # Errors
    /// See [`Storm`].
    #[cold]
    fn weather<'q>(
        &mut self,
        fault: Fault,
        rows: &[u32],
        queries: &'q QuerySet,
        desk: &mut Desk<'q>,
    ) -> Result<bool, Storm> {
        let kind = fault.kind();
        let what = self.fault(queries, rows, fault);
        let Some(kind) = kind else { return Err(Storm::Error(what)) };
        let Some(mut fallback) = self.rings.take_fallback() else { return Err(Storm::Error(what)) };
        self.without_memory += u32::from(kind == FaultKind::Memory);
        let is_retired = kind != FaultKind::Memory || self.without_memory >= PATIENCE;
        let (at, what) = (since(self.epoch), what.to_string());
        self.rings.survive(Survived { at, kind, queries: rows.len(), is_retired, what });
        if is_retired {
            return Err(Storm::Broken(fallback));
        }
        let run = guarded(|| run(fallback.as_mut(), queries, rows, 0, desk));
        run.map_err(|fault| Storm::Error(self.fault(queries, rows, fault)))?;
        self.rings.keep_fallback(fallback);
        Ok(true)
    }

    fn serve_pipeline(&mut self, executor: &mut dyn Executor) -> Served {
        let queries = Arc::clone(&self.queries);
        let mut belt = Belt::new(self.depth);
        loop {
            if belt.is_empty() && !self.wait_for_order(|lead| executor.help(lead)) {
                break;
            }
            if !self.rings.belongs_to(self.thread) {
                break;
            }
            let Some(pipeline) = executor.pipeline() else { break };
            if belt.under_way.len() < self.depth.min(pipeline.depth()) {
                self.submit_next(pipeline, &queries, &mut belt);
            }
            // The next poll replaces the answers: those of the batch before must have been compared.
            self.check_ended(&queries, &mut belt);
            let Some(polled) = belt.poll_oldest(pipeline) else {
                if !belt.under_way.is_empty() {
                    self.pause();
                }
                continue;
            };
            if let Some(served) = self.end_oldest(polled, &queries, &mut belt) {
                return served;
            }
        }
        if self.rings.belongs_to(self.thread) { Served::Closed } else { Served::Lost }
    }

    /// Puts the next order into the pipeline, if there is one.
    fn submit_next<'q>(&mut self, pipeline: &mut dyn Pipeline, queries: &'q QuerySet, belt: &mut Belt<'q>) {
        let mut rows = belt.used.pop().unwrap_or_default();
        let began = since(self.epoch);
        if !self.take(&mut rows) {
            belt.used.push(rows);
            return;
        }
        let requests = &mut belt.desk.requests;
        requests.clear();
        requests.extend(rows.iter().map(|&row| queries.request(row)));
        let picked_up = since(self.epoch);
        belt.host += picked_up - began;
        let fault = guarded(|| pipeline.submit(requests)).err();
        let prepared = since(self.epoch) - began;
        belt.under_way.push_back(Submitted { rows, picked_up, prepared, fault });
    }

    /// Compares the answers of the batch that has ended, if that is still to be done.
    fn check_ended(&mut self, queries: &QuerySet, belt: &mut Belt<'_>) {
        let Some(rows) = belt.unchecked.take() else { return };
        let began = since(self.epoch);
        if let Err(error) = self.check_all(queries, &rows, &belt.desk.answers) {
            self.rings.fail(error);
        }
        self.rings.set_checked(self.completed);
        belt.used.push(rows);
        belt.host += since(self.epoch) - began;
    }

    /// Reports the oldest batch, whose answers are on the desk or which has failed. Returns the reason if the worker must
    /// not go on with this executor.
    fn end_oldest<'q>(
        &mut self,
        polled: Result<Execution, Fault>,
        queries: &'q QuerySet,
        belt: &mut Belt<'q>,
    ) -> Option<Served> {
        let Submitted { rows, picked_up, prepared, .. } = belt.under_way.pop_front()?;
        let mut halves = BatchTimes::default();
        let result = match polled {
            Ok(execution) => {
                self.without_memory = 0;
                let ns = |us: Option<f64>| us.map_or(0, |us| (us * 1e3) as u64);
                let (host, device) = (belt.host + ns(execution.host_us), ns(execution.device_us));
                halves = BatchTimes { host, prepared, device };
                Ok(false)
            }
            Err(fault) => match self.weather(fault, &rows, queries, &mut belt.desk) {
                Ok(again) => Ok(again),
                Err(Storm::Error(error)) => Err(error),
                Err(Storm::Broken(fallback)) => return Some(Served::Broken(fallback)),
            },
        };
        belt.host = 0;
        let (is_answered, again) = (result.is_ok(), result.as_ref().is_ok_and(|&again| again));
        if !self.complete(picked_up, halves, result.map(|_| ()), again) {
            return Some(Served::Lost);
        }
        if is_answered {
            belt.unchecked = Some(rows);
        } else {
            self.rings.set_checked(self.completed);
            belt.used.push(rows);
        }
        None
    }

    fn take(&mut self, rows: &mut Vec<u32>) -> bool {
        let is_there = self.rings.take(self.taken.wrapping_add(1), rows);
        self.taken = self.taken.wrapping_add(u32::from(is_there));
        is_there
    }

    /// Reports the oldest batch taken; `again` says that the fallback executor ran it. Returns whether this thread reported
    /// it: another thread may have taken the lane over.
    fn complete(
        &mut self,
        picked_up: u64,
        BatchTimes { host, prepared, device }: BatchTimes,
        result: Result<(), LiveError>,
        again: bool,
    ) -> bool {
        let done = since(self.epoch);
        let worked = done - picked_up.max(self.last_done);
        self.last_done = done;
        self.completed = self.completed.wrapping_add(1);
        let again = again || self.again > 0;
        self.again = self.again.saturating_sub(1);
        // A failure counts only on the thread that still owns the lane.
        if result.is_err() && !self.rings.belongs_to(self.thread) {
            return false;
        }
        let has_failed = result.is_err();
        let completion = Completion { picked_up, worked, host, prepared, device, done, has_failed, again };
        let is_ours = self.rings.complete(self.completed, completion, result.err());
        if is_ours && self.driver_sleeps {
            self.driver.wake();
        }
        is_ours
    }

    /// Polls for an order, then sleeps; an executor that can `help` others does so meanwhile. Returns `false` when the lane
    /// pool is dropped or another thread has the lane.
    fn wait_for_order(&self, mut help: impl FnMut(Option<usize>) -> Help) -> bool {
        let next = self.taken.wrapping_add(1);
        let mut idle = Instant::now();
        while !(0..LOOKS).any(|_| self.has_order_or_pauses(next)) {
            if self.rings.is_closed() || !self.rings.belongs_to(self.thread) {
                return false;
            }
            let mut lead = self.rings.lead();
            let mut helped = help(lead);
            while helped == Help::Given && !self.rings.has_order(next) {
                idle = Instant::now();
                lead = self.rings.lead();
                helped = help(lead);
            }
            // A lane that helps another one stays awake until the job ends.
            let is_tired =
                lead.is_none() && idle.elapsed() > POLL && !(self.owns_core && self.spins.load(Ordering::Relaxed));
            let has_news = || self.rings.has_order(next) || self.rings.is_closed() || self.rings.lead().is_some();
            match helped {
                Help::Never if is_tired => self.rings.worker.sleep(LONGEST_SLEEP, has_news),
                Help::NotNow if is_tired => self.rings.worker.sleep(NAP, has_news),
                Help::Given | Help::Never | Help::NotNow => {}
            }
        }
        true
    }

    fn has_order_or_pauses(&self, turn: u32) -> bool {
        let has_order = self.rings.has_order(turn);
        if !has_order {
            self.pause();
        }
        has_order
    }

    fn pause(&self) {
        if self.owns_core {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }

    fn check_all(&self, queries: &QuerySet, rows: &[u32], answers: &Answers) -> Result<(), LiveError> {
        let wrong =
            |row, difference| Err(LiveError::WrongAnswer { query: queries.id(row), class: self.class, difference });
        if let Some(&row) = rows.get(answers.len()) {
            return wrong(row, String::from("its batch came back without its answer"));
        }
        for (&row, hits) in rows.iter().zip(answers.iter()) {
            if let Err(difference) = queries.check(row, hits) {
                return wrong(row, difference);
            }
        }
        Ok(())
    }

    #[cold]
    fn fault(&self, queries: &QuerySet, rows: &[u32], fault: Fault) -> LiveError {
        match fault {
            Fault::Error(error) | Fault::Lost(error) => {
                LiveError::Executor { query: queries.id(rows[0]), processor: self.processor, error }
            }
            Fault::Panic => LiveError::WorkerPanicked(self.processor),
        }
    }
}

/// Runs a batch on an executor, and leaves the answers on the desk. A query with which other lanes may help begins on `lanes`
/// lanes.
fn run<'q>(
    executor: &mut dyn Executor,
    queries: &'q QuerySet,
    rows: &[u32],
    lanes: u32,
    desk: &mut Desk<'q>,
) -> Result<(), ExecError> {
    let Desk { hits, answers, requests } = desk;
    if let &[row] = rows {
        let Request { query, mode, k } = queries.request(row);
        if lanes > 0 {
            executor.search_shared(query, mode, k, lanes, hits)?;
        } else {
            executor.search(query, mode, k, hits)?;
        }
        answers.clear();
        answers.push(hits);
    } else {
        requests.clear();
        requests.extend(rows.iter().map(|&row| queries.request(row)));
        executor.search_batch(requests, answers)?;
    }
    Ok(())
}

struct Desk<'q> {
    hits: Vec<Hit>,
    answers: Answers,
    requests: Vec<Request<'q>>,
}

impl Desk<'_> {
    fn new() -> Self {
        Self { hits: Vec::with_capacity(MAX_K), answers: Answers::default(), requests: Vec::new() }
    }
}

/// The batches in a lane's pipeline, and the last one that left it.
struct Belt<'q> {
    desk: Desk<'q>,
    under_way: VecDeque<Submitted>,
    /// The batch whose answers are on the desk, until they are compared.
    unchecked: Option<Vec<u32>>,
    /// Memory of earlier batches.
    used: Vec<Vec<u32>>,
    /// Working time of the thread since the last batch ended, in nanoseconds, without the executor's own count.
    host: u64,
}

impl Belt<'_> {
    fn new(depth: usize) -> Self {
        let under_way = VecDeque::with_capacity(depth);
        Self { desk: Desk::new(), under_way, unchecked: None, used: Vec::new(), host: 0 }
    }

    fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.unchecked.is_none()
    }

    /// The result of the oldest batch, with its answers on the desk if it succeeded; `None` while it runs, or if there is
    /// none.
    fn poll_oldest(&mut self, pipeline: &mut dyn Pipeline) -> Option<Result<Execution, Fault>> {
        if let Some(fault) = self.under_way.front_mut()?.fault.take() {
            return Some(Err(fault));
        }
        let polled = guarded(|| pipeline.poll(&mut self.desk.answers).transpose());
        // This batch is lost, and perhaps those after it.
        let lost = |fault| if let Fault::Error(error) = fault { Fault::Lost(error) } else { fault };
        polled.map_err(lost).transpose()
    }
}

struct Submitted {
    rows: Vec<u32>,
    picked_up: u64,
    /// Time to prepare it, in nanoseconds.
    prepared: u64,
    /// A fault in its submission, which is reported in its turn.
    fault: Option<Fault>,
}

/// Times of a batch on a lane that overlaps its batches, in nanoseconds; see [`Completion`].
#[derive(Clone, Copy, Debug, Default)]
struct BatchTimes {
    host: u64,
    prepared: u64,
    device: u64,
}

/// A failure in a call of an executor.
enum Fault {
    Error(ExecError),
    /// A batch that had been submitted.
    Lost(ExecError),
    Panic,
}

impl Fault {
    /// Its kind if the executor is to blame; `None` for a request that no executor of this kind would take.
    fn kind(&self) -> Option<FaultKind> {
        match self {
            Self::Panic => Some(FaultKind::Panic),
            Self::Error(ExecError::Gpu(GpuError::OutOfMemory { .. })) => Some(FaultKind::Memory),
            Self::Error(error) | Self::Lost(error) => match error {
                ExecError::Gpu(_) | ExecError::NoThread(_) => Some(FaultKind::Error),
                ExecError::Panicked => Some(FaultKind::Panic),
                _ => None,
            },
        }
    }
}

/// The reason why a worker stops serving on an executor.
enum Served {
    /// The rings are closed.
    Closed,
    /// The executor has failed, and the fallback executor is to go on.
    Broken(Box<dyn Executor>),
    /// Another thread serves the lane.
    Lost,
}

/// The reason why a batch has no answers.
enum Storm {
    /// The lane is not to blame, has no fallback executor, or that failed as well.
    Error(LiveError),
    /// The lane is retired: this fallback executor is to go on.
    Broken(Box<dyn Executor>),
}

/// Turns a panic of an executor into a fault, which ends the run or the executor's part in it. Otherwise the driver would
/// wait without end.
fn guarded<T>(call: impl FnOnce() -> Result<T, ExecError>) -> Result<T, Fault> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(Fault::Error),
        Err(_) => Err(Fault::Panic),
    }
}

#[cfg(test)]
mod tests;
