//! Lane costs from a machine profile, in tables for millions of look-ups a second.

use std::sync::Arc;

use super::power::interpolated;
use super::{Beside, LaneProfile, Power, Slowdown, Spread};
use crate::base::machine::{Class, PerClass};
use crate::base::random::{Random, exp, ln};
use crate::base::stats::normal_quantile;
use crate::base::time::Nanos;
use crate::cost::{BatchLoad, BatchTime};

/// Number of factors that stand for a distribution.
const FACTORS: u32 = 1024;

/// Costs on lanes of a class, from a [`LaneProfile`].
#[derive(Clone, Debug, PartialEq)]
pub struct LaneCosts {
    each: Nanos,
    hand_over: Nanos,
    hand_back: Nanos,
    /// By the logarithm of the idle time.
    after_idle: Vec<(f64, f64)>,
    beside: PerClass<Option<Beside>>,
    /// Single queries by busy lanes of the class.
    singles: Points,
    /// Batches by the logarithm of their queries.
    batches: Points,
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

/// The means of a [`Slowdown`].
#[derive(Clone, Copy, Debug, PartialEq)]
struct Means {
    prepared: f64,
    spacing: f64,
    work: f64,
    device: f64,
}

/// Means and noise by number of lanes or queries, ascending.
type Points = Vec<(f64, Means, Noise)>;

/// The means at a number, on straight lines between the points, and the noise of the next point.
#[inline]
fn between(points: &Points, at: f64) -> Option<(Means, &Noise)> {
    let after = points.partition_point(|point| point.0 < at).min(points.len().checked_sub(1)?);
    let (to, high, noise) = &points[after];
    let Some((from, low, _)) = after.checked_sub(1).map(|before| &points[before]).filter(|_| at < *to) else {
        return Some((*high, noise));
    };
    let share = (at - from) / (to - from);
    let mix = |of: fn(&Means) -> f64| of(low) + share * (of(high) - of(low));
    let (prepared, spacing) = (mix(|one| one.prepared), mix(|one| one.spacing));
    Some((Means { prepared, spacing, work: mix(|one| one.work), device: mix(|one| one.device) }, noise))
}

/// Equally likely factors with a mean of 1; none are 1.
#[derive(Clone, Debug, PartialEq)]
struct Noise(Arc<[f32]>);

impl From<&Spread> for Noise {
    fn from(spread: &Spread) -> Self {
        let factors: Vec<f64> = match spread {
            Spread::Deviation(0.0) => Vec::new(),
            // A lognormal distribution.
            Spread::Deviation(deviation) => {
                let sd = ln(1.0 + deviation * deviation).sqrt();
                (0..FACTORS).map(|i| exp(sd * normal_quantile((f64::from(i) + 0.5) / f64::from(FACTORS)))).collect()
            }
            Spread::Factors(factors) => factors.clone(),
        };
        let mean = factors.iter().sum::<f64>() / factors.len() as f64;
        Self(factors.iter().map(|factor| (factor / mean) as f32).collect())
    }
}

impl Noise {
    #[inline]
    fn draw(&self, random: &mut Random) -> f64 {
        if self.0.is_empty() { 1.0 } else { f64::from(self.0[random.below(self.0.len() as u32) as usize]) }
    }
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
    /// Share of the thread's time before the launch.
    pub prepared: f64,
    /// Factor on the device's time.
    pub device: f64,
    /// Share of the device's time in which no other batch can run there.
    pub spacing: f64,
}

impl LaneCosts {
    pub(crate) fn new(file: &LaneProfile) -> Self {
        let point = |at: f64, one: &Slowdown| {
            // A device is busy with a batch for no longer than the batch takes.
            let (prepared, spacing) = (one.prepared, one.spacing.min(1.0));
            (at, Means { prepared, spacing, work: one.work, device: one.device }, Noise::from(&one.spread))
        };
        let (singles, batches): (Vec<&Slowdown>, Vec<&Slowdown>) =
            file.slowdown.iter().partition(|one| one.queries == 1);
        let singles: Points = singles.into_iter().map(|one| point(one.busy.into(), one)).collect();
        let batches: Points = batches.into_iter().map(|one| point(ln(one.queries.into()), one)).collect();
        let least =
            |all: &Points, of: fn(&Means) -> f64| all.iter().map(|point| of(&point.1)).reduce(f64::min).unwrap_or(1.0);
        Self {
            each: Nanos::from_us(file.each_us),
            hand_over: Nanos::from_us(file.hand_over_us),
            hand_back: Nanos::from_us(file.hand_back_us),
            after_idle: file.after_idle.iter().map(|&(us, times)| (octaves(Nanos::from_us(us)), times)).collect(),
            beside: PerClass::from_fn(|class| file.beside.get(&class).copied()),
            least: Least {
                single: least(&singles, |one| one.work),
                single_device: least(&singles, |one| one.spacing * one.work.min(1.0)),
                host: least(&batches, |one| one.work),
                device: least(&batches, |one| one.device * one.spacing),
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
        let single = self.single(busy[class]);
        let each = if alone > Nanos::ZERO { self.each.0 as f64 / alone.0 as f64 } else { 0.0 };
        let (host, device) = self.batches.last().map_or((1.0, 1.0), |(_, one, _)| (one.work, one.device));
        Speed { single: (single + each) * work, host: host * work, device: device * on_device }
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
        Self { hand_over: Nanos::ZERO, hand_back: Nanos::ZERO, ..self.clone() }
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

    /// Time from the dispatcher's start until work begins.
    #[must_use]
    #[inline]
    pub fn hand_over(&self) -> Nanos {
        self.hand_over
    }

    /// Time of queries one after another on a lane that was idle for `idle`, and the share of their time alone in which they
    /// occupy a device. `busy` counts busy lanes by class, including this one.
    #[must_use]
    #[inline]
    pub fn one_by_one(
        &self,
        random: &mut Random,
        load: &BatchLoad,
        idle: Nanos,
        class: Class,
        busy: &PerClass<u32>,
    ) -> (Nanos, f64) {
        let single = between(&self.singles, busy[class].into());
        let (ratio, spacing, noise) =
            single.map_or((1.0, 1.0, 1.0), |(one, noise)| (one.work, one.spacing, noise.draw(random)));
        let after_idle = interpolated(self.after_idle.iter().copied(), octaves(idle)).unwrap_or(1.0);
        let times = after_idle * self.beside(class, busy).0 * self.speed.single * noise;
        let each = Nanos(self.each.0 * u64::from(load.queries));
        ((each + load.alone.scaled(ratio)).scaled(times), spacing)
    }

    /// Factors on the predicted times of a batch; `None` if its queries are quicker one by one.
    #[must_use]
    #[inline]
    pub fn batch(
        &self,
        random: &mut Random,
        load: &BatchLoad,
        predicted: BatchTime,
        class: Class,
        busy: &PerClass<u32>,
    ) -> Option<BatchTimes> {
        let (work, on_device) = self.beside(class, busy);
        let (work, on_device) = (work * self.speed.host, on_device * self.speed.device);
        let Some((means, noise)) = between(&self.batches, ln(f64::from(load.queries.max(1)))) else {
            return Some(BatchTimes { host: work, prepared: 0.0, device: on_device, spacing: 1.0 });
        };
        let BatchTime { host, exposed, device } = predicted;
        let host_mean = means.work * self.speed.host;
        let together = BatchTime {
            host: host.scaled(host_mean),
            exposed: exposed.scaled(host_mean),
            device: device.scaled(means.device * self.speed.device),
        };
        if together.total() > load.alone.scaled(self.single(busy[class]) * self.speed.single) {
            return None;
        }
        let Means { prepared, spacing, work: on_thread, device } = means;
        let noise = noise.draw(random);
        Some(BatchTimes { host: on_thread * noise * work, prepared, device: device * noise * on_device, spacing })
    }

    /// The mean ratio of single queries at this number of busy lanes.
    fn single(&self, busy: u32) -> f64 {
        between(&self.singles, busy.into()).map_or(1.0, |(one, _)| one.work)
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

/// The logarithm of a time to base 2, on straight lines between its integers.
#[inline]
fn octaves(time: Nanos) -> f64 {
    let ns = time.0.max(1);
    let whole = ns.ilog2();
    f64::from(whole) + ns as f64 / (1_u64 << whole) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cost::Cost;

    fn random() -> Random {
        Random::new(1, 1)
    }

    fn slowdown(queries: u32, busy: u32, work: f64, device: f64) -> Slowdown {
        Slowdown { queries, busy, prepared: 0.5, spacing: 0.8, work, device, spread: Spread::default() }
    }

    fn costs() -> LaneCosts {
        let slowdown = vec![slowdown(1, 1, 0.9, 1.0), slowdown(1, 4, 1.5, 1.0), slowdown(16, 1, 2.0, 1.25)];
        LaneCosts::new(&LaneProfile {
            each_us: 1.0,
            hand_over_us: 0.5,
            hand_back_us: 0.25,
            after_idle: vec![(15.0, 1.0), (2000.0, 1.2)],
            beside: BTreeMap::from([(Class::GPU, Beside { lanes: 2, work: 1.2, device: 1.4 })]),
            slowdown,
            power: None,
        })
    }

    #[test]
    fn a_query_takes_the_ratio_of_its_load_and_neighbours() {
        let costs = costs();
        let single = |idle_us, cpus, gpus| {
            let (busy, load) = (PerClass::two(cpus, gpus), BatchLoad::default().with(Cost::alone(Nanos(100_000))));
            costs.one_by_one(&mut random(), &load, Nanos::from_us(idle_us), Class::CPU, &busy).0
        };
        assert_eq!([single(0.0, 1, 0), single(0.0, 9, 0)], [91_000, 151_000].map(Nanos));
        assert_eq!([single(0.0, 1, 1), single(0.0, 1, 5)], [1.1, 1.2].map(|times| Nanos(91_000).scaled(times)));
        let cold = [15.0, 2000.0, 1e6].map(|idle_us| single(idle_us, 1, 0));
        assert_eq!(cold, [91_000, 109_200, 109_200].map(Nanos));
        let between = single(173.0, 1, 0).0 as f64;
        assert!((between / 91_000.0 - 1.1).abs() < 0.005, "{between}");
        assert_eq!((costs.hand_over(), costs.without_hand_over().hand_over()), (Nanos(500), Nanos::ZERO));
    }

    #[test]
    fn a_batch_never_costs_more_than_its_queries() {
        let (costs, busy) = (costs(), PerClass::two(1, 0));
        let load = BatchLoad { queries: 64, alone: Nanos(1000), ..BatchLoad::default() };
        let batch = |host| {
            let predicted = BatchTime { host: Nanos(host), exposed: Nanos(host), device: Nanos(100) };
            costs.batch(&mut random(), &load, predicted, Class::CPU, &busy)
        };
        let expected = BatchTimes { host: 2.0, prepared: 0.5, device: 1.25, spacing: 0.8 };
        assert_eq!(batch(100), Some(expected));
        assert_eq!(batch(350), Some(expected));
        assert_eq!(batch(500), None);
        assert_eq!(costs.least(), Least { single: 0.9, single_device: 0.8 * 0.9, host: 2.0, device: 1.0 });
    }

    #[test]
    fn between_two_loads_means_are_interpolated_and_noise_has_its_spread_and_a_mean_of_one() {
        let points: Points = [(1.0, 1.0), (5.0, 2.0)]
            .map(|(at, work)| {
                let means = Means { prepared: 0.0, spacing: 1.0, work, device: 1.0 };
                (at, means, Noise::from(&Spread::Deviation(0.3)))
            })
            .into();
        let work = |at| between(&points, at).unwrap().0.work;
        assert_eq!([0.0, 1.0, 2.0, 5.0, 9.0].map(work), [1.0, 1.0, 1.25, 2.0, 2.0]);
        assert!(between(&Vec::new(), 1.0).is_none());
        let (mut random, noise) = (random(), &points[0].2);
        let drawn: Vec<f64> = (0..200_000).map(|_| noise.draw(&mut random)).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|factor| (factor - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        assert!((mean - 1.0).abs() < 0.004 && (variance.sqrt() - 0.3).abs() < 0.01, "{mean} {}", variance.sqrt());
        let seen = Noise::from(&Spread::Factors(vec![2.0, 2.0, 4.0, 8.0]));
        assert_eq!(*seen.0, [0.5, 0.5, 1.0, 2.0]);
    }

    #[test]
    fn at_another_speed_all_times_follow() {
        let (costs, busy) = (costs(), PerClass::two(4, 2));
        let alone = Nanos(100_000);
        let load = BatchLoad::default().with(Cost::alone(alone));
        let time = |costs: &LaneCosts| costs.one_by_one(&mut random(), &load, Nanos(1), Class::CPU, &busy).0;
        let now = costs.under_load(Class::CPU, &busy, alone);
        assert_eq!(time(&costs), alone.scaled(now.single));
        // A backlog that takes twice its times alone.
        let slow = costs.at_speed(Speed { single: 2.0 / now.single, host: 3.0, device: 5.0 });
        assert_eq!(time(&slow), Nanos(200_000));
        let predicted = BatchTime { host: Nanos(100), exposed: Nanos(100), device: Nanos(100) };
        let batch = |costs: &LaneCosts| {
            let load = BatchLoad { queries: 64, alone: Nanos(10_000), ..BatchLoad::default() };
            costs.batch(&mut random(), &load, predicted, Class::CPU, &PerClass::two(1, 0)).unwrap()
        };
        let (before, after) = (batch(&costs), batch(&slow));
        assert_eq!((after.host, after.device), (3.0 * before.host, 5.0 * before.device));
        assert_eq!(slow.least().device, 5.0 * costs.least().device);
    }
}
