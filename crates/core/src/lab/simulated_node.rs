//! A node in the simulator: what experiments on it are made of.

use super::Calibration;
use crate::base::time::Nanos;
use crate::cost::MachineModel;
use crate::sched::PolicyFactory;
use crate::sim::{Arrivals, Experiment, SimQuery};

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
    /// The experiment. Costs come from `calibration`, else the machine profile, else the workload.
    pub(super) fn experiment(
        &self,
        calibration: Option<&Calibration>,
        arrivals: Vec<Arrivals>,
        deadline: Nanos,
    ) -> Experiment {
        let (model, queries) = match calibration {
            Some(found) => (found.model(self.profiled), self.queries.iter().map(|query| found.query(query)).collect()),
            None => (self.model.clone(), self.queries.to_vec()),
        };
        Experiment { model, queries, deadline, arrivals, cluster: None }
    }

    /// Linear scaling: the rate at which a policy keeps all processors busy with queries that cost what they do alone.
    /// `None` if all costs are 0.
    pub(super) fn linear_qps(&self, policy: &dyn PolicyFactory) -> Option<f64> {
        let alone = Self { model: self.profiled, ..*self };
        Some(alone.experiment(None, Vec::new(), Nanos::MAX).region_of(policy, 0.0)?.rate_qps)
    }
}
