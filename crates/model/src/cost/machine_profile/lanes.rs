//! Lane costs from a machine profile, in tables for millions of look-ups a second.

use super::blocks::{Place, Stretch};
use super::{AfterIdle, Beside, LaneProfile, Observed, Power};
use crate::base::machine::{Class, PerClass};
use crate::base::random::ln;
use crate::base::time::Nanos;
use crate::cost::{BatchLoad, BatchTime};

/// Table slots of idle times per octave.
const QUARTERS: usize = 4;
/// Octaves of a 64-bit number of nanoseconds.
const OCTAVES: usize = 64;

/// Costs on lanes of a class, from a [`LaneProfile`].
#[derive(Clone, Debug, PartialEq)]
pub struct LaneCosts {
    each: Nanos,
    hand_back: Nanos,
    /// By octave and quarter of the idle time in nanoseconds: hand-over time, and a factor on the work.
    after_idle: Vec<(Nanos, f64)>,
    beside: PerClass<Option<Beside>>,
    /// Single queries by busy lanes of the class.
    singles: Vec<(f64, Played)>,
    /// Batches by the logarithm of their queries.
    batches: Vec<(f64, Played)>,
    least: Least,
    power: Option<Power>,
    speed: Speed,
}

/// Ratios of times to their predictions in a class: of single queries, and of the thread and the device for batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Of single queries.
    pub single: f64,
    /// Of the thread's times for batches.
    pub host: f64,
    /// Of the device's times for batches.
    pub device: f64,
}

impl Speed {
    /// Times as they are.
    pub const SAME: Self = Self { single: 1.0, host: 1.0, device: 1.0 };
}

/// An [`Observed`] stretch, ready to be played.
#[derive(Clone, Debug, PartialEq)]
struct Played {
    prepared: f64,
    spacing: f64,
    work: Stretch,
    device: Stretch,
}

/// The least mean ratios of a class, on which bounds of rates rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Least {
    /// Ratio of a single query's time to its prediction.
    pub single: f64,
    /// Ratio of the time in which a single query occupies its device to its time alone.
    pub single_device: f64,
    /// Ratio of a thread's time for a batch to its prediction.
    pub host: f64,
    /// Ratio of the time in which a batch occupies its device to its prediction.
    pub device: f64,
}

impl Default for Least {
    /// Times as predicted.
    fn default() -> Self {
        Self { single: 1.0, single_device: 1.0, host: 1.0, device: 1.0 }
    }
}

/// Factors on the predicted times of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchTimes {
    /// Factor on the thread's time.
    pub host: f64,
    /// Additional time of the thread.
    pub stall: Nanos,
    /// Share of the thread's time before the launch.
    pub prepared: f64,
    /// Factor on the device's time.
    pub device: f64,
    /// Share of the device's time in which no other batch can run there.
    pub spacing: f64,
}

impl LaneCosts {
    pub(super) fn new(file: &LaneProfile) -> Self {
        let played = |one: &Observed| Played {
            prepared: one.prepared,
            // A device is busy with a batch for no longer than the batch takes.
            spacing: one.spacing.min(1.0),
            work: (&one.work).into(),
            device: (&one.device).into(),
        };
        let (singles, batches): (Vec<&Observed>, Vec<&Observed>) =
            file.observed.iter().partition(|one| one.queries == 1);
        let singles: Vec<(f64, Played)> = singles.iter().map(|one| (f64::from(one.busy), played(one))).collect();
        let batches: Vec<(f64, Played)> = batches.iter().map(|one| (ln(one.queries.into()), played(one))).collect();
        let least = |all: &[(f64, Played)], of: fn(&Played) -> f64| {
            let least = all.iter().map(|(_, one)| of(one)).fold(f64::INFINITY, f64::min);
            if least.is_finite() { least } else { 1.0 }
        };
        Self {
            each: Nanos::from_us(file.each_us),
            hand_back: Nanos::from_us(file.hand_back_us),
            after_idle: (0..OCTAVES * QUARTERS).map(|slot| after_idle(&file.after_idle, slot)).collect(),
            beside: PerClass::from_fn(|class| file.beside.get(&class).copied()),
            least: Least {
                single: least(&singles, |one| one.work.mean()),
                single_device: least(&singles, |one| one.spacing * one.work.mean().min(1.0)),
                host: least(&batches, |one| one.work.mean()),
                device: least(&batches, |one| one.device.mean() * one.spacing),
            },
            singles,
            batches,
            power: file.power.clone(),
            speed: Speed::SAME,
        }
    }

