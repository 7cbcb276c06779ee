//! The machine that commands simulate: one function builds it for all of them, as it is when it is driven.
//!
//! | part | comes from |
//! | --- | --- |
//! | CPU workers | the question; one query each |
//! | GPU lanes | the question; [as deep](super::processors::GPU_LANE_DEPTH) as real ones |
//! | batches | the formula fitted to the workload's measured batches |
//! | handing over, the dispatcher, slowdown, noise | the machine file; without one these cost nothing |
//! | what policies are told of batches | the formula, off by its own error unless estimates are exact |

use super::processors::GPU_LANE_DEPTH;
use crate::base::machine::{Class, Machine, PerClass};
use crate::cost::{MachineFile, MachineModel, Workload};
use crate::files::Provenance;
use crate::lab::Estimates;

/// The mean of |z|, z being standard normal: what turns a mean relative error into a deviation.
const MEAN_OF_ABSOLUTE_NORMAL: f64 = 0.797_884_560_802_865_4;

/// A machine file, and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct NamedMachine<'a> {
    /// The file's name.
    pub name: &'a str,
    /// What it says.
    pub file: &'a MachineFile,
}

/// What is simulated: processors, and where the costs of serving come from.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedMachine<'a> {
    /// CPU workers.
    pub cpus: usize,
    /// GPUs.
    pub gpus: usize,
    /// Streams of each GPU.
    pub streams: usize,
    /// What serving costs, where it was measured.
    pub file: Option<NamedMachine<'a>>,
    /// Whether recorded times stand in the GPUs' place, which are played as they are.
    pub is_gpu_replayed: bool,
}

impl SimulatedMachine<'static> {
    /// So many CPU workers and GPUs of one stream, without a machine file.
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

    /// The machine with its costs, as it serves a workload under policies that know such estimates.
    #[must_use]
    pub fn model(&self, workload: &Workload, estimates: &Estimates) -> MachineModel {
        let model = profiled_machine(self.processors(), workload, Some(estimates));
        let is_played = |class: Class| class.is_gpu() && self.is_gpu_replayed;
        match self.file {
            Some(NamedMachine { file, .. }) => file.model(&model, workload.contention.as_ref(), is_played),
            None => model,
        }
    }

    /// How many CPU workers were busy at once, at most, when it was measured how far they slow each other down.
    #[must_use]
    pub fn measured_cpus(&self, workload: &Workload) -> usize {
        let by_workload = workload.contention.iter().flat_map(|company| company.cpu.iter().map(|point| point.busy));
        let of_cpus = self.file.and_then(|NamedMachine { file, .. }| file.classes.get(&Class::CPU));
        let by_file = of_cpus.into_iter().flat_map(|lanes| lanes.crowding.iter().map(|point| point.busy));
        // The file's slowdown is played, by the workload's measurements where there are any.
        let counts: Vec<u32> = if self.file.is_some() { by_workload.chain(by_file).collect() } else { Vec::new() };
        // Each query alone, on one worker.
        counts.into_iter().max().unwrap_or(1) as usize
    }

    /// Whether it has more CPU workers than [were measured](Self::measured_cpus): that they slow each other down no further
    /// is an assumption.
    #[must_use]
    pub fn is_extrapolated(&self, workload: &Workload) -> bool {
        self.cpus > self.measured_cpus(workload)
    }

    /// What is to be said where the result is read; `None` where all of it was measured.
    #[must_use]
    pub fn warning(&self, workload: &Workload) -> Option<String> {
        self.is_extrapolated(workload).then(|| extrapolated(self.cpus, self.measured_cpus(workload)))
    }

    /// The lines that say what was simulated, for the head of every file.
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

/// What is said in a machine file's place.
const NO_FILE: &str = "none (handing over and the dispatcher take no time)";

/// That a result goes beyond what was measured.
#[must_use]
pub fn extrapolated(cpus: usize, measured: usize) -> String {
    let at_once = if measured == 1 { String::from("one was busy") } else { format!("{measured} were busy at once") };
    format!(
        "EXTRAPOLATED to {cpus} CPU workers: at most {at_once} when queries were measured, and it is assumed that more slow \
         each other down no further"
    )
}

/// Processors with what the workload says of their batches, and nothing else. `estimates` are what policies know of what a
/// simulation plays; `None`, or exact ones, know of batches what is played.
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
