//! Measurement of a machine: costs of serving queries beyond the time of each query alone.
//!
//! ```text
//!  profile      every query alone                                     ─┐
//!  stream       1, 2, 4... lanes, never without work      6 rounds     ├─▶ fit ─▶ MachineFile
//!  used         1 lane, a 30th to most of its time        in turns     │
//!  beside       CPU lanes and GPU lanes at once                        │
//!  stalls       every core looks at the clock                          │
//!  dispatcher   every policy over lanes that only let time pass       ─┘
//! ```
//!
//! The live driver runs the lanes under a [policy](probe) that only keeps some of them busy, so that the results belong
//! to the machine and not to a policy. The stages alternate in six rounds, so that drift of the machine affects all of
//! them.

mod contention;
mod dispatcher;
mod fit;
pub(super) mod host_info;
pub(super) mod system_load;
pub(super) use system_load::{SystemLoad, SystemLoadProbe};
mod probe;
pub(super) mod processors;
pub(super) mod simulated;
mod spells;
mod stalls;

use std::collections::BTreeMap;

pub use contention::{adopt_machine, measure_contention};
use probe::{Busy, Probe};
use stalls::Taken;

use super::{LabError, LiveRunSpec, Node, Progress};
use crate::base::ids::ProcessorId;
use crate::base::machine::{Class, Idle};
use crate::base::random::{Random, ln};
use crate::base::time::Nanos;
use crate::cost::machine_file::{LaneFile, Stalls};
use crate::cost::{BatchLoad, BatchTime, MachineFile};
use crate::live;
use crate::sim::Arrivals;

/// Number of rounds of all stages.
const ROUNDS: u64 = 6;
/// Durations of a stage with busy lanes and of a stage with pauses, per round.
const STREAM_S: f64 = 0.06;
const USED_S: f64 = 0.15;
/// Load offered in a stream, as a multiple of the profiled capacity of its lanes.
const OVERLOAD: f64 = 2.0;
/// Load offered to GPU lanes with batches. Overlapping small batches may take half of their predicted time.
const FLOOD: f64 = 2.5;
/// Loads offered to a lane with pauses, as shares of its profiled capacity.
const USED: [f64; 5] = [0.03, 0.1, 0.3, 0.55, 0.8];
/// Queries in a GPU batch.
const BATCHES: [usize; 3] = [16, 256, 2048];

/// The measurements of one batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineSample {
    /// The number of the round.
    pub round: u64,
    /// The stage of the round.
    pub stage: Stage,
    /// The offered load, as a share of the capacity of the lanes.
    pub offered: f64,
    /// Number of lanes that the stage uses.
    pub lanes: usize,
    /// The processor that ran the batch.
    pub processor: ProcessorId,
    /// The class of the processor.
    pub class: Class,
    /// Number of queries in the batch.
    pub queries: u32,
    /// The time by the profile.
    pub profiled: BatchTime,
    /// Time that the lane was idle before.
    pub idle: Nanos,
    /// Number of other lanes with work.
    pub busy: u32,
    /// Time from the dispatcher's start of the batch to the lane's.
    pub out: Nanos,
    /// Time at work.
    pub worked: Nanos,
    /// Time of the lane's thread, if it overlaps with the device; else 0.
    pub host: Nanos,
    /// Time of the thread before the launch, if it overlaps with the device; else 0.
    pub prepared: Nanos,
    /// Time of the device, if it overlaps with the thread; else 0.
    pub device: Nanos,
    /// Time from the end of the batch until the dispatcher noticed it.
    pub back: Nanos,
}

/// The load pattern of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Queries one after another, without pauses.
    Stream,
    /// Single queries at Poisson arrivals, with pauses.
    Used,
    /// Batches one after another, without pauses.
    Batches,
    /// CPU lanes and GPU lanes at once, without pauses.
    Beside,
}

impl Stage {
    /// The name of the stage in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Used => "used",
            Self::Batches => "batches",
            Self::Beside => "beside",
        }
    }
}

/// A machine file with its samples.
#[derive(Clone, Debug)]
pub struct MeasuredMachine {
    /// The machine file.
    pub file: MachineFile,
    /// All measured batches.
    pub samples: Vec<MachineSample>,
}

