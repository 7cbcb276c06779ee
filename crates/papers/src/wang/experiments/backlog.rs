//! A backlog of queries for the GPU and CPU threads together, under the policy of the simulator and the live driver
//! [`cached-first`](tandem_model::sched::PolicyKind::CachedFirst).
//!
//! ```text
//!   GPU's thread      takes a batch ── run ── finished, decide ─┐
//!   workers' threads  take a query  ── run ── finished, decide ─┴─▶ what starts next, on whichever lane
//! ```

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tandem_model::base::ids::{JobId, ProcessorId, QueryId};
use tandem_model::base::machine::{Class, Machine, PerClass};
use tandem_model::base::time::Nanos;
use tandem_model::cost::{BatchCost, Cost, MachineModel};
use tandem_model::sched::{Action, CachedFirst, Dispatcher, Job, PolicyOptions, RunLog};

use crate::{ExperimentError, Result};

/// Division of a backlog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    pub(crate) workers: usize,
    /// Queries that may wait for each worker before the other side helps.
    pub(crate) patience: u32,
    /// Maximum number of queries in a batch of the GPU.
    pub(crate) batch_limit: u32,
}

struct Shared {
    dispatcher: Dispatcher,
    /// Batches to run, by lane.
    orders: Vec<VecDeque<Vec<u32>>>,
    failed: Option<ExperimentError>,
}

/// Serves a backlog and returns the log. `is_held` has an entry per query: whether the GPU holds all of its lists.
///
/// `gpu` runs a batch on this thread; `worker` runs a single query. The first error of `gpu`.
pub(crate) fn serve(
    is_held: &[bool],
    sharing: Sharing,
    mut gpu: impl FnMut(&[u32]) -> Result<()>,
    worker: impl Fn(u32) + Sync,
) -> Result<RunLog> {
    let Sharing { workers, patience, batch_limit } = sharing;
    let batches = BatchCost { most_queries: batch_limit, ..BatchCost::default() };
    let machine = Machine::new(workers, 1);
    let model = MachineModel { batches: PerClass::two(None, Some(batches)), ..machine.into() };
    let options = PolicyOptions { patience, batch_limit, ..PolicyOptions::default() };
    let broken = |fault: String| ExperimentError::Wrong(format!("the scheduler of both processors: {fault}"));
    let policy = CachedFirst::with_held(&options, &model, is_held.into()).map_err(|e| broken(e.to_string()))?;
    let mut dispatcher = Dispatcher::new(&model.machine, Box::new(policy), is_held.len());
    let began = Instant::now();
    for row in 0..is_held.len() as u32 {
        // Costs do not matter without deadlines.
        let predicted = Cost::on_cpu_and_gpu(Nanos(1), Nanos(1));
        let job = Job {
            id: JobId(row),
            query: QueryId(row),
            row,
            priority: 0,
            arrival: Nanos::ZERO,
            deadline: Nanos::MAX,
            predicted,
        };
        dispatcher.arrive(Nanos::ZERO, job).map_err(|e| broken(e.to_string()))?;
    }
    let orders = vec![VecDeque::new(); model.machine.len()];
    let mut shared = Shared { dispatcher, orders, failed: None };
    shared.decide(Nanos::ZERO);
    let (shared, changed) = (Mutex::new(shared), Condvar::new());
    let lane = Lane { shared: &shared, changed: &changed, began };
    std::thread::scope(|scope| {
        for (processor, on) in model.machine.processors() {
            if on.class == Class::CPU {
                let worker = &worker;
                scope.spawn(move || {
                    lane.work(processor, |rows| {
                        rows.iter().for_each(|&row| worker(row));
                        Ok(())
                    });
                });
            }
        }
        for (processor, on) in model.machine.processors().filter(|(_, on)| on.class.is_gpu()) {
            debug_assert_eq!(on.depth, 1, "the GPU's thread runs one batch at a time");
            lane.work(processor, &mut gpu);
        }
    });
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    match shared.failed {
        Some(error) => Err(error),
        None => Ok(shared.dispatcher.into_log()),
    }
}

