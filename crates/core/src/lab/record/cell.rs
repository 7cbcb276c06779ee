//! Cells: the rows of a record, written and read.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::compare::BASELINE;
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::cost::{MachineProfile, Workload};
use crate::files::{
    CsvReader, Digits, InputError, Provenance, Record, Row, open_bytes, open_text, this_machine, write_atomically,
    write_csv,
};
use crate::lab::{Calibration, Driven, DrivenRun, GpuSource, LabError, Node, Objective, Question};
use crate::query::{ArrivalProcess, Replay};
use crate::sched::PolicyKind;

type Number = Digits<6>;

/// Folders of what several cells share, named by content.
const WORKLOADS: &str = "workloads";
const MACHINES: &str = "machines";
/// The arrival processes that a name and a seed define.
pub const DRAWN: [&str; 3] = ["poisson", "bursty", "uniform"];
/// Where the NVIDIA driver tells its version.
const DRIVER: &str = "/proc/driver/nvidia/version";

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
    pub rehearsal_qps: Number,
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
}

impl Record for Cell {}

/// A cell with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCell {
    /// The folder of the record, and the file in it.
    pub folder: PathBuf,
    /// The file's name.
    pub file: String,
    /// Its line.
    pub line: u64,
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

/// What a record tells of its runs beyond the node and the question.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// The index's name.
    pub index_name: &'a str,
    /// How the terms of a query combine.
    pub mode: &'a str,
    /// Results of each query.
    pub k: usize,
    /// The name of the arrival process, which must be enough to draw arrivals: `poisson`, `bursty` or `uniform`.
    pub arrivals: &'a str,
    /// The machine file of the predictions.
    pub machine_file: Option<&'a Path>,
    /// Whether a constant of the program is fitted to these runs.
    pub is_fitted: bool,
}

/// Adds the decided runs of `driven` to a record, and returns the new files. Files that exist are left as they are.
///
/// # Errors
/// If a file cannot be read or written.
pub fn write_record(
    recording: &Recording<'_>,
    node: &Node,
    question: &Question,
    driven: &[Driven],
    provenance: &Provenance,
) -> Result<Vec<PathBuf>, LabError> {
    let folder = recording.folder;
    let (workload, mut written) = share_workload(&folder.join(WORKLOADS), node.workload())?;
    let machine_file = match recording.machine_file {
        Some(path) => {
            let bytes = fs::read(path).map_err(|e| InputError::file(path, format!("cannot read: {e}")))?;
            let digest = digest(&bytes);
            let shared = folder.join(MACHINES).join(format!("{digest}.json"));
            if !shared.exists() {
                write_atomically(&shared, |out| out.write_all(&bytes))?;
                written.push(shared);
            }
            digest
        }
        None => String::new(),
    };
    let of_node = OfNode { recording, node, question, workload, machine_file };
    let runs = driven.iter().flat_map(|driven| driven.runs.iter().map(move |run| (driven, run)));
    let decided = runs.filter(|(_, run)| !run.verdict.is_undecided());
    let cells: Vec<Cell> = decided.map(|(driven, run)| of_node.cell(driven, run)).collect();
    if cells.is_empty() {
        return Ok(written);
    }
    let date = provenance.get("date").unwrap_or("undated");
    let path = folder.join(format!("{date}-{}.csv", digest(format!("{cells:?}").as_bytes())));
    if !path.exists() {
        write_csv(&path, provenance, cells)?;
        written.push(path);
    }
    Ok(written)
}

/// Writes a workload under its digest, unless it is there, and returns the digest and the new file.
fn share_workload(folder: &Path, workload: &Workload) -> Result<(String, Vec<PathBuf>), LabError> {
    fs::create_dir_all(folder)?;
    let new = folder.join(format!(".new-{}.workload.csv.zst", std::process::id()));
    workload.write(&new)?;
    let digest = digest(&content(&new)?);
    let shared = workload_path(folder, &digest);
    if shared.exists() {
        fs::remove_file(&new)?;
        return Ok((digest, Vec::new()));
    }
    fs::rename(&new, &shared)?;
    Ok((digest, vec![shared]))
}

fn workload_path(folder: &Path, digest: &str) -> PathBuf {
    folder.join(format!("{digest}.workload.csv.zst"))
}

fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

fn content(path: &Path) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let read = open_bytes(path)?.read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|e| InputError::file(path, format!("cannot read: {e}")))
}

struct OfNode<'a> {
    recording: &'a Recording<'a>,
    node: &'a Node,
    question: &'a Question,
    workload: String,
    machine_file: String,
}

