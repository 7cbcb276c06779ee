//! Fits a machine file to samples by medians and means; no curve extrapolates beyond the measurements.
//!
//! Each number comes from the samples in which little else varies. The order is: work in a stream of queries, the
//! increase on lanes that are used less, the effect of a pause, and contention. The remaining variation per millisecond
//! is the current speed of the core; the rest is noise.

use std::collections::BTreeMap;

use super::{MachineSample, Stage};
use crate::base::machine::Class;
use crate::base::quantile::{median, nearest_rank};
use crate::base::time::Nanos;
use crate::cost::machine_file::{AfterIdle, Crowding, InUse, LaneFile, Quantile, Stalls};

/// Time constant with which the past use of a lane is forgotten.
const MEMORY_MS: f64 = 2.0;
/// Bin edges for the share of a lane's time in use.
const USE: [f64; 11] = [0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 1.01];
/// Bin edges for idle times, in microseconds.
const IDLE_US: [f64; 9] = [0.0, 1.0, 4.0, 15.0, 60.0, 200.0, 1000.0, 4000.0, f64::INFINITY];
/// Interval over which the speed of a core is measured.
pub(super) const MOMENT_US: f64 = 1000.0;
/// Up to this number of busy lanes, contention is negligible.
const FEW: usize = 4;
/// Smaller groups of samples are skipped.
const ENOUGH: usize = 12;
/// Share of the samples that counts; the most delayed ones are left out.
const UNDISTURBED: f64 = 0.9;
/// Work above this multiple of the median is stalled.
const STALLED: f64 = 3.0;
/// The quantiles of noise and speeds in the file; stalls cover the tails.
const SHARES: [f64; 9] = [0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98];

/// A sample with the previous use of its lane.
struct Used<'a> {
    sample: &'a MachineSample,
    share: f64,
}

/// The parameters of a class's lanes; `None` without samples.
pub(super) fn lanes(class: Class, samples: &[MachineSample], stalls: Stalls) -> Option<LaneFile> {
    let used = with_use(class, samples);
    let plain: Vec<&Used<'_>> = used.iter().filter(|used| is_plain(class, used.sample)).collect();
    let busiest = plain.iter().filter(|used| class.is_gpu() || used.share >= USE[USE.len() - 2]);
    let busiest: Vec<&MachineSample> = busiest.map(|used| used.sample).collect();
    let (slope, plus) = if class.is_gpu() { (1.0, 0.0) } else { line(&busiest)? };
    let mut in_use = by_use(&plain, slope);
    if in_use.is_empty() {
        in_use.push(InUse { share: 1.0, times: 1.0, plus_us: rounded(plus) });
    }
    let expected = |used: &Used<'_>| {
        let (times, plus) = at_share(&in_use, used.share);
        used.sample.profiled.total().as_us() * slope * times + plus
    };
    let after_idle = after_idle(&plain, expected);
    let crowding = crowding(class, &used, expected);
    let mut beside = BTreeMap::new();
    let together: Vec<&Used<'_>> = of_stage(&used, Stage::Beside).collect();
    if together.len() >= ENOUGH && !class.is_gpu() {
        let crowded = crowding.last().map_or(1.0, |last| last.times);
        beside.insert(Class::GPU, rounded((ratio(&together, expected) / crowded).max(1.0)));
    }
    let batches = || of_stage(&used, Stage::Batches).map(|used| used.sample);
    let batch_host = longer(batches().map(|sample| (sample.host, sample.profiled.host)));
    let batch_device = longer(batches().map(|sample| (sample.device, sample.profiled.device)));
    let moments = moments(class, &used, expected);
    let mut residuals = if class.is_gpu() {
        plain.iter().map(|used| used.sample.worked.as_us() / expected(used)).collect()
    } else {
        moments.residuals.clone()
    };
    if residuals.is_empty() {
        return None;
    }
    let backs = plain.iter().map(|used| used.sample.back.as_us());
    Some(LaneFile {
        stream: rounded(slope),
        spacing: rounded(spacing(class, &used)),
        hand_back_us: rounded(median(backs.collect())),
        in_use,
        memory_ms: MEMORY_MS,
        after_idle,
        crowding,
        beside,
        batch_host,
        batch_device,
        speeds: quantiles(&mut moments.speeds.clone()),
        speed_lasts_ms: rounded(moments.lasts_ms.max(0.1)),
        noise: quantiles(&mut residuals),
        stalls,
    })
}

