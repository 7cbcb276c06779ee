//! The simulated machine. All commands build it with this module, and it matches the live machine.
//!
//! | part | comes from |
//! | --- | --- |
//! | CPU workers | the question; one query each |
//! | GPU lanes | the question; [as deep](super::processors::GPU_LANE_DEPTH) as real ones |
//! | batches | the formula fitted to the workload's measured batches |
//! | hand-over, dispatcher, slowdown, noise | the machine file; without one these cost nothing |
//! | estimates of batches | the formula with its own error, unless estimates are exact |

use super::processors::GPU_LANE_DEPTH;
use crate::base::machine::{Class, Machine, PerClass};
use crate::cost::{MachineFile, MachineModel, Workload};
use crate::files::Provenance;
use crate::lab::Estimates;

/// The mean of |z| for a standard normal z. It turns a mean relative error into a standard deviation.
const MEAN_OF_ABSOLUTE_NORMAL: f64 = 0.797_884_560_802_865_4;

/// A machine file with its name.
#[derive(Clone, Copy, Debug)]
pub struct NamedMachine<'a> {
    /// The file's name.
    pub name: &'a str,
    /// The content of the file.
    pub file: &'a MachineFile,
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
    pub file: Option<NamedMachine<'a>>,
    /// Whether recorded times replace the GPUs; these are simulated without changes.
    pub is_gpu_replayed: bool,
}

impl SimulatedMachine<'static> {
    /// A machine of `cpus` CPU workers and `gpus` GPUs with one stream, without a machine file.
    #[must_use]
    pub fn new(cpus: usize, gpus: usize) -> Self {
        Self { cpus, gpus, streams: 1, file: None, is_gpu_replayed: false }
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
        match self.file {
            Some(NamedMachine { file, .. }) => file.model(&model, workload.contention.as_ref(), is_played),
            None => model,
        }
    }

    /// Most CPU workers that were busy at once when their contention was measured.
    #[must_use]
    pub fn measured_cpus(&self, workload: &Workload) -> usize {
        let by_workload = workload.contention.iter().flat_map(|company| company.cpu.iter().map(|point| point.busy));
        let of_cpus = self.file.and_then(|NamedMachine { file, .. }| file.classes.get(&Class::CPU));
        let by_file = of_cpus.into_iter().flat_map(|lanes| lanes.crowding.iter().map(|point| point.busy));
        // The workload's measurements replace the slowdown of the file.
        let counts: Vec<u32> = if self.file.is_some() { by_workload.chain(by_file).collect() } else { Vec::new() };
        // Without measurements, each query was profiled alone on one worker.
        counts.into_iter().max().unwrap_or(1) as usize
    }

    /// Whether it has more CPU workers than [were measured](Self::measured_cpus); their added contention is neglected.
    #[must_use]
    pub fn is_extrapolated(&self, workload: &Workload) -> bool {
        self.cpus > self.measured_cpus(workload)
    }

    /// The warning for an extrapolated result, else `None`.
    #[must_use]
    pub fn warning(&self, workload: &Workload) -> Option<String> {
        self.is_extrapolated(workload).then(|| extrapolated(self.cpus, self.measured_cpus(workload)))
    }

    /// Adds lines about the simulated machine to the head of a file.
    #[must_use]
    pub fn provenance(&self, provenance: Provenance, workload: &Workload) -> Provenance {
        let file = self.file.map_or(NO_FILE, |NamedMachine { name, .. }| name);
        let provenance = provenance
            .with("gpu_lane_depth", GPU_LANE_DEPTH)
            .with("machine file", file)
            .with("measured_cpus", self.measured_cpus(workload));
        self.warning(workload).into_iter().fold(provenance, |all, warning| all.with("extrapolated", warning))
    }
}

/// The text that replaces the name of a machine file.
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
        batch_error: PerClass::from_fn(|class| error(class).unwrap_or(0.0)),
        ..machine.into()
    }
}
