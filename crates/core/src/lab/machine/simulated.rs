//! The simulated machine. All commands build it with this module, and it matches the live machine.
//!
//! | part | comes from |
//! | --- | --- |
//! | CPU workers | the question; one query each |
//! | GPU lanes | the question; [as deep](super::processors::GPU_LANE_DEPTH) as real ones |
//! | batches | the formula fitted to the workload's measured batches |
//! | hand-over, dispatcher, slowdown, variation | the machine profile; without one these cost nothing |
//! | speed-up on several CPU workers | the workload; without it a query gains nothing from a second one |
//! | estimates of batches | the formula with its own error, unless estimates are exact |

use std::sync::Arc;

use super::processors::GPU_LANE_DEPTH;
use crate::base::machine::{Class, Machine, PerClass};
use crate::cost::{MachineModel, MachineProfile, Workload};
use crate::files::Provenance;
use crate::lab::Estimates;

/// The mean of |z| for a standard normal z. It turns a mean relative error into a standard deviation.
const MEAN_OF_ABSOLUTE_NORMAL: f64 = 0.797_884_560_802_865_4;

/// A machine profile with the name of its file.
#[derive(Clone, Copy, Debug)]
pub struct NamedMachine<'a> {
    /// The file's name.
    pub name: &'a str,
    /// The profile.
    pub profile: &'a MachineProfile,
}

/// The simulated processors, and the source of serving costs.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedMachine<'a> {
    /// Number of CPU workers.
    pub cpus: usize,
    /// Number of GPUs.
    pub gpus: usize,
    /// Number of streams per GPU.
    pub streams: usize,
    /// The measured costs of serving, if there are any.
    pub profile: Option<NamedMachine<'a>>,
    /// Whether recorded times replace the GPUs; these are simulated without changes.
    pub is_gpu_replayed: bool,
}

impl SimulatedMachine<'static> {
    /// A machine of `cpus` CPU workers and `gpus` GPUs with one stream, without a machine profile.
    #[must_use]
    pub fn new(cpus: usize, gpus: usize) -> Self {
        Self { cpus, gpus, streams: 1, profile: None, is_gpu_replayed: false }
    }
}

impl SimulatedMachine<'_> {
    /// The processors.
    #[must_use]
    pub fn processors(&self) -> Machine {
        Machine::new(self.cpus, 0).with_gpus(self.gpus, self.streams, GPU_LANE_DEPTH)
    }

    /// The machine model for this workload, under policies with these estimates.
    #[must_use]
    pub fn model(&self, workload: &Workload, estimates: &Estimates) -> MachineModel {
        let model = profiled_machine(self.processors(), workload, Some(estimates));
        let is_played = |class: Class| class.is_gpu() && self.is_gpu_replayed;
        match self.profile {
            Some(NamedMachine { profile, .. }) => profile.model(&model, is_played),
            None => model,
        }
    }

    /// Most CPU workers that were busy at once when the machine was measured.
    #[must_use]
    pub fn measured_cpus(&self) -> usize {
        // Without a profile, each query was measured alone on one worker.
        self.profile.map_or(1, |NamedMachine { profile, .. }| profile.measured_lanes(Class::CPU).max(1) as usize)
    }

    /// Whether it has more CPU workers than [were measured](Self::measured_cpus); their added contention is neglected.
    #[must_use]
    pub fn is_extrapolated(&self) -> bool {
        self.cpus > self.measured_cpus()
    }

    /// The warning for an extrapolated result, else `None`.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.is_extrapolated().then(|| extrapolated(self.cpus, self.measured_cpus()))
    }

    /// Adds lines about the simulated machine to the head of a file.
    #[must_use]
    pub fn provenance(&self, provenance: Provenance) -> Provenance {
        let file = self.profile.map_or(NO_FILE, |NamedMachine { name, .. }| name);
        let mut provenance = provenance
            .with("gpu_lane_depth", GPU_LANE_DEPTH)
            .with("machine profile", file)
            .with("measured_cpus", self.measured_cpus());
        if let Some(NamedMachine { profile, .. }) = self.profile {
            provenance = provenance.with("machine_drift", format!("{:.3}", profile.drift()));
        }
        self.warning().into_iter().fold(provenance, |all, warning| all.with("extrapolated", warning))
    }
}

/// The text that replaces the name of a machine profile.
const NO_FILE: &str = "none (handing over and the dispatcher take no time)";

/// The warning that a result exceeds the measurements.
#[must_use]
pub fn extrapolated(cpus: usize, measured: usize) -> String {
    let at_once = if measured == 1 { String::from("one was busy") } else { format!("{measured} were busy at once") };
    format!(
        "EXTRAPOLATED to {cpus} CPU workers: at most {at_once} when queries were measured, and it is assumed that more slow \
         each other down no further"
    )
}

/// The machine with the workload's batch costs. Inexact `estimates` set the batch error that policies see.
#[must_use]
pub(in crate::lab) fn profiled_machine(
    machine: Machine,
    workload: &Workload,
    estimates: Option<&Estimates>,
) -> MachineModel {
    let is_told = matches!(estimates, Some(Estimates::Fitted(_) | Estimates::Model(..)));
    let error = |class: Class| {
        let model = workload.batches.0[class].as_ref().filter(|_| is_told)?;
        Some(model.mean_relative_error / MEAN_OF_ABSOLUTE_NORMAL).filter(|error| error.is_finite())
    };
    MachineModel {
        batches: workload.batches.batch_costs(),
        parallelism: workload.parallelism().map(Arc::new),
        batch_error: PerClass::from_fn(|class| error(class).unwrap_or(0.0)),
        ..machine.into()
    }
}
