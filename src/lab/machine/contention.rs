//! What queries of a workload take in company, for the workload's file: [`Contention`].

use super::fit::{calm_ratio, longer, rounded};
use super::probe::Probe;
use super::{MachineSample, OVERLOAD, Stage, counts_up_to, drive_stage, real_gpus};
use crate::cost::{BatchContention, Contention, CpuContention, MachineFile};
use crate::lab::{LabError, Node, Progress};
use crate::machine::Class;

/// How often the stages take turns.
const ROUNDS: u64 = 5;
/// Queries of a GPU's batches.
const BATCH: usize = 2048;
/// Offered while CPU lanes and GPU lanes are busy together: not so much that the dispatcher has no time for either.
const TOGETHER: f64 = 1.2;

/// Takes on what a machine file says, and measures what the workload's queries take in company if that is not known yet.
///
/// # Errors
/// As [`measure_contention`].
pub fn adopt_machine(node: &mut Node, file: &MachineFile, progress: &dyn Progress) -> Result<(), LabError> {
    if node.workload().contention.is_none() {
        node.set_idle(file.idle);
        let found = measure_contention(node, progress)?;
        node.set_contention(found);
    }
    node.set_machine(file);
    Ok(())
}

/// Measures it on the node's own lanes, in turns: 1, 2, 4... CPU lanes, GPU lanes by themselves, and all of them. A few
/// seconds, in which every stage lasts long enough for some twenty queries a lane.
///
/// # Errors
/// If a run fails, or is interrupted before all is measured.
pub fn measure_contention(node: &mut Node, progress: &dyn Progress) -> Result<Contention, LabError> {
    node.warm_up(std::time::Duration::from_millis(200))?;
    let has_batches = node.model().batches[Class::GPU].is_some();
    let (cpus, gpus) = (node.machine().count(Class::CPU), if has_batches { real_gpus(node) } else { 0 });
    let counts = counts_up_to(cpus);
    let mut streams: Vec<Vec<MachineSample>> = vec![Vec::new(); counts.len()];
    let (mut batches, mut together) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        progress.doing(&format!("queries in company: round {} of {ROUNDS}", round + 1));
        for (&cpus, samples) in counts.iter().zip(&mut streams) {
            samples.extend(drive_stage(node, (round, Stage::Stream, OVERLOAD), Probe { cpus, gpus: 0, batch: 1 })?);
        }
        if gpus > 0 {
            let alone = Probe { cpus: 0, gpus, batch: BATCH };
            batches.extend(drive_stage(node, (round, Stage::Batches, OVERLOAD), alone)?);
        }
        if gpus > 0 && cpus > 0 {
            let all = Probe { cpus, gpus, batch: BATCH };
            together.extend(drive_stage(node, (round, Stage::Beside, TOGETHER), all)?);
        }
    }
    progress.end();
    let cpu: Vec<CpuContention> = counts
        .iter()
        .zip(&streams)
        .map(|(&lanes, samples)| CpuContention { busy: lanes as u32, times: work_over_alone(samples) })
        .collect();
    let all_busy = cpu.last().map_or(1.0, |last| last.times);
    let beside = work_over_alone(&of_class(&together, Class::CPU));
    let cpu_beside_gpu = if together.is_empty() { 1.0 } else { (beside / all_busy).max(1.0) };
    let groups = [(0, batches), (cpus as u32, of_class(&together, Class::GPU))];
    let gpu_batches = groups.into_iter().filter(|(_, samples)| !samples.is_empty()).map(|(busy_cpus, samples)| {
        // Batches of a few queries come last, and are mostly what any launch takes.
        let whole = || samples.iter().filter(|sample| sample.queries as usize * 2 > BATCH);
        BatchContention {
            busy_cpus,
            host: longer(whole().map(|sample| (sample.host, sample.profiled.host))),
            device: longer(whole().map(|sample| (sample.device, sample.profiled.device))),
        }
    });
    Ok(Contention { cpu, cpu_beside_gpu, gpu_batches: gpu_batches.collect() })
}

fn of_class(samples: &[MachineSample], class: Class) -> Vec<MachineSample> {
    samples.iter().filter(|sample| sample.class == class).copied().collect()
}

/// All work over all work alone, but for queries that were held up most: the machine file's noise and stalls say how these
/// are.
fn work_over_alone(samples: &[MachineSample]) -> f64 {
    let both = samples.iter().map(|sample| (sample.worked.as_us(), sample.profiled.total().as_us().max(1e-3)));
    rounded(calm_ratio(both.collect()))
}
