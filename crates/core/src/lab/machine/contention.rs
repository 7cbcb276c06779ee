//! Measurement of contention: the cost of a workload's queries while other lanes are busy ([`Contention`]).

use super::fit::{calm_ratio, gpu_in_use, longer, moments_of, quantiles, rounded};
use super::probe::Busy;
use super::spells::{Moment, lasts_us};
use super::{FLOOD, MachineSample, OVERLOAD, Stage, USED, counts_up_to, drive_stage, real_gpus};
use crate::base::machine::Class;
use crate::base::quantile::{median, nearest_rank};
use crate::base::time::Nanos;
use crate::cost::machine_file::Quantile;
use crate::cost::{BatchContention, BatchStream, Contention, CpuContention, MachineFile};
use crate::lab::{LabError, Node, Progress};

/// Number of rounds of all stages.
const ROUNDS: u64 = 5;
/// Batch sizes of the GPU stages, ascending.
const BATCHES: [usize; 6] = [4, 16, 64, 256, 1024, 4096];
/// Batch size for the effect of busy CPU lanes on GPU batches.
const BESIDE: usize = 1024;
/// Load offered to CPU and GPU lanes together; it leaves the dispatcher time for both.
const TOGETHER: f64 = 1.2;

/// Applies a machine file. It first measures the contention of the workload if that is unknown.
///
/// # Errors
/// The errors of [`measure_contention`].
pub fn adopt_machine(node: &mut Node, file: &MachineFile, progress: &dyn Progress) -> Result<(), LabError> {
    if node.workload().contention.is_none() {
        node.set_idle(file.idle);
        let found = measure_contention(node, progress)?;
        node.set_contention(found);
    }
    node.set_machine(file);
    Ok(())
}

/// Measures contention on the lanes of the node, within some seconds.
///
/// The stages alternate: 1, 2, 4... CPU lanes; a GPU lane with single queries at Poisson arrivals; GPU lanes with
/// consecutive batches of several sizes; all lanes at once. Each stage has at least 20 queries or batches per lane.
///
/// # Errors
/// If a run fails or is interrupted.
pub fn measure_contention(node: &mut Node, progress: &dyn Progress) -> Result<Contention, LabError> {
    node.warm_up(std::time::Duration::from_millis(200))?;
    let has_batches = node.model().batches[Class::GPU].is_some();
    let (cpus, gpus) = (node.machine().count(Class::CPU), if has_batches { real_gpus(node) } else { 0 });
    let counts = counts_up_to(cpus);
    let mut streams: Vec<Vec<MachineSample>> = vec![Vec::new(); counts.len()];
    let (mut singles, mut batches, mut together) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        progress.doing(&format!("queries in company: round {} of {ROUNDS}", round + 1));
        for (&cpus, samples) in counts.iter().zip(&mut streams) {
            samples.extend(drive_stage(node, (round, Stage::Stream, OVERLOAD), Busy { cpus, gpus: 0, batch: 1 })?);
        }
        for offered in USED.into_iter().filter(|_| gpus > 0) {
            singles.extend(drive_stage(node, (round, Stage::Used, offered), Busy { cpus: 0, gpus: 1, batch: 1 })?);
        }
        for batch in BATCHES.into_iter().filter(|_| gpus > 0) {
            let alone = Busy { cpus: 0, gpus, batch };
            batches.extend(drive_stage(node, (round, Stage::Batches, FLOOD), alone)?);
        }
        if gpus > 0 && cpus > 0 {
            let all = Busy { cpus, gpus, batch: BESIDE };
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
        // The last batch of a stage may be smaller, and so may all batches if the GPU outpaces the arrivals.
        let nearly = BESIDE / 2 + 1..=BESIDE;
        let whole = || samples.iter().filter(|sample| nearly.contains(&(sample.queries as usize)));
        BatchContention {
            busy_cpus,
            host: longer(whole().map(|sample| (sample.host, sample.profiled.host))),
            device: longer(whole().map(|sample| (sample.device, sample.profiled.device))),
        }
    });
    let gpu_batches: Vec<BatchContention> = gpu_batches.collect();
    let gpu_streams = BATCHES.iter().filter_map(|&size| stream(size, &batches)).collect();
    Ok(Contention { cpu, cpu_beside_gpu, gpu_in_use: gpu_in_use(&singles), gpu_batches, gpu_streams })
}

