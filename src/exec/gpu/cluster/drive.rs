//! Executors at work at the same time, each with requests of its own.

use super::super::GpuExecutor;
use crate::exec::{Answers, ExecError, Executor, Pipeline, Request};

/// Of so many requests at most all are driven by the caller's thread: starting one takes longer than a launch.
const FEW: usize = 32;

/// What came of each executor's share.
pub(super) type Outcomes = Vec<Result<Answers, ExecError>>;

/// Answers each executor's share; none is waited for by another.
pub(super) fn all(gpus: &mut [&mut GpuExecutor], shares: &[Vec<Request<'_>>]) -> Outcomes {
    if shares.iter().all(|share| share.len() <= FEW) {
        return by_one_thread(gpus, shares);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = gpus
            .iter_mut()
            .zip(shares)
            .map(|(gpu, share)| {
                scope.spawn(move || {
                    let mut answers = Answers::default();
                    if !share.is_empty() {
                        gpu.search_batch(share, &mut answers)?;
                    }
                    Ok(answers)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Err(ExecError::Panicked))).collect()
    })
}

/// Launches all, then looks at one after another until all have ended.
fn by_one_thread(gpus: &mut [&mut GpuExecutor], shares: &[Vec<Request<'_>>]) -> Outcomes {
    let submitted: Vec<Result<(), ExecError>> = gpus
        .iter_mut()
        .zip(shares)
        .map(|(gpu, share)| if share.is_empty() { Ok(()) } else { gpu.submit(share) })
        .collect();
    let outcome = |((gpu, share), submitted): ((&mut &mut GpuExecutor, &Vec<Request<'_>>), Result<(), ExecError>)| {
        submitted?;
        let mut answers = Answers::default();
        while !share.is_empty() {
            if let Some(ended) = gpu.poll(&mut answers) {
                ended?;
                break;
            }
            std::hint::spin_loop();
        }
        Ok(answers)
    };
    gpus.iter_mut().zip(shares).zip(submitted).map(outcome).collect()
}
