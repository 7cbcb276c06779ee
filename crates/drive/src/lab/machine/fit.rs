//! From the samples of a measurement to a machine profile: means, and stretches of consecutive batches as they were seen.
//!
//! No curve is fitted. A profile keeps a few thousand of a stage's batches. These are whole segments, chosen evenly by the
//! rank of their slowness: rare slow segments are neither missed nor too frequent. Their ratios are then scaled so that their
//! mean time without stalls is that of all batches of the stage.

use std::collections::BTreeMap;

use tandem_model::base::machine::Class;
use tandem_model::base::quantile::{median, nearest_rank};
use tandem_model::base::time::Nanos;
use tandem_model::cost::batches::least_squares;
use tandem_model::cost::machine_profile::blocks::BLOCK;
use tandem_model::cost::machine_profile::interpolated;
use tandem_model::cost::machine_profile::{
    AfterIdle, Beside, DispatcherCosts, DispatcherProfile, LEAST_PAUSE, LaneProfile, Observed, Ratios, RoundCost,
};

use super::{BATCHES, BESIDE, USED};
use crate::live::Round;

/// Most batches that are kept of a stage.
const KEPT: usize = 12 * BLOCK as usize;
/// Shorter sequences of batches are not kept.
const SHORTEST: usize = 8;
/// Times beyond this multiple of the usual ratio are stalls. A stall does not depend on the length of its query.
const STALLED: f64 = 3.0;
/// Shortest stall, in microseconds.
const STALL_US: f64 = 5.0;
/// Share of queries that count as the shortest.
const SHORT: f64 = 0.01;
/// Bin edges for idle times, in microseconds.
const IDLE_US: [f32; 6] = [0.0, 1.0, 15.0, 100.0, 1000.0, f32::INFINITY];
/// Smaller groups of samples are skipped.
const ENOUGH: usize = 30;

/// The work of lanes in a part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Single queries without pauses on this number of lanes of a class.
    Stream(Class, usize),
    /// Single queries at Poisson arrivals on all lanes of a class, which are idle now and then, at this one of the
    /// [loads](super::USED).
    Used(Class, usize),
    /// Batches of this number of queries at Poisson arrivals on GPU lanes, so that most run alone on their device.
    Apart(usize),
    /// Batches of this number of queries without pauses on GPU lanes.
    Batches(usize),
    /// Single queries on CPU lanes and batches on GPU lanes, without pauses.
    Together,
}

/// All runs of each stage.
pub(super) type Stages = BTreeMap<Stage, Vec<Seen>>;

/// A run of a stage.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) round: u64,
    /// Consecutive batches by lane.
    pub(super) lanes: Vec<(Class, Vec<Batch>)>,
    /// Consecutive rounds of the dispatcher.
    pub(super) rounds: Vec<Round>,
}

/// The measured and predicted times of a batch, in microseconds; the pieces are those of
/// [`ServedBatch`](crate::live::ServedBatch).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batch {
    pub(super) queries: u32,
    pub(super) predicted: f32,
    pub(super) predicted_host: f32,
    pub(super) predicted_device: f32,
    pub(super) idle: f32,
    pub(super) out: f32,
    pub(super) worked: f32,
    pub(super) host: f32,
    pub(super) prepared: f32,
    pub(super) device: f32,
    pub(super) back: f32,
}

