//! Measurement of a machine: costs of serving queries beyond the time of each query alone.
//!
//! ```text
//!  predicted   every query alone                                          ─┐
//!  stream      1, half and all CPU lanes; GPU lanes: never without work    │
//!  used        all CPU lanes; 1 GPU: up to a third of the time 4 rounds    │
//!  batches     GPU lanes: batches of 4 to 4096                 in turns    ├─▶ fit ─▶ MachineProfile
//!  apart       the same, a third of the time                               │
//!  together    CPU lanes and GPU lanes at once                             │
//!  dispatcher  policies over lanes that only let time pass                 │
//!  power       an idle GPU, and batches of 1 to 4096, by its energy counter ┘
//! ```
//!
//! The live driver runs the lanes under a [policy](probe) that only keeps some of them busy, so that the results belong
//! to the machine and not to a policy. The stages alternate in rounds, so that drift of the machine affects all of them.

pub(super) mod dispatcher;
mod fit;
pub(super) mod host_info;
pub(super) mod system_load;
pub(super) use system_load::{SystemLoad, SystemLoadProbe};
mod probe;
pub(super) mod processors;

use std::collections::{BTreeMap, HashMap};

use fit::{Batch, Stage, Stages};
use probe::{Busy, Probe};
use tandem_model::base::machine::{Class, Idle};
use tandem_model::base::random::{Random, ln};
use tandem_model::base::time::Nanos;
use tandem_model::cost::machine_profile::{LaneProfile, Power};
use tandem_model::cost::{BatchLoad, MachineProfile};
use tandem_model::sched::{BuiltIn, PolicyFactory, PolicyKind, PolicyOptions};
use tandem_model::sim::Arrivals;
use tandem_model::study::{Progress, StudyError};

use super::{LabError, LiveRunSpec, Node};
use crate::live;

/// Number of rounds of all stages.
const ROUNDS: u64 = 4;
/// Durations of a stage with busy lanes and of a stage with pauses, per round.
const STREAM_S: f64 = 0.4;
const USED_S: f64 = 0.2;
/// Most queries of a stage: its samples are kept in memory.
const MOST_QUERIES: usize = 400_000;
/// Load offered in a stream, as a multiple of the predicted capacity of its lanes.
const OVERLOAD: f64 = 2.0;
/// Load offered to GPU lanes with batches. Overlapping small batches may take half of their predicted time.
const FLOOD: f64 = 2.5;
/// Load offered to CPU and GPU lanes together; it leaves the dispatcher time for both.
const TOGETHER: f64 = 1.2;
/// Loads offered to lanes that are idle now and then, as shares of their predicted capacity.
const USED: [f64; 2] = [0.05, 0.3];
/// Load offered to GPU lanes so that batches run apart from each other.
const APART: f64 = 0.3;
/// Queries of GPU batches.
const BATCHES: [usize; 6] = [4, 16, 64, 256, 1024, 4096];
/// Queries of a GPU batch while CPU lanes are busy.
const BESIDE: usize = 1024;
/// Queries of the GPU batches whose power is measured, and the duration of each measurement: energy counters advance slowly.
pub const POWER_BATCHES: [usize; 4] = [1, 16, 256, 4096];
const POWER_S: f64 = 3.0;

/// The policies whose dispatcher is measured; the first one stands for all others.
const POLICIES: [PolicyKind; 5] =
    [PolicyKind::CpuOnly, PolicyKind::Mct, PolicyKind::Stealing, PolicyKind::Combined, PolicyKind::LengthBased];

