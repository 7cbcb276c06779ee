//! The contents of a folder of results. Columns identify files, not names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tandem_engine::index::FILE_NAME;
use tandem_model::cost::{ModelFile, Workload};
use tandem_model::files::InputError;
use tandem_model::sched::RunLog;

use crate::sheet::Sheet;

/// The subject of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A parameter sweep, with one row per point.
    Sweep,
    /// Plans, the best one first.
    Plan,
    /// Runs, with one row per policy, rate and seed.
    Summary,
    /// Capacities by policy.
    Capacity,
    /// Live runs, with what was predicted of them.
    Validation,
    /// Predicted and measured capacities.
    ValidationCapacity,
    /// Costs of queries in each live run.
    ValidationService,
    /// Parts of the node measured alone.
    Bench,
    /// Any other table.
    Other,
}

/// The columns of each kind of file. The first kind that fits is taken.
const COLUMNS: [(Kind, &[&str]); 8] = [
    (Kind::Sweep, &["point", "policy", "capacity_qps", "held"]),
    (Kind::Plan, &["machine", "policy", "machines", "typical_qps", "served_share", "price_per_month"]),
    (Kind::Summary, &["policy", "rate_qps", "mean_ms", "p99_ms"]),
    (Kind::Validation, &["policy", "rate_qps", "predicted_mean_ms", "measured_mean_ms"]),
    (Kind::ValidationCapacity, &["policy", "predicted_qps", "measured_qps"]),
    (Kind::ValidationService, &["policy", "run", "cpu_slowdown"]),
    (Kind::Capacity, &["policy", "max_rate_qps"]),
    (Kind::Bench, &["part", "name", "metric", "value"]),
];
/// Numbers that each row of a kind needs.
const NUMBERS: [(Kind, &[&str]); 4] = [
    (Kind::Summary, &["rate_qps", "mean_ms", "p99_ms"]),
    (Kind::Validation, &["rate_qps"]),
    (Kind::ValidationCapacity, &["predicted_qps"]),
    (Kind::Capacity, &["max_rate_qps"]),
];
/// Columns of a sweep, which a single point has, too.
const POINT_COLUMNS: &[&str] = COLUMNS[0].1;
const LOG_COLUMNS: &[&str] = &["query_id", "arrival_us", "started_us", "finished_us", "processor"];
const WORKLOAD_COLUMNS: &[&str] = &["query_id", "mode", "postings", "results"];

/// A run's log, and its provenance.
#[derive(Clone, Debug)]
pub struct Log {
    /// File name.
    pub name: String,
    /// Policy and rate as text.
    pub title: String,
    /// Events of the run.
    pub log: RunLog,
}

/// A file that the page names but does not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// File name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Reason why the file is not shown, or nothing.
    pub why: String,
}

/// The results in a folder and its subfolders.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    /// Path as the user gave it.
    pub name: String,
    /// Tables, by file name.
    pub sheets: Vec<(Kind, Sheet)>,
    /// Logs of runs, by file name.
    pub logs: Vec<Log>,
    /// Measured queries.
    pub workloads: Vec<(String, Workload)>,
    /// Cost models.
    pub models: Vec<(String, ModelFile)>,
    /// All other files.
    pub listed: Vec<Listed>,
    /// Results that could not be read, with file, line and error.
    pub unread: Vec<String>,
}

/// Reasons why a file is not shown.
enum Refused {
    /// The file can't be read: what is wrong, and where.
    Unread(String),
    /// The file is unsuitable for a page.
    Unsuited(String),
}

/// Size above which files are only named.
const MOST_BYTES: u64 = 48 << 20;
/// Rows above which tables are only named.
const MOST_ROWS: usize = 5_000;
/// Logs above which others are only named. Each policy's logs at middle rates come first.
const MOST_LOGS: usize = 8;

