//! Lane costs from a machine file, in tables for millions of look-ups a second.

use super::batches::{AskedBatch, BatchCompany, BatchTimes, Spell};
use super::draws::{interpolated, value_at};
use super::{AfterIdle, InUse, LaneFile, Quantile};
use crate::base::machine::{Class, PerClass};
use crate::base::random::{Random, exp, ln};
use crate::base::time::Nanos;
use crate::cost::Contention;

/// Table slots of idle times per octave.
const QUARTERS: usize = 4;
/// Octaves of a 64-bit number of nanoseconds.
const OCTAVES: usize = 64;

/// Service costs on lanes of a class, from a [`LaneFile`].
#[derive(Clone, Debug, PartialEq)]
pub struct LaneCosts {
    stream: f64,
    spacing: f64,
    /// By utilisation, evenly from 0 to 1: a factor on the work, and an extra time.
    in_use: Vec<(f64, Nanos)>,
    memory_ns: f64,
    /// By octave and quarter of the idle time in nanoseconds: hand-over time, and a factor on the work.
    after_idle: Vec<(Nanos, f64)>,
    hand_back: Nanos,
    /// By busy lanes of the class, including this one. Larger numbers use the last entry.
    crowding: Vec<f64>,
    beside: PerClass<f64>,
    batches: BatchCompany,
    is_gpu: bool,
    speeds: Vec<Quantile>,
    speed_lasts_ns: f64,
    noise: Vec<Quantile>,
    stalls_per_ns: f64,
    stall_us: Vec<Quantile>,
}

/// The state of a lane between queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneState {
    /// The lane's recent utilisation.
    in_use: f64,
    /// Factor on the work at this moment, and the moment's end.
    speed: f64,
    speed_until: Nanos,
    /// How slow a GPU lane's thread was at its last batch.
    spell: Option<Spell>,
}

impl Default for LaneState {
    fn default() -> Self {
        Self { in_use: 0.0, speed: 1.0, speed_until: Nanos::ZERO, spell: None }
    }
}

/// Steps of a lane's utilisation.
const SHARES: usize = 64;

impl LaneCosts {
    /// Costs of lanes of `class`. Contention measured with a workload replaces the values of the machine file.
    pub(super) fn new(class: Class, file: &LaneFile, company: Option<&Contention>) -> Self {
        let crowding: Vec<(f64, f64)> =
            file.crowding.iter().map(|point| (f64::from(point.busy), point.times)).collect();
        let beside = PerClass::from_fn(|class| file.beside.get(&class).copied().unwrap_or(1.0));
        let own = company.filter(|company| class == Class::CPU && !company.cpu.is_empty());
        let (stream, crowding, beside) = match own {
            Some(company) => {
                let alone = company.cpu[0].times;
                let crowding = company.cpu.iter().map(|point| (f64::from(point.busy), point.times / alone)).collect();
                let beside = |class: Class| if class.is_gpu() { company.cpu_beside_gpu } else { 1.0 };
                (alone, crowding, PerClass::from_fn(beside))
            }
            None => (file.stream, crowding, beside),
        };
        let by_lanes = |points: &[(f64, f64)]| {
            let most = points.last().map_or(1, |&(lanes, _)| lanes.max(1.0) as u32);
            let at = |lanes| interpolated(points.iter().copied(), f64::from(lanes)).unwrap_or(1.0);
            (0..=most).map(at).collect::<Vec<f64>>()
        };
        let own = company.filter(|company| class.is_gpu() && !company.gpu_in_use.is_empty());
        let told = own.map_or(&file.in_use, |company| &company.gpu_in_use);
        let in_use = (0..=SHARES).map(|step| {
            let share = step as f64 / SHARES as f64;
            let at =
                |value: fn(&InUse) -> f64| interpolated(told.iter().map(|point| (point.share, value(point))), share);
            (at(|point| point.times).unwrap_or(1.0), Nanos::from_us(at(|point| point.plus_us).unwrap_or(0.0)))
        });
        Self {
            stream,
            spacing: file.spacing,
            in_use: in_use.collect(),
            memory_ns: file.memory_ms * 1e6,
            after_idle: (0..OCTAVES * QUARTERS).map(|slot| after_idle(file, slot)).collect(),
            hand_back: Nanos::from_us(file.hand_back_us),
            crowding: by_lanes(&crowding),
            beside,
            batches: BatchCompany::new((file.batch_host, file.batch_device), company.filter(|_| class.is_gpu())),
            is_gpu: class.is_gpu(),
            speeds: file.speeds.clone(),
            speed_lasts_ns: file.speed_lasts_ms * 1e6,
            noise: file.noise.clone(),
            stalls_per_ns: if file.stalls.us.is_empty() { 0.0 } else { file.stalls.per_s / 1e9 },
            stall_us: file.stalls.us.clone(),
        }
    }