/// Measures the machine of `node`, all queries of which were measured alone on it. `about` is copied into the profile.
///
/// # Errors
/// If a run fails or is interrupted.
pub fn measure_machine(
    node: &mut Node,
    idle: Idle,
    about: BTreeMap<String, String>,
    progress: &dyn Progress,
) -> Result<MachineProfile, LabError> {
    node.set_idle(idle);
    node.warm_up(std::time::Duration::from_millis(300))?;
    let (cpus, gpus) = (node.machine().count(Class::CPU), real_gpus(node));
    let mut stages = Stages::default();
    for round in 0..ROUNDS {
        progress.doing(&format!("the machine: round {} of {ROUNDS}", round + 1));
        let mut drive =
            |stage, offered, busy| drive_stage(node, (round, offered), busy, stages.entry(stage).or_default());
        for cpus in loads(cpus) {
            drive(Stage::Stream(Class::CPU, cpus), OVERLOAD, Busy { cpus, gpus: 0, batch: 1 })?;
        }
        for offered in USED {
            if cpus > 0 {
                drive(Stage::Used(Class::CPU), offered, Busy { cpus, gpus: 0, batch: 1 })?;
            }
            if gpus > 0 {
                drive(Stage::Used(Class::GPU), offered, Busy { cpus: 0, gpus: 1, batch: 1 })?;
            }
        }
        if gpus > 0 {
            drive(Stage::Stream(Class::GPU, gpus), OVERLOAD, Busy { cpus: 0, gpus, batch: 1 })?;
            for batch in BATCHES {
                drive(Stage::Batches(batch), FLOOD, Busy { cpus: 0, gpus, batch })?;
                drive(Stage::Apart(batch), APART, Busy { cpus: 0, gpus, batch })?;
            }
        }
        if cpus > 0 && gpus > 0 {
            drive(Stage::Together, TOGETHER, Busy { cpus, gpus, batch: BESIDE })?;
        }
    }
    progress.doing("the machine: its power");
    let power = if gpus > 0 { measure_power(node, gpus)? } else { None };
    progress.doing("the machine: its dispatcher");
    let has_lanes = |kind: &PolicyKind| {
        kind.required_classes().iter().all(|&class| if class.is_gpu() { gpus > 0 } else { cpus > 0 })
    };
    let policies: Vec<BuiltIn> =
        POLICIES.into_iter().filter(has_lanes).map(|kind| kind.with(PolicyOptions::default())).collect();
    let policies: Vec<&dyn PolicyFactory> = policies.iter().map(|policy| policy as &dyn PolicyFactory).collect();
    let dispatcher = dispatcher::measure((cpus, gpus), idle, &policies)?;
    progress.end();
    let classes = [(Class::CPU, cpus), (Class::GPU, gpus)];
    let classes = classes.into_iter().filter(|&(_, lanes)| lanes > 0);
    let classes = classes.map(|(class, _)| {
        let power = power.clone().filter(|_| class.is_gpu());
        (class, LaneProfile { power, ..fit::lanes(class, &stages, (cpus, gpus)) })
    });
    let classes = classes.collect();
    Ok(MachineProfile::new(about, idle, classes, dispatcher))
}

/// Power of the GPU; `None` without an energy counter.
fn measure_power(node: &mut Node, gpus: usize) -> Result<Option<Power>, LabError> {
    let Some(idle_watts) = idle_watts(node) else { return Ok(None) };
    let mut power = Power { idle_watts: fit::rounded(idle_watts), ..Power::default() };
    for batch in POWER_BATCHES {
        let Some((watts, joules)) = gpu_watts(node, gpus, batch, FLOOD)? else { return Ok(None) };
        let beyond_idle = (1.0 - idle_watts / watts.max(1e-9)).max(0.0);
        power.busy_watts.push((batch as u32, fit::rounded(watts)));
        power.query_mj.push((batch as u32, fit::rounded(1e3 * joules * beyond_idle)));
    }
    Ok(Some(power))
}

/// Mean power of the node's GPUs without work, in watts; `None` without an energy counter.
#[must_use]
pub fn idle_watts(node: &Node) -> Option<f64> {
    let energy = node.start_energy();
    std::thread::sleep(std::time::Duration::from_secs_f64(POWER_S));
    energy.watts()
}

/// Mean power in watts and energy per query in joules while the first `gpus` GPU lanes serve batches of this size, at a
/// multiple `offered` of their predicted capacity; `None` without an energy counter.
///
/// # Errors
/// If the run fails or is interrupted.
pub fn gpu_watts(node: &mut Node, gpus: usize, batch: usize, offered: f64) -> Result<Option<(f64, f64)>, LabError> {
    let load = offer(node, offered, Busy { cpus: 0, gpus, batch }, (POWER_S, usize::MAX), &mut Random::new(0, 0));
    let report = node.run_strict(&load.probe, LiveRunSpec::unjudged(1.0, &load.arrivals))?;
    if live::interrupted() {
        return Err(StudyError::Interrupted.into());
    }
    let Some(summary) = report.summary else { return Ok(None) };
    let each_j = summary.gpu_energy_j.map(|joules| joules / summary.queries as f64);
    Ok(each_j.map(|joules| (joules * summary.throughput_qps, joules)))
}

/// One, half and all of the lanes.
fn loads(lanes: usize) -> Vec<usize> {
    let mut loads: Vec<usize> = [1, lanes.div_ceil(2), lanes].into_iter().filter(|&busy| busy <= lanes).collect();
    loads.dedup();
    loads
}

/// Number of GPU lanes that do not replay recorded times.
fn real_gpus(node: &Node) -> usize {
    let lanes = node.machine().processors();
    lanes.filter(|&(lane, processor)| processor.class == Class::GPU && !node.lane_pool().is_recorded(lane)).count()
}

