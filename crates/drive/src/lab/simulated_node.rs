//! A node in the simulator: what experiments on it are made of.

use tandem_model::base::time::Nanos;
use tandem_model::cost::MachineModel;
use tandem_model::sched::PolicyFactory;
use tandem_model::sim::{Arrivals, Experiment, SimQuery};

use super::Calibration;

/// A node in the simulator.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedNode<'a> {
    /// The machine as profiled, without a machine profile.
    pub(super) profiled: &'a MachineModel,
    /// The machine with its profile, or as the workload says.
    pub(super) model: &'a MachineModel,
    /// The queries that simulations use.
    pub(super) queries: &'a [SimQuery],
}

impl SimulatedNode<'_> {
    /// The experiment. Costs come from the machine profile at the speed that `backlogs` show, without a profile from the
    /// backlogs alone, and without backlogs from the profile or the workload as they are.
    pub(super) fn experiment(
        &self,
        backlogs: Option<&Calibration>,
        arrivals: Vec<Arrivals>,
        deadline: Nanos,
    ) -> Experiment {
        let model = match backlogs {
            Some(backlogs) if self.model.is_exact() => return self.rehearsal(backlogs, arrivals, deadline),
            Some(backlogs) => backlogs.adapt(self.model, self.queries),
            None => self.model.clone(),
        };
        Experiment { model, queries: self.queries.to_vec(), deadline, arrivals, cluster: None }
    }

    /// The experiment with the costs of backlogs alone.
    pub(super) fn rehearsal(&self, backlogs: &Calibration, arrivals: Vec<Arrivals>, deadline: Nanos) -> Experiment {
        let queries = self.queries.iter().map(|query| backlogs.query(query)).collect();
        Experiment { model: backlogs.model(self.profiled), queries, deadline, arrivals, cluster: None }
    }

    /// Linear scaling: the rate at which a policy keeps all processors busy with queries that cost what they do alone.
    /// `None` if all costs are 0.
    pub(super) fn linear_qps(&self, policy: &dyn PolicyFactory) -> Option<f64> {
        let alone = Self { model: self.profiled, ..*self };
        Some(alone.experiment(None, Vec::new(), Nanos::MAX).region_of(policy, 0.0)?.rate_qps)
    }
}
