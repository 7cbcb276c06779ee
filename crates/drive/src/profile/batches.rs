//! Measurements of batches of drawn queries, of many sizes.

use std::time::{Duration, Instant};

use tandem_engine::query::Query;
use tandem_engine::search::{Answers, ExecError, Executor, Request};
use tandem_model::base::random::Random;
use tandem_model::cost::batches::BatchSample;
use tandem_model::traffic::Mode;

/// The batches to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// The sizes, ascending.
    pub sizes: Vec<u32>,
    /// The least number of batches of each size.
    pub repeats: usize,
    /// Measuring time for one size, after which it is not repeated further.
    pub time_a_size: Duration,
    /// The seed for drawing queries.
    pub seed: u64,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            sizes: (0..=12).map(|power| 1 << power).collect(),
            repeats: 8,
            time_a_size: Duration::from_millis(150),
            seed: 1,
        }
    }
}

const MOST_REPEATS: usize = 64;
/// The stream of random numbers that batches are drawn from.
const STREAM: u64 = 0xBA7C;

/// Runs batches of every size, drawn from `work` (queries with modes), for `k` documents each. Every other batch mixes all
/// modes. The others use one mode each, so that the fit can separate the modes. Fails if a batch fails. Panics if
/// `work` is empty.
pub fn measure_batches(
    executor: &mut dyn Executor,
    work: &[(&Query, Mode)],
    k: usize,
    options: &BatchOptions,
) -> Result<Vec<BatchSample>, ExecError> {
    let mut random = Random::new(options.seed, STREAM);
    let mut answers = Answers::default();
    let mut samples = Vec::new();
    let everything: Vec<u32> = (0..work.len() as u32).collect();
    let in_mode = |mode| everything.iter().copied().filter(|&i| work[i as usize].1 == mode).collect::<Vec<u32>>();
    let by_mode: Vec<Vec<u32>> = Mode::ALL.into_iter().map(in_mode).filter(|some| !some.is_empty()).collect();
    for &size in &options.sizes {
        let began = Instant::now();
        // The first batch warms caches and buffers, and does not count.
        for repeat in 0..=MOST_REPEATS {
            if repeat > options.repeats && began.elapsed() > options.time_a_size {
                break;
            }
            let from = if repeat % 2 == 0 { &everything } else { &by_mode[repeat / 2 % by_mode.len()] };
            let drawn: Vec<u32> = (0..size).map(|_| from[random.below(from.len() as u32) as usize]).collect();
            let batch: Vec<Request<'_>> = drawn
                .iter()
                .map(|&i| {
                    let (query, mode) = work[i as usize];
                    Request { query, mode, k }
                })
                .collect();
            let submitted = Instant::now();
            let execution = executor.search_batch(&batch, &mut answers)?;
            let total_us = submitted.elapsed().as_nanos() as f64 / 1e3;
            if repeat > 0 {
                let device_us = execution.device_us.unwrap_or(0.0).min(total_us);
                let host_us = execution.host_us.unwrap_or(total_us - device_us).min(total_us);
                samples.push(BatchSample { work: drawn, total_us, device_us, host_us });
            }
        }
    }
    Ok(samples)
}
