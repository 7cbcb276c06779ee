//! Machine models with all effects that a machine profile describes.

use std::collections::BTreeMap;

use tandem::base::machine::{Class, Idle};
use tandem::cost::machine_profile::{
    AfterIdle, Beside, DispatcherCosts, DispatcherProfile, LaneProfile, Observed, Pauses, Ratios, RoundCost,
};
use tandem::cost::{MachineModel, MachineProfile};

/// The model on a machine whose lanes vary and pause. Lanes take time to wake and slow each other down; a GPU's thread
/// prepares one batch while others, which overlap on the device, end.
pub fn on_profile(model: &MachineModel, spread: u32) -> MachineModel {
    let ratios = |mean: u32, stalls_us: Vec<(u32, u32)>| {
        let permille = (0..40).map(|i| mean - spread + i * 7 % 41 * spread / 20).collect();
        Ratios { permille, stalls_us }
    };
    let observed = |queries, busy, spacing, work, device| {
        let work = ratios(work, vec![(3, 5), (17, 30)]);
        let device = if queries > 1 { ratios(device, Vec::new()) } else { Ratios::default() };
        Observed { queries, busy, prepared: 0.7, spacing, work, device }
    };
    let lanes = |other, lanes| LaneProfile {
        each_us: 0.25,
        hand_back_us: 1.0,
        after_idle: vec![
            AfterIdle { idle_us: 1.0, hand_over_us: 0.5, times: 1.0 },
            AfterIdle { idle_us: 50.0, hand_over_us: 3.0, times: 1.2 },
        ],
        beside: BTreeMap::from([(other, Beside { lanes, work: 1.3, device: 1.1 })]),
        drift: 0.0,
        observed: vec![
            observed(1, 1, 0.6, 900, 0),
            observed(1, 3, 0.6, 1200, 0),
            observed(2, 1, 0.3, 1500, 1000),
            observed(16, 1, 1.0, 1000, 1200),
        ],
        power: None,
    };
    let classes = BTreeMap::from([(Class::CPU, lanes(Class::GPU, 1)), (Class::GPU, lanes(Class::CPU, 3))]);
    let each_ns = model.decision.0 as f64;
    let any = RoundCost { arrival_ns: each_ns, answer_ns: each_ns, ..RoundCost::default() };
    let costs = vec![DispatcherCosts { lanes: 1, any, policies: BTreeMap::new() }];
    let dispatcher = DispatcherProfile { costs, ..DispatcherProfile::default() };
    // The first two cores pause together.
    let cores = vec![vec![(100, 200)], vec![(100, 200), (2000, 40)], vec![(1200, 7)]];
    let pauses = Pauses { observed_us: 3000, cores, ..Pauses::default() };
    MachineProfile::new(BTreeMap::new(), Idle::Spin, classes, dispatcher, Some(pauses)).model(model, |_| false)
}
