//! Fleets: equal groups of machines that share a rate. `simulate`, `sweep` and `plan` build and judge them here.
//!
//! A group is one machine, or as many as the index has shards. A fleet sustains a rate exactly if its
//! [capacity](CapacitySearch) reaches it, so that all commands name the same number of machines.

use std::collections::BTreeMap;

use super::capacity::{CapacitySearch, Played, RunLength, play_all};
use super::{Objective, StudyError};
use crate::base::random::exp;
use crate::base::stats::normal_quantile;
use crate::base::time::Nanos;
use crate::cost::{MachineProfile, Workload};
use crate::sched::{BuiltIn, PolicyFactory, PolicyKind};
use crate::sim::{Cluster, ClusterShape, Experiment};

/// Standard deviation of the logarithm of machine speed, between machines and days.
pub const SPEED_SPREAD: f64 = 0.07;
/// The share of machines that are faster than those assumed with the spread.
const SERVED_SHARE: f64 = 0.9;
/// The factor on service times of machines so slow that a share of [`SERVED_SHARE`] is faster.
fn slow_machines() -> f64 {
    exp(SPEED_SPREAD * normal_quantile(SERVED_SHARE))
}

/// Larger fleets are played as one of this many machines that gets its share of the rate.
const MOST_PLAYED: usize = 64;
/// Machines that are proportionally slower sustain a rate for certain if it is lower than their capacity by this factor.
const CLEAR: f64 = 1.1;
/// A fleet of one group fewer has at most this many times the capacity per group.
const FEWER_GAIN: f64 = 1.01;

/// Whether service times are those of Tandem's lanes: it profiled them itself, or a machine profile describes its lanes. Own
/// service times include all that a core does for a query.
#[must_use]
pub fn needs_dispatcher(workload: &Workload, profile: Option<&MachineProfile>) -> bool {
    profile.is_some() || workload.has_features()
}

/// CPU workers of a machine with these cores and GPUs. Tandem's lanes leave a core for the dispatcher and one for each GPU;
/// own service times use all cores.
///
/// # Errors
/// A text, if no core is left for a worker, or for the dispatcher beside GPUs.
pub fn workers(cores: usize, gpus: usize, needs_dispatcher: bool) -> Result<usize, String> {
    if !needs_dispatcher {
        return Ok(cores);
    }
    let least = if gpus == 0 { 2 } else { 1 + gpus };
    if cores < least {
        let feeds = if gpus == 0 { "a query needs another one" } else { "each GPU needs another one" };
        return Err(format!(
            "its number of cores is {cores}, expected at least {least}: the dispatcher of Tandem's own executors needs one and {feeds}"
        ));
    }
    Ok(cores - 1 - gpus)
}

/// The policies that answer if none is named, and those that are then only compared with them. Machines without GPUs serve
/// queries first come, first served, as search servers do; other policies show what they would gain.
#[must_use]
pub fn usual_policies(has_gpus: bool) -> (&'static [PolicyKind], &'static [PolicyKind]) {
    use PolicyKind::{BestOf, Combined, CpuOnly, GpuOnly, Stealing, StealingAdaptive};
    match has_gpus {
        true => (&[GpuOnly, CpuOnly, BestOf, Stealing, Combined], &[]),
        false => (&[CpuOnly], &[StealingAdaptive]),
    }
}

/// Equal groups of machines, before their number is known.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// One machine with its queries, and the arrivals of the runs.
    pub machine: Experiment,
    /// Shards, routing and costs of shards; the number of replicas varies.
    pub shape: ClusterShape,
    /// The objective of each run.
    pub objective: Objective,
    /// The length of the runs.
    pub length: RunLength,
    /// The factor from the service times of the queries to those of these machines.
    pub scale: f64,
}

/// The fewest groups that sustain a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fewest {
    /// Number of groups.
    pub groups: usize,
    /// The highest rate that they sustain together.
    pub qps: f64,
}

impl Fleet {
    /// The experiment on this many groups whose service times are `factor` times those of the type. Multiplying all times by
    /// a factor scales time itself: rates in the experiment are those of the fleet times this factor and the scale.
    #[must_use]
    pub fn of(&self, groups: usize, factor: f64) -> (Experiment, Objective) {
        let stretched = |time: Nanos| time.scaled(1.0 / (self.scale * factor));
        let shape = ClusterShape { replicas: groups, ..self.shape };
        let cluster = Cluster::of(shape, &self.machine.queries);
        let deadline = stretched(self.machine.deadline);
        (Experiment { cluster, deadline, ..self.machine.clone() }, self.objective.with_times(stretched))
    }

    /// Number of groups that are played for a fleet of this many.
    fn played(&self, groups: usize) -> usize {
        groups.min((MOST_PLAYED / self.shape.shards).max(1))
    }

