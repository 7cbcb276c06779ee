//! Measuring a machine: what serving queries costs beyond what each takes alone.
//!
//! ```text
//!  profile      every query alone                                     ─┐
//!  stream       1, 2, 4... lanes, never without work      3 rounds     ├─▶ fit ─▶ MachineFile
//!  idle         1 lane, pauses from 1 us to 20 ms         in turns     │
//!  beside       CPU lanes and GPU lanes at once                        │
//!  stalls       every core looks at the clock                          │
//!  dispatcher   every policy over lanes that only let time pass       ─┘
//! ```
//!
//! The lanes are driven by the live driver under a [policy](probe) that does nothing but keep some of them busy, so that
//! what is measured belongs to the machine and not to any policy. Stages take turns in three rounds: a machine whose
//! speed drifts does so for all of them.

mod dispatcher;
mod fit;
mod probe;
mod stalls;

use std::collections::BTreeMap;

use probe::Probe;

use super::{Drive, LabError, Node, Progress};
use crate::cost::machine_file::{LaneFile, Stalls};
use crate::cost::{BatchLoad, MachineFile};
use crate::live;
use crate::machine::{Class, Idle};
use crate::random::Random;
use crate::sim::Arrivals;
use crate::time::Nanos;

/// How often the stages take turns.
const ROUNDS: u64 = 3;
/// How long a stage of a round lasts in which lanes are never without work, and one in which they pause.
const STREAM_S: f64 = 0.12;
const IDLE_S: f64 = 0.6;
/// Offered in a stream, over what its lanes take by their profile.
const OVERLOAD: f64 = 2.0;
/// Pauses go from here to there, their logarithms evenly.
const PAUSES_US: (f64, f64) = (1.0, 20_000.0);
/// Queries of a GPU's batches.
const BATCHES: [usize; 3] = [16, 256, 2048];

/// What was measured of one batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineSample {
    /// The stage that it is of.
    pub stage: Stage,
    /// Lanes that the stage kept busy.
    pub lanes: usize,
    /// What it ran on.
    pub class: Class,
    /// Queries in it.
    pub queries: u32,
    /// What they take by their profile.
    pub alone: Nanos,
    /// How long the lane had had nothing to do.
    pub idle: Nanos,
    /// Other lanes that had work.
    pub busy: u32,
    /// From the dispatcher's start to the lane's.
    pub out: Nanos,
    /// At work.
    pub worked: Nanos,
    /// From its end until the dispatcher saw it.
    pub back: Nanos,
}

/// What lanes are made to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// One query after another.
    Stream,
    /// Pauses between them.
    Idle,
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
            Self::Idle => "idle",
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
        let mut stage = |stage, cpus, gpus, batch| -> Result<(), LabError> {
            samples.extend(drive_stage(node, stage, Probe { cpus, gpus, batch }, round)?);
            Ok(())
        };
        for &lanes in &lanes {
            stage(Stage::Stream, lanes, 0, 1)?;
        }
        if cpus > 0 {
            stage(Stage::Idle, 1, 0, 1)?;
        }
        if gpus > 0 {
            stage(Stage::Stream, 0, gpus, 1)?;
            stage(Stage::Idle, 0, 1, 1)?;
            for batch in BATCHES {
                stage(Stage::Batches, 0, gpus, batch)?;
            }
        }
        if cpus > 0 && gpus > 0 {
            stage(Stage::Beside, cpus, gpus, 1)?;
        }
    }
    progress.doing("the machine: what takes cores away");
    let stalls = stalls::measure(node.machine().len());
    progress.doing("the machine: its dispatcher");
    let dispatcher = dispatcher::measure(cpus.max(1), gpus.min(1), idle)?;
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
    lanes.filter(|&(lane, processor)| processor.class == Class::GPU && !node.fleet().is_recorded(lane)).count()
}

/// 1, 2, 4... and `most` itself.
fn counts_up_to(most: usize) -> Vec<usize> {
    let doubling = std::iter::successors(Some(1), |lanes| Some(lanes * 2)).take_while(|&lanes| lanes < most);
    doubling.chain((most > 0).then_some(most)).collect()
}

/// Drives one stage of a round.
fn drive_stage(node: &mut Node, stage: Stage, probe: Probe, round: u64) -> Result<Vec<MachineSample>, LabError> {
    let costs = node.workload().costs();
    let class = if probe.cpus > 0 { Class::CPU } else { Class::GPU };
    let mean = |class: Class| {
        let alone = costs.iter().map(|cost| cost[class].alone.as_secs()).sum::<f64>();
        alone / costs.len() as f64
    };
    let mut random = Random::new(round, stage as u64 * 1000 + probe.cpus as u64);
    let mut row = || random.below(costs.len() as u32);
    let lanes = probe.cpus + probe.gpus;
    let (unit, rows): (Vec<f64>, Vec<u32>) = match stage {
        Stage::Idle => {
            let mut random = Random::new(round, 99);
            let (low, high) = (PAUSES_US.0.ln(), PAUSES_US.1.ln());
            let mut at = 1e-3;
            let mut plan = Vec::new();
            while at < IDLE_S {
                let row = row();
                plan.push((at, row));
                at += costs[row as usize][class].alone.as_secs() + (low + random.unit() * (high - low)).exp() / 1e6;
            }
            plan.into_iter().unzip()
        }
        _ => {
            let gain = if stage == Stage::Batches { (probe.batch as f64).sqrt() } else { 1.0 };
            let of = |class, lanes: usize| if lanes > 0 { lanes as f64 / mean(class) } else { 0.0 };
            let rate_qps = OVERLOAD * gain * (of(Class::CPU, probe.cpus) + of(Class::GPU, probe.gpus));
            let count = ((rate_qps / OVERLOAD * STREAM_S) as usize).max(20 * lanes * probe.batch);
            (0..count).map(|i| (i as f64 / rate_qps, row())).unzip()
        }
    };
    let arrivals = Arrivals::given(round, unit, rows);
    let outcome = node.drive_well(&probe, Drive { rate_qps: 1.0, arrivals: &arrivals, deadline: Nanos::MAX, abandon_after: None })?;
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
            stage,
            lanes,
            class,
            queries: load.queries,
            alone: model.batch_time(class, &load).total(),
            idle: batch.idle,
            busy: batch.busy,
            out: batch.out,
            worked: batch.worked,
            back: batch.back,
        }
    };
    Ok(outcome.served.iter().map(sample).collect())
}
