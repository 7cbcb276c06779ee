//! The thread of a lane: takes orders, runs them on its executor, checks the answers.
//!
//! A lane that is one batch deep works off one order after another. A deeper one whose executor has a [`Pipeline`](crate::exec::Pipeline) keeps
//! it full, and compares the answers of the batch that has ended while the device runs the next:
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

use super::QuerySet;
use super::clock::since;
use super::ending::LiveError;
use super::ring::{Completion, Rings, Sleeper, Survived};
use crate::exec::{Answers, ExecError, Executor, Help, Hit, MAX_K, Request};
use crate::ids::ProcessorId;
use crate::machine::{Class, WATCHDOG};

/// How long an idle worker polls for its next batch before it sleeps. Under load the next one comes within it, and
/// waking a sleeping thread costs tens of microseconds that are no part of the query.
const POLL: Duration = Duration::from_micros(200);

/// How long an idle worker that could help others sleeps between two looks.
const NAP: Duration = Duration::from_micros(100);

/// The longest sleep of one that could not.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Looks between two at the clock.
const LOOKS: u32 = 16;

/// What a worker thread owns.
pub(super) struct Worker {
    pub(super) processor: ProcessorId,
    pub(super) class: Class,
    pub(super) queries: Arc<QuerySet>,
    pub(super) rings: Arc<Rings>,
    /// Whom completions may wake,
    pub(super) driver: Arc<Sleeper>,
    /// unless it polls as long as anybody works.
    pub(super) driver_sleeps: bool,
    pub(super) epoch: Instant,
    pub(super) depth: usize,
    /// Whether nobody else needs the core while it polls.
    pub(super) owns_core: bool,
    /// Set while it is to poll for work however long none comes.
    pub(super) spins: Arc<AtomicBool>,
    /// Orders taken and batches completed.
    pub(super) taken: u32,
    pub(super) completed: u32,
    /// When the last batch was done.
    pub(super) last_done: u64,
}

impl Worker {
    /// Serves until the rings are closed: on `executor`, and should that fail, on `spare`.
    pub(super) fn serve(mut self, mut executor: Box<dyn Executor>, mut spare: Option<Box<dyn Executor>>) {
        self.rings.worker.attend();
        loop {
            let has_spare = spare.is_some();
            let served = if self.depth > 1 && executor.pipeline().is_some() {
                self.serve_pipeline(executor.as_mut(), has_spare)
            } else {
                self.serve_singly(executor.as_mut(), has_spare)
            };
            let (Served::Broken(fault, under_way), Some(next)) = (served, spare.take()) else { return };
            let queries = under_way.iter().map(|batch| batch.rows.len()).sum();
            self.rings.survive(Survived { at: since(self.epoch), what: fault.to_string(), queries });
            // What has failed may hang or panic once more when it is dropped: it stays where it is.
            std::mem::forget(std::mem::replace(&mut executor, next));
            self.run_again(executor.as_mut(), under_way);
        }
    }

    /// Runs batches, in order, that another executor had and lost.
    fn run_again(&mut self, executor: &mut dyn Executor, under_way: Vec<Submitted>) {
        let queries = Arc::clone(&self.queries);
        let mut desk = Desk::new();
        for Submitted { rows, picked_up, .. } in under_way {
            let run = guarded(|| self.run(executor, &queries, &rows, &mut desk));
            let result = run.map_err(|fault| self.fault(&queries, &rows, fault));
            let result = result.and_then(|()| self.check_all(&queries, &rows, &desk.answers));
            self.complete(picked_up, result);
            self.rings.set_checked(self.completed);
        }
    }

    /// Serves until the rings are closed, but only lets the time pass that each batch would take.
    pub(super) fn pretend(mut self) {
        self.rings.worker.attend();
        let mut rows = Vec::new();
        while self.wait_for_order(|| Help::Never) {
            self.take(&mut rows);
            let picked_up = since(self.epoch);
            while since(self.epoch) < self.rings.until(self.taken) {
                self.pause();
            }
            self.complete(picked_up, Ok(()));
            self.rings.set_checked(self.completed);
        }
    }

    fn serve_singly(&mut self, executor: &mut dyn Executor, has_spare: bool) -> Served {
        let queries = Arc::clone(&self.queries);
        let mut desk = Desk::new();
        let mut rows = Vec::new();
        while self.wait_for_order(|| executor.help()) {
            self.take(&mut rows);
            let picked_up = since(self.epoch);
            let run = guarded(|| self.run(executor, &queries, &rows, &mut desk));
            let result = run.map_err(|fault| self.fault(&queries, &rows, fault));
            let result = match result {
                Err(fault) if has_spare => return Served::Broken(fault, vec![Submitted { rows, picked_up, fault: None }]),
                result => result.and_then(|()| self.check_all(&queries, &rows, &desk.answers)),
            };
            self.complete(picked_up, result);
            self.rings.set_checked(self.completed);
        }
        Served::Closed
    }