    /// These costs without hand-over time, for runs in which handing over takes real time.
    #[must_use]
    pub fn without_hand_over(mut self) -> Self {
        self.after_idle.iter_mut().for_each(|(hand_over, _)| *hand_over = Nanos::ZERO);
        Self { hand_back: Nanos::ZERO, ..self }
    }

    /// Work in a stream over work alone.
    #[must_use]
    pub fn stream(&self) -> f64 {
        self.stream
    }

    /// On a lane that holds several batches: time between the ends of two queries, as a share of a query's time alone.
    #[must_use]
    pub fn spacing(&self) -> f64 {
        self.spacing
    }

    /// Time from the end of the work until the dispatcher notices it.
    #[must_use]
    pub fn hand_back(&self) -> Nanos {
        self.hand_back
    }

    /// Times of a batch under contention, on the lane whose stream is `random`.
    #[must_use]
    #[inline]
    pub fn batch(&self, state: &mut LaneState, batch: &AskedBatch, now: Nanos, random: &mut Random) -> BatchTimes {
        self.enter_moment(state, now, random);
        let times = self.batches.times(batch, &mut state.spell, state.speed, random);
        BatchTimes { host: times.host * state.speed, ..times }
    }

    /// Notes that the lane worked for `taken` after being idle for `idle`.
    #[inline]
    pub fn note_work(&self, state: &mut LaneState, idle: Nanos, taken: Nanos) {
        state.in_use *= exp(-(idle.0 as f64) / self.memory_ns);
        state.in_use = 1.0 - (1.0 - state.in_use) * exp(-(taken.0 as f64) / self.memory_ns);
    }

    /// Draws the core's speed for the next moment if the last one is over.
    #[inline]
    fn enter_moment(&self, state: &mut LaneState, now: Nanos, random: &mut Random) {
        if self.speeds.is_empty() || now < state.speed_until {
            return;
        }
        state.speed = value_at(&self.speeds, random.unit()).unwrap_or(1.0);
        let lasts = -ln(random.unit().max(1e-9)) * self.speed_lasts_ns;
        state.speed_until = now + Nanos(lasts as u64);
    }

    /// Time from the dispatcher's start until work begins on a lane that was idle for `idle`.
    #[must_use]
    #[inline]
    pub fn hand_over(&self, idle: Nanos) -> Nanos {
        self.after_idle[slot_of(idle)].0
    }

    /// Factor on the work, given the busy lanes by class. The lane's own class includes the lane.
    #[must_use]
    #[inline]
    pub fn crowded(&self, class: Class, busy: &PerClass<u32>) -> f64 {
        let own = self.crowding[(busy[class] as usize).min(self.crowding.len() - 1)];
        let others = Class::ALL.into_iter().filter(|&other| other != class && busy[other] > 0);
        others.fold(own, |times, other| times * self.beside[other])
    }

    /// Time of work that takes `in_stream` in a stream, on a lane that was idle for `idle`. `crowded` is the factor by busy
    /// lanes, and `random` the stream of the lane.
    #[must_use]
    #[inline]
    pub fn work(
        &self,
        state: &mut LaneState,
        in_stream: Nanos,
        idle: Nanos,
        crowded: f64,
        now: Nanos,
        random: &mut Random,
    ) -> Nanos {
        state.in_use *= exp(-(idle.0 as f64) / self.memory_ns);
        let (times, plus) = self.in_use[(state.in_use * SHARES as f64) as usize];
        let speed = if self.is_gpu {
            // A GPU lane's speeds apply to its thread at batches. Single queries vary by noise only.
            1.0
        } else {
            self.enter_moment(state, now, random);
            state.speed
        };
        let times = times * self.after_idle[slot_of(idle)].1;
        let expected = (in_stream.scaled(times) + plus).scaled(crowded * speed);
        let taken = self.varied(expected, random);
        state.in_use = 1.0 - (1.0 - state.in_use) * exp(-(taken.0 as f64) / self.memory_ns);
        taken
    }

    #[inline]
    fn varied(&self, expected: Nanos, random: &mut Random) -> Nanos {
        let noise = if self.noise.is_empty() { None } else { value_at(&self.noise, random.unit()) };
        let varied = noise.map_or(expected, |times| expected.scaled(times));
        let chance = self.stalls_per_ns * varied.0 as f64;
        if chance <= 0.0 {
            return varied;
        }
        // At most one stall is drawn: two in one query are rarer than the measurement can show.
        if random.unit() > chance {
            return varied;
        }
        varied + Nanos::from_us(value_at(&self.stall_us, random.unit()).unwrap_or(0.0))
    }
}

