//! Executors at work at the same time, each with requests of its own.

use crate::exec::gpu::GpuExecutor;
use crate::exec::{Answers, ExecError, Executor, Pipeline, Request};

/// Of so many requests at most all are driven by the caller's thread: starting one takes longer than a launch.
pub(super) const FEW: usize = 32;

/// Does each of `tasks` at the same time, the first on the caller's thread, and gives what came of them in order.
pub(super) fn at_once<T: Send>(
    tasks: impl IntoIterator<Item: FnOnce() -> Result<T, ExecError> + Send>,
) -> Vec<Result<T, ExecError>> {
    let mut tasks = tasks.into_iter();
    let Some(first) = tasks.next() else { return Vec::new() };
    std::thread::scope(|scope| {
        let others: Vec<_> = tasks.map(|task| scope.spawn(task)).collect();
        let first = first();
        let others = others.into_iter().map(|thread| thread.join().unwrap_or(Err(ExecError::Panicked)));
        std::iter::once(first).chain(others).collect()
    })
}

/// One executor's share of a batch, with the place of its answers.
pub(super) struct Share<'a, 'q> {
    pub(super) gpu: &'a mut GpuExecutor,
    pub(super) requests: Vec<Request<'q>>,
    pub(super) answers: &'a mut Answers,
}

impl Share<'_, '_> {
    pub(super) fn run(self) -> Result<(), ExecError> {
        self.answers.clear();
        if !self.requests.is_empty() {
            self.gpu.search_batch(&self.requests, self.answers)?;
        }
        Ok(())
    }
}

/// Launches all shares, then looks at one after another until all have ended.
pub(super) fn by_one_thread(shares: &mut [Share<'_, '_>]) -> Vec<Result<(), ExecError>> {
    let submit = |share: &mut Share<'_, '_>| {
        share.answers.clear();
        if share.requests.is_empty() { Ok(()) } else { share.gpu.submit(&share.requests) }
    };
    let submitted: Vec<Result<(), ExecError>> = shares.iter_mut().map(submit).collect();
    let outcome = |(share, submitted): (&mut Share<'_, '_>, Result<(), ExecError>)| {
        submitted?;
        while !share.requests.is_empty() {
            if let Some(ended) = share.gpu.poll(share.answers) {
                ended?;
                break;
            }
            std::hint::spin_loop();
        }
        Ok(())
    };
    shares.iter_mut().zip(submitted).map(outcome).collect()
}
