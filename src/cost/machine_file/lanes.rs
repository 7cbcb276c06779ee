//! A machine file's numbers, laid out to be asked millions of times a second.

use super::{DispatcherFile, LaneFile, Quantile};
use crate::machine::{Class, PerClass};
use crate::random::mix;
use crate::time::Nanos;

/// Idle times are told apart by their octave and its quarters.
const QUARTERS: usize = 4;
/// Octaves of a 64-bit number of nanoseconds.
const OCTAVES: usize = 64;

/// What a query finds on a lane that has been idle so long.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Warmth {
    /// From the dispatcher's start until the lane is at work.
    pub hand_over: Nanos,
    /// How many times longer than in a stream the work takes,
    pub times: f64,
    /// and what it takes beyond.
    pub plus: Nanos,
}

/// What serving costs on lanes of a class: [`LaneFile`], ready for use.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneCosts {
    stream: f64,
    /// By octave and quarter of the idle time in nanoseconds.
    after_idle: Vec<Warmth>,
    hand_back: Nanos,
    /// By busy lanes of the class, itself counted; more than the last count as that.
    crowding: Vec<f64>,
    beside: PerClass<f64>,
    check_each: Nanos,
    noise: Vec<Quantile>,
    stalls_per_ns: f64,
    stall_us: Vec<Quantile>,
}

impl LaneCosts {
    pub(super) fn new(file: &LaneFile) -> Self {
        let most_busy = file.crowding.last().map_or(1, |last| last.busy.max(1));
        let crowding = (0..=most_busy).map(|busy| {
            let points = file.crowding.iter().map(|point| (f64::from(point.busy), point.times));
            interpolated(points, f64::from(busy)).unwrap_or(1.0)
        });
        // Whatever is expected of work is its mean.
        let mean = mean_of(&file.noise).unwrap_or(1.0);
        let noise = file.noise.iter().map(|point| Quantile { value: point.value / mean, ..*point });
        Self {
            stream: file.stream,
            after_idle: (0..OCTAVES * QUARTERS).map(|slot| warmth(file, slot)).collect(),
            hand_back: Nanos::from_us(file.hand_back_us),
            crowding: crowding.collect(),
            beside: PerClass::from_fn(|class| file.beside.get(&class).copied().unwrap_or(1.0)),
            check_each: Nanos::from_us(file.check_each_us),
            noise: noise.collect(),
            stalls_per_ns: if file.stalls.us.is_empty() { 0.0 } else { file.stalls.per_s / 1e9 },
            stall_us: file.stalls.us.clone(),
        }
    }

    /// Work in a stream over work alone.
    #[must_use]
    pub fn stream(&self) -> f64 {
        self.stream
    }

    /// From the end of the work until the dispatcher knows.
    #[must_use]
    pub fn hand_back(&self) -> Nanos {
        self.hand_back
    }

    /// What the lane's thread does for each query of a batch that has ended.
    #[must_use]
    pub fn check_each(&self) -> Nanos {
        self.check_each
    }

    /// What a query finds on a lane that has been idle for so long.
    #[must_use]
    #[inline]
    pub fn after_idle(&self, idle: Nanos) -> Warmth {
        self.after_idle[slot_of(idle)]
    }

    /// How many times longer work takes while so many lanes of its class work, itself counted, and, by class, others do.
    #[must_use]
    #[inline]
    pub fn crowded(&self, class: Class, busy: &PerClass<u32>) -> f64 {
        let own = self.crowding[(busy[class] as usize).min(self.crowding.len() - 1)];
        let others = Class::ALL.into_iter().filter(|&other| other != class && busy[other] > 0);
        others.fold(own, |times, other| times * self.beside[other])
    }

