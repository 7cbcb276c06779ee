//! Runs of a whole log: batches on this thread, post-processing on others.

use std::borrow::Borrow;
use std::time::Instant;

use crossbeam_channel::{TrySendError, bounded};

use super::session::{Outcome, Session};
use crate::Result;
use crate::wang::cache::batches::{Batch, BatchMaker};
use crate::wang::data::{ExperimentData, FOOTPRINT, ROUND};
use crate::wang::ranker::Best;
use crate::wang::report::{Report, RunOptions};
use crate::wang::train_test_split::RankedQuery;

#[derive(Default)]
struct PostProcessed {
    answers: Vec<(u32, Best)>,
    seconds: f64,
}

impl Session<'_, '_> {
    /// Answers all queries of a log in order.
    pub(crate) fn run<Q>(&mut self, log: &[Q], options: RunOptions) -> Result<Report>
    where
        Q: Borrow<RankedQuery> + AsRef<[u32]> + Sync,
    {
        let data = self.gpu.data;
        let mut report = Report { answers: vec![Best::default(); log.len()], ..Report::default() };
        let began = Instant::now();
        let posted = std::thread::scope(|scope| {
            let (to_post, unfinished) = bounded::<Vec<Outcome>>(options.backlog);
            let post = || {
                let unfinished = unfinished.clone();
                scope.spawn(move || {
                    let mut posted = PostProcessed::default();
                    for outcomes in unfinished {
                        go_on(data, log, outcomes, options.k, &mut posted);
                    }
                    posted
                })
            };
            let threads: Vec<_> = (0..options.post_threads).map(|_| post()).collect();
            // The sender must notice when all receivers have ended.
            drop(unfinished);
            let mut posted = PostProcessed::default();
            let mut take = |incomplete: Vec<Outcome>, report: &mut Report| {
                report.post_processed += incomplete.len();
                if threads.is_empty() {
                    go_on(data, log, incomplete, options.k, &mut posted);
                    return;
                }
                // Pieces spread the queries over all threads.
                let each = incomplete.len().div_ceil(threads.len());
                for piece in incomplete.chunks(each).map(<[Outcome]>::to_vec) {
                    if let Err(TrySendError::Full(piece)) = to_post.try_send(piece) {
                        report.full_backlogs += 1;
                        // A failed send means that the threads panicked, which joining them reports.
                        let _ = to_post.send(piece);
                    }
                }
            };
            let run = self.run_batches(log, options, &mut report, &mut take);
            drop(to_post);
            for thread in threads {
                match thread.join() {
                    Ok(more) => {
                        posted.answers.extend(more.answers);
                        posted.seconds += more.seconds;
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            run.map(|()| posted)
        })?;
        for (query, best) in posted.answers {
            report.answers[query as usize] = best;
        }
        report.seconds = began.elapsed().as_secs_f64();
        report.post_seconds = posted.seconds;
        Ok(report)
    }

    fn run_batches<Q>(
        &mut self,
        log: &[Q],
        options: RunOptions,
        report: &mut Report,
        take: &mut dyn FnMut(Vec<Outcome>, &mut Report),
    ) -> Result<()>
    where
        Q: Borrow<RankedQuery> + AsRef<[u32]>,
    {
        let data = self.gpu.data;
        let prefixes = self.prefixes.clone();
        let mut maker = BatchMaker::new(&data.lists, &prefixes, FOOTPRINT, self.buffer_bytes);
        let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
        loop {
            let began = Instant::now();
            if !maker.next(log, options.batch_limit, &mut batch) {
                break;
            }
            outcomes.clear();
            report.batches.push(self.run_batch(log, &batch, options.k, began, &mut outcomes)?);
            let mut incomplete = Vec::new();
            for outcome in outcomes.drain(..) {
                match outcome.from {
                    None => report.answers[outcome.query as usize] = outcome.best,
                    Some(_) => incomplete.push(outcome),
                }
            }
            if !incomplete.is_empty() {
                take(incomplete, report);
            }
        }
        report.oversized = maker.oversized().len();
        for &query in maker.oversized() {
            let whole = Outcome { query, best: Best::new(options.k), from: Some(0) };
            let mut posted = PostProcessed::default();
            go_on(data, log, vec![whole], options.k, &mut posted);
            for (query, best) in posted.answers {
                report.answers[query as usize] = best;
            }
        }
        Ok(())
    }
}

/// Resumes each query behind the postings that the device saw, with its results.
fn go_on<Q: Borrow<RankedQuery>>(
    data: &ExperimentData,
    log: &[Q],
    outcomes: Vec<Outcome>,
    k: usize,
    posted: &mut PostProcessed,
) {
    let began = Instant::now();
    let mut depths = Vec::new();
    for Outcome { query, mut best, from } in outcomes {
        let ranked = log[query as usize].borrow();
        depths.clear();
        depths.resize(ranked.lists.len(), 0);
        let from = from.unwrap_or(0) as usize;
        debug_assert!(best.keys().len() <= k);
        data.ranker().rank(&ranked.postings(&data.lists), &ranked.weights, from, ROUND, &mut best, &mut depths);
        posted.answers.push((query, best));
    }
    posted.seconds += began.elapsed().as_secs_f64();
}
