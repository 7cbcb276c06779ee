//! Lanes that fail in the middle of a run, and executors that are made to.
//!
//! A lane may have a spare executor. When its own reports an error, panics, or holds a batch for longer than the
//! [watchdog](crate::machine::WATCHDOG) waits, the lane's thread runs what it was given, in order, on the spare, and goes on
//! with that: the driver sees a batch that took long, no query is lost, none is answered twice. The executor that failed is
//! never called again. What happened is told in the run's outcome.
//!
//! ```text
//!   own      |==A==|==B=✗
//!   spare               |===B===|===C===|
//!   driver    A done             B done   C done
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::exec::{Answers, ExecError, Execution, Executor, Help, Hit, Pipeline, Request};
use crate::gpu::GpuError;
use crate::ids::ProcessorId;
use crate::machine::{Class, FaultKind, PlannedFault};
use crate::query::{Mode, Query};
use crate::time::Nanos;

/// A lane that failed in a run and went on with its spare executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneFault {
    /// Which lane.
    pub processor: ProcessorId,
    /// When, from the run's beginning.
    pub at: Nanos,
    /// What happened, in words.
    pub what: String,
    /// Queries that were under way there, and ran again.
    pub queries: usize,
}

/// When the run began that is under way: what planned faults count from.
#[derive(Clone, Debug, Default)]
pub struct RunClock(Arc<Mutex<Option<Instant>>>);

impl RunClock {
    pub(super) fn set(&self, began: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = began;
    }

    fn elapsed(&self) -> Option<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).map(|began| began.elapsed())
    }
}

/// An executor that fails as planned; without a run, it does not.
pub struct Faulty {
    inner: Box<dyn Executor>,
    faults: Vec<PlannedFault>,
    clock: RunClock,
    has_hung: bool,
}

impl std::fmt::Debug for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faulty").field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl Faulty {
    /// `inner`, with the faults of a plan that are of its lane.
    #[must_use]
    pub fn new(inner: Box<dyn Executor>, faults: Vec<PlannedFault>, clock: RunClock) -> Self {
        Self { inner, faults, clock, has_hung: false }
    }

    /// Fails if a fault is due. A stall happens once.
    fn check(&mut self) -> Result<(), ExecError> {
        let Some(elapsed) = self.clock.elapsed() else { return Ok(()) };
        let due = |fault: &PlannedFault| elapsed >= Duration::from_nanos(fault.at.0);
        let Some(at) = self.faults.iter().position(due) else { return Ok(()) };
        let fault = self.faults[at];
        match fault.kind {
            FaultKind::Error => Err(ExecError::Gpu(GpuError::Failed {
                doing: String::from("a planned fault"),
                message: String::from("this executor fails from now on"),
            })),
            FaultKind::Panic => panic!("a planned fault: this executor panics"),
            FaultKind::Hang => {
                self.has_hung = true;
                Ok(())
            }
            FaultKind::Stall => {
                self.faults.remove(at);
                std::thread::sleep(Duration::from_nanos(fault.lasts.0));
                Ok(())
            }
        }
    }

    /// A call that would never return ends as an error: nobody but its own thread could notice.
    fn check_alone(&mut self) -> Result<(), ExecError> {
        self.check()?;
        if self.has_hung {
            std::thread::sleep(Duration::from_nanos(crate::machine::WATCHDOG.0));
            return Err(ExecError::Gpu(GpuError::Failed {
                doing: String::from("a planned fault"),
                message: String::from("nothing was heard until the watchdog barked"),
            }));
        }
        Ok(())
    }
}

impl Executor for Faulty {
    fn class(&self) -> Class {
        self.inner.class()
    }

    fn device(&self) -> String {
        self.inner.device()
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        self.check_alone()?;
        self.inner.search(query, mode, k, hits)
    }

    fn search_batch(&mut self, batch: &[Request<'_>], answers: &mut Answers) -> Result<Execution, ExecError> {
        self.check_alone()?;
        self.inner.search_batch(batch, answers)
    }

    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        self.inner.pipeline()?;
        Some(self)
    }

    fn help(&mut self) -> Help {
        self.inner.help()
    }

    fn num_cores(&self) -> usize {
        self.inner.num_cores()
    }
}

impl Pipeline for Faulty {
    fn depth(&self) -> usize {
        // Asked of an executor that has a pipeline only; whether it still has one is for the calls to tell.
        2
    }

    fn submit(&mut self, batch: &[Request<'_>]) -> Result<(), ExecError> {
        self.check()?;
        match self.inner.pipeline() {
            Some(pipeline) if !self.has_hung => pipeline.submit(batch),
            _ => Ok(()),
        }
    }

    fn poll(&mut self, answers: &mut Answers) -> Option<Result<Execution, ExecError>> {
        if let Err(fault) = self.check() {
            return Some(Err(fault));
        }
        self.inner.pipeline().filter(|_| !self.has_hung)?.poll(answers)
    }
}
