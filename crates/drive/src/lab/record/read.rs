//! Reading a record: its cells, and what they share.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tandem_model::cost::{MachineProfile, Workload};
use tandem_model::files::{CsvReader, Digits, InputError, Row, open_bytes, open_text};
use tandem_model::sched::PolicyKind;
use tandem_model::study::Objective;
use xxhash_rust::xxh3::xxh3_64;

use super::cell::{Cell, RecordedCell};
use super::compare::BASELINE;
use crate::lab::{Effort, KEPT_SHARE, LiveSearch, Vote};

/// Folders of what several cells share, named by content.
pub(super) const WORKLOADS: &str = "workloads";
pub(super) const MACHINES: &str = "machines";

pub(super) fn workload_path(folder: &Path, digest: &str) -> PathBuf {
    folder.join(format!("{digest}.workload.csv.zst"))
}

pub(super) fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

pub(super) fn content(path: &Path) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let read = open_bytes(path)?.read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|e| InputError::file(path, format!("cannot read: {e}")))
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
        let first = cells.len();
        while let Some(row) = rows.next_row()? {
            check(&row)?;
            let (folder, file, line) = (folder.to_owned(), file.clone(), row.line());
            cells.push(RecordedCell { folder, file, line, drift: 0.0, is_pause_limited: false, cell: row.value });
        }
        judge_again(&mut cells[first..]);
        let loops_us = cells[first..].iter().flat_map(|one| one.cell.loops_us()).filter(|&us| us > 0.0);
        let (least, most) = loops_us.fold((f64::INFINITY, 0.0_f64), |(least, most), us| (least.min(us), most.max(us)));
        let limited = pause_limited(&cells[first..]);
        for one in &mut cells[first..] {
            one.drift = (most / least - 1.0).max(0.0);
            one.is_pause_limited = limited.contains(&one.cell.policy);
        }
    }
    Ok(cells)
}

/// The policies of a file whose lowest missed rate kept its throughput.
fn pause_limited(cells: &[RecordedCell]) -> BTreeSet<String> {
    let mut lowest: BTreeMap<&str, &Cell> = BTreeMap::new();
    for cell in cells.iter().map(|one| &one.cell).filter(|cell| !cell.held) {
        let of_policy = lowest.entry(&cell.policy).or_insert(cell);
        if cell.rate_qps.0 < of_policy.rate_qps.0 {
            *of_policy = cell;
        }
    }
    let kept_up = |cell: &Cell| {
        cell.paused.unwrap_or_else(|| cell.throughput_qps.is_some_and(|qps| qps.0 >= KEPT_SHARE * cell.rate_qps.0))
    };
    lowest.into_iter().filter(|(_, cell)| kept_up(cell)).map(|(policy, _)| policy.to_owned()).collect()
}

/// Judges the runs of a file again. If a verdict changes, so do the sides of the policy's capacity.
fn judge_again(cells: &mut [RecordedCell]) {
    for at in 0..cells.len() {
        let had_held = cells[at].cell.held;
        cells[at].cell.judge_again();
        if cells[at].cell.held == had_held {
            continue;
        }
        let policy = cells[at].cell.policy.clone();
        let mut search = LiveSearch::new(cells[at].cell.predicted_qps.0, Effort::usual());
        let mut of_policy: Vec<&mut Cell> =
            cells.iter_mut().map(|one| &mut one.cell).filter(|cell| cell.policy == policy).collect();
        of_policy.iter_mut().for_each(|cell| cell.judge_again());
        for cell in &of_policy {
            let vote = if cell.held { Vote::Held } else { Vote::Missed };
            search.note(cell.rate_qps.0, vote);
        }
        let (held, missed) = search.sides();
        for cell in of_policy {
            (cell.held_qps, cell.missed_qps) = (held.map(|side| Digits(side.qps)), missed.map(|side| Digits(side.qps)));
        }
    }
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
    if !(1..=1024).contains(&cell.gpu_lane_depth) {
        return Err(row.unexpected("gpu_lane_depth", "1 to 1024"));
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
