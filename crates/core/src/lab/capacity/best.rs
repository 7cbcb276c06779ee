//! The best policy of several and its capacity, for plans: with coarser rates and fewer runs than a comparison.
//!
//! ```text
//!   all policies      short runs, rates 4 % apart      ●  ●      ● ─▶ the best ones
//!   the best ones     short runs, rates 1 % apart          ● ● ●   ─▶ the best one
//!   the best one      long runs from its rate on
//! ```
//!
//! The first runs come from the top of the grid down, where runs end early. A run just above the best rate so far would
//! exclude a policy sooner, but short runs also fail by chance far below a capacity.

use rayon::prelude::*;

use super::search::{between, limit_from};
use super::{Candidate, Capacity, CapacitySearch};
use crate::sched::PolicyFactory;
use crate::sim::SimError;

/// Ratio between neighbouring rates: less than the deviation of machine speed.
const RATIO: f64 = 1.01;
/// The share of its highest rate that a policy must hold so that it serves at all.
const LEAST_SHARE: f64 = 0.01;
/// Steps between the rates at which all policies are tried.
const STRIDE: u32 = 4;

impl CapacitySearch<'_> {
    /// This search with neighbouring rates 1 % apart.
    #[must_use]
    pub(in crate::lab) fn coarser(self) -> Self {
        Self { ratio: RATIO, ..self }
    }

    /// Whether some policy holds a hundredth of its highest rate in a short run of the first seed.
    ///
    /// # Errors
    /// The errors of [`best_of`](Self::best_of).
    pub(in crate::lab) fn serves<P: PolicyFactory>(&self, policies: &[&P]) -> Result<bool, SimError> {
        for &policy in policies {
            let candidate = self.candidate(policy);
            let step = candidate.grid.step_at(LEAST_SHARE * candidate.grid.top_qps);
            if self.seed_search(&candidate, 0, &self.short_runs()).meets(step)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The policy with the highest rate in short runs of the first seed, and that rate; `None` if every rate is 0. Of
    /// equal policies the last one counts.
    ///
    /// # Errors
    /// If a policy does not fit the machine or breaks its contract, or an [interrupt](crate::base::interrupt) came.
    pub(in crate::lab) fn best_of<'p, P: PolicyFactory>(
        &self,
        policies: &[&'p P],
    ) -> Result<Option<(&'p P, f64)>, SimError> {
        let strides = |&policy: &&'p P| {
            let candidate = self.candidate(policy);
            Ok(self.strides_from(&candidate, 0)?.map(|step| (policy, candidate, step)))
        };
        let found: Vec<Result<Option<_>, SimError>> = policies.par_iter().map(strides).collect();
        let found: Vec<_> = found.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let highest = found.iter().map(|(_, of, step)| of.grid.rate_qps(*step)).fold(0.0, f64::max);
        // Steps lead to a rate that is higher by less than a stride.
        let may_win = |of: &Candidate<'_>, step: u32| of.grid.rate_qps(step) * RATIO.powi(STRIDE as i32) > highest;
        let best: Vec<_> = found.into_iter().filter(|(_, of, step)| may_win(of, *step)).collect();
        let steps =
            best.par_iter().map(|(policy, of, step)| Ok((*policy, of.grid.rate_qps(self.steps_above(of, *step)?))));
        let best: Vec<Result<(&P, f64), SimError>> = steps.collect();
        Ok(best.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)))
    }

    /// The rate of a policy in short runs of the first seed, by strides and steps as in [`best_of`](Self::best_of), from
    /// `begin_qps` on; 0 if none holds. Ratios of such rates are more exact than the rates.
    ///
    /// # Errors
    /// The errors of [`best_of`](Self::best_of).
    pub(in crate::lab) fn coarse(&self, policy: &dyn PolicyFactory, begin_qps: f64) -> Result<f64, SimError> {
        let candidate = self.candidate(policy);
        let begin = candidate.grid.step_at(begin_qps).div_ceil(STRIDE);
        match self.strides_from(&candidate, begin)? {
            Some(step) => Ok(candidate.grid.rate_qps(self.steps_above(&candidate, step)?)),
            None => Ok(0.0),
        }
    }

    /// The step that holds while that one stride above does not, searched from stride `begin` on.
    fn strides_from(&self, candidate: &Candidate<'_>, begin: u32) -> Result<Option<u32>, SimError> {
        let queries = self.short_runs();
        let mut search = self.seed_search(candidate, 0, &queries);
        let found = limit_from(begin, candidate.grid.lowest() / STRIDE, |stride| search.meets(stride * STRIDE))?;
        Ok(found.map(|stride| stride * STRIDE))
    }

    /// The step that holds while the next one above does not, less than a stride above `step`.
    fn steps_above(&self, candidate: &Candidate<'_>, step: u32) -> Result<u32, SimError> {
        let Some(failed) = step.checked_sub(STRIDE) else { return Ok(step) };
        let queries = self.short_runs();
        let mut search = self.seed_search(candidate, 0, &queries);
        between(failed, step, |step| search.meets(step))
    }

    /// Whether a short run decides about this rate as a long one does.
    #[must_use]
    pub(in crate::lab) fn decides(&self, rate_qps: f64) -> bool {
        self.length.decides(&self.criterion, rate_qps)
    }

    /// The capacity of a policy by runs of all seeds, searched from a rate on that short runs of the first seed found.
    ///
    /// # Errors
    /// The errors of [`best_of`](Self::best_of).
    pub(in crate::lab) fn confirmed_from(
        &self,
        policy: &dyn PolicyFactory,
        begin_qps: f64,
    ) -> Result<Capacity, SimError> {
        let candidate = self.candidate(policy);
        if self.criterion.late_share() == 0.0 {
            return self.without_a_miss(&candidate, &|| ());
        }
        self.other_seeds(&candidate, Some(candidate.grid.step_at(begin_qps)), &|| ())
    }
}
