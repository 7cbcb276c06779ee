//! From samples to a machine file: medians and means of what was measured, no curve that might bend where nothing was.

use std::collections::BTreeMap;

use super::{MachineSample, Stage};
use crate::cost::machine_file::{AfterIdle, Crowding, LaneFile, Quantile, Stalls};
use crate::machine::Class;
use crate::quantile::{median, nearest_rank};

/// Where idle times are parted, in microseconds.
const IDLE_US: [f64; 8] = [2.0, 10.0, 40.0, 120.0, 300.0, 1000.0, 4000.0, f64::INFINITY];
/// Fewer samples than this tell nothing.
const ENOUGH: usize = 12;
/// The quantiles of noise that are kept: beyond lie stalls.
const NOISE: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98];

/// What the samples of a class say; `None` without any.
pub(super) fn lanes(class: Class, samples: &[MachineSample], stalls: Stalls) -> Option<LaneFile> {
    let of = |stage: Stage| samples.iter().filter(move |sample| sample.class == class && sample.stage == stage);
    let fewest = of(Stage::Stream).map(|sample| sample.lanes).min()?;
    let stream: Vec<&MachineSample> =
        of(Stage::Stream).filter(|sample| sample.lanes == fewest && sample.idle.as_us() < IDLE_US[0]).collect();
    let (slope, plus) = line(&stream)?;
    let mut after_idle = vec![AfterIdle {
        idle_us: IDLE_US[0] / 2.0,
        hand_over_us: rounded(middle(&stream, |sample| sample.out.as_us())),
        times: 1.0,
        plus_us: rounded(plus),
    }];
    for edges in IDLE_US.windows(2) {
        let within = |sample: &&MachineSample| (edges[0]..edges[1]).contains(&sample.idle.as_us());
        let some: Vec<&MachineSample> = of(Stage::Idle).filter(within).collect();
        let Some((times, plus)) = line(&some) else { continue };
        let idle_us = (some.iter().map(|sample| sample.idle.as_us().ln()).sum::<f64>() / some.len() as f64).exp();
        after_idle.push(AfterIdle {
            idle_us: rounded(idle_us),
            hand_over_us: rounded(middle(&some, |sample| sample.out.as_us())),
            times: rounded(times / slope),
            plus_us: rounded(plus),
        });
    }
    let expected = |sample: &MachineSample| sample.alone.as_us() * slope + plus;
    let crowding = crowding(&of(Stage::Stream).copied().collect::<Vec<_>>(), expected);
    let mut beside = BTreeMap::new();
    let together: Vec<&MachineSample> = of(Stage::Beside).collect();
    if together.len() >= ENOUGH {
        let crowded = crowding.last().map_or(1.0, |last| last.times);
        let times = ratio(&together, |sample| expected(sample) * crowded);
        beside.insert(if class.is_gpu() { Class::CPU } else { Class::GPU }, rounded(times));
    }
    let mut residuals: Vec<f64> = stream.iter().map(|sample| sample.worked.as_us() / expected(sample)).collect();
    residuals.sort_by(f64::total_cmp);
    let noise = NOISE.iter().filter_map(|&share| {
        Some(Quantile { share, value: rounded(nearest_rank(&residuals, share)?) })
    });
    Some(LaneFile {
        stream: rounded(slope),
        after_idle,
        hand_back_us: rounded(middle(&stream, |sample| sample.back.as_us())),
        crowding,
        beside,
        check_each_us: 0.0,
        noise: noise.collect(),
        stalls,
    })
}

/// How many times longer work takes on so many lanes than on the fewest.
fn crowding(stream: &[MachineSample], expected: impl Fn(&MachineSample) -> f64) -> Vec<Crowding> {
    let mut by_lanes: BTreeMap<usize, Vec<&MachineSample>> = BTreeMap::new();
    for sample in stream {
        by_lanes.entry(sample.lanes).or_default().push(sample);
    }
    let found = by_lanes.into_iter().filter(|(_, some)| some.len() >= ENOUGH);
    found.map(|(lanes, some)| Crowding { busy: lanes as u32, times: rounded(ratio(&some, &expected)) }).collect()
}

/// Work over what is expected, of all samples together but those that were held up most.
fn ratio(samples: &[&MachineSample], expected: impl Fn(&MachineSample) -> f64) -> f64 {
    let mut both: Vec<(f64, f64)> = samples.iter().map(|sample| (sample.worked.as_us(), expected(sample))).collect();
    both.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    both.truncate((both.len() as f64 * 0.98) as usize);
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
        samples.iter().map(|sample| (sample.alone.as_us(), sample.worked.as_us())).collect();
    both.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (short, long) = both.split_at(both.len() / 2);
    let mean = |half: &[(f64, f64)]| {
        let mut half = half.to_vec();
        half.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
        half.truncate((half.len() as f64 * 0.98).ceil() as usize);
        let n = half.len() as f64;
        half.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0 / n, sum.1 + one.1 / n))
    };
    let (low, high) = (mean(short), mean(long));
    if high.0 <= low.0 * 1.2 {
        // All alike: a line through the origin.
        return Some(((low.1 + high.1) / (low.0 + high.0), 0.0));
    }
    let slope = (high.1 - low.1) / (high.0 - low.0);
    let plus = low.1 - slope * low.0;
    // A height below nothing is no time: the line then goes through the origin.
    Some(if plus >= 0.0 && slope > 0.0 { (slope, plus) } else { ((low.1 + high.1) / (low.0 + high.0), 0.0) })
}

fn middle(samples: &[&MachineSample], of: impl Fn(&MachineSample) -> f64) -> f64 {
    median(samples.iter().map(|sample| of(sample)).collect())
}

/// To four digits after the point: what is told is no surer than that.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