    /// The mean ratios while all lanes are busy, `busy` by class: what a backlog measures if the machine is as fast as it was
    /// when it was profiled. Single queries take `alone` on average, batches are the largest that were measured.
    #[must_use]
    pub fn under_load(&self, class: Class, busy: &PerClass<u32>, alone: Nanos) -> Speed {
        let (work, on_device) = self.beside(class, busy);
        let single =
            interpolated(self.singles.iter().map(|(lanes, one)| (*lanes, one.work.mean())), busy[class].into());
        let each = if alone > Nanos::ZERO { self.each.0 as f64 / alone.0 as f64 } else { 0.0 };
        let (host, device) = self.batches.last().map_or((1.0, 1.0), |(_, one)| (one.work.mean(), one.device.mean()));
        Speed { single: (single.unwrap_or(1.0) + each) * work, host: host * work, device: device * on_device }
    }

    /// These costs on a machine whose times are longer by these factors now.
    #[must_use]
    pub fn at_speed(&self, speed: Speed) -> Self {
        let Least { single, single_device, host, device } = self.least;
        let least = Least {
            single: single * speed.single,
            single_device: single_device * speed.single,
            host: host * speed.host,
            device: device * speed.device,
        };
        Self { speed, least, ..self.clone() }
    }

    /// Power of each device, if it was measured.
    #[must_use]
    pub fn power(&self) -> Option<&Power> {
        self.power.as_ref()
    }

    /// These costs without hand-over time, for runs in which handing over takes real time.
    #[must_use]
    pub fn without_hand_over(&self) -> Self {
        let mut without = Self { hand_back: Nanos::ZERO, ..self.clone() };
        without.after_idle.iter_mut().for_each(|(hand_over, _)| *hand_over = Nanos::ZERO);
        without
    }

    /// The least mean ratios.
    #[must_use]
    pub fn least(&self) -> Least {
        self.least
    }

    /// Time from the end of the work until the dispatcher notices it.
    #[must_use]
    #[inline]
    pub fn hand_back(&self) -> Nanos {
        self.hand_back
    }

    /// Time from the dispatcher's start until work begins on a lane that was idle for `idle`.
    #[must_use]
    #[inline]
    pub fn hand_over(&self, idle: Nanos) -> Nanos {
        self.after_idle[slot_of(idle)].0
    }

    /// Time of queries one after another on a lane that was idle for `idle`, and the share of their time alone in which they
    /// occupy a device. `busy` counts busy lanes by class, including this one.
    #[must_use]
    #[inline]
    pub fn one_by_one(
        &self,
        place: &Place,
        load: &BatchLoad,
        idle: Nanos,
        class: Class,
        busy: &PerClass<u32>,
    ) -> (Nanos, f64) {
        let ((ratio, stall), spacing) = match place.choose(&self.singles, f64::from(busy[class])) {
            Some(played) => (played.work.at(place), played.spacing),
            None => ((1.0, Nanos::ZERO), 1.0),
        };
        let times = self.after_idle[slot_of(idle)].1 * self.beside(class, busy).0 * self.speed.single;
        let each = Nanos(self.each.0 * u64::from(load.queries));
        ((each + load.alone.scaled(ratio)).scaled(times) + stall, spacing)
    }

