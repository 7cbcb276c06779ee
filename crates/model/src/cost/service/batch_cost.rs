//! The time of a batch on a processor, from the times of its queries alone.
//!
//! ```text
//!   device  = device_fixed + crowding(n) · Σ added + longest · max alone
//!   exposed = fixed + each · n        time on an idle lane in which the device does not work
//!   host    = host_fixed + host_each · n        the thread's time, which mostly overlaps the device's
//! ```
//!
//! A large batch goes to the device in pieces: the thread prepares the next piece while the device works. Consecutive batches
//! overlap in the same way. A batch alone shows only the `exposed` part. In a stream of batches the longer of thread and
//! device times sets the pace.
//!
//! `added` is the time that a query adds to a batch so large that the device is full. In a small batch it adds more, since
//! sixteen queries don't fill a GPU. `crowding`, above 1 there, measures how far from full the device is. It is known at some
//! sizes and interpolated over the logarithm of n. The longest query delays its batch by the part of its work that is not
//! shared out.
//!
//! A batch takes at most the serial time of its queries, whatever the formula gives, since an executor may always run them one
//! by one. Bounds on rates rely on this.

use serde::{Deserialize, Serialize};

use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;

/// The cost of a query on processors of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Its service time alone.
    pub alone: Nanos,
    /// The time that it adds to the device's for a large batch; equal to `alone` where batches gain nothing.
    pub added: Nanos,
}

impl Cost {
    /// The cost on a class that the machine lacks, later than any time.
    pub const NEVER: Self = Self { alone: Nanos::MAX, added: Nanos::MAX };

    /// The costs of a query with these times alone on a CPU and a GPU, which gains nothing from batches and runs on no other
    /// class.
    #[must_use]
    pub fn on_cpu_and_gpu(cpu: Nanos, gpu: Nanos) -> PerClass<Self> {
        PerClass::from_fn(|class| match class {
            Class::CPU => Self::alone(cpu),
            Class::GPU => Self::alone(gpu),
            _ => Self::NEVER,
        })
    }

    /// The cost of a query that gains nothing from batches.
    #[must_use]
    pub fn alone(alone: Nanos) -> Self {
        Self { alone, added: alone }
    }

    /// The cost times `factor`; [`NEVER`](Self::NEVER) stays.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        if self == Self::NEVER {
            return self;
        }
        Self { alone: self.alone.scaled(factor), added: self.added.scaled(factor) }
    }
}

/// The summed costs of a batch's queries; adding one takes constant time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchLoad {
    /// Number of queries.
    pub queries: u32,
    /// Their serial time.
    pub alone: Nanos,
    /// The longest time alone.
    pub longest: Nanos,
    /// The shortest time alone.
    pub shortest: Nanos,
    /// The time that they add to a large batch.
    pub added: Nanos,
}

impl BatchLoad {
    /// The load with one more query.
    #[must_use]
    pub fn with(self, cost: Cost) -> Self {
        Self {
            queries: self.queries + 1,
            alone: self.alone + cost.alone,
            longest: self.longest.max(cost.alone),
            shortest: if self.queries == 0 { cost.alone } else { self.shortest.min(cost.alone) },
            added: self.added + cost.added,
        }
    }

    /// The load without some of its queries. `longest` and `shortest` stay while others are left, since the new ones are
    /// unknown.
    #[must_use]
    pub fn without(self, some: Self) -> Self {
        if self.queries <= some.queries {
            return Self::default();
        }
        Self {
            queries: self.queries - some.queries,
            alone: self.alone - some.alone,
            added: self.added - some.added,
            ..self
        }
    }
}

/// The overlapping host and device times of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchTime {
    /// The thread's time to prepare, launch and read.
    pub host: Nanos,
    /// The time for which the device waits on an idle lane: part of the thread's time, launching and copying.
    pub exposed: Nanos,
    /// The device's own time.
    pub device: Nanos,
}

impl BatchTime {
    /// The time on a processor without a separate device, where thread and work are one.
    #[must_use]
    pub fn of_device(device: Nanos) -> Self {
        Self { device, ..Self::default() }
    }

    /// Time from start to finish on an idle processor.
    #[must_use]
    pub fn total(self) -> Nanos {
        (self.exposed + self.device).max(self.host)
    }
}

/// A line over the number of queries, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exposed {
    /// Time per batch.
    pub fixed_us: f64,
    /// Time per query.
    pub each_us: f64,
}

