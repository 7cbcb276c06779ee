//! FGQP: fine-grained query partitioning.
//!
//! A query is cut along its rarest list, every few blocks, and the many
//! small tasks wait in a pool. Each core takes the next task when it finishes one:
//!
//! ```text
//!  producer: while the pool holds at most γ tasks, cut the next query
//!     q8 ─▶  pool  | q7 | q7 | q6 |  ◀── each core takes the oldest task, searches its range, takes the next
//! ```
//!
//! The threshold γ ([`FineGrained::serve`]) trades latency for throughput. With a small one, cores work on few queries
//! at a time and answer each sooner; with a large one they never wait for the producer. The producer is one of the
//! cores and takes tasks while the pool is full.
//!
//! The paper's task lists the needed skip blocks of every list, and every skip block makes a task. Here a task is a range
//! of documents that follows from its number, found by one search per list, and there are a few tasks per core.

use std::time::Instant;

use tandem_model::base::machine::Class;
use tandem_model::base::time::Nanos;
use tandem_model::traffic::Mode;

use crate::query::Query;
use crate::search::cpu::executor::CpuExecutor;
use crate::search::cpu::multicore::cores::Cores;
use crate::search::cpu::multicore::pool::partition::Partition;
use crate::search::cpu::multicore::pool::slot::{Schedule, TaskPool};
use crate::search::cpu::multicore::stream::{Served, Stream, digest};
use crate::search::cpu::multicore::team::Team;
use crate::search::cpu::multicore::worker::Worker;
use crate::search::{ExecError, Execution, Executor, Hit, MAX_K};

/// The most tasks of one query per core. The last core is then late by a sixteenth of a share on average.
const TASKS_A_CORE: usize = 8;

/// Searches with all cores of a team, which take small tasks from a pool.
#[derive(Debug)]
pub struct FineGrained {
    team: Team,
    threshold: usize,
}

/// A query that the producer has cut and that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    position: usize,
    started: Nanos,
}

impl FineGrained {
    /// `workers` cores, of which the caller's should be `first_core` and the others follow it. The pool's threshold is
    /// `threshold` tasks and matters to [`FineGrained::serve`] only.
    ///
    /// # Errors
    /// If the system refuses a thread.
    ///
    /// # Panics
    /// If there is no worker.
    pub fn new(
        executor: &CpuExecutor,
        workers: usize,
        threshold: usize,
        cores: &Cores,
        first_core: usize,
    ) -> Result<Self, ExecError> {
        assert!(workers > 0, "a team of nobody");
        // Each query in flight has a task in the pool or a core at its last task, which limits their number.
        let slots = threshold + workers + 1;
        let partition = Partition { most_tasks: workers * TASKS_A_CORE };
        let pool = TaskPool::new(slots, workers, partition, Schedule::Dynamic);
        let worker = |number| Worker::new(number, slots, executor.clone_for_worker());
        let team = Team::spawn(pool, worker(0), (1..workers).map(worker).collect(), cores, first_core)?;
        Ok(Self { team, threshold })
    }

    /// Answers a stream of queries, several at a time. The caller is the producer.
    ///
    /// # Errors
    /// The first error of [`Executor::search`], which ends the stream.
    pub fn serve(&mut self, stream: &Stream<'_>) -> Result<Vec<Served>, ExecError> {
        let mut served = vec![Served::default(); stream.order.len()];
        let mut slots: Vec<Option<InFlight>> = vec![None; self.team.pool().slots.len()];
        let mut hits = Vec::with_capacity(MAX_K);
        let (mut next, mut in_flight, mut slot) = (0, 0, 0);
        let mut backoff = self.team.backoff();
        let clock = stream.start();
        while next < stream.order.len() || in_flight > 0 {
            let mut moved = self.collect(&mut slots, stream, &mut hits, &mut served, &mut in_flight, clock)?;
            while let Some(started) = stream.due(next, clock)
                && in_flight < slots.len().min(stream.most_at_once)
                && self.team.pool().unclaimed() <= self.threshold
            {
                // Round-robin over slots lets cores find the oldest tasks first.
                while slots[slot].is_some() {
                    slot = (slot + 1) % slots.len();
                }
                self.team.begin(slot, stream.query(next), stream.mode, stream.k)?;
                slots[slot] = Some(InFlight { position: next, started });
                (next, in_flight, moved) = (next + 1, in_flight + 1, true);
            }
            if self.team.work() || moved {
                backoff.reset();
            } else {
                backoff.pause();
            }
        }
        Ok(served)
    }

    fn collect(
        &self,
        slots: &mut [Option<InFlight>],
        stream: &Stream<'_>,
        hits: &mut Vec<Hit>,
        served: &mut [Served],
        in_flight: &mut usize,
        clock: Instant,
    ) -> Result<bool, ExecError> {
        let before = *in_flight;
        for (slot, query) in slots.iter_mut().enumerate() {
            if let Some(InFlight { position, started }) = *query
                && self.team.pool().slots[slot].is_answered()
            {
                *query = None;
                *in_flight -= 1;
                self.team.take(slot, hits)?;
                let finished = self.team.pool().slots[slot].answered_at(clock);
                served[position] =
                    Served { arrival: stream.arrival(position), started, finished, digest: digest(hits) };
            }
        }
        Ok(*in_flight < before)
    }
}

impl Executor for FineGrained {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        format!("{}, {} by FGQP", self.team.worker.executor.device(), self.team.num_cores())
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        self.team.search(query, mode, k, hits)?;
        Ok(Execution::default())
    }

    fn num_cores(&self) -> usize {
        self.team.num_cores()
    }
}
