//! Answering all queries: in turn, on several threads, or in batches.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tandem_engine::query::Query;
use tandem_engine::search::cpu::CpuExecutor;
use tandem_engine::search::gpu::GpuExecutor;
use tandem_engine::search::{Answers as Found, ExecError, Executor, Hit, Request};

use super::Arguments;
use tandem_report::trec::Ranking;

/// The results of one query and its time.
struct Answer {
    ranking: Ranking,
    us: f64,
}

/// The results of all queries, and the microseconds of each submission: of a query, or of a batch.
pub(super) struct Answers {
    pub(super) rankings: Vec<Ranking>,
    pub(super) us: Vec<f64>,
    pub(super) device: String,
}

impl Answers {
    fn new(answers: Vec<Answer>, device: String) -> Self {
        let (rankings, us) = answers.into_iter().map(|answer| (answer.ranking, answer.us)).unzip();
        Self { rankings, us, device }
    }
}

/// The result of `work`, and its seconds.
pub(super) fn timed<T>(work: impl FnOnce() -> Result<T, ExecError>) -> Result<(T, f64), ExecError> {
    let began = Instant::now();
    let result = work()?;
    Ok((result, began.elapsed().as_secs_f64()))
}

/// Answers single queries, on one thread or several.
pub(super) fn answer_on_cpu(
    mut cpu: CpuExecutor,
    queries: &[Query],
    arguments: &Arguments,
) -> Result<Answers, ExecError> {
    let answers = if arguments.cpus > 1 {
        answer_in_parallel(&cpu, queries, arguments)?
    } else {
        answer_in_turn(&mut cpu, queries, arguments)?
    };
    Ok(Answers::new(answers, cpu.device()))
}

/// Answers single queries or batches.
pub(super) fn answer_on_gpu(
    mut gpu: GpuExecutor,
    queries: &[Query],
    arguments: &Arguments,
) -> Result<Answers, ExecError> {
    let device = gpu.device();
    if arguments.batch == 1 {
        return Ok(Answers::new(answer_in_turn(&mut gpu, queries, arguments)?, device));
    }
    let mut answers = Answers { rankings: Vec::with_capacity(queries.len()), us: Vec::new(), device };
    let request = |query| Request { query, mode: arguments.mode, k: arguments.k };
    let requests: Vec<Request<'_>> = queries.iter().map(request).collect();
    let mut found = Found::default();
    for batch in requests.chunks(arguments.batch) {
        let began = Instant::now();
        Executor::search_batch(&mut gpu, batch, &mut found)?;
        answers.us.push(began.elapsed().as_secs_f64() * 1e6);
        let ranking = |(request, hits): (&Request<'_>, &[Hit])| Ranking {
            label: request.query.label.clone(),
            hits: hits.to_vec(),
        };
        answers.rankings.extend(batch.iter().zip(found.iter()).map(ranking));
    }
    Ok(answers)
}

fn answer_in_turn(
    executor: &mut dyn Executor,
    queries: &[Query],
    arguments: &Arguments,
) -> Result<Vec<Answer>, ExecError> {
    queries.iter().map(|query| answer(executor, query, arguments)).collect()
}

fn answer(executor: &mut dyn Executor, query: &Query, arguments: &Arguments) -> Result<Answer, ExecError> {
    let mut hits: Vec<Hit> = Vec::new();
    let began = Instant::now();
    executor.search(query, arguments.mode, arguments.k, &mut hits)?;
    let us = began.elapsed().as_secs_f64() * 1e6;
    Ok(Answer { ranking: Ranking { label: query.label.clone(), hits }, us })
}

/// Each thread takes the next unanswered query. Answers are returned in the order of the log.
fn answer_in_parallel(cpu: &CpuExecutor, queries: &[Query], arguments: &Arguments) -> Result<Vec<Answer>, ExecError> {
    let next = AtomicUsize::new(0);
    let work = |mut executor: CpuExecutor| -> Result<Vec<(usize, Answer)>, ExecError> {
        let mut answers = Vec::new();
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            let Some(query) = queries.get(position) else { return Ok(answers) };
            answers.push((position, answer(&mut executor, query, arguments)?));
        }
    };
    let parts = std::thread::scope(|scope| {
        let start = |_| {
            let executor = cpu.clone_for_worker();
            scope.spawn(|| work(executor))
        };
        let threads: Vec<_> = (0..arguments.cpus.min(queries.len())).map(start).collect();
        let results = threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        results.collect::<Result<Vec<_>, _>>()
    })?;
    let mut answers: Vec<(usize, Answer)> = parts.into_iter().flatten().collect();
    answers.sort_by_key(|(position, _)| *position);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}
