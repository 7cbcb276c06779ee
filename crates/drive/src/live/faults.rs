//! Lanes that fail in the middle of a run, and executors that fail on purpose.
//!
//! A lane may have a fallback executor, which gives equal answers. By the [rule](tandem_model::base::machine::FaultPlan) for
//! faults it runs the batches that the lane's own executor has lost, in order, then all later ones. No query is lost,
//! since an order stays in the lane's ring until its completion has been seen. No query is answered twice, since the
//! first of two threads to complete a batch claims it:
//!
//! ```text
//!   own thread    |==A==|==B=✗                 an error, a panic: the same thread continues with the fallback
//!                            |===B===|===C===|
//!
//!   own thread    |==A==|==B=···················| B comes too late, the thread ends
//!   replacement               |===B===|===C===|   the watchdog acted: a new thread, with the fallback
//! ```
//!
//! The driver sees batches that take too long; the run's log holds the faults. A thread that hangs is abandoned: no
//! system can end one safely.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tandem_engine::query::Query;
use tandem_engine::search::device::GpuError;
use tandem_engine::search::{Answers, ExecError, Execution, Executor, Help, Hit, Pipeline, Request};
use tandem_model::base::machine::{Class, FaultKind, PlannedFault};
use tandem_model::base::time::Nanos;
use tandem_model::traffic::Mode;

/// Sleep of a hanging thread between two looks at whether the run is over.
const NAP: Duration = Duration::from_millis(5);

/// Start of the run under way; planned faults count from it.
#[derive(Clone, Debug, Default)]
pub struct RunClock(Arc<Mutex<Option<Instant>>>);

impl RunClock {
    pub(super) fn set(&self, began: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = began;
    }

    fn elapsed(&self) -> Option<Nanos> {
        let began = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        began.map(|began| Nanos(began.elapsed().as_nanos() as u64))
    }
}

/// An executor that fails as planned, during runs only.
pub struct Faulty {
    inner: Box<dyn Executor>,
    /// The depth of the inner executor's pipeline; 0 without one.
    depth: usize,
    faults: Vec<PlannedFault>,
    clock: RunClock,
}

impl std::fmt::Debug for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faulty").field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl Faulty {
    /// Wraps `inner` with the planned faults of its lane, in order of time.
    #[must_use]
    pub fn new(mut inner: Box<dyn Executor>, faults: Vec<PlannedFault>, clock: RunClock) -> Self {
        let depth = inner.pipeline().map_or(0, |pipeline| pipeline.depth());
        Self { inner, depth, faults, clock }
    }

    /// The first fault that is due and not over; each run goes through the whole plan.
    fn due(&self) -> Option<PlannedFault> {
        let now = self.clock.elapsed()?;
        self.faults.iter().find(|fault| fault.end() > now).copied().filter(|fault| fault.at <= now)
    }

    /// Fails if a fault is due, or blocks until it is over. `needs_memory` says that a batch begins.
    fn check(&self, needs_memory: bool) -> Result<(), ExecError> {
        while let Some(fault) = self.due() {
            match fault.kind {
                FaultKind::Error => {
                    let doing = String::from("a planned fault");
                    let message = String::from("this executor fails from now on");
                    return Err(GpuError::Failed { doing, message }.into());
                }
                FaultKind::Memory if needs_memory => {
                    return Err(GpuError::OutOfMemory { doing: String::from("a planned fault") }.into());
                }
                FaultKind::Memory => return Ok(()),
                // A planned fault unwinds like a panic but prints nothing, since it is no bug.
                FaultKind::Panic => std::panic::resume_unwind(Box::new("a planned fault")),
                // Blocks until the end of the fault or of the run.
                FaultKind::Hang | FaultKind::Stall => {
                    while let Some(now) = self.clock.elapsed().filter(|&now| now < fault.end()) {
                        std::thread::sleep(Duration::from_nanos(fault.end().since(now).0).min(NAP));
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls the inner executor. A fault during this call delays the batches under way.
    fn call<T>(&mut self, call: impl FnOnce(&mut dyn Executor) -> Result<T, ExecError>) -> Result<T, ExecError> {
        self.check(true)?;
        let result = call(self.inner.as_mut())?;
        self.check(false)?;
        Ok(result)
    }

    /// A hanging device does not keep the host from polling it.
    fn hangs(&self) -> bool {
        self.due().is_some_and(|fault| fault.kind == FaultKind::Hang)
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
        self.call(|inner| inner.search(query, mode, k, hits))
    }

    fn search_shared(
        &mut self,
        query: &Query,
        mode: Mode,
        k: usize,
        lanes: u32,
        hits: &mut Vec<Hit>,
    ) -> Result<Execution, ExecError> {
        self.call(|inner| inner.search_shared(query, mode, k, lanes, hits))
    }

    fn search_batch(&mut self, batch: &[Request<'_>], answers: &mut Answers) -> Result<Execution, ExecError> {
        self.call(|inner| inner.search_batch(batch, answers))
    }

    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        if self.depth > 0 { Some(self) } else { None }
    }

    fn help(&mut self, lead: Option<usize>) -> Help {
        self.inner.help(lead)
    }

    fn num_cores(&self) -> usize {
        self.inner.num_cores()
    }
}

impl Pipeline for Faulty {
    fn depth(&self) -> usize {
        self.depth
    }

    fn submit(&mut self, batch: &[Request<'_>]) -> Result<(), ExecError> {
        if self.hangs() {
            return Ok(());
        }
        self.check(true)?;
        self.inner.pipeline().map_or(Ok(()), |pipeline| pipeline.submit(batch))
    }

    fn poll(&mut self, answers: &mut Answers) -> Option<Result<Execution, ExecError>> {
        if self.hangs() {
            return None;
        }
        match self.check(false) {
            Ok(()) => self.inner.pipeline()?.poll(answers),
            Err(fault) => Some(Err(fault)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::base::ids::ProcessorId;

    struct Idle;

    impl Executor for Idle {
        fn class(&self) -> Class {
            Class::CPU
        }

        fn device(&self) -> String {
            String::from("nothing")
        }

        fn search(&mut self, _: &Query, _: Mode, _: usize, _: &mut Vec<Hit>) -> Result<Execution, ExecError> {
            Ok(Execution::default())
        }
    }

    #[test]
    fn every_run_goes_through_the_whole_plan() {
        let fault = |at_ms, kind, lasts_ms| PlannedFault {
            at: Nanos::from_ms(at_ms),
            processor: ProcessorId(0),
            kind,
            lasts: Nanos::from_ms(lasts_ms),
        };
        let clock = RunClock::default();
        let plan = vec![fault(0.0, FaultKind::Memory, 1000.0), fault(2000.0, FaultKind::Memory, 1000.0)];
        let mut faulty = Faulty::new(Box::new(Idle), plan, clock.clone());
        let query = Query {
            id: tandem_model::base::ids::QueryId(0),
            label: String::new(),
            terms: Vec::new(),
            dropped_terms: 0,
        };
        let mut fails = |began: Option<Instant>| {
            clock.set(began);
            faulty.search(&query, Mode::Or, 1, &mut Vec::new()).is_err()
        };
        let ago =
            |ms| Some(Instant::now().checked_sub(Duration::from_millis(ms)).expect("the machine runs for seconds"));
        assert!(!fails(None));
        for _ in 0..2 {
            assert_eq!(
                [fails(ago(0)), fails(ago(1500)), fails(ago(2500)), fails(ago(9000))],
                [true, false, true, false]
            );
        }
    }
}
