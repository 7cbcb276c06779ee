//! Measuring a machine: what serving queries costs beyond what each takes alone.
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
//! The lanes are driven by the live driver under a [policy](probe) that does nothing but keep some of them busy, so that
//! what is measured belongs to the machine and not to any policy. Stages take turns in six rounds: a machine whose
//! speed drifts does so for all of them.

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

/// How often the stages take turns.
const ROUNDS: u64 = 6;
/// How long a stage of a round lasts in which lanes are never without work, and one in which they pause.
const STREAM_S: f64 = 0.06;
const USED_S: f64 = 0.15;
/// Offered in a stream, over what its lanes take by their profile.
const OVERLOAD: f64 = 2.0;
/// The same of batches: small ones overlap, and may be done in half the time of their formula.
const FLOOD: f64 = 2.5;
/// The shares of a lane's time that its queries take by their profile.
const USED: [f64; 5] = [0.03, 0.1, 0.3, 0.55, 0.8];
/// Queries of a GPU's batches.
const BATCHES: [usize; 3] = [16, 256, 2048];

/// What was measured of one batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineSample {
    /// The round, and the stage that it is of.
    pub round: u64,
    /// See above.
    pub stage: Stage,
    /// The share of its lanes' time that was offered.
    pub offered: f64,
    /// Lanes that the stage kept busy.
    pub lanes: usize,
    /// Where it ran, and what that is.
    pub processor: ProcessorId,
    /// See above.
    pub class: Class,
    /// Queries in it.
    pub queries: u32,
    /// What they take by their profile.
    pub profiled: BatchTime,
    /// How long the lane had had nothing to do.
    pub idle: Nanos,
    /// Other lanes that had work.
    pub busy: u32,
    /// From the dispatcher's start to the lane's.
    pub out: Nanos,
    /// At work.
    pub worked: Nanos,
    /// Of a lane that prepares one batch while its device works on another: its thread's time, of it what came before the
    /// launch, and
    pub host: Nanos,
    /// see above,
    pub prepared: Nanos,
    /// its device's. Else zero.
    pub device: Nanos,
    /// From its end until the dispatcher saw it.
    pub back: Nanos,
}

/// What lanes are made to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// One query after another.
    Stream,
    /// One at a time, as they arrive.
    Used,
    /// Batches, one after another.
    Batches,
    /// CPU and GPU lanes at once, one query after another.
    Beside,
}

impl Stage {
    /// Its name, as in files.
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

/// What a machine file was made from.
#[derive(Clone, Debug)]
pub struct MeasuredMachine {
    /// The file.
    pub file: MachineFile,
    /// Every batch.
    pub samples: Vec<MachineSample>,
}

/// Measures the machine that `node` runs on, all of whose queries were profiled on it. `about` goes into the file.
///
/// # Errors
/// If a run fails, or is interrupted before all is measured.
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

/// GPU lanes that are no recorded times.
fn real_gpus(node: &Node) -> usize {
    let lanes = node.machine().processors();
    lanes.filter(|&(lane, processor)| processor.class == Class::GPU && !node.lane_pool().is_recorded(lane)).count()
}

/// 1, 2, 4... and `most` itself.
fn counts_up_to(most: usize) -> Vec<usize> {
    let doubling = std::iter::successors(Some(1), |lanes| Some(lanes * 2)).take_while(|&lanes| lanes < most);
    doubling.chain((most > 0).then_some(most)).collect()
}

/// How many times as many queries a GPU lane answers in batches of so many, one after another, as one by one: by the batches'
/// formula.
fn gain_of(node: &Node, batch: usize) -> f64 {
    if batch == 1 {
        return 1.0;
    }
    let costs = node.workload().costs();
    let load = (0..batch).fold(BatchLoad::default(), |load, i| load.with(costs[i % costs.len()][Class::GPU]));
    let time = node.model().batch_time(Class::GPU, &load);
    load.alone.as_secs() / time.host.max(time.device).as_secs().max(1e-9)
}

/// Drives one stage of a round.
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