/// Predicted throughput of a GPU lane with consecutive batches of this size, relative to single queries.
fn gain_of(node: &Node, batch: usize) -> f64 {
    if batch == 1 {
        return 1.0;
    }
    let costs = node.workload().costs();
    let load = (0..batch).fold(BatchLoad::default(), |load, i| load.with(costs[i % costs.len()][Class::GPU]));
    let time = node.model().batch_time(Class::GPU, &load);
    load.alone.as_secs() / time.host.max(time.device).as_secs().max(1e-9)
}

/// Queries that keep lanes busy.
struct OfferedLoad {
    probe: Probe,
    arrivals: Arrivals,
}

/// At most `most` queries for these lanes, over some seconds, at a multiple `offered` of their predicted capacity. Arrivals
/// below the capacity are random.
fn offer(node: &Node, offered: f64, busy: Busy, (seconds, most): (f64, usize), random: &mut Random) -> OfferedLoad {
    let costs = node.workload().costs();
    let mean = |class: Class| {
        let alone = costs.iter().map(|cost| cost[class].alone.as_secs()).sum::<f64>();
        alone / costs.len() as f64
    };
    let of = |class, lanes: usize| if lanes > 0 { lanes as f64 / mean(class) } else { 0.0 };
    let probe = Probe { busy, gain: gain_of(node, busy.batch), is_whole: offered < 1.0 };
    let capacity_qps = of(Class::CPU, busy.cpus) + probe.gain * of(Class::GPU, busy.gpus);
    let rate_qps = offered * capacity_qps;
    let (unit, rows): (Vec<f64>, Vec<u32>) = if offered < 1.0 {
        let mut at = 0.0;
        let count = ((rate_qps * seconds) as usize + 20 * busy.batch).min(most).next_multiple_of(busy.batch);
        let plan = (0..count).map(|i| {
            // The queries of a batch arrive at once.
            if i % busy.batch == 0 {
                at -= ln(1.0 - random.unit()) / rate_qps * busy.batch as f64;
            }
            (at, random.below(costs.len() as u32))
        });
        plan.unzip()
    } else {
        let lanes = busy.cpus + busy.gpus;
        let count = ((capacity_qps * seconds) as usize).min(most).max(20 * lanes * busy.batch);
        (0..count).map(|i| (i as f64 / rate_qps, random.below(costs.len() as u32))).unzip()
    };
    OfferedLoad { probe, arrivals: Arrivals::given(0, unit, rows) }
}

/// Drives a stage and adds its batches to what was `seen` of it.
fn drive_stage(
    node: &mut Node,
    (round, offered): (u64, f64),
    busy: Busy,
    seen: &mut Vec<fit::Seen>,
) -> Result<(), LabError> {
    let mut random = Random::new(round, seen.len() as u64 * 1000 + busy.cpus as u64);
    let seconds = if offered < 1.0 { USED_S } else { STREAM_S };
    let load = offer(node, offered, busy, (seconds, MOST_QUERIES), &mut random);
    let run = LiveRunSpec { keep: usize::MAX, ..LiveRunSpec::unjudged(1.0, &load.arrivals) };
    let outcome = node.run_strict(&load.probe, run)?.outcome;
    if live::interrupted() {
        return Err(StudyError::Interrupted.into());
    }
    let mut loads: HashMap<u32, BatchLoad> = HashMap::new();
    let by_query = node.profiled();
    for row in &outcome.log.rows {
        let load = loads.entry(row.batch).or_default();
        *load = load.with(by_query[&row.query][row.class]);
    }
    let model = node.model();
    let mut lanes = vec![(Class::CPU, Vec::new()); model.machine.len()];
    for batch in &outcome.served {
        let (class, load) = (model.machine.class(batch.processor), loads[&batch.number]);
        let us = |time: Nanos| time.as_us() as f32;
        let predicted = model.batch_time(class, &load);
        let lane = &mut lanes[batch.processor.index()];
        lane.0 = class;
        lane.1.push(Batch {
            queries: load.queries,
            predicted: us(predicted.total()),
            predicted_host: us(predicted.host),
            predicted_device: us(predicted.device),
            idle: us(batch.idle),
            out: us(batch.out),
            worked: us(batch.worked),
            host: us(batch.host),
            prepared: us(batch.prepared),
            device: us(batch.device),
            back: us(batch.back),
        });
    }
    lanes.retain(|(_, batches)| !batches.is_empty());
    seen.push(fit::Seen { lanes });
    Ok(())
}
