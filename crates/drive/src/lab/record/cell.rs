//! Cells: the rows of a record.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tandem_model::base::machine::{Class, PerClass};
use tandem_model::base::time::Nanos;
use tandem_model::cost::Decisions;
use tandem_model::cost::machine_profile::DispatcherProfile;
use tandem_model::files::{Digits, Record};
use tandem_model::study::{Bound, Criterion, Objective};
use tandem_model::traffic::{ArrivalProcess, Replay};

use crate::lab::Calibration;

type Number = Digits<6>;

/// The arrival processes that a name and a seed define.
pub const DRAWN: [&str; 3] = ["poisson", "bursty", "uniform"];
/// A live run with its prediction. Times end with their unit; shares are between 0 and 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the columns of the file, named as in `live_runs.csv`")]
pub struct Cell {
    // The question.
    pub policy: String,
    pub rate_qps: Number,
    pub seed: u64,
    pub seconds: Number,
    pub queries: usize,
    pub arrivals: String,
    pub objective: String,
    pub deadline_ms: Digits<12>,
    pub index: String,
    pub index_name: String,
    pub mode: String,
    pub k: usize,
    /// The workload's digest, and the number of rows at its end that only live runs use.
    pub workload: String,
    pub held_out: usize,
    // The machine. The digest of the machine file is empty if backlogs gave the costs.
    pub machine: String,
    pub machine_file: String,
    pub cpus: usize,
    pub gpus: usize,
    pub gpu_lane_depth: u32,
    pub gpu: String,
    pub driver: String,
    // The prediction at the time.
    pub predicted_qps: Number,
    pub predicted_half_width: Digits<3>,
    pub predicted_mean_ms: Option<Number>,
    pub predicted_mean_half_width: Option<Digits<3>>,
    pub predicted_p50_ms: Option<Number>,
    pub predicted_p99_ms: Option<Number>,
    pub predicted_p99_half_width: Option<Digits<3>>,
    pub predicted_missed_share: Option<Number>,
    pub speed_sd: Digits<4>,
    pub rehearsal_qps: Option<Number>,
    pub rehearsal_mean_ms: Option<Number>,
    pub rehearsal_p99_ms: Option<Number>,
    pub linear_qps: Option<Number>,
    // The costs of the backlogs, which are those of the prediction without a machine file.
    pub cpu_slowdown: Number,
    pub cpu_handoff_us: Number,
    pub gpu_slowdown: Number,
    pub gpu_device_slowdown: Number,
    pub gpu_host_slowdown: Number,
    pub gpu_handoff_us: Number,
    pub decision_us: Number,
    // The measurement.
    pub sent: usize,
    pub late: usize,
    pub late_allowed: usize,
    pub held: bool,
    pub mean_ms: Option<Number>,
    pub p50_ms: Option<Number>,
    pub p95_ms: Option<Number>,
    pub p99_ms: Option<Number>,
    pub p999_ms: Option<Number>,
    pub max_ms: Option<Number>,
    pub missed: usize,
    pub throughput_qps: Option<Number>,
    pub others_cores: Option<Digits<3>>,
    pub steal_cores: Option<Digits<3>>,
    pub loop_before_us: Number,
    pub loop_after_us: Number,
    /// The policy's highest rate that held and lowest rate that failed, by all its runs.
    pub held_qps: Option<Number>,
    pub missed_qps: Option<Number>,
    /// `yes` if a constant of the program was fitted to it, else `no`.
    pub fitted: String,
    // What the run itself cost; cells of earlier versions lack it.
    /// Whether it missed the objective only because the machine paused.
    pub paused: Option<bool>,
    pub cpu_utilisation: Option<Digits<4>>,
    pub gpu_utilisation: Option<Digits<4>>,
    pub lag_p99_ms: Option<Digits<4>>,
    pub driver_gaps: Option<u32>,
    pub driver_gaps_ms: Option<Digits<4>>,
    pub lane_gaps: Option<u32>,
    pub lane_gaps_ms: Option<Digits<4>>,
    pub lag_max_ms: Option<Digits<4>>,
    pub busy_share: Option<Digits<4>>,
    pub work_ratio_cpu: Option<Digits<4>>,
    pub work_ratio_gpu: Option<Digits<4>>,
    pub work_ratio_cpu_1: Option<Digits<4>>,
    pub work_ratio_cpu_2: Option<Digits<4>>,
    pub work_ratio_cpu_3: Option<Digits<4>>,
    pub work_ratio_gpu_1: Option<Digits<4>>,
    pub work_ratio_gpu_2: Option<Digits<4>>,
    pub work_ratio_gpu_3: Option<Digits<4>>,
    // The dispatcher, as it was measured before the runs.
    pub round_ns: Option<Number>,
    pub arrival_ns: Option<Number>,
    pub batch_ns: Option<Number>,
    pub answer_ns: Option<Number>,
    /// The number of its pair: runs of two policies in turns, on the same arrivals.
    pub pair: Option<u32>,
}

