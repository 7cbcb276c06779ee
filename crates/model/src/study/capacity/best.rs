//! Whether any policy serves at all, for plans.

use super::CapacitySearch;
use crate::sched::PolicyFactory;
use crate::sim::SimError;

/// The share of its highest rate that a policy must hold so that it serves at all.
const LEAST_SHARE: f64 = 0.01;

impl CapacitySearch<'_> {
    /// Whether some policy holds a hundredth of its highest rate in a short run of the first seed.
    ///
    /// # Errors
    /// If a policy does not fit the machine or breaks its contract, or an [interrupt](crate::base::interrupt) came.
    pub fn serves<P: PolicyFactory>(&self, policies: &[&P]) -> Result<bool, SimError> {
        for &policy in policies {
            let candidate = self.candidate(policy);
            let step = candidate.grid.step_at(LEAST_SHARE * candidate.grid.top_qps);
            if self.seed_search(&candidate, 0, &self.short_runs()).meets(step)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
