//! What a folder of results holds: files are told apart by their columns, not by their names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sheet::Sheet;
use tandem_core::cost::{ModelFile, Workload};
use tandem_core::files::InputError;
use tandem_core::index::FILE_NAME;
use tandem_core::sched::RunLog;

/// What a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A product of parameters: one row a point.
    Sweep,
    /// Runs: one row a policy, rate and seed.
    Summary,
    /// Highest rates within the deadline, by policy.
    Capacity,
    /// Live runs, with what was predicted of them.
    Validation,
    /// Capacities predicted and measured.
    ValidationCapacity,
    /// What queries cost in each live run.
    ValidationService,
    /// Parts of the node measured alone.
    Bench,
    /// Anything else.
    Other,
}

/// The columns that tell each kind; the first that fits is it.
const COLUMNS: [(Kind, &[&str]); 7] = [
    (Kind::Sweep, &["point", "policy", "capacity_qps", "held"]),
    (Kind::Summary, &["policy", "rate_qps", "mean_ms", "p99_ms"]),
    (Kind::Validation, &["policy", "rate_qps", "predicted_mean_ms", "measured_mean_ms"]),
    (Kind::ValidationCapacity, &["policy", "predicted_qps", "measured_qps"]),
    (Kind::ValidationService, &["policy", "run", "cpu_slowdown"]),
    (Kind::Capacity, &["policy", "max_rate_qps"]),
    (Kind::Bench, &["part", "name", "metric", "value"]),
];
/// Numbers without which a row of a kind says nothing.
const NUMBERS: [(Kind, &[&str]); 4] = [
    (Kind::Summary, &["rate_qps", "mean_ms", "p99_ms"]),
    (Kind::Validation, &["rate_qps"]),
    (Kind::ValidationCapacity, &["predicted_qps"]),
    (Kind::Capacity, &["max_rate_qps"]),
];
/// A point of a sweep by itself has the columns of the sweep.
const POINT_COLUMNS: &[&str] = COLUMNS[0].1;
const LOG_COLUMNS: &[&str] = &["query_id", "arrival_us", "started_us", "finished_us", "processor"];
const WORKLOAD_COLUMNS: &[&str] = &["query_id", "mode", "postings", "results"];

/// A run's log, and what its file says of it.
#[derive(Clone, Debug)]
pub struct Log {
    /// The file.
    pub name: String,
    /// Policy and rate, in words.
    pub title: String,
    /// What happened.
    pub log: RunLog,
}

/// A file that the page names and does not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The file.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Why it is only named; empty where that needs no reason.
    pub why: String,
}

/// The results in one folder and those below it.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    /// As it was asked for.
    pub name: String,
    /// Tables, by file name.
    pub sheets: Vec<(Kind, Sheet)>,
    /// Logs of runs, by file name.
    pub logs: Vec<Log>,
    /// Measured queries.
    pub workloads: Vec<(String, Workload)>,
    /// Cost models.
    pub models: Vec<(String, ModelFile)>,
    /// All else.
    pub listed: Vec<Listed>,
    /// Results that could not be read: a file, or a line of one, and what is wrong with it.
    pub unread: Vec<String>,
}

/// Why a file is not shown.
enum Refused {
    /// It can't be read: what is wrong, and where.
    Unread(String),
    /// A page is no place for it.
    Unsuited(String),
}

/// Folders below the one that is asked for are looked into down to this depth.
const DEPTH: usize = 3;
/// Larger files, packed or not, are only named: a page is for people.
const MOST_BYTES: u64 = 48 << 20;
/// Tables of more rows are only named.
const MOST_ROWS: usize = 5_000;
/// More logs are only named: of each policy those at middling rates come first.
const MOST_LOGS: usize = 8;

impl Folder {
    /// Reads what is in a folder and below it, a [`Folder`] for each that holds files, those of runs' logs with the one
    /// above. Files of other programs, damaged or too large ones are listed with the reason.
    ///
    /// # Errors
    /// If `path` is no folder, or holds no file at all.
    pub fn read(path: &Path) -> Result<Vec<Self>, InputError> {
        if !path.is_dir() {
            let hint = if path.exists() { "is a file, expected a folder of results" } else { "is not there" };
            return Err(InputError::file(path, hint));
        }
        let mut files = Vec::new();
        gather(path, DEPTH, &mut files);
        files.sort();
        if files.is_empty() {
            return Err(InputError::file(path, "holds no results (`tandem simulate -o DIR` makes some)"));
        }
        let mut by_folder: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
        for file in files {
            by_folder.entry(folder_of(&file).to_owned()).or_default().push(file);
        }
        Ok(by_folder.into_iter().map(|(folder, files)| Self::with_files(&folder, &files)).collect())
    }