/// Statistics of consecutive batches of `size` queries; `None` without such batches.
fn stream(size: usize, batches: &[MachineSample]) -> Option<BatchStream> {
    // The first batch of a stage meets an idle lane, and the last one may be smaller.
    let streamed = batches.iter().filter(|sample| sample.queries as usize == size && sample.idle == Nanos::ZERO);
    let streamed: Vec<&MachineSample> = streamed.collect();
    if streamed.is_empty() {
        return None;
    }
    let device_of =
        |samples: &[&MachineSample]| longer(samples.iter().map(|sample| (sample.device, sample.profiled.device)));
    let host = longer(streamed.iter().map(|sample| (sample.host, sample.profiled.host)));
    let device = device_of(&streamed);
    let longer_us =
        |sample: &MachineSample| (sample.profiled.host.as_us() * host).max(sample.profiled.device.as_us() * device);
    let paces = streamed.iter().map(|sample| (sample.worked.as_us(), longer_us(sample).max(1e-3)));
    // The speed of the machine changes between rounds; variation within a round is noise.
    let rounds = streamed.chunk_by(|a, b| a.round == b.round).flat_map(|round| {
        let times = device_of(round);
        round.iter().map(move |sample| sample.device.as_us() / (sample.profiled.device.as_us() * times).max(1e-3))
    });
    let moments = host_moments(&streamed);
    let prepared = |sample: &&&MachineSample| sample.prepared <= sample.host;
    let prepared = streamed.iter().filter(prepared).map(|sample| (sample.prepared, sample.host));
    Some(BatchStream {
        queries: size as u32,
        host,
        prepared: longer(prepared),
        device,
        spacing: rounded(calm_ratio(paces.collect())),
        noise: quantiles(&mut rounds.collect::<Vec<f64>>()),
        host_noise: host_noise(&moments),
        host_lasts_us: rounded(lasts_us(&moments)),
    })
}

/// Quantiles of the thread's noise. They include the maximum, because one stall delays all waiting queries.
const HOST_SHARES: [f64; 13] = [0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0];

/// Thread times by lane relative to the median of their moment, whose speed the machine file covers.
fn host_moments(streamed: &[&MachineSample]) -> Vec<Moment> {
    let mut by_lane = streamed.to_vec();
    let lane = |sample: &MachineSample| (sample.round, sample.processor);
    by_lane.sort_by_key(|sample| lane(sample));
    let lanes = by_lane.chunk_by(|a, b| lane(a) == lane(b));
    let moments = lanes.flat_map(|batches| moments_of(batches, |sample| sample.profiled.host.as_us()));
    let moments = moments.map(|moment| {
        let times = |sample: &&MachineSample| sample.host.as_us() / sample.profiled.host.as_us().max(1e-3);
        // The median ignores stalled batches.
        let middle = median(moment.iter().map(times).collect());
        let apart_us = median(moment.iter().map(|sample| (sample.out + sample.worked).as_us()).collect());
        Moment { apart_us, times: moment.iter().map(|sample| times(sample) / middle.max(1e-3)).collect() }
    });
    moments.collect()
}

/// Quantiles of the thread's noise. Their piecewise linear mean is 1, so that noise leaves the mean pace unchanged.
fn host_noise(moments: &[Moment]) -> Vec<Quantile> {
    let mut noise: Vec<f64> = moments.iter().flat_map(|moment| moment.times.iter().copied()).collect();
    noise.sort_by(f64::total_cmp);
    let at = |&share: &f64| Some(Quantile { share, value: nearest_rank(&noise, share)? });
    let mut quantiles: Vec<Quantile> = HOST_SHARES.iter().filter_map(at).collect();
    let between = |pair: &[Quantile]| (pair[1].share - pair[0].share) * (pair[0].value + pair[1].value) / 2.0;
    let mean: f64 = quantiles.windows(2).map(between).sum();
    quantiles.iter_mut().for_each(|quantile| quantile.value = rounded(quantile.value / mean.max(1e-9)));
    quantiles
}

fn of_class(samples: &[MachineSample], class: Class) -> Vec<MachineSample> {
    samples.iter().filter(|sample| sample.class == class).copied().collect()
}