/// The costs on lanes of a class, on a machine with these numbers of CPU and GPU lanes.
pub(super) fn lanes(class: Class, stages: &Stages, (cpus, gpus): (usize, usize)) -> LaneProfile {
    let all = if class.is_gpu() { gpus } else { cpus };
    let each_us = if class.is_gpu() { 0.0 } else { each_us(&of_stage(stages, Stage::Stream(class, 1), class)) };
    let mut observed = Vec::new();
    let by_load: Vec<Vec<Vec<Batch>>> =
        (0..USED.len()).map(|load| of_stage(stages, Stage::Used(class, load), class)).collect();
    let used = by_load.concat();
    if class.is_gpu() {
        // A query that finds its lane idle shows its own time, queries without pauses show how far they overlap.
        let alone: Vec<Vec<Batch>> = used.iter().map(|lane| kept(lane, |batch| batch.idle > 0.0)).collect();
        let stream = of_stage(stages, Stage::Stream(class, all), class);
        let spacing = rounded(ratio(&stream, |batch| (batch.worked, batch.predicted)).clamp(0.05, 1.0));
        observed.extend(single(1, &alone, 0.0).map(|one| Observed { spacing, ..one }));
        observed.extend(all_batches(BATCHES.iter().filter_map(|&size| {
            let apart = of_stage(stages, Stage::Apart(size), Class::GPU);
            let apart: Vec<Vec<Batch>> = apart
                .iter()
                .map(|lane| kept(lane, |batch| batch.queries as usize == size && batch.idle > 0.0))
                .collect();
            batches(size, &of_batches(stages, size), &apart)
        })));
    } else {
        let streams = super::loads(cpus).into_iter();
        observed.extend(
            streams
                .filter_map(|busy| single(busy as u32, &of_stage(stages, Stage::Stream(class, busy), class), each_us)),
        );
    }
    let after_idle = if class.is_gpu() {
        after_idle(&of_stage(stages, Stage::Stream(class, all), class), &used, each_us)
    } else {
        let slowdown = slowdowns(stages, class, cpus);
        let at =
            |load: usize| interpolated(slowdown.iter().copied(), (USED[load] * cpus as f64).max(1.0)).unwrap_or(1.0);
        let expected: Vec<Vec<Batch>> =
            by_load.iter().enumerate().flat_map(|(load, lanes)| scaled(lanes, at(load))).collect();
        let base = slowdown.first().map_or(1.0, |&(_, ratio)| ratio);
        after_idle(&scaled(&of_stage(stages, Stage::Stream(class, 1), class), base), &expected, each_us)
    };
    LaneProfile {
        each_us: rounded(each_us),
        hand_back_us: rounded(middle(used.iter().flatten().map(|batch| batch.back))),
        after_idle,
        beside: beside(class, stages, (cpus, gpus)).into_iter().collect(),
        drift: rounded(drift(class, stages, all)),
        observed,
        power: None,
    }
}

/// The dispatcher's costs on lanes that only let time pass, and the drift of rounds beside busy lanes over the costs of
/// [`PROBE`](super::dispatcher::PROBE). The mean ratio of these rounds is left out: with it, the predicted capacity of
/// `combined` was 26 % too low. Their ratios one by one are left out, too (docs/tried.md).
pub(super) fn dispatcher(mut costs: Vec<DispatcherCosts>, stages: &Stages, cpus: usize) -> DispatcherProfile {
    let probe = costs.iter_mut().filter_map(|at| at.policies.remove(super::dispatcher::PROBE)).last();
    let (Some(cost), Some(seen)) = (probe, stages.get(&Stage::Stream(Class::CPU, cpus))) else {
        return DispatcherProfile { costs, ..DispatcherProfile::default() };
    };
    let of_round = |round: &Round| (round.time.as_us(), predicted_us(&cost, round));
    let runs: Vec<Vec<(f64, f64)>> = seen.iter().map(|run| run.rounds.iter().map(of_round).collect()).collect();
    let means: Vec<f64> = runs.iter().map(|run| quotient(run.iter().copied())).collect();
    DispatcherProfile { costs, drift: rounded(scatter(&means)), ..DispatcherProfile::default() }
}

/// The predicted time of a round.
pub(super) fn predicted_us(cost: &RoundCost, round: &Round) -> f64 {
    let parts = [(cost.arrival_ns, round.arrivals), (cost.batch_ns, round.batches), (cost.answer_ns, round.answers)];
    parts.into_iter().fold(cost.round_ns, |sum, (each, count)| sum + each * f64::from(count)) / 1e3
}

/// The lanes of a class in all runs of a stage.
fn of_stage(stages: &Stages, stage: Stage, class: Class) -> Vec<Vec<Batch>> {
    let runs = stages.get(&stage).into_iter().flatten();
    let lanes = runs.flat_map(|run| run.lanes.iter().filter(move |(of, _)| *of == class));
    lanes.map(|(_, batches)| batches.clone()).collect()
}