    /// Factors on the predicted times of a batch; `None` if its queries are quicker one by one.
    #[must_use]
    #[inline]
    pub fn batch(
        &self,
        place: &Place,
        load: &BatchLoad,
        predicted: BatchTime,
        class: Class,
        busy: &PerClass<u32>,
    ) -> Option<BatchTimes> {
        let (work, on_device) = self.beside(class, busy);
        let (work, on_device) = (work * self.speed.host, on_device * self.speed.device);
        let Some(played) = place.choose(&self.batches, ln(f64::from(load.queries.max(1)))) else {
            return Some(BatchTimes { host: work, stall: Nanos::ZERO, prepared: 0.0, device: on_device, spacing: 1.0 });
        };
        let BatchTime { host, exposed, device } = predicted;
        let host_mean = played.work.mean() * self.speed.host;
        let together = BatchTime {
            host: host.scaled(host_mean),
            exposed: exposed.scaled(host_mean),
            device: device.scaled(played.device.mean() * self.speed.device),
        };
        let single = place.choose(&self.singles, f64::from(busy[class])).map_or(1.0, |one| one.work.mean());
        let single = single * self.speed.single;
        if together.total() > load.alone.scaled(single) {
            return None;
        }
        let ((host, stall), (device, _)) = (played.work.at(place), played.device.at(place));
        let Played { prepared, spacing, .. } = *played;
        Some(BatchTimes { host: host * work, stall, prepared, device: device * on_device, spacing })
    }

    /// Factors on work and on device times by busy lanes of other classes.
    #[inline]
    fn beside(&self, class: Class, busy: &PerClass<u32>) -> (f64, f64) {
        let mut times = (1.0, 1.0);
        for other in Class::ALL {
            if other != class
                && busy[other] > 0
                && let Some(Beside { lanes, work, device }) = self.beside[other]
            {
                let share = (f64::from(busy[other]) / f64::from(lanes.max(1))).min(1.0);
                times.0 *= 1.0 + share * (work - 1.0);
                times.1 *= 1.0 + share * (device - 1.0);
            }
        }
        times
    }
}

#[inline]
fn slot_of(idle: Nanos) -> usize {
    let ns = idle.0.max(QUARTERS as u64);
    let octave = 63 - ns.leading_zeros() as usize;
    octave * QUARTERS + (ns >> (octave - 2)) as usize % QUARTERS
}

/// Hand-over time and factor at the middle of a slot.
fn after_idle(points: &[AfterIdle], slot: usize) -> (Nanos, f64) {
    let (octave, quarter) = (slot / QUARTERS, slot % QUARTERS);
    let idle_us = 2f64.powi(octave as i32) * (1.0 + (quarter as f64 + 0.5) / QUARTERS as f64) / 1e3;
    let at = |value: fn(&AfterIdle) -> f64| {
        let points = points.iter().map(|point| (point.idle_us.max(1e-3).ln(), value(point)));
        interpolated(points, idle_us.ln())
    };
    (Nanos::from_us(at(|point| point.hand_over_us).unwrap_or(0.0)), at(|point| point.times).unwrap_or(1.0))
}