#[inline]
fn slot_of(idle: Nanos) -> usize {
    let ns = idle.0.max(QUARTERS as u64);
    let octave = 63 - ns.leading_zeros() as usize;
    octave * QUARTERS + (ns >> (octave - 2)) as usize % QUARTERS
}

/// The file's values at the middle of a slot.
fn after_idle(file: &LaneFile, slot: usize) -> (Nanos, f64) {
    let (octave, quarter) = (slot / QUARTERS, slot % QUARTERS);
    let idle_us = 2f64.powi(octave as i32) * (1.0 + (quarter as f64 + 0.5) / QUARTERS as f64) / 1e3;
    let at = |value: fn(&AfterIdle) -> f64| {
        let points = file.after_idle.iter().map(|point| (point.idle_us.max(1e-3).ln(), value(point)));
        interpolated(points, idle_us.ln())
    };
    (Nanos::from_us(at(|point| point.hand_over_us).unwrap_or(0.0)), at(|point| point.times).unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::super::{Crowding, Stalls};
    use super::*;
    use crate::cost::{BatchContention, CpuContention};
    use std::collections::BTreeMap;

    fn quantiles(points: &[(f64, f64)]) -> Vec<Quantile> {
        points.iter().map(|&(share, value)| Quantile { share, value }).collect()
    }

    fn random() -> Random {
        Random::new(1, 0)
    }

    fn file() -> LaneFile {
        LaneFile {
            stream: 0.7,
            spacing: 1.0,
            in_use: vec![
                InUse { share: 0.0, times: 1.5, plus_us: 2.0 },
                InUse { share: 1.0, times: 1.0, plus_us: 0.0 },
            ],
            memory_ms: 2.0,
            after_idle: vec![
                AfterIdle { idle_us: 1.0, hand_over_us: 0.5, times: 1.0 },
                AfterIdle { idle_us: 100.0, hand_over_us: 1.5, times: 1.4 },
            ],
            hand_back_us: 0.25,
            crowding: vec![Crowding { busy: 1, times: 1.0 }, Crowding { busy: 5, times: 1.2 }],
            beside: BTreeMap::from([(Class::GPU, 1.1)]),
            batch_host: 1.0,
            batch_device: 1.0,
            speeds: Vec::new(),
            speed_lasts_ms: 10.0,
            noise: quantiles(&[(0.0, 0.9), (0.5, 1.1), (1.0, 1.3)]),
            stalls: Stalls { per_s: 1000.0, us: quantiles(&[(0.0, 5.0), (1.0, 5.0)]) },
        }
    }

    #[test]
    fn what_lies_between_two_idle_times_goes_by_their_logarithm() {
        let lanes = LaneCosts::new(Class::CPU, &file(), None);
        let at = |us: f64| lanes.after_idle[slot_of(Nanos::from_us(us))];
        assert_eq!((at(0.0).1, at(0.9).0), (1.0, Nanos(500)));
        // Slots are an eighth of an octave wide to either side.
        assert!((at(10.0).1 - 1.2).abs() < 0.01, "{:?}", at(10.0));
        assert_eq!(at(1e6), (Nanos(1500), 1.4));
        assert_eq!(slot_of(Nanos(u64::MAX)), OCTAVES * QUARTERS - 1);
    }

    #[test]
    fn a_lane_warms_up_as_it_works_and_cools_as_it_idles() {
        let calm = LaneFile { noise: Vec::new(), stalls: Stalls::default(), ..file() };
        let lanes = LaneCosts::new(Class::CPU, &calm, None);
        let mut state = LaneState::default();
        let mut work = |idle_us: f64| {
            lanes.work(&mut state, Nanos(100_000), Nanos::from_us(idle_us), 1.0, Nanos::ZERO, &mut random())
        };
        // A cold lane takes 1.5 times the work and 2 us more, and a pause multiplies that by 1.4.
        assert_eq!(work(1e6), Nanos(212_000));
        let warm = (0..500).map(|_| work(0.0)).last();
        assert!(warm.is_some_and(|warm| warm < Nanos(102_000)), "{warm:?}");
        assert!(work(2000.0) > Nanos(170_000));
        assert_eq!(work(1e6), Nanos(212_000));
    }

    #[test]
    fn a_core_is_slow_for_as_long_as_it_is() {
        let slow_or_not = quantiles(&[(0.5, 1.0), (0.500001, 2.0)]);
        let calm = LaneFile {
            in_use: Vec::new(),
            noise: Vec::new(),
            stalls: Stalls::default(),
            speeds: slow_or_not,
            speed_lasts_ms: 1.0,
            ..file()
        };
        let lanes = LaneCosts::new(Class::CPU, &calm, None);
        let (mut state, mut random) = (LaneState::default(), random());
        let mut work = |i: u64| lanes.work(&mut state, Nanos(1000), Nanos::ZERO, 1.0, Nanos(i * 10_000), &mut random);
        let work: Vec<u64> = (0..20_000).map(|i| work(i).0).collect();
        let slow = work.iter().filter(|&&ns| ns > 1500).count();
        let changes = work.windows(2).filter(|pair| pair[0] != pair[1]).count();
        // The 200 ms consist of moments of a millisecond, every other of which changes.
        assert!((6000..14_000).contains(&slow) && (60..150).contains(&changes), "{slow} slow, {changes} changes");
    }

    #[test]
    fn crowding_counts_the_own_class_and_who_works_beside() {
        let lanes = LaneCosts::new(Class::CPU, &file(), None);
        let times = |cpu, gpu| lanes.crowded(Class::CPU, &PerClass::two(cpu, gpu));
        assert_eq!([times(1, 0), times(3, 0), times(9, 0)], [1.0, 1.1, 1.2]);
        assert!((times(1, 2) - 1.1).abs() < 1e-12);
    }

    #[test]
    fn what_a_workload_takes_in_company_stands_before_what_the_machine_says() {
        let company = Contention {
            cpu: vec![CpuContention { busy: 1, times: 0.8 }, CpuContention { busy: 5, times: 1.6 }],
            cpu_beside_gpu: 1.5,
            gpu_batches: vec![
                BatchContention { busy_cpus: 0, host: 1.0, device: 1.0 },
                BatchContention { busy_cpus: 4, host: 2.0, device: 1.2 },
            ],
            gpu_in_use: vec![
                InUse { share: 0.0, times: 2.0, plus_us: 0.0 },
                InUse { share: 1.0, times: 4.0, plus_us: 0.0 },
            ],
            gpu_streams: Vec::new(),
        };
        let cpu = LaneCosts::new(Class::CPU, &file(), Some(&company));
        assert_eq!((cpu.stream(), cpu.crowded(Class::CPU, &PerClass::two(3, 0))), (0.8, 1.5));
        assert_eq!(cpu.crowded(Class::CPU, &PerClass::two(9, 1)), 3.0);
        let gpu = LaneCosts::new(Class::GPU, &file(), Some(&company));
        let batch = |lanes: &LaneCosts, busy| {
            let batch = AskedBatch { queries: 16, busy_cpus: busy, ..AskedBatch::default() };
            let times = lanes.batch(&mut LaneState::default(), &batch, Nanos::ZERO, &mut random());
            (times.host, times.device)
        };
        assert_eq!([0, 2, 9].map(|busy| batch(&gpu, busy)), [(1.0, 1.0), (1.5, 1.1), (2.0, 1.2)]);
        assert_eq!((gpu.in_use[0].0, gpu.in_use[SHARES / 2].0, gpu.in_use[SHARES].0), (2.0, 3.0, 4.0));
        // Without a measured GPU, all GPU values come from the machine file.
        let none = Contention { gpu_batches: Vec::new(), gpu_in_use: Vec::new(), ..company };
        let gpu = LaneCosts::new(Class::GPU, &LaneFile { batch_host: 1.3, ..file() }, Some(&none));
        assert_eq!(batch(&gpu, 3), (1.3, 1.0));
        assert_eq!(gpu.in_use, LaneCosts::new(Class::GPU, &file(), None).in_use);
    }

    #[test]
    fn noise_has_its_distribution_and_stalls_come_as_often_as_they_should() {
        let calm = LaneCosts::new(Class::CPU, &LaneFile { stalls: Stalls::default(), ..file() }, None);
        let expected = Nanos(100_000);
        let count = 20_000;
        let mean = |lanes: &LaneCosts| {
            let mut random = random();
            (0..count).map(|_| lanes.varied(expected, &mut random).0 as f64).sum::<f64>() / f64::from(count) / 1e3
        };
        // Noise is uniform from 0.9 to 1.3, so the mean of the samples is known to 0.1 %.
        assert!((mean(&calm) - 110.0).abs() < 0.3, "{}", mean(&calm));
        // A tenth of the queries is stalled for 5 us.
        let steady = LaneFile { noise: Vec::new(), ..file() };
        let stalled = mean(&LaneCosts::new(Class::CPU, &steady, None)) - 100.0;
        assert!((stalled - 0.5).abs() < 0.05, "{stalled}");
    }
}
