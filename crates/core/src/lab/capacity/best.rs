//! The best policy of several and its capacity, for plans: with coarser rates and fewer runs than a comparison.
//!
//! ```text
//!   last policy      ● fails   ● fails   ● fails   ● holds ─▶ the rate to beat
//!   other policies                                 one run at the next higher rate; most fail and are done
//!   best policy      long runs from its rate on
//! ```

use super::{Capacity, CapacitySearch, RATIO};
use crate::sched::PolicyFactory;
use crate::sim::SimError;

impl CapacitySearch<'_> {
    /// This search with neighbouring rates twice as far from each other: 1 %.
    #[must_use]
    pub(in crate::lab) fn coarser(self) -> Self {
        Self { ratio: RATIO * RATIO, ..self }
    }

    /// The policy with the highest rate in short runs of the first seed, and that rate; `None` if every rate is 0. Of
    /// equal policies the last one counts. A policy that fails just above the highest rate so far is not searched.
    ///
    /// # Errors
    /// If a policy does not fit the machine or breaks its contract, or an [interrupt](crate::live::interrupt) came.
    pub(in crate::lab) fn best_of<'p, P: PolicyFactory>(
        &self,
        policies: &[&'p P],
    ) -> Result<Option<(&'p P, f64)>, SimError> {
        let mut best: Option<(&P, f64)> = None;
        for &policy in policies.iter().rev() {
            let candidate = self.candidate(policy);
            let short = self.short_runs();
            let mut search = self.seed_search(&candidate, 0, &short);
            let begin = match best {
                None => 0,
                Some((_, qps)) => match candidate.grid.step_at(qps * (1.0 + 1e-5)).checked_sub(1) {
                    Some(step) if search.meets(step)? => step,
                    _ => continue,
                },
            };
            if let Some(step) = search.highest(begin, None)? {
                best = Some((policy, candidate.grid.rate_qps(step)));
            }
        }
        Ok(best)
    }

    /// The rate of a policy in short runs of the first seed, searched from `begin_qps` on; 0 if none holds.
    ///
    /// # Errors
    /// The errors of [`best_of`](Self::best_of).
    pub(in crate::lab) fn coarse_from(&self, policy: &dyn PolicyFactory, begin_qps: f64) -> Result<f64, SimError> {
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
