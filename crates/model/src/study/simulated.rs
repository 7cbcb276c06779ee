//! The simulated machine. All commands build it with this module, and it matches the live machine.
//!
//! | part | comes from |
//! | --- | --- |
//! | CPU workers | the question; one query each |
//! | GPU lanes | the question; [as deep](GPU_LANE_DEPTH) as real ones |
//! | batches | the formula fitted to the workload's measured batches |
//! | hand-over, dispatcher, slowdown, variation | the machine profile; without one these cost nothing |
//! | speed-up on several CPU workers | the workload; without it a query gains nothing from a second one |
//! | estimates of batches | the formula with its own error, unless estimates are exact |

use std::sync::Arc;

use crate::base::machine::{Class, Machine, PerClass};
use crate::base::time::Nanos;
use crate::cost::{MachineModel, MachineProfile, Workload};
use crate::files::Provenance;
use crate::sim::Experiment;
use crate::study::estimates::sim_queries;
use crate::study::{Estimates, StudyError, draw_all};
use crate::traffic::ArrivalProcess;

/// Default number of queries in a run that compares delays.
pub const DELAY_QUERIES: usize = 50_000;

/// Most batches that a GPU lane holds, real or replayed.
pub const GPU_LANE_DEPTH: u32 = 4;

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

/// The line of a machine file with the mean time on a CPU worker of the queries that it was measured with, in microseconds.
const MEAN_LINE: &str = "cpu_mean_us";
/// Workloads whose mean time exceeds that of the machine's queries by this factor, or is as much below it, are other ones.
const ALIKE: f64 = 2.0;

/// The mean time on a CPU worker of the workload's queries, in microseconds; `None` if they have none.
fn cpu_mean_us(workload: &Workload) -> Option<f64> {
    let times = workload.rows.iter().filter_map(|row| Some(row.measured[Class::CPU]?.median_us));
    let (count, sum) = times.fold((0, 0.0), |(count, sum), us| (count + 1, sum + us));
    (count > 0).then(|| sum / f64::from(count))
}

/// The line of a machine file that names the mean time of this workload's queries, with which the machine is measured.
#[must_use]
pub fn about_queries(workload: &Workload) -> Option<(String, String)> {
    cpu_mean_us(workload).map(|mean| (MEAN_LINE.to_owned(), format!("{mean:.1}")))
}

impl NamedMachine<'_> {
    /// The warning that the machine was measured with queries of other lengths than this workload's. The ratio of service
    /// times to those of a query alone depends on what caches hold, and so on the index and its queries.
    #[must_use]
    pub fn mismatch(&self, workload: &Workload) -> Option<String> {
        let measured: f64 = self.profile.provenance.get(MEAN_LINE)?.parse().ok()?;
        let mean = cpu_mean_us(workload)?;
        (!(1.0 / ALIKE..=ALIKE).contains(&(mean / measured))).then(|| {
            format!(
                "{} was measured with queries that take {measured:.0} us on a CPU worker, and these take {mean:.0} us: other \
                 queries may slow each other down more, so measure the machine with their index",
                self.name
            )
        })
    }
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
        let provenance = provenance
            .with("gpu_lane_depth", GPU_LANE_DEPTH)
            .with("machine profile", file)
            .with("measured_cpus", self.measured_cpus());
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
pub fn profiled_machine(machine: Machine, workload: &Workload, estimates: Option<&Estimates>) -> MachineModel {
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

/// The experiment of a workload on a machine, with [`DELAY_QUERIES`] Poisson arrivals per seed. Fails if estimates cannot be
/// made, or a cost was not measured.
pub fn experiment(
    workload: &Workload,
    estimates: &Estimates,
    machine: &SimulatedMachine<'_>,
    deadline: Nanos,
    seeds: &[u64],
) -> Result<Experiment, StudyError> {
    let model = machine.model(workload, estimates);
    Ok(Experiment {
        queries: sim_queries(workload, estimates, &model.machine)?,
        model,
        deadline,
        arrivals: draw_all(&ArrivalProcess::Poisson, seeds, DELAY_QUERIES, workload.rows.len()),
        cluster: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::shipped::default_workload;

    #[test]
    fn a_machine_that_was_measured_with_longer_queries_is_pointed_out() {
        let workload = default_workload().unwrap().1;
        let (key, mean) = about_queries(&workload).unwrap();
        let warning = |factor: f64| {
            let mean = mean.parse::<f64>().unwrap() * factor;
            let about = [(key.clone(), format!("{mean:.1}"))].into_iter().collect();
            let (classes, dispatcher) = Default::default();
            let profile = MachineProfile::new(about, Default::default(), classes, dispatcher);
            NamedMachine { name: "m.json", profile: &profile }.mismatch(&workload)
        };
        assert_eq!([0.6, 1.0, 1.9].map(warning), [const { None }; 3]);
        for factor in [0.4, 2.1, 50.0] {
            assert!(warning(factor).unwrap().starts_with("m.json was measured with queries that take "), "{factor}");
        }
    }
}
