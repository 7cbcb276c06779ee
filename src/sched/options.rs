//! The options of policies, and what they may be.

use super::PolicyError;

/// What a thief heeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum StealGuard {
    /// Nothing: an idle processor always steals
    None,
    /// Steals only jobs that it is predicted to finish within their deadline
    Deadline,
    /// Steals only jobs that it is predicted to finish before their own processors would have worked off their queue
    Gain,
}

/// The options of all policies; each policy reads its own.
#[derive(Clone, Copy, Debug, PartialEq, clap::Args)]
pub struct PolicyOptions {
    /// stealing: a query waits for one kind of processor if it is predicted to be this many times as fast there
    #[arg(long, value_name = "RATIO", default_value_t = 1.2)]
    pub threshold_ratio: f64,
    /// stealing: a query past this share of the time to its deadline runs next on its preferred kind
    #[arg(long, value_name = "SHARE", default_value_t = 0.6)]
    pub urgent_share: f64,
    /// stealing: weight of the predicted cost in the order of a queue (0: cost does not count)
    #[arg(long, value_name = "WEIGHT", default_value_t = 1.0)]
    pub cost_weight: f64,
    /// stealing: weight of the deadline in the order of a queue
    #[arg(long, value_name = "WEIGHT", default_value_t = 1.0)]
    pub deadline_weight: f64,
    /// stealing: weight of the time that a query gains by running on this kind and not on the other
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.1)]
    pub affinity_weight: f64,
    /// stealing: what an idle processor heeds before it steals
    #[arg(long, value_name = "GUARD", value_enum, default_value_t = StealGuard::Gain)]
    pub steal_guard: StealGuard,
}

impl Default for PolicyOptions {
    fn default() -> Self {
        Self {
            threshold_ratio: 1.2,
            urgent_share: 0.6,
            cost_weight: 1.0,
            deadline_weight: 1.0,
            affinity_weight: 0.1,
            steal_guard: StealGuard::Gain,
        }
    }
}

impl PolicyOptions {
    /// Weights above this would leave nothing of a nanosecond's worth in a 64-bit key.
    const MAX_WEIGHT: f64 = 1e6;

    /// Whether every value makes sense.
    ///
    /// # Errors
    /// Names the first option that does not, with what would.
    pub fn check(&self) -> Result<(), PolicyError> {
        let fault = |option: &'static str, value: f64, expected: &'static str| {
            Err(PolicyError::BadOption { option, value, expected })
        };
        if !(self.threshold_ratio >= 1.0 && self.threshold_ratio.is_finite()) {
            return fault("--threshold-ratio", self.threshold_ratio, "a number of at least 1");
        }
        if !(0.0..=1.0).contains(&self.urgent_share) {
            return fault("--urgent-share", self.urgent_share, "a number from 0 to 1");
        }
        let weights = [
            ("--cost-weight", self.cost_weight),
            ("--deadline-weight", self.deadline_weight),
            ("--affinity-weight", self.affinity_weight),
        ];
        for (option, weight) in weights {
            if !(0.0..=Self::MAX_WEIGHT).contains(&weight) {
                return fault(option, weight, "a number from 0 to 1000000");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_default_to_what_the_command_line_says() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: PolicyOptions,
        }
        let line = <Line as clap::Parser>::parse_from(["tandem"]);
        assert_eq!(line.options, PolicyOptions::default());
    }
}