    fn run<'q>(
        &self,
        executor: &mut dyn Executor,
        queries: &'q QuerySet,
        rows: &[u32],
        desk: &mut Desk<'q>,
    ) -> Result<(), ExecError> {
        let Desk { hits, answers, requests } = desk;
        if let &[row] = rows {
            let Request { query, mode, k } = queries.request(row);
            executor.search(query, mode, k, hits)?;
            answers.clear();
            answers.push(hits);
        } else {
            requests.clear();
            requests.extend(rows.iter().map(|&row| queries.request(row)));
            executor.search_batch(requests, answers)?;
        }
        Ok(())
    }

    fn serve_pipeline(&mut self, executor: &mut dyn Executor, has_spare: bool) -> Served {
        let queries = Arc::clone(&self.queries);
        let mut requests = Vec::new();
        let mut answers = Answers::default();
        let mut under_way: VecDeque<Submitted> = VecDeque::with_capacity(self.depth);
        let mut unchecked: Option<Vec<u32>> = None;
        let mut spare: Vec<Vec<u32>> = Vec::new();
        loop {
            if under_way.is_empty() && unchecked.is_none() && !self.wait_for_order(|| executor.help()) {
                return Served::Closed;
            }
            let Some(pipeline) = executor.pipeline() else { return Served::Closed };
            if under_way.len() < self.depth.min(pipeline.depth()) {
                let mut rows = spare.pop().unwrap_or_default();
                if self.take(&mut rows) {
                    requests.clear();
                    requests.extend(rows.iter().map(|&row| queries.request(row)));
                    let picked_up = since(self.epoch);
                    let submitted = guarded(|| pipeline.submit(&requests));
                    let fault = submitted.err().map(|fault| self.fault(&queries, &rows, fault));
                    under_way.push_back(Submitted { rows, picked_up, fault });
                } else {
                    spare.push(rows);
                }
            }
            // Answers are replaced by the next poll: those of the batch before must have been compared.
            if let Some(rows) = unchecked.take() {
                if let Err(error) = self.check_all(&queries, &rows, &answers) {
                    self.rings.fail(error);
                }
                self.rings.set_checked(self.completed);
                spare.push(rows);
            }
            let Some(oldest) = under_way.front_mut() else { continue };
            let result = match oldest.fault.take() {
                Some(fault) => Err(fault),
                None => match guarded(|| pipeline.poll(&mut answers).transpose()) {
                    Ok(None) if has_spare && since(self.epoch) > oldest.picked_up.max(self.last_done) + WATCHDOG.0 => {
                        Err(self.fault(&queries, &oldest.rows, Fault::Hung))
                    }
                    Ok(None) => {
                        self.pause();
                        continue;
                    }
                    Ok(Some(_)) => Ok(()),
                    Err(fault) => Err(self.fault(&queries, &oldest.rows, fault)),
                },
            };
            let result = match result {
                Err(fault) if has_spare => return Served::Broken(fault, under_way.into()),
                result => result,
            };
            let is_answered = result.is_ok();
            let Some(Submitted { rows, picked_up, .. }) = under_way.pop_front() else { continue };
            self.complete(picked_up, result);
            if is_answered {
                unchecked = Some(rows);
            } else {
                self.rings.set_checked(self.completed);
                spare.push(rows);
            }
        }
    }

    /// Takes the next order, if it is there.
    fn take(&mut self, rows: &mut Vec<u32>) -> bool {
        let is_there = self.rings.take(self.taken.wrapping_add(1), rows);
        self.taken = self.taken.wrapping_add(u32::from(is_there));
        is_there
    }

    fn complete(&mut self, picked_up: u64, result: Result<(), LiveError>) {
        let done = since(self.epoch);
        let worked = done - picked_up.max(self.last_done);
        self.last_done = done;
        self.completed = self.completed.wrapping_add(1);
        let has_failed = result.is_err();
        if let Err(error) = result {
            self.rings.fail(error);
        }
        self.rings.complete(self.completed, Completion { picked_up, worked, done, has_failed });
        if self.driver_sleeps {
            self.driver.wake();
        }
    }

    /// Polls for an order, then sleeps for it; an executor that can `help` others does so meanwhile. `false` when the
    /// fleet is dropped.
    fn wait_for_order(&self, mut help: impl FnMut() -> Help) -> bool {
        let next = self.taken.wrapping_add(1);
        let mut idle = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if self.rings.has_order(next) {
                    return true;
                }
                self.pause();
            }
            if self.rings.is_closed() {
                return false;
            }
            let is_tired = idle.elapsed() > POLL && !(self.owns_core && self.spins.load(Ordering::Relaxed));
            let has_news = || self.rings.has_order(next) || self.rings.is_closed();
            match help() {
                Help::Given => idle = Instant::now(),
                Help::Never if is_tired => self.rings.worker.sleep(LONGEST_SLEEP, has_news),
                Help::NotNow if is_tired => self.rings.worker.sleep(NAP, has_news),
                Help::Never | Help::NotNow => {}
            }
        }
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
            Fault::Error(error) => LiveError::Executor { query: queries.id(rows[0]), processor: self.processor, error },
            Fault::Panic => LiveError::WorkerPanicked(self.processor),
            Fault::Hung => LiveError::Hung(self.processor, Duration::from_nanos(WATCHDOG.0)),
        }
    }
}

/// Memory of a worker, used again from batch to batch.
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

/// A batch in the pipeline.
struct Submitted {
    rows: Vec<u32>,
    picked_up: u64,
    /// Why it is not there after all: reported in its turn.
    fault: Option<LiveError>,
}

/// What went wrong in a call of an executor.
enum Fault {
    Error(ExecError),
    Panic,
    Hung,
}

/// Why a worker stops serving on an executor.
enum Served {
    /// The rings are closed.
    Closed,
    /// It has failed, with these batches under way.
    Broken(LiveError, Vec<Submitted>),
}

/// A panic in an executor must end the run with an error, not leave the driver waiting for ever.
fn guarded<T>(call: impl FnOnce() -> Result<T, ExecError>) -> Result<T, Fault> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(Fault::Error),
        Err(_) => Err(Fault::Panic),
    }
}