impl Record for Cell {
    const OPTIONAL: &'static [&'static str] = &[
        "paused",
        "cpu_utilisation",
        "gpu_utilisation",
        "lag_p99_ms",
        "driver_gaps",
        "driver_gaps_ms",
        "lane_gaps",
        "lane_gaps_ms",
        "lag_max_ms",
        "busy_share",
        "work_ratio_cpu",
        "work_ratio_gpu",
        "work_ratio_cpu_1",
        "work_ratio_cpu_2",
        "work_ratio_cpu_3",
        "work_ratio_gpu_1",
        "work_ratio_gpu_2",
        "work_ratio_gpu_3",
        "round_ns",
        "arrival_ns",
        "batch_ns",
        "answer_ns",
        "pair",
    ];
}

/// A cell with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCell {
    /// The folder of the record, and the file in it.
    pub folder: PathBuf,
    /// The file's name.
    pub file: String,
    /// Its line.
    pub line: u64,
    /// How much the machine's speed changed during the file's runs: the longest time of the fixed loop over the shortest, minus 1.
    pub drift: f64,
    /// Whether the policy's lowest missed rate was missed because of pauses: its throughput kept up.
    pub is_pause_limited: bool,
    /// The cell.
    pub cell: Cell,
}

impl Cell {
    /// The query costs of the backlogs.
    pub(super) fn backlogs(&self) -> Calibration {
        let us = |us: Number| Nanos::from_us(us.0);
        Calibration {
            slowdown: PerClass::two(self.cpu_slowdown.0, self.gpu_slowdown.0),
            device: PerClass::two(1.0, self.gpu_device_slowdown.0),
            host: PerClass::two(1.0, self.gpu_host_slowdown.0),
            handoff: PerClass::two(us(self.cpu_handoff_us), us(self.gpu_handoff_us)),
            decision: us(self.decision_us),
        }
    }

    /// The query costs of the run itself: those of the backlogs times one factor for each class. Cells of earlier versions do
    /// not know it.
    pub(super) fn own_costs(&self) -> Calibration {
        let mut costs = self.backlogs();
        let ratios = PerClass::two(self.work_ratio_cpu, self.work_ratio_gpu);
        for class in [Class::CPU, Class::GPU] {
            if let Some(ratio) = ratios[class] {
                // The ratio of a class with batches is that of their device.
                let of_device = Some(costs.device[class]).filter(|&ratio| ratio != 1.0);
                let factor = ratio.0 / of_device.unwrap_or(costs.slowest(class));
                for part in [&mut costs.slowdown, &mut costs.device, &mut costs.host] {
                    // A ratio of 1 means that there was no such work.
                    part[class] *= if part[class] == 1.0 { 1.0 } else { factor };
                }
            }
        }
        costs
    }

    /// The dispatcher's costs before the run; `None` in cells of earlier versions.
    pub(super) fn dispatcher(&self) -> Option<DispatcherProfile> {
        let [round, arrival, batch, answer] =
            [self.round_ns?, self.arrival_ns?, self.batch_ns?, self.answer_ns?].map(|ns| Nanos(ns.0 as u64));
        let any = Decisions { round, arrival, batch, answer };
        Some(DispatcherProfile { any, policies: BTreeMap::new() })
    }

    /// Its criterion. `p99` was the default objective, which now also bounds the tail.
    pub(super) fn criterion(&self) -> Criterion {
        let objective = match self.objective.as_str() {
            "p99" => Objective::default(),
            other => Objective::from_text(other).unwrap_or_default(),
        };
        objective.within(Nanos::from_ms(self.deadline_ms.0))
    }

    /// Judges the run again, by its columns: what held must also bound the tail.
    pub(super) fn judge_again(&mut self) {
        let limit_ms = |(bound, limit): (Bound, Nanos)| (bound == Bound::Tail).then(|| limit.as_ms());
        let tail_ms = self.criterion().bounds().find_map(limit_ms).unwrap_or(f64::INFINITY);
        self.held &= self.late <= self.late_allowed && self.p999_ms.is_none_or(|ms| ms.0 <= tail_ms);
    }

    /// The times of the fixed loop before and after the run, in microseconds.
    pub(super) fn loops_us(&self) -> [f64; 2] {
        [self.loop_before_us.0, self.loop_after_us.0]
    }

    /// The measured capacity: the geometric mean of both sides, or one side alone.
    #[must_use]
    pub fn measured_qps(&self) -> Option<f64> {
        let (held, missed) = (self.held_qps.map(|qps| qps.0), self.missed_qps.map(|qps| qps.0));
        Some((held.or(missed)? * missed.or(held)?).sqrt())
    }

    pub(super) fn process(&self) -> Option<ArrivalProcess> {
        let is_drawn = DRAWN.contains(&self.arrivals.as_str());
        ArrivalProcess::named(&self.arrivals, Replay::default()).ok().filter(|_| is_drawn)
    }

    pub(super) fn is_gpu_replayed(&self) -> bool {
        self.gpu == "replay"
    }
}
