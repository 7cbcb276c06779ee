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

use super::{Capacity, CapacitySearch};
use crate::sched::PolicyFactory;
use crate::sim::SimError;

/// Ratio between neighbouring rates in the search of all policies, and after it: less than the deviation of machine speed.
const RATIOS: (f64, f64) = (1.04, 1.01);

impl CapacitySearch<'_> {
    /// This search with neighbouring rates 1 % apart.
    #[must_use]
    pub(in crate::lab) fn coarser(self) -> Self {
        Self { ratio: RATIOS.1, ..self }
    }

    /// The policy with the highest rate in short runs of the first seed, and that rate; `None` if every rate is 0. Of
    /// equal policies the last one counts.
    ///
    /// # Errors
    /// If a policy does not fit the machine or breaks its contract, or an [interrupt](crate::live::interrupt) came.
    pub(in crate::lab) fn best_of<'p, P: PolicyFactory>(
        &self,
        policies: &[&'p P],
    ) -> Result<Option<(&'p P, f64)>, SimError> {
        let each = |of: &[(&'p P, f64)], rate_of: &(dyn Fn(&P, f64) -> Result<f64, SimError> + Sync)| {
            let found = of.par_iter().map(|&(policy, qps)| Ok((policy, rate_of(policy, qps)?)));
            found.collect::<Vec<Result<(&'p P, f64), SimError>>>().into_iter().collect::<Result<Vec<_>, SimError>>()
        };
        let all: Vec<(&P, f64)> = policies.iter().map(|&policy| (policy, 0.0)).collect();
        let found = each(&all, &|policy, _| self.first_step(policy))?;
        let highest = found.iter().map(|(_, qps)| *qps).fold(0.0, f64::max);
        // A policy that is two steps behind has a lower rate.
        let best: Vec<(&P, f64)> = found.into_iter().filter(|(_, qps)| *qps * RATIOS.0.powf(1.5) > highest).collect();
        let best = each(&best, &|policy, qps| self.second_step(policy, qps))?;
        Ok(best.into_iter().filter(|(_, qps)| *qps > 0.0).max_by(|a, b| a.1.total_cmp(&b.1)))
    }

    /// The rate of a policy in short runs of the first seed, 0 if none holds, by the same two steps as in
    /// [`best_of`](Self::best_of): ratios of such rates are more exact than they are.
    ///
    /// # Errors
    /// The errors of [`best_of`](Self::best_of).
    pub(in crate::lab) fn coarse(&self, policy: &dyn PolicyFactory) -> Result<f64, SimError> {
        self.second_step(policy, self.first_step(policy)?)
    }

    fn first_step(&self, policy: &dyn PolicyFactory) -> Result<f64, SimError> {
        Self { ratio: RATIOS.0, ..self.clone() }.second_step(policy, f64::INFINITY)
    }

    /// The rate that a search from `begin_qps` on finds.
    fn second_step(&self, policy: &dyn PolicyFactory, begin_qps: f64) -> Result<f64, SimError> {
        if begin_qps == 0.0 {
            return Ok(0.0);
        }
        let candidate = self.candidate(policy);
        let begin = candidate.grid.step_at(begin_qps);
        Ok(candidate.qps(self.seed_search(&candidate, 0, &self.short_runs()).highest(begin, None)?))
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