    /// What work that is expected to take `expected` takes the time of this `number`: the same for the same number.
    #[must_use]
    #[inline]
    pub fn varied(&self, expected: Nanos, number: u64) -> Nanos {
        let bits = mix(number);
        let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
        let varied = match value_at(&self.noise, unit(bits)) {
            Some(times) => expected.scaled(times),
            None => expected,
        };
        let chance = self.stalls_per_ns * varied.0 as f64;
        if chance <= 0.0 {
            return varied;
        }
        let bits = mix(bits ^ 0x5851_F42D_4C95_7F2D);
        // One stall at most: two in one query are rarer than what is known of either.
        if unit(bits) >= chance {
            return varied;
        }
        varied + Nanos::from_us(value_at(&self.stall_us, unit(mix(bits))).unwrap_or(0.0))
    }
}

/// The dispatcher's costs on a machine of a number of lanes: [`DispatcherFile`], ready for use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DispatcherCosts {
    round_ns: f64,
    event_ns: f64,
    policies: Vec<(String, f64)>,
}

impl DispatcherCosts {
    pub(super) fn new(file: &DispatcherFile, lanes: usize) -> Self {
        let at = |value: fn(&super::RoundCost) -> f64| {
            let points = file.rounds.iter().map(|point| (f64::from(point.lanes), value(point)));
            interpolated(points, lanes as f64).unwrap_or(0.0)
        };
        let policies = file.policies.iter().map(|(name, &times)| (name.clone(), times)).collect();
        Self { round_ns: at(|point| point.round_ns), event_ns: at(|point| point.event_ns), policies }
    }

    /// What a round takes under a policy of this name, and each event in it.
    #[must_use]
    pub fn of(&self, policy: &str) -> (Nanos, Nanos) {
        let times = self.policies.iter().find(|(name, _)| name == policy).map_or(1.0, |&(_, times)| times);
        (Nanos((self.round_ns * times) as u64), Nanos((self.event_ns * times) as u64))
    }
}

/// Where an idle time stands in the table.
#[inline]
fn slot_of(idle: Nanos) -> usize {
    let ns = idle.0.max(QUARTERS as u64);
    let octave = 63 - ns.leading_zeros() as usize;
    octave * QUARTERS + (ns >> (octave - 2)) as usize % QUARTERS
}

/// What the file says of the idle times of a slot, at its middle.
fn warmth(file: &LaneFile, slot: usize) -> Warmth {
    let (octave, quarter) = (slot / QUARTERS, slot % QUARTERS);
    let idle_us = 2f64.powi(octave as i32) * (1.0 + (quarter as f64 + 0.5) / QUARTERS as f64) / 1e3;
    let at = |value: fn(&super::AfterIdle) -> f64| {
        let points = file.after_idle.iter().map(|point| (point.idle_us.max(1e-3).ln(), value(point)));
        interpolated(points, idle_us.ln())
    };
    Warmth {
        hand_over: Nanos::from_us(at(|point| point.hand_over_us).unwrap_or(0.0)),
        times: at(|point| point.times).unwrap_or(1.0),
        plus: Nanos::from_us(at(|point| point.plus_us).unwrap_or(0.0)),
    }
}

/// The value at `x` of a line through points of ascending x; before the first and after the last it is level.
fn interpolated(points: impl Iterator<Item = (f64, f64)>, x: f64) -> Option<f64> {
    let mut before: Option<(f64, f64)> = None;
    for (at, value) in points {
        if at >= x {
            return Some(match before {
                Some((from, low)) if at > from => low + (value - low) * (x - from) / (at - from),
                _ => value,
            });
        }
        before = Some((at, value));
    }
    before.map(|(_, value)| value)
}

/// The value that `share` of a distribution do not exceed.
#[inline]
fn value_at(quantiles: &[Quantile], share: f64) -> Option<f64> {
    interpolated(quantiles.iter().map(|point| (point.share, point.value)), share)
}

/// The mean of the distribution that quantiles, joined by lines, describe.
fn mean_of(quantiles: &[Quantile]) -> Option<f64> {
    let (first, last) = (quantiles.first()?, quantiles.last()?);
    let between = quantiles.windows(2).map(|pair| (pair[1].share - pair[0].share) * (pair[0].value + pair[1].value) / 2.0);
    Some(between.sum::<f64>() + first.share * first.value + (1.0 - last.share) * last.value)
}

