//! Dealing of batches to several GPUs.
//!
//! Each GPU has a thread of the host, which takes the next batch when the last one is done. A GPU that fails gets no
//! more; its batch and the remaining ones go to the others.

use std::sync::Mutex;
use std::sync::PoisonError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dealt<T> {
    pub(crate) worker: usize,
    pub(crate) answer: T,
}

#[derive(Debug)]
struct Table<T, E> {
    /// Batches without a worker, the next one last.
    waiting: Vec<usize>,
    under_way: usize,
    answers: Vec<Option<Dealt<T>>>,
    failure: Option<E>,
}

/// Runs batches `0..num_batches` on `workers`, each of which answers one at a time; returns all answers in order.
/// Returns the first failure if all workers have failed, so that a batch has no answer.
pub(crate) fn deal<W, T, E>(workers: Vec<W>, num_batches: usize) -> Result<Vec<Dealt<T>>, E>
where
    W: FnMut(usize) -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    let table = Mutex::new(Table {
        waiting: (0..num_batches).rev().collect(),
        under_way: 0,
        answers: (0..num_batches).map(|_| None).collect(),
        failure: None,
    });
    let changed = std::sync::Condvar::new();
    let lock = || table.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for (worker, mut run) in workers.into_iter().enumerate() {
            let (lock, changed) = (&lock, &changed);
            scope.spawn(move || {
                loop {
                    let mut guard = lock();
                    // A batch of another worker may come back.
                    while guard.waiting.is_empty() && guard.under_way > 0 {
                        guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
                    }
                    let Some(batch) = guard.waiting.pop() else { return };
                    guard.under_way += 1;
                    drop(guard);
                    let outcome = run(batch);
                    let mut guard = lock();
                    guard.under_way -= 1;
                    changed.notify_all();
                    match outcome {
                        Ok(answer) => guard.answers[batch] = Some(Dealt { worker, answer }),
                        Err(failure) => {
                            guard.waiting.push(batch);
                            guard.failure.get_or_insert(failure);
                            return;
                        }
                    }
                }
            });
        }
    });
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    let answers: Option<Vec<Dealt<T>>> = table.answers.into_iter().collect();
    match (answers, table.failure) {
        (Some(answers), _) => Ok(answers),
        (None, Some(failure)) => Err(failure),
        (None, None) => unreachable!("a batch is left only where its worker failed, or there were no workers"),
    }
}

/// Returns the time at which the last of these batches ends if each goes to the first free of equal `workers`.
pub(crate) fn makespan_of(batches_ms: &[f64], workers: usize) -> f64 {
    let mut free_ms = vec![0.0_f64; workers.max(1)];
    for batch_ms in batches_ms {
        let Some(first) = free_ms.iter_mut().min_by(|a, b| a.total_cmp(b)) else { continue };
        *first += batch_ms;
    }
    free_ms.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Worker = Box<dyn FnMut(usize) -> Result<usize, String> + Send>;

    fn sound() -> Worker {
        Box::new(|batch| Ok(batch * 10))
    }

    fn failing_after(batches: usize) -> Worker {
        let mut left = batches;
        Box::new(move |batch| {
            if left == 0 {
                return Err(format!("lost with batch {batch}"));
            }
            left -= 1;
            Ok(batch * 10)
        })
    }

    #[test]
    fn every_batch_is_answered_once_and_in_order_by_any_number_of_workers() {
        for workers in 1..5 {
            let dealt = deal((0..workers).map(|_| sound()).collect(), 23).unwrap();
            let answers: Vec<usize> = dealt.iter().map(|batch| batch.answer).collect();
            assert_eq!(answers, (0..23).map(|batch| batch * 10).collect::<Vec<_>>());
        }
        assert_eq!(deal(vec![sound()], 0).unwrap(), []);
    }

    #[test]
    fn what_a_lost_worker_had_is_answered_by_another() {
        for batches in [0, 1, 3] {
            let dealt = deal(vec![failing_after(batches), sound(), failing_after(0)], 40).unwrap();
            assert!(dealt.iter().enumerate().all(|(batch, dealt)| dealt.answer == batch * 10));
            assert!(dealt.iter().filter(|dealt| dealt.worker == 0).count() <= batches);
            assert!(dealt.iter().all(|dealt| dealt.worker != 2));
        }
    }

    #[test]
    fn nothing_is_returned_in_part_if_all_are_lost() {
        assert_eq!(deal(vec![failing_after(2)], 3).unwrap_err(), "lost with batch 2");
        assert!(deal(vec![failing_after(1), failing_after(1)], 9).is_err());
    }

    #[test]
    fn batches_go_to_whoever_is_free_first() {
        assert_eq!(makespan_of(&[4.0, 1.0, 1.0, 1.0], 2), 4.0);
        assert_eq!(makespan_of(&[1.0, 1.0, 1.0, 4.0], 2), 5.0);
        assert_eq!(makespan_of(&[1.0, 2.0], 1), 3.0);
    }
}