/// Measures the machine of `node`; all queries of the node were profiled on it. `about` is copied into the file.
///
/// # Errors
/// If a run fails or is interrupted.
pub fn measure_machine(
    node: &mut Node,
    idle: Idle,
    about: BTreeMap<String, String>,
    progress: &dyn Progress,
) -> Result<MeasuredMachine, LabError> {
    node.set_idle(idle);
    node.warm_up(std::time::Duration::from_millis(300))?;
    let (cpus, gpus) = (node.machine().count(Class::CPU), real_gpus(node));
    let lanes = counts_up_to(cpus);
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        progress.doing(&format!("the machine: round {} of {ROUNDS}", round + 1));
        let mut stage = |stage, offered, cpus, gpus, batch| -> Result<(), LabError> {
            samples.extend(drive_stage(node, (round, stage, offered), Busy { cpus, gpus, batch })?);
            Ok(())
        };
        for &lanes in &lanes {
            stage(Stage::Stream, OVERLOAD, lanes, 0, 1)?;
        }
        for offered in USED.into_iter().filter(|_| cpus > 0) {
            stage(Stage::Used, offered, 1, 0, 1)?;
        }
        if gpus > 0 {
            stage(Stage::Stream, OVERLOAD, 0, gpus, 1)?;
            for offered in USED {
                stage(Stage::Used, offered, 0, 1, 1)?;
            }
            for batch in BATCHES {
                stage(Stage::Batches, FLOOD, 0, gpus, batch)?;
            }
        }
        if cpus > 0 && gpus > 0 {
            stage(Stage::Beside, OVERLOAD, cpus, gpus, 1)?;
        }
    }
    progress.doing("the machine: what takes cores away");
    let Taken { lanes: stalls, driver } = stalls::measure(node.machine().len());
    progress.doing("the machine: its dispatcher");
    let dispatcher = dispatcher::measure(cpus.max(1), gpus.min(1), idle, driver)?;
    progress.end();
    let mut classes: BTreeMap<Class, LaneFile> = BTreeMap::new();
    for class in [Class::CPU, Class::GPU] {
        let stalls = if class.is_gpu() { Stalls::default() } else { stalls.clone() };
        classes.extend(fit::lanes(class, &samples, stalls).map(|file| (class, file)));
    }
    Ok(MeasuredMachine { file: MachineFile::new(about, idle, classes, dispatcher), samples })
}

/// Number of GPU lanes that do not replay recorded times.
fn real_gpus(node: &Node) -> usize {
    let lanes = node.machine().processors();
    lanes.filter(|&(lane, processor)| processor.class == Class::GPU && !node.lane_pool().is_recorded(lane)).count()
}

/// The powers of 2 below `most`, and `most` itself.
fn counts_up_to(most: usize) -> Vec<usize> {
    let doubling = std::iter::successors(Some(1), |lanes| Some(lanes * 2)).take_while(|&lanes| lanes < most);
    doubling.chain((most > 0).then_some(most)).collect()
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

fn drive_stage(
    node: &mut Node,
    (round, stage, offered): (u64, Stage, f64),
    busy: Busy,
) -> Result<Vec<MachineSample>, LabError> {
    let costs = node.workload().costs();
    let mean = |class: Class| {
        let alone = costs.iter().map(|cost| cost[class].alone.as_secs()).sum::<f64>();
        alone / costs.len() as f64
    };
    let lanes = busy.cpus + busy.gpus;
    let of = |class, lanes: usize| if lanes > 0 { lanes as f64 / mean(class) } else { 0.0 };
    let probe = Probe { busy, gain: gain_of(node, busy.batch) };
    let capacity_qps = of(Class::CPU, busy.cpus) + probe.gain * of(Class::GPU, busy.gpus);
    let rate_qps = offered * capacity_qps;
    let mut random = Random::new(round, stage as u64 * 1000 + busy.cpus as u64);
    let (unit, rows): (Vec<f64>, Vec<u32>) = if stage == Stage::Used {
        let count = (rate_qps * USED_S) as usize + 20;
        let mut at = 0.0;
        let mut plan = (0..count).map(|_| {
            at -= ln(1.0 - random.unit()) / rate_qps;
            (at, random.below(costs.len() as u32))
        });
        plan.by_ref().unzip()
    } else {
        let count = ((capacity_qps * STREAM_S) as usize).max(20 * lanes * busy.batch);
        (0..count).map(|i| (i as f64 / rate_qps, random.below(costs.len() as u32))).unzip()
    };
    let arrivals = Arrivals::given(round, unit, rows);
    let outcome = node.run_strict(&probe, LiveRunSpec { keep: usize::MAX, ..LiveRunSpec::unjudged(1.0, &arrivals) })?;
    let outcome = outcome.outcome;
    if outcome.interrupted() || live::interrupted() {
        return Err(LabError::Interrupted);
    }
    let mut loads: std::collections::HashMap<u32, BatchLoad> = std::collections::HashMap::new();
    let by_query = node.profiled();
    for row in &outcome.log.rows {
        let load = loads.entry(row.batch).or_default();
        *load = load.with(by_query[&row.query][row.class]);
    }
    let model = node.model();
    let sample = |batch: &live::ServedBatch| {
        let class = model.machine.class(batch.processor);
        let load = loads[&batch.number];
        MachineSample {
            round,
            stage,
            offered,
            lanes,
            processor: batch.processor,
            class,
            queries: load.queries,
            profiled: model.batch_time(class, &load),
            idle: batch.idle,
            busy: batch.busy,
            out: batch.out,
            worked: batch.worked,
            host: batch.host,
            prepared: batch.prepared,
            device: batch.device,
            back: batch.back,
        }
    };
    Ok(outcome.served.iter().map(sample).collect())
}
