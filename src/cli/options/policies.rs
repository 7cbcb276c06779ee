//! `--policy` and the options of policies.

use crate::cli::Failure;
use crate::cost::MachineModel;
use crate::lab::QueryLengths;
use crate::sched::{BuiltIn, PolicyFactory, PolicyKind, PolicyOptions, Shed, StealGuard};

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
    /// policies that batch: the most queries of a batch
    #[arg(long, value_name = "N", default_value_t = PolicyOptions::default().batch_limit)]
    batch_limit: u32,
    /// policies that batch: a batch takes at most this share of the time to its queries' deadlines
    #[arg(long, value_name = "SHARE", default_value_t = PolicyOptions::default().batch_share)]
    batch_share: f64,
    /// window: a batch closes when its oldest query has waited this long, in microseconds
    #[arg(long, value_name = "US", default_value_t = PolicyOptions::default().window_us)]
    window_us: f64,
    /// window: or when it holds so many queries
    #[arg(long, value_name = "N", default_value_t = PolicyOptions::default().window_queries)]
    window_queries: u32,
    /// length-based: queries whose lists have fewer blocks of 128 postings go to GPUs [default: where, by estimates, neither
    /// side waits for the other]
    #[arg(long, value_name = "BLOCKS")]
    pub(in crate::cli) length_threshold: Option<u32>,
    /// cached-first: queries that may wait for each CPU worker before the other side helps
    #[arg(long, value_name = "N", default_value_t = PolicyOptions::default().patience)]
    patience: u32,
    /// which queries are dropped when a processor takes them up: `late`, those that are predicted to finish after their
    /// deadline; objectives count them as late
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = PolicyOptions::default().shed)]
    shed: Shed,
}

impl PolicyArguments {
    /// The options as policies take them, checked.
    pub(in crate::cli) fn checked(&self) -> Result<PolicyOptions, Failure> {
        let Self { threshold_ratio, urgent_share, cost_weight, deadline_weight, affinity_weight, steal_guard, .. } =
            *self;
        let Self { batch_limit, batch_share, window_us, window_queries, length_threshold, patience, shed, .. } = *self;
        let options = PolicyOptions {
            threshold_ratio,
            urgent_share,
            cost_weight,
            deadline_weight,
            affinity_weight,
            steal_guard,
            batch_limit,
            batch_share,
            window_us,
            window_queries,
            length_threshold: length_threshold.unwrap_or(PolicyOptions::default().length_threshold),
            patience,
            shed,
        };
        options.check()?;
        Ok(options)
    }

    /// As [`checked`](Self::checked), for a workload of queries of these lengths: what was left open is what suits them.
    pub(in crate::cli) fn suited_to(&self, lengths: &QueryLengths) -> Result<PolicyOptions, Failure> {
        let length_threshold = self.length_threshold.unwrap_or(lengths.best_threshold);
        Ok(PolicyOptions { length_threshold, ..self.checked()? })
    }

    /// The policies that are named, each once, or all that make sense on this machine, for queries of these lengths.
    pub(in crate::cli) fn policies(
        &self,
        named: &[PolicyKind],
        model: &MachineModel,
        lengths: &QueryLengths,
    ) -> Result<Vec<BuiltIn>, Failure> {
        let options = self.suited_to(lengths)?;
        let made = |kind: PolicyKind| kind.with(options).with_lengths(lengths.blocks.clone());
        if named.is_empty() {
            let batches = model.batches.iter().any(|(_, batches)| batches.is_some());
            let usual = |kind: &PolicyKind| !kind.is_for_comparison() && (batches || !kind.batches());
            let all = PolicyKind::ALL.into_iter().filter(usual).map(&made);
            let goes = |policy: &BuiltIn| policy.build(model).is_ok() && check_lengths(policy.kind, lengths).is_ok();
            return Ok(all.filter(goes).collect());
        }
        named.iter().try_for_each(|&kind| check_lengths(kind, lengths))?;
        let mut policies: Vec<BuiltIn> = Vec::new();
        for policy in named.iter().copied().map(made) {
            policy.build(model)?;
            if !policies.contains(&policy) {
                policies.push(policy);
            }
        }
        Ok(policies)
    }
}

/// Whether a policy that goes by the length of queries can know it.
fn check_lengths(kind: PolicyKind, lengths: &QueryLengths) -> Result<(), Failure> {
    if kind != PolicyKind::LengthBased || lengths.unknown == 0 {
        return Ok(());
    }
    Err(Failure::input(format!(
        "--policy {kind} goes by the blocks of a query's lists, and the workload has {} queries of unknown `blocks`: profile it \
         again",
        lengths.unknown
    )))
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