    /// The highest rate that this many groups sustain under a policy; 0 if none holds.
    ///
    /// # Errors
    /// If the policy does not fit the machine or breaks its contract, or all costs are 0.
    pub fn capacity_qps(&self, policy: &dyn PolicyFactory, groups: usize, factor: f64) -> Result<f64, StudyError> {
        let played = self.played(groups);
        let (experiment, objective) = self.of(played, factor);
        let found = CapacitySearch::new(&experiment, objective, self.length)?.of(policy)?;
        Ok(found.qps / (self.scale * factor) * groups as f64 / played as f64)
    }

    /// The fewest groups that sustain the rate, searched around the number that `each_qps` suggests; `None` if no number does.
    ///
    /// # Errors
    /// As for [`capacity_qps`](Self::capacity_qps).
    pub fn fewest(
        &self,
        policy: &dyn PolicyFactory,
        (rate_qps, factor): (f64, f64),
        each_qps: f64,
    ) -> Result<Option<Fewest>, StudyError> {
        let needed = |each_qps: f64| ((rate_qps / each_qps).ceil() as usize).max(1);
        if each_qps <= 0.0 {
            return Ok(None);
        }
        let mut found: BTreeMap<usize, f64> = BTreeMap::new();
        let mut groups = needed(each_qps);
        loop {
            let qps = self.capacity_qps(policy, groups, factor)?;
            found.insert(groups, qps);
            if qps <= 0.0 {
                return Ok(None);
            }
            let fails = found.iter().filter(|(_, qps)| **qps < rate_qps).map(|(groups, _)| *groups).max().unwrap_or(0);
            let holds = found.iter().find(|&(groups, qps)| *groups > fails && *qps >= rate_qps);
            groups = match holds {
                Some((&groups, &qps)) => {
                    let fewer = needed(FEWER_GAIN * qps / groups as f64).clamp(fails + 1, groups);
                    if fewer == groups {
                        return Ok(Some(Fewest { groups, qps }));
                    }
                    fewer
                }
                None => needed(qps / groups as f64).max(fails + 1),
            };
        }
    }

    /// Whether this many groups sustain a rate, and whether they also do on machines so slow that nine in ten are faster.
    ///
    /// # Errors
    /// As for [`capacity_qps`](Self::capacity_qps).
    pub fn sustains(
        &self,
        policy: &dyn PolicyFactory,
        groups: usize,
        rate_qps: f64,
    ) -> Result<(bool, bool), StudyError> {
        if self.utilisation(policy, groups, rate_qps) >= 1.0 {
            return Ok((false, false));
        }
        let (qps, slow) = (self.capacity_qps(policy, groups, 1.0)?, slow_machines());
        // A deadline far above the service times makes the capacity proportional to speed.
        let on_slow = match qps / slow / rate_qps {
            ratio if ratio < 1.0 => false,
            ratio if ratio >= CLEAR => true,
            _ => self.capacity_qps(policy, groups, slow)? >= rate_qps,
        };
        Ok((qps >= rate_qps, on_slow))
    }

    /// Whether one group, with service times that are `factor` times those of the type, sustains a hundredth of its highest rate
    /// under some policy.
    ///
    /// # Errors
    /// As for [`capacity_qps`](Self::capacity_qps).
    pub fn serves(&self, policies: &[BuiltIn], factor: f64) -> Result<bool, StudyError> {
        let (experiment, objective) = self.of(1, factor);
        let search = CapacitySearch::new(&experiment, objective, self.length)?;
        Ok(search.serves(&policies.iter().collect::<Vec<_>>())?)
    }

    /// The share of the work that this many groups can do which a rate offers; at 1 delays grow without end.
    #[must_use]
    pub fn utilisation(&self, policy: &dyn PolicyFactory, groups: usize, rate_qps: f64) -> f64 {
        let (one, _) = self.of(1, 1.0);
        let stable_qps = one.region_of(policy, 0.0).map_or(f64::INFINITY, |region| region.rate_qps);
        rate_qps * self.scale / (stable_qps * groups as f64)
    }

    /// Runs of this many groups at a rate, one per seed. Their times are those of the fleet without its scale.
    ///
    /// # Errors
    /// As for [`capacity_qps`](Self::capacity_qps).
    pub fn at_rate(&self, policy: &dyn PolicyFactory, groups: usize, rate_qps: f64) -> Result<Vec<Played>, StudyError> {
        let played = self.played(groups);
        let rate_qps = rate_qps * self.scale * played as f64 / groups as f64;
        Ok(play_all(&self.of(played, 1.0).0, &[policy], &[rate_qps], 0.0, |_, _| true, &|| ())?)
    }
}
