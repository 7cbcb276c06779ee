//! From samples to a machine file: medians and means of what was measured, no curve that might bend where nothing was.
//!
//! Each number is told by the samples in which little else varies, in this order: what work takes in a stream of others;
//! how much longer on lanes that are used less; what a pause adds to that; what company does. What is then left over in
//! stretches of a millisecond is the core's speed of the moment, the rest noise.

use std::collections::BTreeMap;

use super::{MachineSample, Stage};
use crate::base::machine::Class;
use crate::base::quantile::{median, nearest_rank};
use crate::base::time::Nanos;
use crate::cost::machine_file::{AfterIdle, Crowding, InUse, LaneFile, Quantile, Stalls};

/// How long ago the use of a lane is forgotten.
const MEMORY_MS: f64 = 2.0;
/// Where shares of a lane's use are parted.
const USE: [f64; 11] = [0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 1.01];
/// Where idle times are parted, in microseconds.
const IDLE_US: [f64; 9] = [0.0, 1.0, 4.0, 15.0, 60.0, 200.0, 1000.0, 4000.0, f64::INFINITY];
/// Stretches in which a core's speed is told.
pub(super) const MOMENT_US: f64 = 1000.0;
/// Up to so many busy lanes there is no company to speak of.
const FEW: usize = 4;
/// Fewer samples than this tell nothing.
const ENOUGH: usize = 12;
/// Of samples, so large a share counts: those that were held up most do not.
const UNDISTURBED: f64 = 0.9;
/// Work that takes so many times as long as the middle of its like was stalled.
const STALLED: f64 = 3.0;
/// The quantiles of noise and of speeds that are kept: beyond lie stalls.
const SHARES: [f64; 9] = [0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98];

/// A sample with how much its lane was used before.
struct Used<'a> {
    sample: &'a MachineSample,
    share: f64,
}

/// What the samples of a class say; `None` without any.
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

/// What a pause before work adds to it, by how long it was.
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

/// What was measured in one stage.
fn of_stage<'u, 's>(used: &'u [Used<'s>], stage: Stage) -> impl Iterator<Item = &'u Used<'s>> {
    used.iter().filter(move |used| used.sample.stage == stage)
}

