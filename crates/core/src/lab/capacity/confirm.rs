//! What was found by searching is played once more, far longer.
//!
//! ```text
//!   searched   ───── held at step 40, the median of the seeds
//!   confirmed  ─────────────────────────────── at 40: holds ─▶ at 39, 37, 33... until one does not
//!                                                     falls ─▶ at 41, 43, 47... until one does
//! ```
//!
//! A run of a hundred limits forgives what one of a thousand does not, and punishes what one of a thousand would forget: the
//! queries that were late while a policy was still finding the size of its batches. So the limit is looked for both ways.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::probe::{Aim, probe};
use super::search::limit_from;
use super::{Candidate, Capacity, CapacitySearch, Found};
use crate::sim::{Arrivals, SimError};

/// With so many threads there is one to spare for the steps beside the first, which most searches ask for next.
const THREADS_TO_SPARE: usize = 8;

/// Looks for the limit from what was found in long runs, with the seed that found it. Where runs can't be any longer,
/// what was found stands.
pub(super) fn confirm(
    search: &CapacitySearch<'_>,
    candidate: &Candidate<'_>,
    found: &[Found],
    capacity: &mut Capacity,
) -> Result<(), SimError> {
    let Some(seed) = found.iter().position(|found| found.qps == capacity.qps) else { return Ok(()) };
    let Some(begin) = found[seed].step else { return Ok(()) };
    let long = LongRuns { search, candidate, seed };
    if long.arrivals(begin).len() <= search.length.searched(&search.criterion, capacity.qps) {
        capacity.confirmed_queries = long.arrivals(begin).len();
        return Ok(());
    }
    // Known beforehand or played when it is asked for, the verdicts are the same.
    let beside = [begin.saturating_sub(1), begin, begin + 1];
    let ahead = if rayon::current_num_threads() >= THREADS_TO_SPARE { &beside[..] } else { &[] };
    let ahead: Vec<Result<(u32, bool), SimError>> =
        ahead.par_iter().map(|&step| Ok((step, long.holds_at(step)?))).collect();
    let mut played = ahead.into_iter().collect::<Result<BTreeMap<u32, bool>, SimError>>()?;
    let mut asked = Vec::new();
    let limit = limit_from(begin, candidate.grid.lowest(), |step| {
        let holds = match played.get(&step) {
            Some(&holds) => holds,
            None => long.holds_at(step)?,
        };
        played.insert(step, holds);
        asked.push((step, holds));
        Ok::<_, SimError>(holds)
    })?;
    let failing = asked.iter().filter(|(_, holds)| !holds).map(|&(step, _)| candidate.grid.rate_qps(step));
    capacity.failing_qps = failing.chain(capacity.failing_qps).min_by(f64::total_cmp);
    let rate_qps = limit.map_or(0.0, |step| candidate.grid.rate_qps(step));
    let interval = &mut capacity.interval;
    interval.low = interval.low.min(rate_qps);
    interval.high = if rate_qps < capacity.qps { rate_qps } else { interval.high.max(rate_qps) };
    capacity.qps = rate_qps;
    capacity.queries = search.length.searched(&search.criterion, rate_qps);
    capacity.confirmed_queries = limit.map_or(capacity.queries, |step| long.arrivals(step).len());
    Ok(())
}

/// Long runs with one seed's arrivals.
struct LongRuns<'s, 'a> {
    search: &'s CapacitySearch<'a>,
    candidate: &'s Candidate<'s>,
    seed: usize,
}

impl LongRuns<'_, '_> {
    fn arrivals(&self, step: u32) -> Arrivals {
        let rate_qps = self.candidate.grid.rate_qps(step);
        let count = self.search.length.confirmed(&self.search.criterion, rate_qps);
        self.search.experiment.arrivals[self.seed].first(count)
    }

    fn holds_at(&self, step: u32) -> Result<bool, SimError> {
        let CapacitySearch { experiment, criterion, .. } = *self.search;
        let rate_qps = self.candidate.grid.rate_qps(step);
        let arrivals = self.arrivals(step);
        let result = probe(experiment, self.candidate.policy, criterion, Aim::Objective, &arrivals, rate_qps)?;
        Ok(result.objective == Some(true))
    }
}
