//! Machine models with all effects that a machine profile describes.

use std::collections::BTreeMap;

use tandem::base::machine::{Class, Idle};
use tandem::cost::machine_profile::{Beside, DispatcherProfile, LaneProfile, Slowdown, Spread};
use tandem::cost::{Decisions, MachineModel, MachineProfile};

/// The model on a machine whose lanes vary, by a relative standard deviation in permille. Handing over takes time, and lanes
/// slow each other down; a GPU's thread prepares one batch while others, which overlap on the device, end.
pub fn on_profile(model: &MachineModel, spread: u32) -> MachineModel {
    let slowdown = |queries, busy, spacing, work, device| {
        let spread = Spread::Deviation(f64::from(spread) / 1e3);
        Slowdown { queries, busy, prepared: 0.7, spacing, work, device, spread }
    };
    let lanes = |other, lanes| LaneProfile {
        each_us: 0.25,
        hand_over_us: 0.5,
        hand_back_us: 1.0,
        after_idle: vec![(1.0, 1.0), (50.0, 1.2)],
        beside: BTreeMap::from([(other, Beside { lanes, work: 1.3, device: 1.1 })]),
        slowdown: vec![
            slowdown(1, 1, 0.6, 0.9, 1.0),
            slowdown(1, 3, 0.6, 1.2, 1.0),
            slowdown(2, 1, 0.3, 1.5, 1.0),
            slowdown(16, 1, 1.0, 1.0, 1.2),
        ],
        power: None,
    };
    let classes = BTreeMap::from([(Class::CPU, lanes(Class::GPU, 1)), (Class::GPU, lanes(Class::CPU, 3))]);
    let dispatcher = DispatcherProfile { any: Decisions::each(model.decision), policies: BTreeMap::new() };
    MachineProfile::new(BTreeMap::new(), Idle::Spin, classes, dispatcher).model(model, |_| false)
}
