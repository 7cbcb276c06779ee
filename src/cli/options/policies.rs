//! `--policy` and the options of policies.

use crate::cli::Failure;
use crate::machine::Machine;
use crate::sched::{PolicyKind, PolicyOptions, StealGuard};

/// The options of all policies; each policy reads its own.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(in crate::cli) struct PolicyArguments {
    /// stealing: a query waits for one kind of processor if it is predicted to be this many times as fast there
    #[arg(long, value_name = "RATIO", default_value_t = PolicyOptions::default().threshold_ratio)]
    threshold_ratio: f64,
    /// stealing: a query past this share of the time to its deadline runs next on its preferred kind
    #[arg(long, value_name = "SHARE", default_value_t = PolicyOptions::default().urgent_share)]
    urgent_share: f64,
    /// stealing: weight of the predicted cost in the order of a queue (0: cost does not count)
    #[arg(long, value_name = "WEIGHT", default_value_t = PolicyOptions::default().cost_weight)]
    cost_weight: f64,
    /// stealing: weight of the deadline in the order of a queue
    #[arg(long, value_name = "WEIGHT", default_value_t = PolicyOptions::default().deadline_weight)]
    deadline_weight: f64,
    /// stealing: weight of the time that a query gains by running on this kind and not on the other
    #[arg(long, value_name = "WEIGHT", default_value_t = PolicyOptions::default().affinity_weight)]
    affinity_weight: f64,
    /// stealing: what an idle processor heeds before it steals
    #[arg(long, value_name = "GUARD", value_enum, default_value_t = PolicyOptions::default().steal_guard)]
    steal_guard: StealGuard,
}

impl PolicyArguments {
    /// The options as policies take them, checked.
    pub(in crate::cli) fn checked(&self) -> Result<PolicyOptions, Failure> {
        let Self { threshold_ratio, urgent_share, cost_weight, deadline_weight, affinity_weight, steal_guard } = *self;
        let options =
            PolicyOptions { threshold_ratio, urgent_share, cost_weight, deadline_weight, affinity_weight, steal_guard };
        options.check()?;
        Ok(options)
    }

    /// The policies that are named, each once, or all that `machine` can run.
    pub(in crate::cli) fn policies(&self, named: &[PolicyKind], machine: &Machine) -> Result<Vec<PolicyKind>, Failure> {
        let options = self.checked()?;
        if named.is_empty() {
            return Ok(PolicyKind::ALL.into_iter().filter(|kind| kind.build(&options, machine).is_ok()).collect());
        }
        let mut policies = Vec::new();
        for &kind in named {
            kind.build(&options, machine)?;
            if !policies.contains(&kind) {
                policies.push(kind);
            }
        }
        Ok(policies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_default_to_what_the_library_says() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: PolicyArguments,
        }
        let line = <Line as clap::Parser>::parse_from(["tandem"]);
        assert_eq!(line.options.checked().unwrap(), PolicyOptions::default());
    }
}
