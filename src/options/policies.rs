//! `--policy`, and the settings of policies.

use tandem_model::base::machine::Class;
use tandem_model::cost::MachineModel;
use tandem_model::sched::{BuiltIn, PolicyFactory, PolicyKind, PolicyOptions};
use tandem_model::study::{QueryLengths, usual_policies};

use crate::failure::Failure;
use crate::settings::Settings;

impl Settings {
    /// The options as policies take them, checked.
    pub(crate) fn checked(&self) -> Result<PolicyOptions, Failure> {
        let options = PolicyOptions {
            threshold_ratio: self.threshold_ratio,
            urgent_share: self.urgent_share,
            cost_weight: self.cost_weight,
            deadline_weight: self.deadline_weight,
            affinity_weight: self.affinity_weight,
            steal_guard: self.steal_guard,
            batch_limit: self.batch_limit,
            batch_share: self.batch_share,
            window_us: self.window_us,
            window_queries: self.window_queries,
            length_threshold: self.length_threshold.unwrap_or(PolicyOptions::default().length_threshold),
            patience: self.patience,
            shed: self.shed,
        };
        options.check()?;
        Ok(options)
    }

    /// The [`checked`](Self::checked) options, with defaults that suit queries of these lengths.
    pub(crate) fn suited_to(&self, lengths: &QueryLengths) -> Result<PolicyOptions, Failure> {
        let length_threshold = self.length_threshold.unwrap_or(lengths.best_threshold);
        Ok(PolicyOptions { length_threshold, ..self.checked()? })
    }

    /// The named policies, each once, for queries of these lengths. Without names they are the [usual
    /// ones](usual_policies) of a machine without GPUs, and else all that the machine can run.
    pub(crate) fn policies(
        &self,
        named: &[PolicyKind],
        model: &MachineModel,
        lengths: &QueryLengths,
    ) -> Result<Vec<BuiltIn>, Failure> {
        let options = self.suited_to(lengths)?;
        let made = |kind: PolicyKind| kind.with(options).with_lengths(lengths.blocks.clone());
        let (answering, compared) = usual_policies(model.machine.num_devices(Class::GPU) > 0);
        let usual = [answering, compared].concat();
        let named = if named.is_empty() && !compared.is_empty() { &usual } else { named };
        if named.is_empty() {
            let batches = model.batches.iter().any(|(_, batches)| batches.is_some());
            let usual = |kind: &PolicyKind| !kind.is_for_comparison() && (batches || !kind.batches());
            let all = PolicyKind::ALL.into_iter().filter(usual).map(&made);
            let goes = |policy: &BuiltIn| policy.build(model).is_ok() && check_lengths(policy.kind, lengths).is_ok();
            return Ok(all.filter(goes).collect());
        }
        named.iter().try_for_each(|&kind| check_lengths(kind, lengths))?;
        named.iter().try_for_each(|&kind| check_speed_up(kind, model))?;
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

/// Checks that the speed-up on several workers is known if the policy needs it.
fn check_speed_up(kind: PolicyKind, model: &MachineModel) -> Result<(), Failure> {
    if !kind.shares_jobs() || model.parallelism.is_some() {
        return Ok(());
    }
    Err(Failure::input(format!(
        "--policy {kind} needs the speed-up of a query on several CPU workers, which the workload lacks: measure it with \
         `tandem profile --speed-up N`, or assume one with --set speed-up=1,1.7,2.4"
    )))
}

/// Checks that the lengths of all queries are known if the policy needs them.
fn check_lengths(kind: PolicyKind, lengths: &QueryLengths) -> Result<(), Failure> {
    if kind != PolicyKind::LengthBased || lengths.unknown == 0 {
        return Ok(());
    }
    Err(Failure::input(format!(
        "--policy {kind} needs the blocks of a query's lists, and the workload has {} queries of unknown `blocks`: profile it \
         again",
        lengths.unknown
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_default_to_what_the_library_says() {
        let settings = <Settings as clap::Parser>::parse_from([""; 0]);
        assert_eq!(settings.checked().unwrap(), PolicyOptions::default());
    }
}
