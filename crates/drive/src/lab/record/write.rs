//! Adding live runs to a record.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tandem_model::base::machine::Class;
use tandem_model::base::time::Nanos;
use tandem_model::cost::Workload;
use tandem_model::files::{Digits, InputError, Provenance, this_machine, write_atomically, write_csv};

use super::cell::Cell;
use super::read::{MACHINES, WORKLOADS, content, digest, workload_path};
use crate::lab::{Calibration, Driven, DrivenRun, GpuSource, LabError, Node, Question};
use crate::live::GapOf;

/// The file with the version of the NVIDIA driver.
const DRIVER: &str = "/proc/driver/nvidia/version";

/// Facts of a record's runs beyond the node and the question.
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
        let dispatcher = node.model().decisions(&driven.policy);
        let ns = |time: Nanos| Some(Digits(time.0 as f64));
        let [driver_gaps, lane_gaps] = [GapOf::Driver, GapOf::Lanes].map(|of| run.course.gaps(of));
        let work = |class, thirds| run.course.work_ratio(class, thirds).map(Digits);
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
            rehearsal_qps: prediction.rehearsal_qps.map(Digits),
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
            paused: Some(run.is_paused),
            cpu_utilisation: measured.and_then(|summary| summary.utilisation[Class::CPU]).map(Digits),
            gpu_utilisation: measured.and_then(|summary| summary.utilisation[Class::GPU]).map(Digits),
            lag_p99_ms: Some(Digits(run.lag_p99.as_ms())),
            driver_gaps: Some(driver_gaps.count),
            driver_gaps_ms: Some(Digits(driver_gaps.time.as_ms())),
            lane_gaps: Some(lane_gaps.count),
            lane_gaps_ms: Some(Digits(lane_gaps.time.as_ms())),
            lag_max_ms: Some(Digits(run.course.lag_max().as_ms())),
            busy_share: run.course.busy_share().map(Digits),
            work_ratio_cpu: work(Class::CPU, 0..3),
            work_ratio_gpu: work(Class::GPU, 0..3),
            work_ratio_cpu_1: work(Class::CPU, 0..1),
            work_ratio_cpu_2: work(Class::CPU, 1..2),
            work_ratio_cpu_3: work(Class::CPU, 2..3),
            work_ratio_gpu_1: work(Class::GPU, 0..1),
            work_ratio_gpu_2: work(Class::GPU, 1..2),
            work_ratio_gpu_3: work(Class::GPU, 2..3),
            round_ns: ns(dispatcher.round),
            arrival_ns: ns(dispatcher.arrival),
            batch_ns: ns(dispatcher.batch),
            answer_ns: ns(dispatcher.answer),
            pair: run.pair,
        }
    }
}

/// The version of the NVIDIA driver; empty if the system does not report it.
fn gpu_driver() -> String {
    let text = fs::read_to_string(DRIVER).unwrap_or_default();
    let version =
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
    version.unwrap_or_default().to_owned()
}
