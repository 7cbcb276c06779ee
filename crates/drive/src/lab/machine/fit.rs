//! From the samples of a measurement to a machine profile: means and their spread.

use std::collections::BTreeMap;

use tandem_model::base::machine::Class;
use tandem_model::base::quantile::{median, nearest_rank};
use tandem_model::cost::batches::least_squares;
use tandem_model::cost::machine_profile::{Beside, LaneProfile, Slowdown, Spread};

use super::{BATCHES, BESIDE};

/// Shorter sequences of batches are not kept.
const SHORTEST: usize = 8;
/// Times beyond this multiple of the usual ratio, and longer by [`STALL_US`], are stalls: something else ran on the core.
const STALLED: f64 = 3.0;
const STALL_US: f64 = 5.0;
/// Share of queries that count as the shortest.
const SHORT: f64 = 0.01;
/// Bin edges for idle times, in microseconds, and the smallest group of queries that says something.
const IDLE_US: [f32; 5] = [0.0, 15.0, 100.0, 1000.0, f32::INFINITY];
const ENOUGH: usize = 30;

/// The work of lanes in a part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Single queries without pauses on this number of lanes of a class.
    Stream(Class, usize),
    /// Single queries at Poisson arrivals on all lanes of a class, which are idle now and then.
    Used(Class),
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
    /// Consecutive batches by lane.
    pub(super) lanes: Vec<(Class, Vec<Batch>)>,
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

impl Batch {
    fn work(&self) -> (f32, f32) {
        (self.worked, self.predicted)
    }

    fn on_thread(&self) -> (f32, f32) {
        (self.host, self.predicted_host)
    }

    fn on_device(&self) -> (f32, f32) {
        (self.device, self.predicted_device)
    }
}

/// The costs on lanes of a class, on a machine with these numbers of CPU and GPU lanes.
pub(super) fn lanes(class: Class, stages: &Stages, (cpus, gpus): (usize, usize)) -> LaneProfile {
    let all = if class.is_gpu() { gpus } else { cpus };
    let each_us = if class.is_gpu() { 0.0 } else { each_us(&of_stage(stages, Stage::Stream(class, 1), class)) };
    let used = of_stage(stages, Stage::Used(class), class);
    let slowdown = if class.is_gpu() {
        // A query that finds its lane idle shows its own time, queries without pauses show how far they overlap.
        let stream = of_stage(stages, Stage::Stream(class, all), class);
        let spacing = rounded(ratio(&stream, Batch::work).clamp(0.05, 1.0));
        let single = single(1, &kept(&used, |batch| batch.idle > 0.0), 0.0).map(|one| Slowdown { spacing, ..one });
        single.into_iter().chain(all_batches(BATCHES.iter().filter_map(|&size| batches(size, stages)))).collect()
    } else {
        let stream = |busy| of_stage(stages, Stage::Stream(class, busy), class);
        super::loads(cpus).into_iter().filter_map(|busy| single(busy as u32, &stream(busy), each_us)).collect()
    };
    LaneProfile {
        each_us: rounded(each_us),
        hand_over_us: middle(&used, |batch| batch.out),
        hand_back_us: middle(&used, |batch| batch.back),
        after_idle: after_idle(&used, each_us),
        beside: beside(class, stages, (cpus, gpus)).into_iter().collect(),
        slowdown,
        power: None,
    }
}

/// The lanes of a class in all runs of a stage.
fn of_stage(stages: &Stages, stage: Stage, class: Class) -> Vec<Vec<Batch>> {
    let runs = stages.get(&stage).into_iter().flatten();
    let lanes = runs.flat_map(|run| run.lanes.iter().filter(move |(of, _)| *of == class));
    lanes.map(|(_, batches)| batches.clone()).collect()
}

fn kept(lanes: &[Vec<Batch>], is_kept: impl Fn(&Batch) -> bool) -> Vec<Vec<Batch>> {
    lanes.iter().map(|lane| lane.iter().filter(|batch| is_kept(batch)).copied().collect()).collect()
}

/// Batches of this size that followed each other. The first batch of a run finds an idle lane, and the last may be smaller.
fn of_batches(stages: &Stages, size: usize) -> Vec<Vec<Batch>> {
    let lanes = of_stage(stages, Stage::Batches(size), Class::GPU);
    kept(&lanes, |batch| batch.queries as usize == size && batch.idle == 0.0)
}

/// Single queries at this number of busy lanes.
fn single(busy: u32, lanes: &[Vec<Batch>], each_us: f64) -> Option<Slowdown> {
    let (work, spread) = calm(lanes, Batch::work, each_us)?;
    Some(Slowdown { busy, work, spread, ..Slowdown::default() })
}

/// Batches of all sizes. Where the thread is slower than the device, it hides how far batches overlap there: the spacing is
/// then that of the next smaller size at which the device is slower.
fn all_batches(batches: impl Iterator<Item = (Slowdown, bool)>) -> impl Iterator<Item = Slowdown> {
    let mut of_device = None;
    batches.map(move |(one, is_device_slower)| {
        let spacing = if is_device_slower { one.spacing } else { of_device.unwrap_or(one.spacing) };
        if is_device_slower {
            of_device = Some(spacing);
        }
        Slowdown { spacing, ..one }
    })
}