/// Constants of the module's formula for processors of one class. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchCost {
    /// The thread's time per batch.
    pub host_fixed_us: f64,
    /// The thread's time per query.
    pub host_each_us: f64,
    /// Time on an idle lane outside the device's. If it was not measured, it is all of the thread's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposed: Option<Exposed>,
    /// The device's time per batch.
    pub device_fixed_us: f64,
    /// Share of the longest query's time alone that delays its batch.
    pub longest: f64,
    /// Factors on the summed `added` by size: `(n, crowding)`, n ascending.
    pub crowding: Vec<(u32, f64)>,
    /// The largest measured batch; larger ones must not be requested.
    pub most_queries: u32,
}

impl BatchCost {
    /// Upper bound of the queries of a batch.
    pub const MOST_QUERIES: u32 = 1 << 24;

    /// Checks every number.
    ///
    /// # Errors
    /// Names the first invalid number and its valid values.
    pub fn check(&self) -> Result<(), String> {
        let times = [
            ("host_fixed_us", self.host_fixed_us),
            ("host_each_us", self.host_each_us),
            ("device_fixed_us", self.device_fixed_us),
            ("longest", self.longest),
            ("exposed's fixed_us", self.exposed.map_or(0.0, |exposed| exposed.fixed_us)),
            ("exposed's each_us", self.exposed.map_or(0.0, |exposed| exposed.each_us)),
        ];
        if let Some((name, value)) = times.into_iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0)) {
            return Err(format!("{name} is {value}, expected a number from 0"));
        }
        if !(1..=Self::MOST_QUERIES).contains(&self.most_queries) {
            return Err(format!("most_queries is {}, expected 1 to {}", self.most_queries, Self::MOST_QUERIES));
        }
        check_crowding(&self.crowding)
    }

    /// The time of a batch.
    #[must_use]
    pub fn time(&self, load: &BatchLoad) -> BatchTime {
        let singly = self.singly(load);
        if load.queries <= 1 {
            return singly;
        }
        let crowded = crowding(&self.crowding, load.queries) * load.added.as_us();
        let together = BatchTime {
            host: self.host(load.queries),
            exposed: self.exposed(load.queries),
            device: Nanos::from_us(self.device_fixed_us + crowded + self.longest * load.longest.as_us()),
        };
        if together.total() <= singly.total() { together } else { singly }
    }

    /// The thread's time for a batch of `queries` queries.
    #[must_use]
    pub fn host(&self, queries: u32) -> Nanos {
        Nanos::from_us(self.host_fixed_us + self.host_each_us * f64::from(queries))
    }

    /// These constants with factors on the thread's and the device's times. The exposed time stays.
    #[must_use]
    pub fn slower(&self, host: f64, device: f64) -> Self {
        Self {
            host_fixed_us: self.host_fixed_us * host,
            host_each_us: self.host_each_us * host,
            exposed: self.exposed.or(Some(Exposed { fixed_us: self.host_fixed_us, each_us: self.host_each_us })),
            device_fixed_us: self.device_fixed_us * device,
            longest: self.longest * device,
            crowding: self.crowding.iter().map(|&(size, factor)| (size, factor * device)).collect(),
            most_queries: self.most_queries,
        }
    }

    /// The device's waiting time on an idle lane before and after a batch of `queries` queries.
    #[must_use]
    pub fn exposed(&self, queries: u32) -> Nanos {
        self.exposed.map_or_else(
            || self.host(queries),
            |Exposed { fixed_us, each_us }| Nanos::from_us(fixed_us + each_us * f64::from(queries)),
        )
    }

    /// The serial time of the queries, by host and device. Each query exposes as much as the shortest can: what a short
    /// query lacks is not taken from the device's time of a long one.
    fn singly(&self, load: &BatchLoad) -> BatchTime {
        let of_all = |one: Nanos| Nanos(one.0.saturating_mul(u64::from(load.queries))).min(load.alone);
        let exposed = of_all(self.exposed(1).min(load.shortest));
        BatchTime { host: of_all(self.host(1)), exposed, device: load.alone.since(exposed) }
    }

    /// The least host and device times of a query, in a batch of any size.
    pub(super) fn least(&self, cost: Cost) -> BatchTime {
        let alone = self.singly(&BatchLoad::default().with(cost));
        BatchTime {
            host: Nanos::from_us(self.host_each_us).min(alone.host),
            exposed: Nanos::ZERO,
            device: cost.added.scaled(least(&self.crowding)).min(alone.device),
        }
    }
}

fn check_crowding(crowding: &[(u32, f64)]) -> Result<(), String> {
    let is_ascending = crowding.is_sorted_by(|a, b| a.0 < b.0);
    let is_possible = |&(size, crowding): &(u32, f64)| size > 0 && crowding.is_finite() && crowding > 0.0;
    if is_ascending && crowding.iter().all(is_possible) {
        return Ok(());
    }
    Err("crowding must have sizes that ascend from 1, each with a number above 0".to_owned())
}

