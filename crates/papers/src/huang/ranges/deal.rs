//! Dealing of batches to several GPUs: each has a thread of the host, which takes the next batch when the last one is done.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs all batches by the workers, and returns the answers in the order of batches, or the first failure.
pub(crate) fn deal<W, T, E>(workers: Vec<W>, num_batches: usize) -> Result<Vec<T>, E>
where
    W: FnMut(usize) -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    let next = &AtomicUsize::new(0);
    let take_all = |mut run: W| {
        let mut done = Vec::new();
        loop {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            if batch >= num_batches {
                return Ok(done);
            }
            done.push((batch, run(batch)?));
        }
    };
    let dealt: Result<Vec<_>, E> = std::thread::scope(|scope| {
        let threads: Vec<_> = workers.into_iter().map(|worker| scope.spawn(move || take_all(worker))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let mut dealt: Vec<(usize, T)> = dealt?.into_iter().flatten().collect();
    dealt.sort_by_key(|&(batch, _)| batch);
    Ok(dealt.into_iter().map(|(_, answer)| answer).collect())
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

    #[test]
    fn every_batch_is_answered_once_and_in_order() {
        for workers in 1..5 {
            let dealt = deal((0..workers).map(|_| |batch| Ok::<_, String>(batch * 10)).collect(), 23);
            assert_eq!(dealt.unwrap(), (0..23).map(|batch| batch * 10).collect::<Vec<_>>());
        }
        let failing = |batch| if batch < 3 { Ok(batch) } else { Err(format!("lost with batch {batch}")) };
        assert_eq!(deal(vec![failing], 9).unwrap_err(), "lost with batch 3");
    }

    #[test]
    fn batches_go_to_whoever_is_free_first() {
        assert_eq!(makespan_of(&[4.0, 1.0, 1.0, 1.0], 2), 4.0);
        assert_eq!(makespan_of(&[1.0, 1.0, 1.0, 4.0], 2), 5.0);
        assert_eq!(makespan_of(&[1.0, 2.0], 1), 3.0);
    }
}