/// Batches of this size, and whether the device takes longer for them than the thread. Batches that overlap on a device
/// lengthen each other: the device's time is that of batches apart from each other.
fn batches(size: usize, stages: &Stages) -> Option<(Slowdown, bool)> {
    let lanes = of_batches(stages, size);
    let apart = of_stage(stages, Stage::Apart(size), Class::GPU);
    let apart = kept(&apart, |batch| batch.queries as usize == size && batch.idle > 0.0);
    // On a GPU that is slower than predicted, too few batches run apart.
    let apart = if apart.iter().any(|lane| lane.len() >= SHORTEST) { &apart } else { &lanes };
    let (work, spread) = calm(&lanes, Batch::on_thread, 0.0)?;
    let (device, _) = calm(apart, Batch::on_device, 0.0)?;
    let times = |batch: &Batch| (batch.predicted_host * work as f32, batch.predicted_device * device as f32);
    let longer = |batch: &Batch| times(batch).0.max(times(batch).1);
    let slowdown = Slowdown {
        queries: size as u32,
        busy: 1,
        work,
        device,
        prepared: rounded(ratio(&lanes, |batch| (batch.prepared.min(batch.host), batch.host)).min(1.0)),
        spacing: rounded(ratio(&lanes, |batch| (batch.worked, longer(batch)))).max(0.01),
        spread,
    };
    Some((slowdown, ratio(&lanes, |batch| (times(batch).1, times(batch).0)) > 1.0))
}

/// The mean of measured times over predicted ones, less `each_us` of each, and the spread of the ratios, without stalls.
fn calm(lanes: &[Vec<Batch>], times: impl Fn(&Batch) -> (f32, f32), each_us: f64) -> Option<(f64, Spread)> {
    let pair = |batch: &Batch| {
        let (measured, predicted) = times(batch);
        ((f64::from(measured) - each_us).max(0.0), f64::from(predicted).max(1e-3))
    };
    let mut pairs: Vec<(f64, f64)> = lanes.iter().flatten().map(pair).collect();
    let usual = median(pairs.iter().map(|(measured, predicted)| measured / predicted).collect());
    pairs.retain(|(measured, predicted)| {
        measured - usual * predicted <= STALL_US || *measured <= STALLED * usual * predicted
    });
    if pairs.len() < SHORTEST {
        return None;
    }
    let (measured, predicted) = pairs.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let ratios: Vec<f64> = pairs.iter().map(|(measured, predicted)| measured / predicted).collect();
    Some((rounded(measured / predicted).max(1e-4), Spread::Deviation(rounded(scatter(&ratios)))))
}

/// Time of a query that does not depend on its length: the intercept over all that were not stalled, with the least relative
/// errors, and no more than the shortest take. With absolute errors, long queries would hide it.
fn each_us(lanes: &[Vec<Batch>]) -> f64 {
    let pairs: Vec<(f64, f64)> =
        lanes.iter().flatten().map(|batch| (f64::from(batch.worked), f64::from(batch.predicted).max(1e-3))).collect();
    let usual = median(pairs.iter().map(|(worked, predicted)| worked / predicted).collect());
    let calm = pairs.iter().filter(|(worked, predicted)| *worked < STALLED * usual * predicted);
    let (rows, mut taken): (Vec<([f64; 2], f64)>, Vec<f64>) =
        calm.map(|&(worked, predicted)| (([1.0 / predicted, 1.0], worked / predicted), worked)).unzip();
    taken.sort_by(f64::total_cmp);
    least_squares(&rows)[0].max(0.0).min(nearest_rank(&taken, SHORT).unwrap_or(0.0))
}

/// Idle times and factors on the work of the queries that end them, relative to the shortest idle times at the same loads.
fn after_idle(used: &[Vec<Batch>], each_us: f64) -> Vec<(f64, f64)> {
    let point = |edges: &[f32]| {
        let some = kept(used, |batch| (edges[0]..edges[1]).contains(&batch.idle));
        let idle: Vec<f64> = some.iter().flatten().map(|batch| f64::from(batch.idle).max(0.1).ln()).collect();
        let middle = (idle.iter().sum::<f64>() / idle.len() as f64).exp();
        let (mean, _) = calm(&some, Batch::work, each_us).filter(|_| idle.len() >= ENOUGH)?;
        Some((rounded(middle), mean))
    };
    let points: Vec<(f64, f64)> = IDLE_US.windows(2).filter_map(point).collect();
    let base = points.first().map_or(1.0, |first| first.1);
    points.into_iter().map(|(idle_us, mean)| (idle_us, rounded(mean / base).max(1e-4))).collect()
}