/// Whole batches of this size that followed each other. The first batch of a run finds an idle lane, and the last may be
/// smaller.
fn of_batches(stages: &Stages, size: usize) -> Vec<Vec<Batch>> {
    let lanes = of_stage(stages, Stage::Batches(size), Class::GPU);
    lanes.iter().map(|lane| kept(lane, |batch| batch.queries as usize == size && batch.idle == 0.0)).collect()
}

fn kept(lane: &[Batch], is_kept: impl Fn(&Batch) -> bool) -> Vec<Batch> {
    lane.iter().filter(|batch| is_kept(batch)).copied().collect()
}

/// Single queries at this number of busy lanes.
fn single(busy: u32, lanes: &[Vec<Batch>], each_us: f64) -> Option<Observed> {
    let times = pairs(lanes, |batch| (batch.worked, batch.predicted));
    let work = Some(stretch(&times, each_us, LEAST_PAUSE)).filter(|work| !work.permille.is_empty())?;
    Some(Observed { queries: 1, busy, prepared: 0.0, spacing: 1.0, work, device: Ratios::default() })
}

/// Batches of all sizes. Where the thread is slower than the device, it hides how far batches overlap there: the spacing is
/// then that of the next smaller size at which the device is slower.
fn all_batches(batches: impl Iterator<Item = (Observed, bool)>) -> Vec<Observed> {
    let mut of_device = None;
    let with_spacing = |(one, is_device_slower): (Observed, bool)| {
        let spacing = if is_device_slower { one.spacing } else { of_device.unwrap_or(one.spacing) };
        if is_device_slower {
            of_device = Some(spacing);
        }
        Observed { spacing, ..one }
    };
    batches.map(with_spacing).collect()
}

/// Batches of this size without pauses and `apart` from each other, and whether the device takes longer for them than the
/// thread. Batches that overlap on a device lengthen each other: their times on it would count the overlap twice.
fn batches(size: usize, lanes: &[Vec<Batch>], apart: &[Vec<Batch>]) -> Option<(Observed, bool)> {
    // On a GPU that is slower than predicted, too few batches run apart.
    let apart = if apart.iter().any(|lane| lane.len() >= SHORTEST) { apart } else { lanes };
    let on_device = |batch: &Batch| (batch.device, batch.predicted_device);
    let work = stretch(&pairs(lanes, |batch| (batch.host, batch.predicted_host)), 0.0, LEAST_PAUSE);
    let device = stretch(&pairs(apart, on_device), 0.0, Nanos::MAX);
    if work.permille.is_empty() || device.permille.is_empty() {
        return None;
    }
    let host = ratio(lanes, |batch| (batch.host, batch.predicted_host)) as f32;
    let on_device = ratio(apart, on_device) as f32;
    let times = |batch: &Batch| (batch.predicted_host * host, batch.predicted_device * on_device);
    let longer = |batch: &Batch| times(batch).0.max(times(batch).1);
    let is_device_slower = ratio(lanes, |batch| (times(batch).1, times(batch).0)) > 1.0;
    let observed = Observed {
        queries: size as u32,
        busy: 1,
        prepared: rounded(ratio(lanes, |batch| (batch.prepared.min(batch.host), batch.host)).min(1.0)),
        spacing: rounded(ratio(lanes, |batch| (batch.worked, longer(batch)))).max(0.01),
        work,
        device,
    };
    Some((observed, is_device_slower))
}

fn pairs(lanes: &[Vec<Batch>], times: impl Fn(&Batch) -> (f32, f32)) -> Vec<Vec<(f64, f64)>> {
    let pair = |batch: &Batch| {
        let (measured, predicted) = times(batch);
        (f64::from(measured), f64::from(predicted).max(1e-3))
    };
    lanes.iter().map(|lane| lane.iter().map(pair).collect()).collect()
}