/// The effect of a pause on the next query, by duration of the pause.
fn after_idle(plain: &[&Used<'_>], expected: impl Fn(&Used<'_>) -> f64) -> Vec<AfterIdle> {
    let after = |edges: &[f64]| {
        let some = plain.iter().filter(|used| (edges[0]..edges[1]).contains(&used.sample.idle.as_us()));
        let some: Vec<&Used<'_>> = some.copied().collect();
        if some.len() < ENOUGH {
            return None;
        }
        let idle_us = some.iter().map(|used| used.sample.idle.as_us().max(1e-3).ln()).sum::<f64>() / some.len() as f64;
        let hand_over_us = median(some.iter().map(|used| used.sample.out.as_us()).collect());
        Some(AfterIdle {
            idle_us: rounded(idle_us.exp()),
            hand_over_us: rounded(hand_over_us),
            times: rounded(ratio(&some, &expected)),
        })
    };
    IDLE_US.windows(2).filter_map(after).collect()
}

fn of_stage<'u, 's>(used: &'u [Used<'s>], stage: Stage) -> impl Iterator<Item = &'u Used<'s>> {
    used.iter().filter(move |used| used.sample.stage == stage)
}

/// Time between the ends of two queries on a lane with several batches, as a share of a query's time alone.
fn spacing(class: Class, used: &[Used<'_>]) -> f64 {
    let (worked, alone) = of_stage(used, Stage::Stream).fold((0.0, 0.0), |sum, used| {
        (sum.0 + used.sample.worked.as_us(), sum.1 + used.sample.profiled.total().as_us())
    });
    if class.is_gpu() && alone > 0.0 { (worked / alone).clamp(0.05, 1.0) } else { 1.0 }
}

/// Core speeds over time, from query streams or from the thread of a GPU lane.
fn moments(class: Class, used: &[Used<'_>], expected: impl Fn(&Used<'_>) -> f64) -> Moments {
    if !class.is_gpu() {
        let streams = of_stage(used, Stage::Stream);
        return Moments::of(streams.map(|used| (used.sample, used.sample.worked.as_us(), expected(used))));
    }
    // Batch sizes are scaled separately, so that an error of the formula is not taken for speed.
    let mut by_size: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    let batches = || of_stage(used, Stage::Batches).map(|used| used.sample);
    for sample in batches() {
        let (taken, expected) = by_size.entry(sample.queries).or_default();
        *taken += sample.host.as_us();
        *expected += sample.profiled.host.as_us();
    }
    let expected = |sample: &MachineSample| {
        let (taken, expected) = by_size[&sample.queries];
        sample.profiled.host.as_us() * taken / expected.max(1e-9)
    };
    Moments::of(batches().map(|sample| (sample, sample.host.as_us(), expected(sample))))
}

/// Slowdown of single queries on a GPU lane, by the lane's use; empty without samples.
pub(super) fn gpu_in_use(samples: &[MachineSample]) -> Vec<InUse> {
    let used = with_use(Class::GPU, samples);
    by_use(&used.iter().filter(|used| is_plain(Class::GPU, used.sample)).collect::<Vec<_>>(), 1.0)
}

/// Whether only its lane's past slowed this query down. With overlapping batches the lane must have been idle.
fn is_plain(class: Class, sample: &MachineSample) -> bool {
    let is_alone =
        sample.stage == Stage::Used || (!class.is_gpu() && sample.stage == Stage::Stream && sample.lanes <= FEW);
    is_alone && (!class.is_gpu() || sample.idle > Nanos::ZERO)
}

/// Slowdown relative to a stream, by the lane's use. In a stream, work takes `slope` times its time alone.
fn by_use(plain: &[&Used<'_>], slope: f64) -> Vec<InUse> {
    let of_share = |edges: &[f64]| {
        let some = || plain.iter().filter(|used| (edges[0]..edges[1]).contains(&used.share));
        let (times, plus) = line(&some().map(|used| used.sample).collect::<Vec<_>>())?;
        let share = some().map(|used| used.share).sum::<f64>() / some().count().max(1) as f64;
        Some(InUse { share: rounded(share), times: rounded(times / slope), plus_us: rounded(plus) })
    };
    USE.windows(2).filter_map(of_share).collect()
}

/// The samples of a class with the recent use of their lanes.
fn with_use(class: Class, samples: &[MachineSample]) -> Vec<Used<'_>> {
    let forgets = |time: Nanos| (-time.as_ms() / MEMORY_MS).exp();
    let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
    let mut before = None;
    let of_class = samples.iter().filter(|sample| sample.class == class);
    let used = of_class.map(|sample| {
        // Lanes are idle when a run begins.
        let run = (sample.round, sample.stage, sample.lanes, sample.offered.to_bits());
        if before.replace(run) != Some(run) {
            shares.clear();
        }
        let share = shares.entry(sample.processor.0).or_insert(0.0);
        let found = *share * forgets(sample.idle);
        *share = 1.0 - (1.0 - found) * forgets(sample.worked);
        Used { sample, share: found }
    });
    used.collect()
}

/// Factor and addend at this share of use, interpolated linearly.
fn at_share(in_use: &[InUse], share: f64) -> (f64, f64) {
    let after = in_use.partition_point(|point| point.share < share);
    match (after.checked_sub(1).map(|before| in_use[before]), in_use.get(after)) {
        (Some(low), Some(high)) => {
            let part = (share - low.share) / (high.share - low.share);
            (low.times + part * (high.times - low.times), low.plus_us + part * (high.plus_us - low.plus_us))
        }
        (Some(only), None) => (only.times, only.plus_us),
        (None, Some(only)) => (only.times, only.plus_us),
        (None, None) => (1.0, 0.0),
    }
}

/// Slowdown of work by number of busy lanes, relative to few lanes; it never decreases.
fn crowding(class: Class, used: &[Used<'_>], expected: impl Fn(&Used<'_>) -> f64) -> Vec<Crowding> {
    let mut by_lanes: BTreeMap<usize, Vec<&Used<'_>>> = BTreeMap::new();
    for used in used.iter().filter(|used| used.sample.stage == Stage::Stream && !class.is_gpu()) {
        by_lanes.entry(used.sample.lanes).or_default().push(used);
    }
    let mut found = vec![Crowding { busy: 1, times: 1.0 }];
    for (lanes, some) in by_lanes.into_iter().filter(|(lanes, some)| *lanes > FEW && some.len() >= ENOUGH) {
        let before = found.last().map_or(1.0, |last| last.times);
        found.push(Crowding { busy: lanes as u32, times: rounded(ratio(&some, &expected).max(before)) });
    }
    found
}

/// Splits samples of a lane into intervals with [`MOMENT_US`] of expected time; the last one may be shorter.
pub(super) fn moments_of<T>(samples: &[T], expected_us: impl Fn(&T) -> f64) -> impl Iterator<Item = &[T]> {
    let mut sum = 0.0;
    samples.chunk_by(move |sample, _| {
        sum += expected_us(sample);
        let is_within = sum < MOMENT_US;
        if !is_within {
            sum = 0.0;
        }
        is_within
    })
}

/// Core speeds over time.
#[derive(Debug, Default)]
struct Moments {
    /// Slowdown of each moment, relative to the mean.
    speeds: Vec<f64>,
    /// Correlation time of the speed.
    lasts_ms: f64,
    /// Work of each query divided by its expectation at the speed of the moment.
    residuals: Vec<f64>,
}

impl Moments {
    /// Speeds from busy lanes: each sample comes with its measured and expected time, in microseconds.
    fn of<'a>(streams: impl Iterator<Item = (&'a MachineSample, f64, f64)>) -> Self {
        let mut lanes: BTreeMap<(u64, usize, u32), Vec<(f64, f64)>> = BTreeMap::new();
        for (sample, taken, expected) in streams {
            let lane = (sample.round, sample.lanes, sample.processor.0);
            lanes.entry(lane).or_default().push((taken, expected));
        }
        let mut moments = Self::default();
        let (mut pairs, mut all) = (Vec::new(), Vec::new());
        for queries in lanes.values() {
            let mut before = None;
            for some in moments_of(queries, |(_, expected)| *expected) {
                if some.iter().map(|(_, expected)| expected).sum::<f64>() < MOMENT_US {
                    continue;
                }
                // The median ignores queries that were stalled.
                let speed = median(some.iter().map(|(worked, expected)| worked / expected).collect());
                moments.residuals.extend(some.iter().map(|(worked, expected)| worked / expected / speed));
                pairs.extend(before.map(|before| (before, speed)));
                all.push(speed);
                before = Some(speed);
            }
        }
        if all.len() < ENOUGH {
            return moments;
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let spread = all.iter().map(|speed| (speed - mean).powi(2)).sum::<f64>() / all.len() as f64;
        let together = pairs.iter().map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / pairs.len().max(1) as f64;
        let likeness = (together / spread.max(1e-12)).clamp(0.05, 0.99);
        moments.lasts_ms = -(MOMENT_US / 1e3) / likeness.ln();
        // The median of this skewed distribution is below its mean, and the file needs residuals of mean 1.
        moments.residuals.sort_by(f64::total_cmp);
        let calm = &moments.residuals[..undisturbed(moments.residuals.iter().copied())];
        let residual = calm.iter().sum::<f64>() / calm.len().max(1) as f64;
        moments.residuals.iter_mut().for_each(|one| *one /= residual);
        moments.speeds = all.into_iter().map(|speed| speed / mean).collect();
        moments
    }
}