/// Of a lane that holds several batches: the share of what a query takes alone that passes between the ends of two.
fn spacing(class: Class, used: &[Used<'_>]) -> f64 {
    let (worked, alone) = of_stage(used, Stage::Stream).fold((0.0, 0.0), |sum, used| {
        (sum.0 + used.sample.worked.as_us(), sum.1 + used.sample.profiled.total().as_us())
    });
    if class.is_gpu() && alone > 0.0 { (worked / alone).clamp(0.05, 1.0) } else { 1.0 }
}

/// How fast cores are from moment to moment: by queries in streams, or by what a GPU lane's thread takes for batches.
fn moments(class: Class, used: &[Used<'_>], expected: impl Fn(&Used<'_>) -> f64) -> Moments {
    if !class.is_gpu() {
        let streams = of_stage(used, Stage::Stream);
        return Moments::of(streams.map(|used| (used.sample, used.sample.worked.as_us(), expected(used))));
    }
    // Each size by itself: how far the formula is off is no speed of the thread's.
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

/// What the samples of queries that a GPU lane answered by themselves, as they arrived, say of how much longer they take than
/// alone; empty without any.
pub(super) fn gpu_in_use(samples: &[MachineSample]) -> Vec<InUse> {
    let used = with_use(Class::GPU, samples);
    by_use(&used.iter().filter(|used| is_plain(Class::GPU, used.sample)).collect::<Vec<_>>(), 1.0)
}

/// Whether a sample is of a query that nothing but its own lane's past made longer. Where batches overlap, only one that found the
/// lane idle shows what it takes.
fn is_plain(class: Class, sample: &MachineSample) -> bool {
    let is_alone =
        sample.stage == Stage::Used || (!class.is_gpu() && sample.stage == Stage::Stream && sample.lanes <= FEW);
    is_alone && (!class.is_gpu() || sample.idle > Nanos::ZERO)
}

/// By how much a lane was used: how many times longer than in a stream, where work takes `slope` times what it does alone.
fn by_use(plain: &[&Used<'_>], slope: f64) -> Vec<InUse> {
    let of_share = |edges: &[f64]| {
        let some = || plain.iter().filter(|used| (edges[0]..edges[1]).contains(&used.share));
        let (times, plus) = line(&some().map(|used| used.sample).collect::<Vec<_>>())?;
        let share = some().map(|used| used.share).sum::<f64>() / some().count().max(1) as f64;
        Some(InUse { share: rounded(share), times: rounded(times / slope), plus_us: rounded(plus) })
    };
    USE.windows(2).filter_map(of_share).collect()
}

/// The samples of a class, each with the share of its lane's time that was work lately.
fn with_use(class: Class, samples: &[MachineSample]) -> Vec<Used<'_>> {
    let forgets = |time: Nanos| (-time.as_ms() / MEMORY_MS).exp();
    let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
    let mut before = None;
    let of_class = samples.iter().filter(|sample| sample.class == class);
    let used = of_class.map(|sample| {
        // A run begins with lanes that have been idle.
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

/// What is said of a share of use, in a line between those that are told.
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

/// How many times longer work takes on so many lanes than on few; never less than on fewer.
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

/// What follows each other on a lane, in stretches of which [`MOMENT_US`] are expected; the last is what is left.
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

/// How fast cores are from moment to moment.
#[derive(Debug, Default)]
struct Moments {
    /// Of each moment, how many times longer than in all work took.
    speeds: Vec<f64>,
    /// How long a moment's speed lasts.
    lasts_ms: f64,
    /// Of each query, its work over what is expected at that moment.
    residuals: Vec<f64>,
}

impl Moments {
    /// Of lanes that are never without work: each sample with what it took and what was expected, in microseconds.
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
                // The middle of the queries: one that was held up is not the core's speed.
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
        // Medians lie below means: the mean of the residuals is what the rest of the file is about.
        moments.residuals.sort_by(f64::total_cmp);
        let calm = &moments.residuals[..undisturbed(moments.residuals.iter().copied())];
        let residual = calm.iter().sum::<f64>() / calm.len().max(1) as f64;
        moments.residuals.iter_mut().for_each(|one| *one /= residual);
        moments.speeds = all.into_iter().map(|speed| speed / mean).collect();
        moments
    }
}

/// How many of these ratios, which ascend, count: those that were held up most, and all that are several times the middle
/// one, do not. They are what stalls are.
fn undisturbed(ratios: impl ExactSizeIterator<Item = f64> + Clone) -> usize {
    let count = ratios.len();
    let most = ratios.clone().nth(count / 2).unwrap_or(0.0) * STALLED;
    let calm = ratios.take_while(|&ratio| ratio <= most).count();
    calm.min((count as f64 * UNDISTURBED).ceil() as usize)
}

/// How many times as long as expected, of all together; 1 of none.
pub(super) fn longer(times: impl Iterator<Item = (Nanos, Nanos)>) -> f64 {
    let (measured, expected) = times.fold((0.0, 0.0), |sum, one| (sum.0 + one.0.as_us(), sum.1 + one.1.as_us()));
    if measured > 0.0 && expected > 0.0 { rounded(measured / expected) } else { 1.0 }
}

/// Work over what is expected, of all samples together but those that were held up most.
fn ratio(samples: &[&Used<'_>], expected: impl Fn(&Used<'_>) -> f64) -> f64 {
    calm_ratio(samples.iter().map(|used| (used.sample.worked.as_us(), expected(used))).collect())
}

/// The same of what was measured and what was expected; 1 of nothing.
pub(super) fn calm_ratio(mut both: Vec<(f64, f64)>) -> f64 {
    both.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    both.truncate(undisturbed(both.iter().map(|(worked, expected)| worked / expected)));
    let (worked, expected) = both.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if expected > 0.0 { worked / expected } else { 1.0 }
}

/// Slope and height of the line from the short half of the queries to the long one: work by what they take alone. Those
/// that were held up most are left out of both.
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
    // A height below nothing is no time.
    Some(if plus >= 0.0 && slope > 0.0 { (slope, plus) } else { through_origin })
}

pub(super) fn quantiles(values: &mut [f64]) -> Vec<Quantile> {
    values.sort_by(f64::total_cmp);
    let quantile = |&share: &f64| Some(Quantile { share, value: rounded(nearest_rank(values, share)?) });
    SHARES.iter().filter_map(quantile).collect()
}

/// To four digits after the point: what is told is no surer than that.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_left_to_stalls_however_many_a_bin_has() {
        let count = |ratios: Vec<f64>| undisturbed(ratios.into_iter());
        // Nine tenths of what varies a little; of what a stall held up for milliseconds, nothing.
        assert_eq!(count((0..100).map(|i| 1.0 + f64::from(i) / 500.0).collect()), 90);
        assert_eq!(count((0..100).map(|i| if i < 70 { 1.0 } else { 200.0 }).collect()), 70);
        assert_eq!((count(vec![1.0]), count(Vec::new())), (1, 0));
    }
}