impl OfNode<'_> {
    fn cell(&self, driven: &Driven, run: &DrivenRun) -> Cell {
        let Self { recording, node, question, workload, machine_file } = self;
        let (machine, of_workload) = (node.machine(), &node.workload().provenance);
        let gpu_lane = machine.processors().map(|(_, lane)| lane).find(|lane| lane.class.is_gpu());
        let (gpu, driver) = match node.gpu() {
            GpuSource::Real(device) => (device.clone(), gpu_driver()),
            GpuSource::Replay(_) => (String::from("replay"), String::new()),
            GpuSource::Declined | GpuSource::Missing => (String::from("none"), String::new()),
        };
        let prediction = &driven.predicted;
        let Calibration { slowdown, device, host, handoff, decision } = prediction.backlogs;
        let (forecast, measured) = (run.predicted.as_ref(), run.summary.as_ref());
        Cell {
            policy: driven.policy.clone(),
            rate_qps: Digits(run.qps),
            seed: run.seed,
            seconds: Digits(run.seconds),
            queries: run.verdict.planned,
            arrivals: recording.arrivals.to_owned(),
            objective: question.objective.to_string(),
            deadline_ms: Digits(question.deadline.as_ms()),
            index: of_workload.get("index").unwrap_or_default().to_owned(),
            index_name: recording.index_name.to_owned(),
            mode: recording.mode.to_owned(),
            k: recording.k,
            workload: workload.clone(),
            held_out: node.queries().len() - node.predicted_rows().len(),
            machine: this_machine(),
            machine_file: machine_file.clone(),
            cpus: machine.count(Class::CPU),
            gpus: machine.count(Class::GPU),
            gpu_lane_depth: gpu_lane.map_or(1, |lane| lane.depth),
            gpu,
            driver,
            predicted_qps: Digits(prediction.qps()),
            predicted_half_width: Digits(prediction.half_width()),
            predicted_mean_ms: forecast.map(|one| Digits(one.summary.mean_ms)),
            predicted_mean_half_width: forecast.map(|one| Digits(one.mean_half_width)),
            predicted_p50_ms: forecast.map(|one| Digits(one.summary.p50_ms)),
            predicted_p99_ms: forecast.map(|one| Digits(one.summary.p99_ms)),
            predicted_p99_half_width: forecast.map(|one| Digits(one.p99_half_width)),
            predicted_missed_share: forecast
                .map(|one| Digits(one.summary.missed as f64 / one.summary.queries.max(1) as f64)),
            speed_sd: Digits(prediction.speed_sd),
            rehearsal_qps: Digits(prediction.rehearsal_qps),
            rehearsal_mean_ms: run.rehearsed.map(|summary| Digits(summary.mean_ms)),
            rehearsal_p99_ms: run.rehearsed.map(|summary| Digits(summary.p99_ms)),
            linear_qps: prediction.linear_qps.map(Digits),
            cpu_slowdown: Digits(slowdown[Class::CPU]),
            cpu_handoff_us: Digits(handoff[Class::CPU].as_us()),
            gpu_slowdown: Digits(slowdown[Class::GPU]),
            gpu_device_slowdown: Digits(device[Class::GPU]),
            gpu_host_slowdown: Digits(host[Class::GPU]),
            gpu_handoff_us: Digits(handoff[Class::GPU].as_us()),
            decision_us: Digits(decision.as_us()),
            sent: run.verdict.sent,
            late: run.verdict.late,
            late_allowed: run.verdict.allowed,
            held: run.verdict.holds(),
            mean_ms: measured.map(|summary| Digits(summary.mean_ms)),
            p50_ms: measured.map(|summary| Digits(summary.p50_ms)),
            p95_ms: measured.map(|summary| Digits(summary.p95_ms)),
            p99_ms: measured.map(|summary| Digits(summary.p99_ms)),
            p999_ms: measured.map(|summary| Digits(summary.p999_ms)),
            max_ms: measured.map(|summary| Digits(summary.max_ms)),
            missed: run.verdict.missed,
            throughput_qps: measured.map(|summary| Digits(summary.throughput_qps)),
            others_cores: run.load.others.map(Digits),
            steal_cores: run.load.steal.map(Digits),
            loop_before_us: Digits(run.fixed_loop[0].as_us()),
            loop_after_us: Digits(run.fixed_loop[1].as_us()),
            held_qps: driven.held.map(|side| Digits(side.qps)),
            missed_qps: driven.missed.map(|side| Digits(side.qps)),
            fitted: String::from(if recording.is_fitted { "yes" } else { "no" }),
        }
    }
}

/// The version of the NVIDIA driver; empty if the system does not tell it.
fn gpu_driver() -> String {
    let text = fs::read_to_string(DRIVER).unwrap_or_default();
    let version =
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
    version.unwrap_or_default().to_owned()
}