    /// Of these files, in `folder` or below.
    fn with_files(path: &Path, files: &[PathBuf]) -> Self {
        let mut folder = Self { name: path.display().to_string(), ..Self::default() };
        let logs = chosen_logs(files);
        for file in files {
            let name = file.strip_prefix(path).unwrap_or(file).display().to_string();
            let bytes = fs::metadata(file).map_or(0, |metadata| metadata.len());
            match folder.take(file, &name, bytes, &logs) {
                Ok(true) => {}
                Ok(false) => folder.listed.push(Listed { name, bytes, why: String::new() }),
                Err(Refused::Unsuited(why)) => folder.listed.push(Listed { name, bytes, why }),
                Err(Refused::Unread(why)) => {
                    folder.unread.push(why.clone());
                    folder.listed.push(Listed { name, bytes, why });
                }
            }
        }
        folder.unread.extend(folder.sheets.iter().flat_map(|(_, sheet)| sheet.unread.iter().cloned()));
        folder
    }

    /// The tables of a kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Sheet> {
        self.sheets.iter().filter(move |(other, _)| *other == kind).map(|(_, sheet)| sheet)
    }

    /// What the folder's own files say under `key`, whichever says it first.
    #[must_use]
    pub fn note(&self, key: &str) -> Option<&str> {
        let of_sheets = self.sheets.iter().find_map(|(_, sheet)| sheet.provenance.get(key));
        let of_workloads = || self.workloads.iter().find_map(|(_, workload)| workload.provenance.get(key));
        let of_models = || self.models.iter().find_map(|(_, model)| model.provenance.get(key).map(String::as_str));
        of_sheets.or_else(of_workloads).or_else(of_models)
    }

    /// Takes in a file if it is of a kind that is shown; else says why not, where there is a reason.
    fn take(&mut self, path: &Path, name: &str, bytes: u64, logs: &[PathBuf]) -> Result<bool, Refused> {
        let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
        if bytes > MOST_BYTES && (plain.ends_with(".csv") || plain.ends_with(".json")) {
            return Err(Refused::Unsuited(String::from("too large for a page")));
        }
        // An error names the path, which the list does, too.
        let said = |e: InputError| Refused::Unread(InputError { path: PathBuf::from(name), ..e }.to_string());
        if plain.ends_with(".json") {
            let Ok(model) = ModelFile::read(path) else { return Ok(false) };
            self.models.push((name.to_owned(), model));
            return Ok(true);
        }
        if !plain.ends_with(".csv") {
            return Ok(false);
        }
        let columns = Sheet::head_of(path).map_err(said)?.columns;
        let has = |wanted: &[&str]| wanted.iter().all(|&column| columns.iter().any(|name| name == column));
        if has(LOG_COLUMNS) {
            if !logs.contains(&path.to_owned()) {
                return Err(Refused::Unsuited(format!("the page shows {MOST_LOGS} logs")));
            }
            let (log, provenance) = RunLog::read(path).map_err(said)?;
            let rate = provenance.get("rate_qps").and_then(|rate| rate.parse().ok()).map(super::html::number);
            let title = match (provenance.get("policy"), rate, provenance.get("source")) {
                (Some(policy), Some(rate), Some(source)) => format!("{policy} at {rate} q/s, {source}"),
                (Some(policy), Some(rate), None) => format!("{policy} at {rate} q/s"),
                _ => plain.trim_end_matches(".csv").trim_end_matches(".log").to_owned(),
            };
            self.logs.push(Log { name: name.to_owned(), title, log });
            return Ok(true);
        }
        if has(WORKLOAD_COLUMNS) {
            self.workloads.push((name.to_owned(), Workload::read(path).map_err(said)?));
            return Ok(true);
        }
        let mut sheet = Sheet::read(path, name).map_err(said)?;
        if sheet.rows.len() > MOST_ROWS {
            return Err(Refused::Unsuited(format!("{} rows: too long for a page", sheet.rows.len())));
        }
        if sheet.has(POINT_COLUMNS) && Path::new(name).parent().is_some_and(|folder| folder.ends_with("points")) {
            let why = String::from("a point of a sweep: its row is in the sweep's own table");
            return Err(Refused::Unsuited(why));
        }
        let kind = COLUMNS.iter().find(|(_, wanted)| sheet.has(wanted)).map_or(Kind::Other, |(kind, _)| *kind);
        if let Some((_, needed)) = NUMBERS.iter().find(|(of, _)| *of == kind) {
            sheet.look_at_numbers(needed);
        }
        self.sheets.push((kind, sheet));
        Ok(true)
    }
}

