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
use super::ring::{Completion, Rings, Sleeper};
use crate::exec::{Answers, ExecError, Executor, Help, Hit, MAX_K, Request};
use crate::ids::ProcessorId;
use crate::machine::Class;

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
    /// Serves until the rings are closed.
    pub(super) fn serve(mut self, executor: &mut dyn Executor) {
        self.rings.worker.attend();
        if self.depth > 1 && executor.pipeline().is_some() {
            self.serve_pipeline(executor);
        } else {
            self.serve_singly(executor);
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
            self.complete(picked_up, Halves::default(), Ok(()));
            self.rings.set_checked(self.completed);
        }
    }

    fn serve_singly(&mut self, executor: &mut dyn Executor) {
        let queries = Arc::clone(&self.queries);
        let mut desk = Desk { hits: Vec::with_capacity(MAX_K), answers: Answers::default(), requests: Vec::new() };
        let mut rows = Vec::new();
        while self.wait_for_order(|| executor.help()) {
            self.take(&mut rows);
            let picked_up = since(self.epoch);
            let run = guarded(|| self.run(executor, &queries, &rows, &mut desk));
            let result = run.map_err(|fault| self.fault(&queries, &rows, fault));
            let result = result.and_then(|()| self.check_all(&queries, &rows, &desk.answers));
            self.complete(picked_up, Halves::default(), result);
            self.rings.set_checked(self.completed);
        }
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

    fn serve_pipeline(&mut self, executor: &mut dyn Executor) {
        let queries = Arc::clone(&self.queries);
        let mut requests = Vec::new();
        let mut answers = Answers::default();
        let mut under_way: VecDeque<Submitted> = VecDeque::with_capacity(self.depth);
        let mut unchecked: Option<Vec<u32>> = None;
        let mut spare: Vec<Vec<u32>> = Vec::new();
        // What the thread has been at since the last batch ended, besides what the executor tells of itself.
        let mut host = 0;
        loop {
            if under_way.is_empty() && unchecked.is_none() && !self.wait_for_order(|| executor.help()) {
                return;
            }
            let Some(pipeline) = executor.pipeline() else { return };
            if under_way.len() < self.depth.min(pipeline.depth()) {
                let mut rows = spare.pop().unwrap_or_default();
                let began = since(self.epoch);
                if self.take(&mut rows) {
                    requests.clear();
                    requests.extend(rows.iter().map(|&row| queries.request(row)));
                    let picked_up = since(self.epoch);
                    host += picked_up - began;
                    let submitted = guarded(|| pipeline.submit(&requests));
                    let fault = submitted.err().map(|fault| self.fault(&queries, &rows, fault));
                    under_way.push_back(Submitted { rows, picked_up, fault });
                } else {
                    spare.push(rows);
                }
            }
            // Answers are replaced by the next poll: those of the batch before must have been compared.
            if let Some(rows) = unchecked.take() {
                let began = since(self.epoch);
                if let Err(error) = self.check_all(&queries, &rows, &answers) {
                    self.rings.fail(error);
                }
                self.rings.set_checked(self.completed);
                spare.push(rows);
                host += since(self.epoch) - began;
            }
            let Some(oldest) = under_way.front_mut() else { continue };
            let result = match oldest.fault.take() {
                Some(fault) => Err(fault),
                None => match guarded(|| pipeline.poll(&mut answers).transpose()) {
                    Ok(None) => {
                        self.pause();
                        continue;
                    }
                    Ok(Some(execution)) => Ok(execution),
                    Err(fault) => Err(self.fault(&queries, &oldest.rows, fault)),
                },
            };
            let Some(Submitted { rows, picked_up, .. }) = under_way.pop_front() else { continue };
            let is_answered = result.is_ok();
            let mut halves = Halves::default();
            if let Ok(execution) = &result {
                let ns = |us: Option<f64>| us.map_or(0, |us| (us * 1e3) as u64);
                halves = Halves { host: host + ns(execution.host_us), device: ns(execution.device_us) };
            }
            host = 0;
            self.complete(picked_up, halves, result.map(drop));
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

    fn complete(&mut self, picked_up: u64, Halves { host, device }: Halves, result: Result<(), LiveError>) {
        let done = since(self.epoch);
        let worked = done - picked_up.max(self.last_done);
        self.last_done = done;
        self.completed = self.completed.wrapping_add(1);
        let has_failed = result.is_err();
        if let Err(error) = result {
            self.rings.fail(error);
        }
        self.rings.complete(self.completed, Completion { picked_up, worked, host, device, done, has_failed });
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
        }
    }
}

/// Memory of a worker, used again from batch to batch.
struct Desk<'q> {
    hits: Vec<Hit>,
    answers: Answers,
    requests: Vec<Request<'q>>,
}

/// A batch in the pipeline.
struct Submitted {
    rows: Vec<u32>,
    picked_up: u64,
    /// Why it is not there after all: reported in its turn.
    fault: Option<LiveError>,
}

/// What a batch took of a lane that overlaps its batches, in nanoseconds; see [`Completion`].
#[derive(Clone, Copy, Debug, Default)]
struct Halves {
    host: u64,
    device: u64,
}

/// What went wrong in a call of an executor.
enum Fault {
    Error(ExecError),
    Panic,
}

/// A panic in an executor must end the run with an error, not leave the driver waiting for ever.
fn guarded<T>(call: impl FnOnce() -> Result<T, ExecError>) -> Result<T, Fault> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(Fault::Error),
        Err(_) => Err(Fault::Panic),
    }
}