#[cfg(test)]
mod tests {
    use super::super::{AfterIdle, Crowding, RoundCost, Stalls};
    use super::*;
    use std::collections::BTreeMap;

    fn quantiles(points: &[(f64, f64)]) -> Vec<Quantile> {
        points.iter().map(|&(share, value)| Quantile { share, value }).collect()
    }

    fn file() -> LaneFile {
        let after = |idle_us, hand_over_us, times, plus_us| AfterIdle { idle_us, hand_over_us, times, plus_us };
        LaneFile {
            stream: 0.7,
            after_idle: vec![after(1.0, 0.5, 1.0, 0.0), after(100.0, 1.5, 1.4, 2.0)],
            hand_back_us: 0.25,
            crowding: vec![Crowding { busy: 1, times: 1.0 }, Crowding { busy: 5, times: 1.2 }],
            beside: BTreeMap::from([(Class::GPU, 1.1)]),
            check_each_us: 0.1,
            noise: quantiles(&[(0.0, 0.9), (0.5, 1.1), (1.0, 1.3)]),
            stalls: Stalls { per_s: 1000.0, us: quantiles(&[(0.0, 5.0), (1.0, 5.0)]) },
        }
    }

    #[test]
    fn what_lies_between_two_idle_times_goes_by_their_logarithm() {
        let lanes = LaneCosts::new(&file());
        let at = |us: f64| lanes.after_idle(Nanos::from_us(us));
        assert_eq!((at(0.0).times, at(0.9).hand_over), (1.0, Nanos(500)));
        // Slots are an eighth of an octave wide to either side.
        assert!((at(10.0).times - 1.2).abs() < 0.01, "{:?}", at(10.0));
        assert!((at(10.0).plus.as_us() - 1.0).abs() < 0.05);
        assert_eq!((at(1e6).times, at(1e6).hand_over, at(1e6).plus), (1.4, Nanos(1500), Nanos(2000)));
        assert_eq!(slot_of(Nanos(u64::MAX)), OCTAVES * QUARTERS - 1);
    }

    #[test]
    fn crowding_counts_the_own_class_and_who_works_beside() {
        let lanes = LaneCosts::new(&file());
        let times = |cpu, gpu| lanes.crowded(Class::CPU, &PerClass::two(cpu, gpu));
        assert_eq!([times(1, 0), times(3, 0), times(9, 0)], [1.0, 1.1, 1.2]);
        assert!((times(1, 2) - 1.1).abs() < 1e-12);
    }

    #[test]
    fn noise_leaves_the_mean_as_it_is_and_stalls_come_as_often_as_they_should() {
        let calm = LaneCosts::new(&LaneFile { stalls: Stalls::default(), ..file() });
        let expected = Nanos(100_000);
        let count = 20_000;
        let mean = |lanes: &LaneCosts| {
            (0..count).map(|i| lanes.varied(expected, i).0 as f64).sum::<f64>() / count as f64 / 1e3
        };
        // Uniform from 0.818 to 1.182 of it, so that the mean of so many is known to 0.1 %.
        assert!((mean(&calm) - 100.0).abs() < 0.3, "{}", mean(&calm));
        // A tenth of them is stalled for 5 us.
        let stalled = mean(&LaneCosts::new(&file())) - mean(&calm);
        assert!((stalled - 0.5).abs() < 0.05, "{stalled}");
        assert_eq!(calm.varied(expected, 7), calm.varied(expected, 7));
    }

    #[test]
    fn a_policy_that_is_not_named_costs_the_dispatcher_what_any_does() {
        let rounds = vec![
            RoundCost { lanes: 1, round_ns: 100.0, event_ns: 50.0 },
            RoundCost { lanes: 3, round_ns: 200.0, event_ns: 70.0 },
        ];
        let file = DispatcherFile { rounds, policies: BTreeMap::from([(String::from("slow"), 2.0)]) };
        let costs = DispatcherCosts::new(&file, 2);
        assert_eq!(costs.of("any"), (Nanos(150), Nanos(60)));
        assert_eq!(costs.of("slow"), (Nanos(300), Nanos(120)));
    }
}