/// Consecutive ratios out of sequences of measured and predicted times in microseconds. `each_us` of a measured time does not
/// depend on the prediction. The mean time without stalls is that of all sequences. Stalls of a thread from [`LEAST_PAUSE`] on
/// are left out: they come with time and not with batches, and are observed apart.
fn stretch(sequences: &[Vec<(f64, f64)>], each_us: f64, stalls_below: Nanos) -> Ratios {
    let chosen = segments(sequences, each_us);
    let count = chosen.len().max(1) as f64;
    let ratios: Vec<f64> =
        chosen.iter().map(|(measured, predicted)| (measured - each_us).max(0.0) / predicted).collect();
    let usual = median(ratios.clone());
    let stall_of = |ratio: f64, predicted: f64| {
        let stall_us = (ratio - usual) * predicted;
        (ratio > STALLED * usual && stall_us > STALL_US).then_some(stall_us)
    };
    let mut stalls_us = Vec::new();
    let mut left = Vec::with_capacity(ratios.len());
    for (i, (&ratio, (_, predicted))) in ratios.iter().zip(&chosen).enumerate() {
        let stall_us = stall_of(ratio, *predicted);
        stalls_us.extend(stall_us.filter(|us| *us < stalls_below.as_us()).map(|us| (i as u32, us.round() as u32)));
        left.push(if stall_us.is_some() { usual } else { ratio });
    }
    // A stall of 50 ms, one in a second, must not make all others slower.
    let calm_us = |&(measured, predicted): &(f64, f64)| {
        let is_stalled = stall_of((measured - each_us).max(0.0) / predicted, predicted).is_some();
        (if is_stalled { usual * predicted } else { measured - each_us }, predicted)
    };
    let all = sequences.iter().flatten().map(calm_us);
    let (measured, predicted) = all.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let mean = left.iter().sum::<f64>() / count;
    let wanted = measured / predicted;
    let scale = (wanted / mean.max(1e-9)).clamp(0.5, 2.0);
    let permille = left.iter().map(|ratio| (ratio * scale * 1e3).round().clamp(1.0, 1e9) as u32).collect();
    Ratios { permille, stalls_us }
}

/// Segments of [`BLOCK`] consecutive times, or as long as the sequences allow, chosen evenly by the rank of their slowness.
fn segments(sequences: &[Vec<(f64, f64)>], each_us: f64) -> Vec<(f64, f64)> {
    let longest = sequences.iter().map(Vec::len).max().unwrap_or(0);
    let length = (BLOCK as usize).min(longest);
    if length < SHORTEST {
        return Vec::new();
    }
    let slowness = |segment: &[(f64, f64)]| quotient(segment.iter().map(|one| (one.0 - each_us, one.1)));
    let all = sequences.iter().flat_map(|sequence| sequence.chunks_exact(length));
    let mut all: Vec<(f64, &[(f64, f64)])> = all.map(|segment| (slowness(segment), segment)).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let count = (KEPT / length).min(all.len());
    (0..count).flat_map(|i| all[(2 * i + 1) * all.len() / (2 * count)].1.iter().copied()).collect()
}

/// Time of a query that does not depend on its length: the intercept over all that were not stalled, with the least relative
/// errors, and no more than the shortest take. With absolute errors, long queries would hide it.
fn each_us(lanes: &[Vec<Batch>]) -> f64 {
    let pairs = pairs(lanes, |batch| (batch.worked, batch.predicted));
    let all = || pairs.iter().flatten();
    let usual = median(all().map(|(worked, predicted)| worked / predicted).collect());
    let calm = all().filter(|(worked, predicted)| *worked < STALLED * usual * predicted);
    let (rows, mut taken): (Vec<([f64; 2], f64)>, Vec<f64>) =
        calm.map(|&(worked, predicted)| (([1.0 / predicted, 1.0], worked / predicted), worked)).unzip();
    taken.sort_by(f64::total_cmp);
    least_squares(&rows)[0].max(0.0).min(nearest_rank(&taken, SHORT).unwrap_or(0.0))
}

/// Mean ratios of single queries on 1, half and all lanes of a class, by their number.
fn slowdowns(stages: &Stages, class: Class, lanes: usize) -> Vec<(f64, f64)> {
    let of =
        |busy| ratio(&of_stage(stages, Stage::Stream(class, busy), class), |batch| (batch.worked, batch.predicted));
    super::loads(lanes).into_iter().map(|busy| (busy as f64, of(busy))).collect()
}

/// The batches with predictions that are this many times as long.
fn scaled(lanes: &[Vec<Batch>], times: f64) -> Vec<Vec<Batch>> {
    let longer = |batch: &Batch| Batch { predicted: batch.predicted * times as f32, ..*batch };
    lanes.iter().map(|lane| lane.iter().map(longer).collect()).collect()
}