/// The slow-down by busy lanes of the other class.
fn beside(class: Class, stages: &Stages, (cpus, gpus): (usize, usize)) -> Option<(Class, Beside)> {
    let together = of_stage(stages, Stage::Together, class);
    if !together.iter().any(|lane| lane.len() >= SHORTEST) {
        return None;
    }
    if !class.is_gpu() {
        let alone = of_stage(stages, Stage::Stream(class, cpus), class);
        let work = rounded(ratio(&together, Batch::work) / ratio(&alone, Batch::work));
        return Some((Class::GPU, Beside { lanes: gpus as u32, work, device: 1.0 }));
    }
    // As in the batches that they are compared with, the lane did not wait for work.
    let is_near = |batch: &Batch| (BESIDE / 2 + 1..=BESIDE).contains(&(batch.queries as usize)) && batch.idle == 0.0;
    let (together, alone) = (kept(&together, is_near), of_batches(stages, BESIDE));
    let times = |of: fn(&Batch) -> (f32, f32)| rounded(ratio(&together, of) / ratio(&alone, of));
    Some((Class::CPU, Beside { lanes: cpus as u32, work: times(Batch::on_thread), device: times(Batch::on_device) }))
}

/// Sum of measured times over the sum of predicted ones; 1 without samples.
fn ratio(lanes: &[Vec<Batch>], times: impl Fn(&Batch) -> (f32, f32)) -> f64 {
    let (measured, predicted) = lanes
        .iter()
        .flatten()
        .map(times)
        .fold((0.0, 0.0), |sum, (measured, predicted)| (sum.0 + f64::from(measured), sum.1 + f64::from(predicted)));
    if measured > 0.0 && predicted > 0.0 { measured / predicted } else { 1.0 }
}

/// The median, since hand-over times include those during which the machine took a core away; 0 without samples.
fn middle(lanes: &[Vec<Batch>], of: fn(&Batch) -> f32) -> f64 {
    let median = median(lanes.iter().flatten().map(|batch| f64::from(of(batch))).collect());
    if median.is_finite() { rounded(median) } else { 0.0 }
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

    fn lane(batch: Batch, count: usize) -> Vec<Vec<Batch>> {
        vec![vec![batch; count]]
    }

    #[test]
    fn stalls_are_left_out_of_means_and_spreads() {
        let query = |i: usize| {
            let us = 1.0 + if i.is_multiple_of(2) { 22.0 } else { 26.0 } + if i % 100 == 99 { 2000.0 } else { 0.0 };
            Batch { worked: us, predicted: 20.0, ..Batch::default() }
        };
        let lanes = vec![(0..10_000).map(query).collect::<Vec<Batch>>()];
        let (mean, Spread::Deviation(spread)) = calm(&lanes, Batch::work, 1.0).unwrap() else { panic!("no deviation") };
        assert!((mean - 1.2).abs() < 0.002 && (spread - 1.0 / 12.0).abs() < 0.001, "{mean} {spread}");
        assert_eq!(calm(&lane(query(0), SHORTEST - 1), Batch::work, 0.0), None);
    }

    #[test]
    fn the_time_of_a_batch_on_its_device_is_that_of_batches_apart_and_its_spacing_that_of_overlapping_ones() {
        let batch = |queries, host, device, worked, idle| {
            let (predicted_host, predicted_device) = (10.0, 10.0);
            Batch { queries, predicted_host, predicted_device, host, device, worked, idle, ..Batch::default() }
        };
        let seen = |batch| vec![Seen { lanes: vec![(Class::GPU, vec![batch; SHORTEST])] }];
        // Four overlapping batches share a device that would run each in 12 us, and does run one every 6 us. The thread is
        // slower than the device for batches of 16, and hides how far they overlap.
        let stages = Stages::from([
            (Stage::Batches(4), seen(batch(4, 2.0, 24.0, 6.0, 0.0))),
            (Stage::Apart(4), seen(batch(4, 2.0, 12.0, 15.0, 9.0))),
            (Stage::Batches(16), seen(batch(16, 20.0, 16.0, 20.0, 0.0))),
        ]);
        let found = lanes(Class::GPU, &stages, (0, 1)).slowdown;
        let found: Vec<_> = found.iter().map(|one| (one.queries, one.work, one.device, one.spacing)).collect();
        assert_eq!(found, [(4, 0.2, 1.2, 0.5), (16, 2.0, 1.6, 0.5)]);
    }

    #[test]
    fn idle_times_count_relative_to_the_shortest() {
        let query = |idle, worked| Batch { predicted: 10.0, idle, worked, ..Batch::default() };
        let few = lane(query(50.0, 99.0), ENOUGH - 1);
        let used = [lane(query(1.0, 13.0), ENOUGH), few, lane(query(5000.0, 19.0), ENOUGH)].concat();
        assert_eq!(after_idle(&used, 1.0), [(1.0, 1.0), (5000.0, 1.5)]);
    }

    #[test]
    fn the_time_of_each_query_that_its_length_does_not_explain_is_found() {
        let lane = (1..500).map(|i| Batch { predicted: i as f32, worked: 0.75 + 1.25 * i as f32, ..Batch::default() });
        assert!((each_us(&[lane.collect()]) - 0.75).abs() < 1e-3);
    }
}
