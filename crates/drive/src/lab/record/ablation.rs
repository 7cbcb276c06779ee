//! What the numbers of a machine profile are worth: predictions without each of them.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use tandem_model::cost::MachineProfile;
use tandem_model::cost::machine_profile::{DispatcherProfile, Slowdown, Spread};
use tandem_model::files::{Digits, Record};

use super::compare::{Compared, Quantity, median};

/// A number of the machine profile, or all numbers of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The time of a single query that does not depend on its length.
    Each,
    /// The times to hand over and back.
    HandOff,
    /// The slowdown after idle times.
    AfterIdle,
    /// How the slowdown of single queries depends on busy lanes.
    BusyLanes,
    /// How the slowdown of batches depends on their size.
    BatchSizes,
    /// The slowdown by lanes of another class.
    Beside,
    /// The variation of times.
    Spread,
    /// The device's time for batches.
    Device,
    /// The share of a batch's preparation.
    Prepared,
    /// The overlap of batches on a device.
    Spacing,
    /// The dispatcher's costs.
    Dispatcher,
    /// How the dispatcher's costs depend on the policy.
    Policies,
}

impl Number {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Each,
        Self::HandOff,
        Self::AfterIdle,
        Self::BusyLanes,
        Self::BatchSizes,
        Self::Beside,
        Self::Spread,
        Self::Device,
        Self::Prepared,
        Self::Spacing,
        Self::Dispatcher,
        Self::Policies,
    ];

    /// The name in options and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::HandOff => "hand-off",
            Self::AfterIdle => "after-idle",
            Self::BusyLanes => "busy-lanes",
            Self::BatchSizes => "batch-sizes",
            Self::Beside => "beside",
            Self::Spread => "spread",
            Self::Device => "device",
            Self::Prepared => "prepared",
            Self::Spacing => "spacing",
            Self::Dispatcher => "dispatcher",
            Self::Policies => "policies",
        }
    }

    /// Takes it out of a profile.
    pub(super) fn take_out(self, profile: &mut MachineProfile) {
        match self {
            Self::Dispatcher => profile.dispatcher = DispatcherProfile::default(),
            Self::Policies => profile.dispatcher.policies.clear(),
            _ => {}
        }
        for lanes in profile.classes.values_mut() {
            let all = lanes.slowdown.iter_mut();
            match self {
                Self::Each => lanes.each_us = 0.0,
                Self::HandOff => (lanes.hand_over_us, lanes.hand_back_us) = (0.0, 0.0),
                Self::AfterIdle => lanes.after_idle.clear(),
                Self::Beside => lanes.beside = BTreeMap::new(),
                Self::Spread => all.for_each(|one| one.spread = Spread::default()),
                Self::Device => all.for_each(|one| one.device = 1.0),
                Self::Prepared => all.for_each(|one| one.prepared = 0.0),
                Self::Spacing => all.for_each(|one| one.spacing = 1.0),
                // The slowdown of all lanes, and that of the batches of middle size.
                Self::BusyLanes => keep_one(&mut lanes.slowdown, |one| one.queries == 1, usize::MAX),
                Self::BatchSizes => keep_one(&mut lanes.slowdown, |one| one.queries > 1, 3),
                Self::Dispatcher | Self::Policies => {}
            }
        }
    }
}

/// Keeps one of the entries of a kind, the one at `at` or the last.
fn keep_one(all: &mut Vec<Slowdown>, is_of_kind: impl Fn(&Slowdown) -> bool, at: usize) {
    let (mut of_kind, others): (Vec<Slowdown>, Vec<Slowdown>) = all.drain(..).partition(is_of_kind);
    if !of_kind.is_empty() {
        let at = at.min(of_kind.len() - 1);
        of_kind.swap(0, at);
        of_kind.truncate(1);
    }
    all.extend(others.into_iter().chain(of_kind));
    all.sort_by_key(|one| (one.queries, one.busy));
}

/// Predictions without a number of the profile next to those with it, over the same cells: a row of `ablation.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the columns of the file")]
pub struct Ablated {
    pub without: String,
    pub what: Quantity,
    pub cells: usize,
    /// Median errors.
    pub error_with: Digits<4>,
    pub error_without: Digits<4>,
    /// Number of cells whose error grows or shrinks by more than half a per cent.
    pub worse: usize,
    pub better: usize,
    /// The probability of numbers that are at least as different by chance (two-sided sign test).
    pub chance: Digits<3>,
}

impl Record for Ablated {}

impl Ablated {
    /// Compares, over cells of steady machines with a profile.
    #[must_use]
    pub fn of(number: Number, with: &[Compared], without: &[Compared]) -> Vec<Self> {
        let log_error = |one: &Compared| (one.predicted.0 / one.measured.0).ln().abs();
        let known: HashMap<(&str, Quantity), f64> =
            without.iter().map(|one| ((one.cell.as_str(), one.what), log_error(one))).collect();
        let of = |what: Quantity| {
            let cells = with.iter().filter(|one| one.what == what && one.profile > 0 && one.steady == "yes");
            let pairs: Vec<(f64, f64)> =
                cells.filter_map(|one| Some((log_error(one), *known.get(&(one.cell.as_str(), what))?))).collect();
            let count = |of: &dyn Fn(f64) -> bool| pairs.iter().filter(|(with, without)| of(without - with)).count();
            let (worse, better) = (count(&|grows| grows > 0.005), count(&|grows| grows < -0.005));
            Some(Self {
                without: number.name().to_owned(),
                what,
                cells: pairs.len(),
                error_with: Digits(median(pairs.iter().map(|pair| pair.0.exp_m1()))?),
                error_without: Digits(median(pairs.iter().map(|pair| pair.1.exp_m1()))?),
                worse,
                better,
                chance: Digits(sign_test(worse, better)),
            })
        };
        [Quantity::Capacity, Quantity::Mean, Quantity::P99].into_iter().filter_map(of).collect()
    }
}

/// The probability that fair coins differ at least as much from half as `a` of `a + b`.
fn sign_test(a: usize, b: usize) -> f64 {
    let tosses = a + b;
    let mut probability = 0.5_f64.powi(tosses as i32);
    let mut tail = 0.0;
    for heads in 0..=a.min(b) {
        tail += probability;
        probability *= (tosses - heads) as f64 / (heads + 1) as f64;
    }
    (2.0 * tail).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_test_doubles_the_smaller_tail() {
        // Of ten coins, at most two are heads with a probability of 56 / 1024.
        assert!((sign_test(2, 8) - 112.0 / 1024.0).abs() < 1e-12 && sign_test(2, 8) == sign_test(8, 2));
        assert_eq!((sign_test(0, 0), sign_test(5, 5)), (1.0, 1.0));
    }

    #[test]
    fn one_slowdown_of_a_kind_is_kept() {
        let one = |queries, busy| Slowdown { queries, busy, ..Slowdown::default() };
        let mut all = vec![one(1, 1), one(1, 7), one(1, 14), one(4, 1), one(16, 1)];
        keep_one(&mut all, |one| one.queries == 1, usize::MAX);
        keep_one(&mut all, |one| one.queries > 1, 0);
        assert_eq!(all, [one(1, 14), one(4, 1)]);
    }
}