/// The effect of a pause on the next query, by duration of the pause, relative to queries without pauses.
fn after_idle(stream: &[Vec<Batch>], used: &[Vec<Batch>], each_us: f64) -> Vec<AfterIdle> {
    let calm = |batches: &[Batch]| {
        let mut ratios: Vec<(f64, f64)> =
            batches.iter().map(|batch| (f64::from(batch.worked) - each_us, f64::from(batch.predicted))).collect();
        let usual = median(ratios.iter().map(|one| one.0 / one.1).collect());
        ratios.retain(|one| one.0 < STALLED * usual * one.1);
        quotient(ratios.into_iter())
    };
    let stream: Vec<Batch> = stream.iter().flatten().copied().collect();
    let all: Vec<Batch> = used.iter().flatten().copied().collect();
    // On lanes that overlap queries, only a query that found its lane idle shows its own time.
    let base = if all.iter().any(|batch| batch.host > 0.0) {
        calm(&kept(&all, |batch| batch.idle > 0.0))
    } else {
        calm(&stream)
    };
    let mut points = vec![AfterIdle {
        idle_us: 0.1,
        hand_over_us: rounded(middle(stream.iter().map(|batch| batch.out))),
        times: 1.0,
    }];
    points.extend(IDLE_US.windows(2).skip(1).filter_map(|edges| {
        let some = kept(&all, |batch| (edges[0]..edges[1]).contains(&batch.idle));
        if some.len() < ENOUGH {
            return None;
        }
        let idle_us = some.iter().map(|batch| f64::from(batch.idle).ln()).sum::<f64>() / some.len() as f64;
        let hand_over_us = rounded(middle(some.iter().map(|batch| batch.out)));
        Some(AfterIdle { idle_us: rounded(idle_us.exp()), hand_over_us, times: rounded(calm(&some) / base) })
    }));
    points
}

/// The slow-down by busy lanes of the other class.
fn beside(class: Class, stages: &Stages, (cpus, gpus): (usize, usize)) -> Option<(Class, Beside)> {
    let together = of_stage(stages, Stage::Together, class);
    if !together.iter().any(|lane| lane.len() >= SHORTEST) {
        return None;
    }
    if !class.is_gpu() {
        let worked = |batch: &Batch| (batch.worked, batch.predicted);
        let alone = of_stage(stages, Stage::Stream(class, cpus), class);
        let work = rounded(ratio(&together, worked) / ratio(&alone, worked));
        return Some((Class::GPU, Beside { lanes: gpus as u32, work, device: 1.0 }));
    }
    // As in the batches that they are compared with, the lane did not wait for work.
    let is_near = |batch: &Batch| (BESIDE / 2 + 1..=BESIDE).contains(&(batch.queries as usize)) && batch.idle == 0.0;
    let near = |lane: &Vec<Batch>| kept(lane, is_near);
    let together: Vec<Vec<Batch>> = together.iter().map(near).collect();
    let alone = of_batches(stages, BESIDE);
    let times = |of: fn(&Batch) -> (f32, f32)| rounded(ratio(&together, of) / ratio(&alone, of));
    let work = times(|batch| (batch.host, batch.predicted_host));
    let device = times(|batch| (batch.device, batch.predicted_device));
    Some((Class::CPU, Beside { lanes: cpus as u32, work, device }))
}

/// The relative standard deviation of the mean ratio between rounds, with all lanes busy.
fn drift(class: Class, stages: &Stages, all: usize) -> f64 {
    let stage = if class.is_gpu() { Stage::Batches(256) } else { Stage::Stream(class, all) };
    let mut rounds: BTreeMap<u64, Vec<Vec<Batch>>> = BTreeMap::new();
    for run in stages.get(&stage).into_iter().flatten() {
        let lanes = run.lanes.iter().map(|(_, lane)| lane.clone());
        rounds.entry(run.round).or_default().extend(lanes);
    }
    let of = |lanes: &Vec<Vec<Batch>>| ratio(lanes, |batch| (batch.worked, batch.predicted));
    scatter(&rounds.values().map(of).collect::<Vec<f64>>())
}