/// All cells of a record, in order of files and lines.
///
/// # Errors
/// If the folder cannot be read, or a cell is damaged: with file, line and column.
pub fn read_record(folder: &Path) -> Result<Vec<RecordedCell>, InputError> {
    let failed = |e: io::Error| InputError::file(folder, format!("cannot read: {e}"));
    let entries = fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "csv") && !path.ends_with(BASELINE));
    paths.sort();
    let mut cells = Vec::new();
    for path in &paths {
        let mut rows = CsvReader::<Cell, _>::new(path, open_text(path)?)?;
        if !rows.has_header() {
            return Err(InputError::file(path, "holds no cells, expected a header and at least one row"));
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        while let Some(row) = rows.next_row()? {
            check(&row)?;
            let (folder, file, line) = (folder.to_owned(), file.clone(), row.line());
            cells.push(RecordedCell { folder, file, line, cell: row.value });
        }
    }
    Ok(cells)
}

/// Refuses a cell that cannot be replayed.
fn check(row: &Row<'_, Cell>) -> Result<(), InputError> {
    let cell = &row.value;
    if PolicyKind::from_name(&cell.policy).is_none() {
        return Err(row.unexpected("policy", "the name of a policy"));
    }
    if let Err(why) = Objective::from_text(&cell.objective) {
        return Err(row.error_at("objective", why));
    }
    if cell.process().is_none() {
        return Err(row.unexpected("arrivals", "poisson, bursty or uniform"));
    }
    if cell.queries == 0 {
        return Err(row.unexpected("queries", "at least 1"));
    }
    if cell.cpus + cell.gpus == 0 || cell.cpus + cell.gpus > 1 << 16 {
        return Err(row.unexpected("cpus", "1 to 65536 processors with the GPUs"));
    }
    let positive = [
        ("rate_qps", Some(cell.rate_qps.0)),
        ("deadline_ms", Some(cell.deadline_ms.0)),
        ("predicted_half_width", Some(cell.predicted_half_width.0)),
        ("predicted_mean_ms", cell.predicted_mean_ms.map(|ms| ms.0)),
        ("predicted_p99_ms", cell.predicted_p99_ms.map(|ms| ms.0)),
        ("mean_ms", cell.mean_ms.map(|ms| ms.0)),
        ("p99_ms", cell.p99_ms.map(|ms| ms.0)),
        ("held_qps", cell.held_qps.map(|qps| qps.0)),
        ("missed_qps", cell.missed_qps.map(|qps| qps.0)),
        ("cpu_slowdown", Some(cell.cpu_slowdown.0)),
        ("gpu_slowdown", Some(cell.gpu_slowdown.0)),
        ("gpu_device_slowdown", Some(cell.gpu_device_slowdown.0)),
        ("gpu_host_slowdown", Some(cell.gpu_host_slowdown.0)),
    ];
    let is_wrong = |value: Option<f64>| value.is_some_and(|value| !(value > 0.0 && value.is_finite()));
    if let Some((column, _)) = positive.into_iter().find(|&(_, value)| is_wrong(value)) {
        return Err(row.unexpected(column, "a number above 0"));
    }
    let not_negative = [
        ("speed_sd", cell.speed_sd.0),
        ("cpu_handoff_us", cell.cpu_handoff_us.0),
        ("gpu_handoff_us", cell.gpu_handoff_us.0),
        ("decision_us", cell.decision_us.0),
    ];
    if let Some((column, _)) = not_negative.into_iter().find(|(_, value)| !(0.0..=1e6).contains(value)) {
        return Err(row.unexpected(column, "a number from 0 to 1000000"));
    }
    if !["yes", "no"].contains(&cell.fitted.as_str()) {
        return Err(row.unexpected("fitted", "yes or no"));
    }
    let is_digest = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    for (column, text) in [("workload", &cell.workload), ("machine_file", &cell.machine_file)] {
        if !is_digest(text) && (column == "workload" || !text.is_empty()) {
            return Err(row.unexpected(column, "a digest of 16 hexadecimal digits"));
        }
    }
    Ok(())
}

impl RecordedCell {
    /// The workload that the cell names.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub(super) fn read_workload(&self) -> Result<Workload, InputError> {
        let path = workload_path(&self.folder.join(WORKLOADS), &self.cell.workload);
        let bytes = content(&path)?;
        check_digest(&path, &bytes, &self.cell.workload)?;
        Workload::parse(&path, bytes.as_slice())
    }

    /// The machine file that the cell names; `None` if backlogs gave the costs.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub(super) fn read_machine_file(&self) -> Result<Option<MachineProfile>, InputError> {
        if self.cell.machine_file.is_empty() {
            return Ok(None);
        }
        let path = self.folder.join(MACHINES).join(format!("{}.json", self.cell.machine_file));
        check_digest(&path, &content(&path)?, &self.cell.machine_file)?;
        MachineProfile::read(&path).map(Some)
    }
}

fn check_digest(path: &Path, bytes: &[u8], expected: &str) -> Result<(), InputError> {
    let found = digest(bytes);
    if found == expected {
        return Ok(());
    }
    Err(InputError::file(path, format!("its content was changed: digest {found}, expected {expected} as in its name")))
}
