//! Machine models with all effects that a machine file describes.

use std::collections::BTreeMap;

use tandem::base::machine::{Class, Idle};
use tandem::cost::machine_file::{
    AfterIdle, Crowding, DispatcherFile, DispatcherRounds, InUse, LaneFile, Quantile, RoundCost, Stalls,
};
use tandem::cost::{BatchContention, BatchStream, Contention, CpuContention, MachineFile, MachineModel};

/// Effects of a machine file and of a workload's contention data: wake-up times of lanes, speeds, noise, and stalls of
/// the driver. A GPU's thread prepares one batch while others, which overlap on the device, end; its slow batches follow
/// each other.
pub fn among_others(model: &MachineModel, stalls_per_s: f64, lasts_us: f64) -> MachineModel {
    let quantiles = |points: &[(f64, f64)]| points.iter().map(|&(share, value)| Quantile { share, value }).collect();
    let lanes = LaneFile {
        stream: 0.8,
        spacing: 0.6,
        in_use: vec![InUse { share: 0.0, times: 1.5, plus_us: 1.0 }, InUse { share: 1.0, times: 1.0, plus_us: 0.0 }],
        memory_ms: 0.1,
        after_idle: vec![
            AfterIdle { idle_us: 1.0, hand_over_us: 0.5, times: 1.0 },
            AfterIdle { idle_us: 50.0, hand_over_us: 3.0, times: 1.2 },
        ],
        hand_back_us: 1.0,
        crowding: vec![Crowding { busy: 1, times: 1.0 }, Crowding { busy: 3, times: 1.3 }],
        beside: BTreeMap::new(),
        batch_host: 1.2,
        batch_device: 0.9,
        speeds: quantiles(&[(0.0, 0.8), (1.0, 1.4)]),
        speed_lasts_ms: 0.05,
        noise: quantiles(&[(0.0, 0.9), (1.0, 1.2)]),
        stalls: Stalls { per_s: 20_000.0, us: quantiles(&[(0.0, 5.0), (1.0, 30.0)]) },
    };
    let stream = |queries, host, device, spacing| BatchStream {
        queries,
        host,
        prepared: 0.7,
        device,
        spacing,
        noise: quantiles(&[(0.0, 0.8), (1.0, 1.2)]),
        host_noise: quantiles(&[(0.0, 0.9), (0.9, 1.0), (1.0, 8.0)]),
        host_lasts_us: if queries > 2 { lasts_us } else { lasts_us / 4.0 },
    };
    let company = Contention {
        cpu: vec![CpuContention { busy: 1, times: 0.9 }, CpuContention { busy: 3, times: 1.2 }],
        cpu_beside_gpu: 1.1,
        gpu_batches: vec![
            BatchContention { busy_cpus: 0, host: 1.0, device: 1.0 },
            BatchContention { busy_cpus: 3, host: 1.4, device: 1.1 },
        ],
        gpu_streams: vec![stream(2, 3.0, 1.0, 0.3), stream(16, 2.0, 1.2, 1.0)],
        ..Contention::default()
    };
    let classes = [Class::CPU, Class::GPU].map(|class| (class, lanes.clone()));
    let each_ns = model.decision.0 as f64;
    let any = RoundCost { round_ns: 0.0, arrival_ns: each_ns, batch_ns: 0.0, answer_ns: each_ns };
    let dispatcher = DispatcherFile {
        rounds: vec![DispatcherRounds { lanes: 1, any, policies: BTreeMap::new() }],
        stalls: Stalls { per_s: stalls_per_s, us: quantiles(&[(0.0, 1.0), (0.8, 8.0), (1.0, 60.0)]) },
    };
    let file = MachineFile::new(BTreeMap::new(), Idle::Spin, classes.into(), dispatcher);
    file.model(model, Some(&company), |_| false)
}
