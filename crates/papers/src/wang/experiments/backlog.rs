//! A backlog of queries for the GPU and CPU threads together, by the rule of section 4.4: the GPU takes queries whose lists it
//! holds, in batches, and the threads take the others. A side helps if too many wait for the other.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::Result;

/// Division of a backlog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    pub(crate) workers: usize,
    /// Queries that may wait for each worker before the other side helps.
    pub(crate) patience: u32,
    /// Maximum number of queries in a batch of the GPU.
    pub(crate) batch_limit: u32,
}

/// Serves a backlog and returns the number of queries that the GPU served. `is_held` has an entry per query: whether the GPU
/// holds all of its lists.
///
/// `gpu` runs a batch on this thread; `worker` runs a single query. The first error of `gpu`.
pub(crate) fn serve(
    is_held: &[bool],
    sharing: Sharing,
    mut gpu: impl FnMut(&[u32]) -> Result<()>,
    worker: impl Fn(u32) + Sync,
) -> Result<usize> {
    let Sharing { workers, patience, batch_limit } = sharing;
    let patience = patience as usize * workers;
    let (held, others): (VecDeque<u32>, VecDeque<u32>) =
        (0..is_held.len() as u32).partition(|&row| is_held[row as usize]);
    let queues = Mutex::new([held, others]);
    let lock = || queues.lock().unwrap_or_else(PoisonError::into_inner);
    let take_one = || {
        let [held, others] = &mut *lock();
        others.pop_front().or_else(|| if held.len() > patience { held.pop_front() } else { None })
    };
    // The queues only shrink, so that a side that finds no work is done.
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| std::iter::from_fn(take_one).for_each(&worker));
        }
        let mut served = 0;
        loop {
            let batch: Vec<u32> = {
                let [held, others] = &mut *lock();
                let surplus = if workers > 0 { others.len().saturating_sub(patience) } else { others.len() };
                let of_held = held.len().min(batch_limit as usize);
                let of_others = surplus.min(batch_limit as usize - of_held);
                held.drain(..of_held).chain(others.drain(..of_others)).collect()
            };
            if batch.is_empty() {
                return Ok(served);
            }
            if let Err(error) = gpu(&batch) {
                lock().iter_mut().for_each(VecDeque::clear);
                return Err(error);
            }
            served += batch.len();
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::ExperimentError;

    #[test]
    fn every_query_is_served_once_held_ones_by_the_gpu_first() {
        let is_held: Vec<bool> = (0..5000).map(|i| i % 3 != 0).collect();
        let served: Vec<AtomicU32> = is_held.iter().map(|_| AtomicU32::new(0)).collect();
        let serve_one = |row: u32| {
            served[row as usize].fetch_add(1, Ordering::Relaxed);
        };
        let mut first_batches = Vec::new();
        let sharing = Sharing { workers: 2, patience: 50, batch_limit: 1000 };
        let of_gpu = |rows: &[u32]| {
            first_batches.push(rows.to_vec());
            rows.iter().copied().for_each(serve_one);
            std::thread::sleep(std::time::Duration::from_millis(2));
            Ok(())
        };
        let on_gpu = serve(&is_held, sharing, of_gpu, serve_one).unwrap();
        assert!(served.iter().all(|times| times.load(Ordering::Relaxed) == 1));
        assert!(first_batches[0].len() == 1000 && first_batches[0].iter().all(|&row| is_held[row as usize]));
        assert_eq!(on_gpu, first_batches.iter().map(Vec::len).sum::<usize>());
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
        let served = serve(&[false; 300], sharing, |_| Ok(()), |_| unreachable!("there is no worker"));
        assert_eq!(served.unwrap(), 300);
    }
}