/// How many of the ascending ratios count: all but the highest, and none that indicates a stall.
fn undisturbed(ratios: impl ExactSizeIterator<Item = f64> + Clone) -> usize {
    let count = ratios.len();
    let most = ratios.clone().nth(count / 2).unwrap_or(0.0) * STALLED;
    let calm = ratios.take_while(|&ratio| ratio <= most).count();
    calm.min((count as f64 * UNDISTURBED).ceil() as usize)
}

/// Total measured time divided by total expected time; 1 without samples.
pub(super) fn longer(times: impl Iterator<Item = (Nanos, Nanos)>) -> f64 {
    let (measured, expected) = times.fold((0.0, 0.0), |sum, one| (sum.0 + one.0.as_us(), sum.1 + one.1.as_us()));
    if measured > 0.0 && expected > 0.0 { rounded(measured / expected) } else { 1.0 }
}

/// Work divided by its expectation over the samples that were not stalled.
fn ratio(samples: &[&Used<'_>], expected: impl Fn(&Used<'_>) -> f64) -> f64 {
    calm_ratio(samples.iter().map(|used| (used.sample.worked.as_us(), expected(used))).collect())
}

/// Sum of measured values divided by the sum of expected ones, without stalled pairs; 1 without pairs.
pub(super) fn calm_ratio(mut both: Vec<(f64, f64)>) -> f64 {
    both.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    both.truncate(undisturbed(both.iter().map(|(worked, expected)| worked / expected)));
    let (worked, expected) = both.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if expected > 0.0 { worked / expected } else { 1.0 }
}