/// Sum of measured times over the sum of predicted ones; 1 without samples.
fn ratio(lanes: &[Vec<Batch>], times: impl Fn(&Batch) -> (f32, f32)) -> f64 {
    let both = lanes.iter().flatten().map(times);
    quotient(both.map(|(measured, predicted)| (f64::from(measured), f64::from(predicted))))
}

fn quotient(both: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (measured, predicted) = both.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if measured > 0.0 && predicted > 0.0 { measured / predicted } else { 1.0 }
}

/// The median; hand-over times include those during which the machine took a core away.
fn middle(values: impl Iterator<Item = f32>) -> f64 {
    let median = median(values.map(f64::from).collect());
    if median.is_finite() { median } else { 0.0 }
}

/// Standard deviation over mean.
fn scatter(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt() / mean
}

/// Rounds to four decimals, the precision of the measurements.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::base::random::Random;

    fn mean_us(ratios: &Ratios, each_us: f64, predicted_us: f64) -> f64 {
        each_us + ratios.mean() * predicted_us + ratios.mean_stall().as_us()
    }

    #[test]
    fn the_mean_time_of_what_is_kept_is_that_of_all_and_stalls_are_kept_apart() {
        // 100,000 queries of 20 us take 1 us more than 1.2 times that, in a tenth of the segments twice as long, and one
        // of a thousand is held up for 2 ms.
        let mut random = Random::new(3, 0);
        let query = |i: usize| {
            let ratio = if (i / BLOCK as usize).is_multiple_of(10) { 2.4 } else { 1.2 };
            let noise = 0.9 + 0.2 * random.unit();
            (1.0 + ratio * noise * 20.0 + if i % 1000 == 999 { 2000.0 } else { 0.0 }, 20.0)
        };
        let all: Vec<(f64, f64)> = (0..100_000).map(query).collect();
        let mean = all.iter().map(|one| one.0).sum::<f64>() / all.len() as f64;
        let calm = stretch(std::slice::from_ref(&all), 1.0, LEAST_PAUSE);
        let found = stretch(&[all], 1.0, Nanos::MAX);
        assert_eq!(calm, Ratios { stalls_us: Vec::new(), ..found.clone() });
        assert_eq!(found.permille.len(), KEPT);
        assert!((mean_us(&found, 1.0, 20.0) / mean - 1.0).abs() < 0.03, "{}, {mean}", mean_us(&found, 1.0, 20.0));
        assert!(found.stalls_us.iter().all(|&(_, us)| (1900..2100).contains(&us)), "{:?}", found.stalls_us);
        assert!((1..=8).contains(&found.stalls_us.len()), "{:?}", found.stalls_us);
        let slow = found.permille.iter().filter(|&&permille| permille > 1800).count() as f64 / KEPT as f64;
        assert!((0.05..0.2).contains(&slow), "{slow}");
    }

    #[test]
    fn a_thread_that_is_slower_than_its_device_does_not_show_how_batches_overlap_there() {
        // Batches end at the pace of the slower part: half of the device's time, or the thread's time.
        let lane = |size, host: f32, device: f32| {
            let worked = host.max(device / 2.0);
            let batch = Batch {
                queries: size,
                predicted_host: 10.0,
                predicted_device: 10.0,
                host,
                device,
                worked,
                ..Batch::default()
            };
            vec![vec![batch; SHORTEST]]
        };
        let spacings = |sizes: &[(u32, f32, f32)]| {
            let of = sizes.iter().filter_map(|&(size, host, device)| {
                let lane = lane(size, host, device);
                batches(size as usize, &lane, &lane)
            });
            all_batches(of).iter().map(|one| one.spacing).collect::<Vec<f64>>()
        };
        assert_eq!(spacings(&[(4, 8.0, 20.0), (16, 20.0, 16.0)]), [0.5, 0.5]);
        assert_eq!(spacings(&[(4, 20.0, 16.0), (16, 8.0, 20.0)]), [1.0, 0.5]);
    }

    #[test]
    fn the_time_of_a_batch_on_its_device_is_that_of_batches_apart_and_its_spacing_that_of_overlapping_ones() {
        let batch = |device, worked| Batch {
            queries: 64,
            predicted_host: 10.0,
            predicted_device: 10.0,
            host: 2.0,
            device,
            worked,
            ..Batch::default()
        };
        // Four overlapping batches share a device that would run each in 12 us, and does run one every 6 us.
        let (overlapping, apart) = (vec![vec![batch(24.0, 6.0); SHORTEST]], vec![vec![batch(12.0, 15.0); SHORTEST]]);
        let (found, _) = batches(64, &overlapping, &apart).unwrap();
        assert_eq!((found.device.mean(), found.spacing), (1.2, 0.5));
    }

    #[test]
    fn idle_times_count_relative_to_queries_at_the_same_load() {
        let class = Class::CPU;
        let seen = |idle, worked| {
            let batch = Batch { queries: 1, predicted: 10.0, idle, worked, ..Batch::default() };
            vec![Seen { round: 0, lanes: vec![(class, vec![batch; 100]); 4], rounds: Vec::new() }]
        };
        // Four busy lanes take 1.6 times as long as one. At a load of 0.7 it is 2.8 lanes and 1.36 times.
        let stages = BTreeMap::from([
            (Stage::Stream(class, 1), seen(0.0, 10.0)),
            (Stage::Stream(class, 2), seen(0.0, 12.0)),
            (Stage::Stream(class, 4), seen(0.0, 16.0)),
            (Stage::Used(class, 2), seen(50.0, 13.6 * 1.25)),
        ]);
        let found = lanes(class, &stages, (4, 0)).after_idle;
        assert_eq!(found.iter().map(|at| at.times).collect::<Vec<f64>>(), [1.0, 1.25]);
    }

    #[test]
    fn short_sequences_are_kept_whole_and_too_short_ones_not_at_all() {
        let of =
            |length: usize| stretch(&[vec![(2.0, 1.0); length], vec![(4.0, 1.0); length]], 0.0, Nanos::MAX).permille;
        assert!(of(SHORTEST - 1).is_empty());
        assert_eq!(of(10), [[2000; 10], [4000; 10]].concat());
    }

    #[test]
    fn a_pause_is_told_relative_to_queries_without_pauses() {
        let batch = |idle, out, worked| Batch { queries: 1, predicted: 10.0, idle, out, worked, ..Batch::default() };
        let stream = vec![vec![batch(0.0, 0.5, 13.0); 50]];
        let used = vec![vec![batch(50.0, 1.5, 19.0); 50], vec![batch(5000.0, 9.0, 19.0); ENOUGH - 1]];
        let point = |idle_us, hand_over_us, times| AfterIdle { idle_us, hand_over_us, times };
        assert_eq!(after_idle(&stream, &used, 1.0), [point(0.1, 0.5, 1.0), point(50.0, 1.5, 1.5)]);
    }

    #[test]
    fn the_time_of_each_query_that_its_length_does_not_explain_is_found() {
        let lane = (1..500).map(|i| Batch { predicted: i as f32, worked: 0.75 + 1.25 * i as f32, ..Batch::default() });
        assert!((each_us(&[lane.collect()]) - 0.75).abs() < 1e-3);
    }

    #[test]
    fn the_speed_of_rounds_beside_busy_lanes_drifts() {
        let cost = RoundCost { round_ns: 100.0, arrival_ns: 50.0, batch_ns: 0.0, answer_ns: 0.0 };
        let policies = BTreeMap::from([(super::super::dispatcher::PROBE.to_owned(), cost)]);
        let costs = vec![DispatcherCosts { lanes: 1, any: cost, policies }];
        let round = Round { arrivals: 2, time: tandem_model::base::time::Nanos(300), ..Round::default() };
        let seen = |time| Seen { round: 0, lanes: Vec::new(), rounds: vec![Round { time, ..round }; 20] };
        let runs = vec![seen(round.time), seen(round.time.scaled(2.0))];
        let found = dispatcher(costs, &BTreeMap::from([(Stage::Stream(Class::CPU, 3), runs)]), 3);
        assert!(found.costs[0].policies.is_empty() && (found.drift - 0.4714).abs() < 1e-9, "{found:?}");
    }
}