impl Shared {
    /// Lets the policy decide, and adds the started batches to the orders.
    fn decide(&mut self, now: Nanos) {
        let mut actions = Vec::new();
        if let Err(e) = self.dispatcher.decide(now, &mut actions) {
            self.failed.get_or_insert_with(|| ExperimentError::Wrong(e.to_string()));
        }
        for action in actions {
            // A lane runs one batch at a time, so that the policy never requests a wake-up.
            if let Action::Start(processor, number) = action {
                self.orders[processor.index()].push_back(self.dispatcher.rows(processor, number).to_vec());
            }
        }
    }

    fn is_over(&self) -> bool {
        self.failed.is_some() || self.dispatcher.in_flight() == 0
    }
}

#[derive(Clone, Copy)]
struct Lane<'a> {
    shared: &'a Mutex<Shared>,
    changed: &'a Condvar,
    began: Instant,
}

impl<'a> Lane<'a> {
    fn lock(self) -> MutexGuard<'a, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the orders of a lane until all queries have been served.
    fn work(self, processor: ProcessorId, mut run: impl FnMut(&[u32]) -> Result<()>) {
        let mut shared = self.lock();
        loop {
            if let Some(rows) = shared.orders[processor.index()].pop_front().filter(|_| shared.failed.is_none()) {
                drop(shared);
                let done = run(&rows);
                shared = self.lock();
                let now = Nanos(self.began.elapsed().as_nanos() as u64);
                let finished = done.and_then(|()| {
                    let finished = shared.dispatcher.finish(now, processor);
                    finished.map_err(|e| ExperimentError::Wrong(e.to_string()))
                });
                match finished {
                    Ok(_) => shared.decide(now),
                    Err(error) => shared.failed = Some(error),
                }
                self.changed.notify_all();
            } else if shared.is_over() {
                return;
            } else {
                shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn every_query_is_served_once_held_ones_by_the_gpu_first() {
        let is_held: Vec<bool> = (0..5000).map(|i| i % 3 != 0).collect();
        let served: Vec<AtomicU32> = is_held.iter().map(|_| AtomicU32::new(0)).collect();
        let serve_one = |row: u32| {
            served[row as usize].fetch_add(1, Ordering::Relaxed);
        };
        let mut first_batches = Vec::new();
        let sharing = Sharing { workers: 2, patience: 50, batch_limit: 1000 };
        let log = serve(
            &is_held,
            sharing,
            |rows| {
                first_batches.push(rows.to_vec());
                rows.iter().copied().for_each(serve_one);
                std::thread::sleep(std::time::Duration::from_millis(2));
                Ok(())
            },
            serve_one,
        )
        .unwrap();
        assert_eq!(log.rows.len(), 5000);
        assert!(served.iter().all(|times| times.load(Ordering::Relaxed) == 1));
        assert!(first_batches[0].len() == 1000 && first_batches[0].iter().all(|&row| is_held[row as usize]));
        assert!(log.rows.iter().any(|row| row.class == Class::CPU && !is_held[row.query.index()]));
    }

    #[test]
    fn a_gpu_that_fails_ends_the_run() {
        let wrong = || ExperimentError::Wrong(String::from("it failed"));
        let sharing = Sharing { workers: 2, patience: 1, batch_limit: 10 };
        let error = serve(&[true; 500], sharing, |_| Err(wrong()), |_| ()).unwrap_err();
        assert!(error.to_string().contains("it failed"), "{error}");
    }

    #[test]
    fn without_workers_the_gpu_serves_all() {
        let sharing = Sharing { workers: 0, patience: 10, batch_limit: 64 };
        let log = serve(&[false; 300], sharing, |_| Ok(()), |_| unreachable!("there is no worker")).unwrap();
        assert!(log.rows.len() == 300 && log.rows.iter().all(|row| row.class == Class::GPU));
    }
}