/// Total work divided by total time alone, without stalled queries. The machine file covers noise and stalls.
fn work_over_alone(samples: &[MachineSample]) -> f64 {
    let both = samples.iter().map(|sample| (sample.worked.as_us(), sample.profiled.total().as_us().max(1e-3)));
    rounded(calm_ratio(both.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ProcessorId;
    use crate::cost::BatchTime;

    /// A batch of a stream that ends `worked_us` after the previous one.
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
            profiled: BatchTime { host: halves.0, exposed: halves.0, device: halves.1 },
            idle: Nanos(idle),
            busy: 0,
            out: Nanos::ZERO,
            worked: Nanos::from_us(worked_us),
            host: halves.0,
            prepared: Nanos::from_us(6.0),
            device: halves.1,
            back: Nanos::ZERO,
        }
    }

    #[test]
    fn what_batches_of_a_size_take_is_told_by_those_that_followed_each_other() {
        // The formula predicts 8 us for the thread and 40 us for the device. Under contention the device takes a
        // quarter more. Small batches end every 30 us; batches of 1024 wait for each other.
        let slower = |sample: MachineSample| MachineSample { device: Nanos::from_us(50.0), ..sample };
        let mut samples = vec![slower(sample(16, 500, 58.0))];
        samples.extend((0..40).map(|_| slower(sample(16, 0, 30.0))));
        samples.push(sample(7, 0, 10.0));
        samples.extend((0..40).map(|_| slower(sample(1024, 0, 50.0))));
        let told = |size: usize| {
            let BatchStream { queries, host, prepared, device, spacing, noise, host_noise, host_lasts_us } =
                stream(size, &samples).unwrap();
            assert!(queries as usize == size && prepared == 0.75 && host_noise.len() == HOST_SHARES.len());
            assert_eq!(host_lasts_us, 0.0);
            assert!(noise.iter().chain(&host_noise).all(|point| (point.value - 1.0).abs() < 1e-9));
            (host, device, spacing)
        };
        assert_eq!([told(16), told(1024)], [(1.0, 1.25, 0.6), (1.0, 1.25, 1.0)]);
        assert_eq!(stream(64, &samples), None);
        // A slow thread sets the pace itself.
        let busy = MachineSample { host: Nanos::from_us(80.0), ..sample(16, 0, 80.0) };
        assert_eq!(stream(16, &[busy]).unwrap().spacing, 1.0);
    }

    #[test]
    fn what_changes_from_round_to_round_is_no_noise() {
        let at =
            |round, device_us| MachineSample { round, device: Nanos::from_us(device_us), ..sample(16, 0, device_us) };
        let samples: Vec<MachineSample> =
            (0..60).map(|i| at(0, if i % 2 == 0 { 30.0 } else { 50.0 })).chain((0..60).map(|_| at(1, 80.0))).collect();
        let noise = stream(16, &samples).unwrap().noise;
        let values: Vec<f64> = noise.iter().map(|point| point.value).collect();
        assert_eq!((values[0], values[values.len() / 2], values[values.len() - 1]), (0.75, 1.0, 1.25));
    }

    #[test]
    fn what_holds_the_thread_up_now_and_then_is_noise_and_leaves_the_pace() {
        // The formula predicts 8 us; one batch of a hundred takes 408 us. In the second round all thread times double.
        let at = |round, i: u64, times: f64| {
            let host = Nanos::from_us(times * if i % 100 == 99 { 408.0 } else { 8.0 });
            MachineSample { round, host, ..sample(16, 0, 50.0) }
        };
        let samples: Vec<MachineSample> =
            (0..2000).map(|i| at(0, i, 1.0)).chain((0..2000).map(|i| at(1, i, 2.0))).collect();
        let BatchStream { host, host_noise, host_lasts_us, .. } = stream(16, &samples).unwrap();
        assert!((host - 1.5 * 1.5).abs() < 1e-9 && host_lasts_us == 0.0, "{host}, {host_lasts_us}");
        let at = |share| host_noise.iter().find(|point| point.share == share).unwrap().value;
        // All batches are equal except one of a hundred, which takes 51 times as long.
        assert!(at(0.5) == at(0.0) && at(0.98) == at(0.5), "{host_noise:?}");
        assert!((at(0.999) / at(0.5) - 51.0).abs() < 0.1 && at(1.0) == at(0.999), "{host_noise:?}");
        let mean: f64 =
            host_noise.windows(2).map(|two| (two[1].share - two[0].share) * (two[0].value + two[1].value) / 2.0).sum();
        assert!((mean - 1.0).abs() < 1e-3, "{mean}");
    }

    #[test]
    fn slow_batches_that_follow_each_other_are_told_by_lane() {
        // A batch ends every 50 us on each of two lanes. A thread takes 12 us when slow and 8 us when fast, and changes
        // after a fifth of the batches; the other lane does the opposite. The correlation at distance k is 0.6^k, which
        // falls to 1/e within 98 us.
        let mut random = crate::base::random::Random::new(1, 0);
        let mut is_slow = false;
        let both = (0..4000).flat_map(|_| {
            is_slow ^= random.below(5) == 0;
            [(1, is_slow), (2, !is_slow)].map(|(lane, is_slow)| {
                let host = Nanos::from_us(if is_slow { 12.0 } else { 8.0 } + 3.0 * random.unit());
                MachineSample { processor: ProcessorId(lane), host, ..sample(16, 0, 50.0) }
            })
        });
        let samples: Vec<MachineSample> = both.collect();
        let host_lasts_us = stream(16, &samples).unwrap().host_lasts_us;
        assert!((70.0..130.0).contains(&host_lasts_us), "{host_lasts_us}");
        // On a single lane, slow and fast batches would alternate.
        let one = samples.iter().map(|sample| MachineSample { processor: ProcessorId(1), ..*sample });
        assert_eq!(stream(16, &one.collect::<Vec<_>>()).unwrap().host_lasts_us, 0.0);
    }

    #[test]
    fn queries_by_themselves_are_told_by_those_that_found_the_gpus_lane_idle() {
        // The profile says 48 us. The lane works a third of the time, and each query takes 60 us.
        let alone = |idle, worked_us| MachineSample {
            stage: Stage::Used,
            offered: 0.3,
            profiled: sample(1, 0, 0.0).profiled,
            ..sample(1, idle, worked_us)
        };
        let mut samples: Vec<MachineSample> = (0..200).map(|_| alone(120_000, 60.0)).collect();
        // A query that overlaps with its predecessor ends soon after it, and batches do not show single queries.
        samples.push(alone(0, 5.0));
        samples.extend((0..50).map(|_| sample(16, 500, 500.0)));
        let found = gpu_in_use(&samples);
        assert!(!found.is_empty() && found.iter().all(|point| (point.times - 1.25).abs() < 1e-9), "{found:?}");
        assert_eq!(gpu_in_use(&[]), []);
    }
}
