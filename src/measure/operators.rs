//! What each way to answer a query costs, side by side.

use std::time::{Duration, Instant};

use super::Times;
use crate::exec::{ExecError, Hit};
use crate::query::Query;

/// Answers a query, into the hits.
pub type Search<'a> = Box<dyn FnMut(&Query, &mut Vec<Hit>) -> Result<(), ExecError> + 'a>;

/// One way to answer queries.
pub struct Contender<'a> {
    /// Its name in tables.
    pub name: String,
    /// How it does.
    pub search: Search<'a>,
}

impl std::fmt::Debug for Contender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contender").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What one contender took.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorTimes {
    /// The contender.
    pub name: String,
    /// For each query the least time over the rounds.
    pub times: Times,
}

/// Lets all contenders answer all queries in turn, `rounds` times; `progress` is told of every query that is done.
///
/// The first to answer a query finds its lists in colder caches than the others, so who is first goes round: with at
/// least as many rounds as contenders each one's least time is that of a warm cache.
///
/// # Errors
/// The first that a contender reports.
pub fn time_operators(
    contenders: &mut [Contender<'_>],
    queries: &[Query],
    rounds: usize,
    progress: &mut dyn FnMut(),
) -> Result<Vec<OperatorTimes>, ExecError> {
    let mut least = vec![vec![Duration::MAX; queries.len()]; contenders.len()];
    let mut hits = Vec::new();
    for round in 0..rounds {
        for (position, query) in queries.iter().enumerate() {
            for turn in 0..contenders.len() {
                let contender = (turn + round) % contenders.len();
                let began = Instant::now();
                (contenders[contender].search)(query, &mut hits)?;
                let took = began.elapsed();
                let least = &mut least[contender][position];
                *least = took.min(*least);
            }
            progress();
        }
    }
    let us = |times: Vec<Duration>| Times::of(times.iter().map(|time| time.as_secs_f64() * 1e6).collect());
    let names = contenders.iter().map(|contender| contender.name.clone());
    Ok(names.zip(least).map(|(name, least)| OperatorTimes { name, times: us(least) }).collect())
}