/// Slope and intercept of work over time alone, through the means of the short and the long half, without stalls.
fn line(samples: &[&MachineSample]) -> Option<(f64, f64)> {
    if samples.len() < ENOUGH {
        return None;
    }
    let mut both: Vec<(f64, f64)> =
        samples.iter().map(|sample| (sample.profiled.total().as_us(), sample.worked.as_us())).collect();
    both.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (short, long) = both.split_at(both.len() / 2);
    let mean = |half: &[(f64, f64)]| {
        let mut half = half.to_vec();
        half.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
        half.truncate(undisturbed(half.iter().map(|(alone, worked)| worked / alone)));
        let n = half.len() as f64;
        half.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0 / n, sum.1 + one.1 / n))
    };
    let (low, high) = (mean(short), mean(long));
    let through_origin = ((low.1 + high.1) / (low.0 + high.0), 0.0);
    if high.0 <= low.0 * 2.0 {
        return Some(through_origin);
    }
    let slope = (high.1 - low.1) / (high.0 - low.0);
    let plus = low.1 - slope * low.0;
    // An intercept below 0 is not a time.
    Some(if plus >= 0.0 && slope > 0.0 { (slope, plus) } else { through_origin })
}

pub(super) fn quantiles(values: &mut [f64]) -> Vec<Quantile> {
    values.sort_by(f64::total_cmp);
    let quantile = |&share: &f64| Some(Quantile { share, value: rounded(nearest_rank(values, share)?) });
    SHARES.iter().filter_map(quantile).collect()
}

/// Rounds to four decimals, the precision of the measurements.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_left_to_stalls_however_many_a_bin_has() {
        let count = |ratios: Vec<f64>| undisturbed(ratios.into_iter());
        // Nine tenths of slightly varying ratios count; ratios of stalls of milliseconds do not.
        assert_eq!(count((0..100).map(|i| 1.0 + f64::from(i) / 500.0).collect()), 90);
        assert_eq!(count((0..100).map(|i| if i < 70 { 1.0 } else { 200.0 }).collect()), 70);
        assert_eq!((count(vec![1.0]), count(Vec::new())), (1, 0));
    }
}
