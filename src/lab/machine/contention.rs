//! What queries of a workload take in company, for the workload's file: [`Contention`].

use super::fit::{calm_ratio, longer, rounded};
use super::probe::Probe;
use super::{MachineSample, OVERLOAD, Stage, counts_up_to, drive_stage, real_gpus};
use crate::cost::{BatchContention, BatchOverlap, Contention, CpuContention, MachineFile};
use crate::lab::{LabError, Node, Progress};
use crate::machine::Class;
use crate::time::Nanos;

/// How often the stages take turns.
const ROUNDS: u64 = 5;
/// Queries of a GPU's batches, ascending: of the largest it is told what company does to them.
const BATCHES: [usize; 4] = [4, 16, 128, BATCH];
const BATCH: usize = 2048;
/// Offered where small batches shall follow each other without a pause, however many of them overlap.
const FLOOD: f64 = 2.0 * OVERLOAD;
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

/// Measures it on the node's own lanes, in turns: 1, 2, 4... CPU lanes, GPU lanes by themselves with batches of several sizes,
/// and all of them. A few seconds, in which every stage lasts long enough for some twenty queries or batches a lane.
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
        for batch in BATCHES.into_iter().filter(|_| gpus > 0) {
            let alone = Probe { cpus: 0, gpus, batch };
            let offered = if batch == BATCH { OVERLOAD } else { FLOOD };
            batches.extend(drive_stage(node, (round, Stage::Batches, offered), alone)?);
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
    let groups = [(0, &batches), (cpus as u32, &of_class(&together, Class::GPU))];
    let gpu_batches = groups.into_iter().filter(|(_, samples)| !samples.is_empty()).map(|(busy_cpus, samples)| {
        // Batches of a few queries come last, and are mostly what any launch takes.
        let whole = || samples.iter().filter(|sample| sample.queries as usize * 2 > BATCH);
        BatchContention {
            busy_cpus,
            host: longer(whole().map(|sample| (sample.host, sample.profiled.host))),
            device: longer(whole().map(|sample| (sample.device, sample.profiled.device))),
        }
    });
    let gpu_batches: Vec<BatchContention> = gpu_batches.collect();
    let gpu_overlap = gpu_batches.first().map_or(Vec::new(), |alone| overlap(&batches, alone));
    Ok(Contention { cpu, cpu_beside_gpu, gpu_batches, gpu_overlap })
}

/// By size: how far batches that followed each other overlapped, where the halves of a lane are so many times as long as by the
/// formula.
fn overlap(batches: &[MachineSample], times: &BatchContention) -> Vec<BatchOverlap> {
    let of_size = |&size: &usize| {
        // The first batch of a stream had a lane to itself, and the last one may be smaller.
        let streams = batches.iter().filter(|sample| sample.queries as usize == size && sample.idle == Nanos::ZERO);
        let longer_us = |sample: &MachineSample| {
            (sample.profiled.host.as_us() * times.host).max(sample.profiled.device.as_us() * times.device)
        };
        let both: Vec<(f64, f64)> =
            streams.map(|sample| (sample.worked.as_us(), longer_us(sample).max(1e-3))).collect();
        (!both.is_empty()).then(|| BatchOverlap { queries: size as u32, spacing: rounded(calm_ratio(both)) })
    };
    BATCHES.iter().filter_map(of_size).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::BatchTime;
    use crate::ids::ProcessorId;

    /// A batch of a stream, of which the last took `worked_us` after the one before.
    fn sample(queries: u32, idle: u64, worked_us: f64) -> MachineSample {
        let halves = (Nanos::from_us(8.0), Nanos::from_us(40.0));
        MachineSample {
            round: 0,
            stage: Stage::Batches,
            offered: OVERLOAD,
            lanes: 1,
            processor: ProcessorId(1),
            class: Class::GPU,
            queries,
            profiled: BatchTime { host: halves.0, exposed: halves.0, device: halves.1, bus: Nanos::ZERO },
            idle: Nanos(idle),
            busy: 0,
            out: Nanos::ZERO,
            worked: Nanos::from_us(worked_us),
            host: halves.0,
            device: halves.1,
            back: Nanos::ZERO,
        }
    }

    #[test]
    fn how_far_batches_overlap_is_told_by_the_time_between_their_ends() {
        let alone = BatchContention { busy_cpus: 0, host: 1.0, device: 1.25 };
        // The device takes 50 us for one, and in a stream one is done every 30 us; those of 2048 wait for each other.
        let mut samples = vec![sample(16, 500, 58.0)];
        samples.extend((0..40).map(|_| sample(16, 0, 30.0)));
        samples.push(sample(7, 0, 10.0));
        samples.extend((0..40).map(|_| sample(2048, 0, 50.0)));
        let expected = [BatchOverlap { queries: 16, spacing: 0.6 }, BatchOverlap { queries: 2048, spacing: 1.0 }];
        assert_eq!(overlap(&samples, &alone), expected);
        // Where the thread is what takes longer, nothing is said of the device.
        let busy = BatchContention { host: 10.0, ..alone };
        assert_eq!(overlap(&[sample(16, 0, 80.0)], &busy), [BatchOverlap { queries: 16, spacing: 1.0 }]);
        assert_eq!(overlap(&[], &alone), []);
    }
}