impl Folder {
    /// Reads folders and their subfolders into one [`Folder`] for each that contains files. Logs of runs belong to the folder
    /// above. A file with several names is read once. Foreign, damaged and large files are listed with the reason.
    /// Fails if one of `paths` is no folder, or contains no file.
    pub fn read(paths: &[PathBuf]) -> Result<Vec<Self>, InputError> {
        let (mut seen, mut read) = (BTreeSet::new(), Vec::new());
        for path in paths {
            if !path.is_dir() {
                let hint = if path.exists() { "is a file, expected a folder of results" } else { "does not exist" };
                return Err(InputError::file(path, hint));
            }
            let mut files = Vec::new();
            let is_new = gather(path, &mut seen, &mut files);
            files.sort();
            if files.is_empty() && is_new {
                return Err(InputError::file(path, "contains no results (`tandem simulate -o DIR` makes some)"));
            }
            let mut by_folder: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
            for file in files {
                by_folder.entry(folder_of(&file).to_owned()).or_default().push(file);
            }
            read.extend(by_folder.into_iter().map(|(folder, files)| Self::with_files(&folder, &files)));
        }
        Ok(read)
    }

    /// The folder of these files in `path` or below.
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

    /// The first value of `key` in the files' provenance.
    pub fn note(&self, key: &str) -> Option<&str> {
        let of_sheets = self.sheets.iter().find_map(|(_, sheet)| sheet.provenance.get(key));
        let of_workloads = || self.workloads.iter().find_map(|(_, workload)| workload.provenance.get(key));
        let of_models = || self.models.iter().find_map(|(_, model)| model.provenance.get(key).map(String::as_str));
        of_sheets.or_else(of_workloads).or_else(of_models)
    }

    /// Adds a file of a kind that is shown. Otherwise returns false, or a reason.
    fn take(&mut self, path: &Path, name: &str, bytes: u64, logs: &[PathBuf]) -> Result<bool, Refused> {
        let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
        if bytes > MOST_BYTES && (plain.ends_with(".csv") || plain.ends_with(".json")) {
            return Err(Refused::Unsuited(String::from("too large for a page")));
        }
        // The list names the path, so the error does not.
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
                return Err(Refused::Unsuited(format!("the page shows only {MOST_LOGS} logs")));
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
            return Err(Refused::Unsuited(format!("{} rows are too many for a page", sheet.rows.len())));
        }
        if sheet.has(POINT_COLUMNS) && Path::new(name).parent().is_some_and(|folder| folder.ends_with("points")) {
            let why = String::from("a point of a sweep, whose table has the same row");
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

/// The logs that are shown: one at a middle rate for each policy, simulated and live, then more while there is room.
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
        // The one slightly above the middle goes to the end, from which logs are taken.
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

/// The folder to which a file's results belong: its own, or the folder above for logs and points.
fn folder_of(file: &Path) -> &Path {
    let own = file.parent().unwrap_or(file);
    let is_of_logs = own.file_name().is_some_and(|name| ["log", "logs", "points"].iter().any(|of| name == *of));
    if is_of_logs { own.parent().unwrap_or(own) } else { own }
}

/// Collects all files below a folder, except indexes, hidden files, pages and files `seen` before. Returns false if the folder
/// was seen before.
fn gather(folder: &Path, seen: &mut BTreeSet<PathBuf>, files: &mut Vec<PathBuf>) -> bool {
    if !folder.canonicalize().is_ok_and(|folder| seen.insert(folder)) {
        return false;
    }
    let Ok(entries) = fs::read_dir(folder) else { return true };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    // Links last: a target below the folder is shown under its own name.
    paths.sort_by_key(|path| path.is_symlink());
    for path in paths {
        let is_hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if is_hidden || path.extension().is_some_and(|extension| extension == "html") {
            continue;
        }
        if path.is_dir() && !path.join(FILE_NAME).exists() {
            gather(&path, seen, files);
        } else if path.is_file() && path.canonicalize().is_ok_and(|path| seen.insert(path)) {
            files.push(path);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_columns_and_others_get_a_reason() {
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
        let folders = Folder::read(&[dir.path().to_owned()]).unwrap();
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
        assert!(Folder::read(&[dir.path().to_owned()]).unwrap_err().to_string().contains("contains no results"));
        assert!(Folder::read(&[dir.path().join("x")]).unwrap_err().to_string().contains("does not exist"));
    }
}