/// The value at `x` of a piecewise linear function through points of ascending x. It is constant before the first and after
/// the last point.
pub fn interpolated(points: impl Iterator<Item = (f64, f64)>, x: f64) -> Option<f64> {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Ratios;
    use super::*;
    use crate::base::random::Random;
    use crate::cost::Cost;

    fn place() -> Place {
        let mut place = Place::default();
        place.advance(&mut Random::new(1, 1));
        place
    }

    fn observed(queries: u32, busy: u32, work: u32, device: u32) -> Observed {
        let ratios = |permille| Ratios { permille: vec![permille], stalls_us: Vec::new() };
        let device = if device > 0 { ratios(device) } else { Ratios::default() };
        Observed { queries, busy, prepared: 0.5, spacing: 0.8, work: ratios(work), device }
    }

    fn costs() -> LaneCosts {
        let mut observed = vec![observed(1, 1, 900, 0), observed(1, 4, 1500, 0), observed(16, 1, 2000, 1250)];
        observed[1].work.stalls_us = vec![(0, 7)];
        LaneCosts::new(&LaneProfile {
            each_us: 1.0,
            hand_back_us: 0.25,
            after_idle: vec![
                AfterIdle { idle_us: 1.0, hand_over_us: 0.5, times: 1.0 },
                AfterIdle { idle_us: 100.0, hand_over_us: 2.5, times: 1.2 },
            ],
            beside: BTreeMap::from([(Class::GPU, Beside { lanes: 2, work: 1.2, device: 1.4 })]),
            drift: 0.0,
            observed,
            power: None,
        })
    }

    #[test]
    fn a_query_takes_the_ratio_of_its_load_and_neighbours() {
        let (costs, place) = (costs(), place());
        let single = |idle_us, cpus, gpus| {
            let (busy, load) = (PerClass::two(cpus, gpus), BatchLoad::default().with(Cost::alone(Nanos(100_000))));
            costs.one_by_one(&place, &load, Nanos::from_us(idle_us), Class::CPU, &busy).0
        };
        assert_eq!(single(0.0, 1, 0), Nanos(91_000));
        assert_eq!(single(0.0, 9, 0), Nanos(151_000 + 7_000));
        assert_eq!(single(1e6, 1, 0), Nanos(91_000).scaled(1.2));
        assert_eq!([single(0.0, 1, 1), single(0.0, 1, 5)], [Nanos(91_000).scaled(1.1), Nanos(91_000).scaled(1.2)]);
        assert_eq!((costs.hand_over(Nanos::ZERO), costs.hand_over(Nanos::from_ms(9.0))), (Nanos(500), Nanos(2500)));
        assert_eq!(costs.without_hand_over().hand_over(Nanos::from_ms(9.0)), Nanos::ZERO);
    }

    #[test]
    fn a_batch_never_costs_more_than_its_queries() {
        let (costs, place, busy) = (costs(), place(), PerClass::two(1, 0));
        let load = BatchLoad { queries: 64, alone: Nanos(1000), ..BatchLoad::default() };
        let batch = |host| {
            let predicted = BatchTime { host: Nanos(host), exposed: Nanos(host), device: Nanos(100) };
            costs.batch(&place, &load, predicted, Class::CPU, &busy)
        };
        let expected = BatchTimes { host: 2.0, stall: Nanos::ZERO, prepared: 0.5, device: 1.25, spacing: 0.8 };
        assert_eq!(batch(100), Some(expected));
        assert_eq!(batch(350), Some(expected));
        assert_eq!(batch(500), None);
        assert_eq!(costs.least(), Least { single: 0.9, single_device: 0.8 * 0.9, host: 2.0, device: 1.0 });
    }

    #[test]
    fn at_another_speed_all_times_follow() {
        let (costs, place, busy) = (costs(), place(), PerClass::two(4, 2));
        let alone = Nanos(100_000);
        let load = BatchLoad::default().with(Cost::alone(alone));
        let time = |costs: &LaneCosts| costs.one_by_one(&place, &load, Nanos(1), Class::CPU, &busy).0 - Nanos(7_000);
        let now = costs.under_load(Class::CPU, &busy, alone);
        assert_eq!(time(&costs), alone.scaled(now.single));
        // A backlog that takes twice its times alone.
        let slow = costs.at_speed(Speed { single: 2.0 / now.single, host: 3.0, device: 5.0 });
        assert_eq!(time(&slow), Nanos(200_000));
        let predicted = BatchTime { host: Nanos(100), exposed: Nanos(100), device: Nanos(100) };
        let batch = |costs: &LaneCosts| {
            let load = BatchLoad { queries: 64, alone: Nanos(10_000), ..BatchLoad::default() };
            costs.batch(&place, &load, predicted, Class::CPU, &PerClass::two(1, 0)).unwrap()
        };
        let (before, after) = (batch(&costs), batch(&slow));
        assert_eq!((after.host, after.device), (3.0 * before.host, 5.0 * before.device));
        assert_eq!(slow.least().device, 5.0 * costs.least().device);
    }
}