/// The logs that are shown: of every policy, simulated and live, one at a middling rate, then more as long as there is
/// room.
fn chosen_logs(files: &[PathBuf]) -> Vec<PathBuf> {
    let mut groups: BTreeMap<(String, String), Vec<(f64, PathBuf)>> = BTreeMap::new();
    for file in files {
        let Ok(head) = Sheet::head_of(file) else { continue };
        if LOG_COLUMNS.iter().all(|&column| head.columns.iter().any(|name| name == column)) {
            let said = |key: &str| head.provenance.get(key).unwrap_or_default().to_owned();
            let rate = said("rate_qps").parse().unwrap_or(0.0);
            groups.entry((said("policy"), said("source"))).or_default().push((rate, file.clone()));
        }
    }
    for logs in groups.values_mut() {
        logs.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The one a little above the middle goes to the end, from where they are taken.
        let middling = logs.remove(logs.len() * 3 / 5);
        logs.push(middling);
    }
    let mut chosen = Vec::new();
    while chosen.len() < MOST_LOGS && groups.values().any(|logs| !logs.is_empty()) {
        chosen.extend(groups.values_mut().filter_map(|logs| logs.pop().map(|(_, path)| path)));
    }
    chosen.truncate(MOST_LOGS);
    chosen
}

/// The folder whose results a file belongs to: its own, or of a log or a point among many the one above.
fn folder_of(file: &Path) -> &Path {
    let own = file.parent().unwrap_or(file);
    let is_of_logs = own.file_name().is_some_and(|name| ["log", "logs", "points"].iter().any(|of| name == *of));
    if is_of_logs { own.parent().unwrap_or(own) } else { own }
}

/// All files below a folder but those of indexes, hidden ones and pages.
fn gather(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let is_hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if is_hidden || path.extension().is_some_and(|extension| extension == "html") {
            continue;
        }
        if path.is_file() {
            files.push(path);
        } else if depth > 0 && path.is_dir() && !path.join(FILE_NAME).exists() {
            gather(&path, depth - 1, files);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_columns_and_the_rest_is_listed_with_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            fs::write(dir.path().join(name), text).unwrap();
        };
        write("a.csv", "source,policy,rate_qps,mean_ms,p99_ms\nlive,x,1,2,3\n");
        write("b.csv", "policy,max_rate_qps\nx,1\n");
        write("logs/c.csv", "one,two\n1,2\n");
        write("other/d.csv", "one,two\n1,2\n");
        write("any.csv", "one,two\n1,2\n");
        write("broken.csv", "one,two\n1\n");
        write("note.txt", "hello");
        write(".hidden.csv", "one\n1\n");
        write(&format!("index/{FILE_NAME}"), "not looked at");
        let folders = Folder::read(dir.path()).unwrap();
        let names: Vec<_> =
            folders.iter().map(|folder| Path::new(&folder.name).strip_prefix(dir.path()).unwrap()).collect();
        assert_eq!(names, [Path::new(""), Path::new("other")]);
        let folder = &folders[0];
        let kinds: Vec<_> = folder.sheets.iter().map(|(kind, sheet)| (*kind, sheet.name.as_str())).collect();
        let (any, log) = ((Kind::Other, "any.csv"), (Kind::Other, "logs/c.csv"));
        assert_eq!(kinds, [(Kind::Summary, "a.csv"), any, (Kind::Capacity, "b.csv"), log]);
        let listed: Vec<_> = folder.listed.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(listed, ["broken.csv", "note.txt"]);
        assert!(folder.listed[0].why.contains("broken.csv:2"), "{:?}", folder.listed);
        assert_eq!(folder.unread, [folder.listed[0].why.clone()]);
    }

    #[test]
    fn a_folder_that_is_not_there_or_empty_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Folder::read(dir.path()).unwrap_err().to_string().contains("holds no results"));
        assert!(Folder::read(&dir.path().join("x")).unwrap_err().to_string().contains("is not there"));
    }
}