/// The crowding of a batch of `n` queries, interpolated between factors at known sizes.
fn crowding(factors: &[(u32, f64)], n: u32) -> f64 {
    let after = factors.partition_point(|&(size, _)| size < n);
    match (after.checked_sub(1).map(|before| factors[before]), factors.get(after)) {
        (Some((small, high)), Some(&(large, low))) => {
            let share = (f64::from(n) / f64::from(small)).ln() / (f64::from(large) / f64::from(small)).ln();
            high + share * (low - high)
        }
        (Some((_, last)), None) => last,
        (None, Some(&(_, first))) => first,
        (None, None) => 1.0,
    }
}

fn least(factors: &[(u32, f64)]) -> f64 {
    let least = factors.iter().map(|&(_, factor)| factor).fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gpu() -> BatchCost {
        BatchCost {
            host_fixed_us: 8.0,
            host_each_us: 0.5,
            exposed: None,
            device_fixed_us: 4.0,
            longest: 0.8,
            crowding: vec![(1, 8.0), (16, 4.0), (256, 1.5), (4096, 1.0)],
            most_queries: 4096,
        }
    }

    fn cost_of((alone_us, added_us): (u64, u64)) -> Cost {
        Cost { alone: Nanos(alone_us * 1000), added: Nanos(added_us * 1000) }
    }

    fn load(costs: impl IntoIterator<Item = (u64, u64)>) -> BatchLoad {
        costs.into_iter().map(cost_of).fold(BatchLoad::default(), BatchLoad::with)
    }

    #[test]
    fn a_batch_takes_its_halves() {
        // Sixteen queries of 25 us add 2 us each: 8 + 16 · 0.5 on the host, 4 + 4 · 32 + 0.8 · 25 on the device.
        let time = gpu().time(&load(vec![(25, 2); 16]));
        let halves = BatchTime { host: Nanos(16_000), exposed: Nanos(16_000), device: Nanos(152_000) };
        assert_eq!(time, halves);
        // The size 64 is half way from 16 to 256.
        let time = gpu().time(&load(vec![(25, 2); 64]));
        assert_eq!(time.device, Nanos(4_000 + 352_000 + 20_000));
        // A batch is never slower than its queries one after another.
        assert_eq!(gpu().time(&load(vec![(9, 9); 16])).total(), Nanos(16 * 9_000));
        // A long query holds up the batch.
        let time = gpu().time(&load([(1000, 2), (100, 2)]));
        let both = gpu().time(&load([(100, 2), (100, 2)]));
        assert_eq!(time.device.since(both.device), Nanos::from_us(0.8 * 900.0));
    }

    #[test]
    fn a_query_alone_takes_what_it_takes_alone() {
        let halves = BatchTime { host: Nanos(8500), exposed: Nanos(8500), device: Nanos(15_500) };
        assert_eq!(gpu().time(&load([(24, 2)])), halves);
        assert_eq!(gpu().time(&load([(5, 1)])).total(), Nanos(5000));
    }

    #[test]
    fn host_work_counts_only_beyond_device_work() {
        let hidden = BatchCost { exposed: Some(Exposed { fixed_us: 10.0, each_us: 0.0 }), ..gpu() };
        let time = hidden.time(&load(vec![(25, 2); 16]));
        assert_eq!((time.host, time.total()), (Nanos(16_000), Nanos(162_000)));
        let busy = BatchCost { host_each_us: 20.0, ..hidden };
        assert_eq!(busy.time(&load(vec![(25, 2); 16])).total(), Nanos(328_000));
    }

    proptest! {
        #[test]
        fn a_batch_takes_at_most_the_sum_and_at_least_the_least(
            // Some queries take less than the host's time for one.
            costs in prop::collection::vec((prop_oneof![1u64..20, 9u64..2000], 0u64..2000), 1..300),
        ) {
            let costs: Vec<Cost> = costs.into_iter().map(|(alone, added)| cost_of((alone, added.min(alone)))).collect();
            let load = costs.iter().copied().fold(BatchLoad::default(), BatchLoad::with);
            let time = gpu().time(&load);
            prop_assert!(time.total() <= load.alone);
            let least: Vec<BatchTime> = costs.iter().map(|&cost| gpu().least(cost)).collect();
            let sum = |half: fn(&BatchTime) -> Nanos| least.iter().map(half).fold(Nanos::ZERO, std::ops::Add::add);
            // Each query's share is rounded to a nanosecond.
            let slack = Nanos(costs.len() as u64);
            prop_assert!(sum(|least| least.device) <= time.device + slack);
            prop_assert!(sum(|least| least.host) <= time.host + slack);
        }
    }
}
