//! Every file operation of a command fails once: nothing is lost or half-written, and the exit code says what happened.
//!
//! The program of the development profile counts its file operations and makes one of them fail (`files/disk.rs`).
//! `TANDEM_DISK=all` adds the commands that take seconds each time, `profile` and `capacity`.
#![cfg(all(unix, debug_assertions))]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use rayon::prelude::*;

mod skipped;
mod tiny_lab;

use self::skipped::skipped;
use self::tiny_lab::{tandem, tiny_lab};

/// The faults of an operation of this name.
fn faults(operation: &str) -> &'static [&'static str] {
    match operation {
        "read" => &["short", "interrupted", "broken"],
        "write" => &["full", "short", "interrupted", "broken", "kill-before", "kill-after"],
        "sync" | "rename" => &["broken", "full", "kill-before", "kill-after"],
        "create" | "mkdir" | "remove" => &["broken", "kill-after", "full"],
        _ => &["broken"],
    }
}

/// A command with its inputs in a folder.
struct Case {
    folder: tempfile::TempDir,
    arguments: &'static str,
    /// The file or folder that it writes.
    output: &'static str,
    /// Whether every operation has all of its faults, not only one.
    all_faults: bool,
}

/// All files below a folder by relative path. Comment lines, which name times and commands, are left out of CSV files,
/// and times of service, which differ from run to run, are left out everywhere.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(of) = folders.pop() {
        for entry in fs::read_dir(of).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            let is_csv = name.ends_with(".csv") && !name.starts_with("queries");
            let lines = bytes.split_inclusive(|&byte| byte == b'\n');
            let rows: Vec<&[u8]> = lines.filter(|line| !is_csv || !line.starts_with(b"#")).collect();
            found.insert(name, rows.concat());
        }
    }
    found
}

/// The different numbers of columns of a CSV file's rows, and whether the last line is whole.
fn columns(bytes: &[u8]) -> (Vec<usize>, bool) {
    let text = String::from_utf8_lossy(bytes);
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let mut columns: Vec<usize> = rows.map(|row| row.split(',').count()).collect();
    columns.sort_unstable();
    columns.dedup();
    (columns, bytes.ends_with(b"\n"))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let new = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &new);
        } else {
            fs::copy(&path, &new).unwrap();
        }
    }
}

impl Case {
    fn run(&self, folder: &Path, fault: &str, log: &Path) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
        command.current_dir(folder).args(self.arguments.split_whitespace()).env("TANDEM_DISK_LOG", log);
        if !fault.is_empty() {
            command.env("TANDEM_DISK_FAULT", fault);
        }
        command.output().unwrap()
    }

    /// The operations of a run without faults, and the files after it.
    fn whole(&self) -> (Vec<String>, BTreeMap<String, Vec<u8>>) {
        let (dir, log) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
        copy(self.folder.path(), dir.path());
        let output = self.run(dir.path(), "", log.path());
        assert!(self.is_done(&output), "{}: {}", self.arguments, String::from_utf8_lossy(&output.stderr));
        let operations = fs::read_to_string(log.path()).unwrap();
        let names = operations.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        (names, files(dir.path()))
    }

    /// Lets every operation fail, and returns the number of operations and of runs.
    fn visit(&self) -> (usize, usize) {
        let (operations, whole) = self.whole();
        let mut numbers = BTreeMap::<&str, usize>::new();
        let mut points: Vec<(usize, &str, &str)> = Vec::new();
        for (at, name) in operations.iter().enumerate() {
            let number = numbers.entry(name).or_default();
            *number += 1;
            let all = faults(name);
            let chosen = if self.all_faults { all } else { std::slice::from_ref(&all[at % all.len()]) };
            points.extend(chosen.iter().map(|fault| (*number, name.as_str(), *fault)));
        }
        points.par_iter().for_each(|&(number, name, fault)| self.fail(number, name, fault, &whole));
        (operations.len(), points.len())
    }

    fn fail(&self, number: usize, name: &str, fault: &str, whole: &BTreeMap<String, Vec<u8>>) {
        let before = files(self.folder.path());
        let (dir, log) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
        copy(self.folder.path(), dir.path());
        let output = self.run(dir.path(), &format!("{name}:{number}:{fault}"), log.path());
        let said = String::from_utf8_lossy(&output.stderr);
        let case = format!("{}: {name} {number}, {fault}: {:?}: {said}", self.arguments, output.status);
        let logged = fs::read_to_string(log.path()).unwrap();
        let visits = logged.lines().filter(|line| line.split(' ').next() == Some(name)).count();
        assert!(visits >= number, "not visited: {case}");

        let is_killed = fault.starts_with("kill");
        assert_eq!(output.status.signal().is_some(), is_killed, "{case}");
        let after = files(dir.path());
        match output.status.code() {
            None => {}
            Some(_) if self.is_done(&output) => return self.check_equal(&after, whole, &case),
            Some(code) => {
                assert!(!matches!(fault, "short" | "interrupted"), "not tried again: {case}");
                let is_input = matches!(name, "read" | "open" | "stat" | "list" | "clone");
                assert!(code == 1 || code == 2 && (is_input || name == "create"), "{case}");
                assert!(said.contains("error: ") && !said.contains("panicked"), "{case}");
                let is_left = |file: &&String| file.ends_with(".part") && name != "remove";
                assert_eq!(after.keys().find(is_left), None, "{case}");
            }
        }
        // Inputs are as before; each output is old, absent or new, but never a part.
        for (file, old) in &before {
            let new = after.get(file);
            let is_output = file.starts_with(self.output);
            let is_whole = new == Some(old) || is_output && new.is_some() && self.is_whole(file, new, whole);
            assert!(is_whole, "{file} is lost or half-written: {case}");
        }
        for file in after
            .keys()
            .filter(|file| !before.contains_key(*file) && !file.contains("/.tandem-") && !file.starts_with(".tandem-"))
        {
            assert!(self.is_whole(file, after.get(file), whole), "{file} is half-written: {case}");
        }
        // The same command then succeeds, and nothing of the failed one remains.
        let again = self.run(dir.path(), "", log.path());
        assert!(self.is_done(&again), "again: {}; {case}", String::from_utf8_lossy(&again.stderr));
        self.check_equal(&files(dir.path()), whole, &case);
    }

    fn is_whole(&self, file: &str, new: Option<&Vec<u8>>, whole: &BTreeMap<String, Vec<u8>>) -> bool {
        match (new, whole.get(file)) {
            // Measured times and live runs differ from run to run, but not the columns. Only an answer has capacities.
            (Some(new), None) if self.is_measured() && file.ends_with("capacity.csv") => new.ends_with(b"\n"),
            (Some(new), Some(whole)) if self.is_measured() => columns(new) == columns(whole) || !file.ends_with(".csv"),
            (new, whole) => new == whole,
        }
    }

    /// Whether a run did all that was asked. A capacity that a busy machine does not answer, exit code 3, is one.
    fn is_done(&self, output: &Output) -> bool {
        output.status.success() || self.arguments.starts_with("capacity") && output.status.code() == Some(3)
    }

    fn is_measured(&self) -> bool {
        ["profile", "capacity"].iter().any(|name| self.arguments.starts_with(name))
    }

    fn check_equal(&self, after: &BTreeMap<String, Vec<u8>>, whole: &BTreeMap<String, Vec<u8>>, case: &str) {
        // A check that a killed process left takes no other's place and is empty.
        // Without an answer there is no file of capacities.
        let kept = |name: &&String| {
            let is_optional = self.is_measured() && name.ends_with("capacity.csv");
            !is_optional && !name.contains(".tandem-check-")
        };
        assert!(
            after.keys().filter(kept).eq(whole.keys().filter(kept)),
            "{:?}, expected {:?}: {case}",
            after.keys(),
            whole.keys()
        );
        for (file, new) in after.iter().filter(|(name, _)| kept(name)) {
            assert!(self.is_whole(file, Some(new), whole), "{file} differs: {case}");
        }
    }
}

/// A folder with an older index in `ix`, which a build replaces.
fn texts(documents: usize, words: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("old.jsonl"), "{\"id\": 1, \"text\": \"old\"}\n").unwrap();
    tandem(folder.path(), "index build old.jsonl -o ix", 0);
    let word = |document: usize, at: usize| format!("w{}", (document * 31 + at * 7919) % (document % 977 + 5));
    let text = |document| (0..words).map(|at| word(document, at)).collect::<Vec<_>>().join(" ");
    let line = |document| format!("{{\"id\": \"d{document}\", \"text\": \"{}\"}}\n", text(document));
    fs::write(folder.path().join("docs.jsonl"), (0..documents).map(line).collect::<String>()).unwrap();
    folder
}

#[test]
fn every_operation_of_a_build_may_fail() {
    let arguments = "index build docs.jsonl -o ix --force --tokenizer ascii --cpus 1";
    let case = Case { folder: texts(60, 8), arguments, output: "ix", all_faults: true };
    let (operations, runs) = case.visit();
    println!("{operations} operations, {runs} runs");
    assert!(operations >= 40 && runs > 2 * operations, "{operations} operations, {runs} runs");
}

#[test]
fn every_operation_of_a_build_with_runs_on_disk_may_fail() {
    let arguments = "index build docs.jsonl -o ix --force --tokenizer ascii --cpus 1 --memory 1MiB";
    let case = Case { folder: texts(3000, 30), arguments, output: "ix", all_faults: false };
    let (operations, runs) = case.visit();
    println!("{operations} operations, {runs} runs");
    assert!(operations > 60 && runs == operations, "{operations} operations, {runs} runs");
}

#[test]
fn every_operation_of_a_sweep_may_fail() {
    let folder = tiny_lab();
    let arguments = "sweep --workload cpu.workload.csv --policy cpu-only --estimates oracle --cpus 1,2 --seeds 1 \
         --rate 1000 --num-queries 500 -o out";
    let (operations, runs) = Case { folder, arguments, output: "out", all_faults: true }.visit();
    println!("{operations} operations, {runs} runs");
    assert!(operations >= 40 && runs > operations, "{operations} operations, {runs} runs");
}

#[test]
fn every_operation_of_measurements_may_fail() {
    if std::env::var_os("TANDEM_DISK").is_none_or(|which| which != "all") {
        return skipped("file operations of profile and capacity: TANDEM_DISK=all lets them fail, which takes minutes");
    }
    for (arguments, output) in [
        ("profile index --queries queries.tsv --mode or --on cpu --repeats 1 -o out.csv", "out.csv"),
        (
            "capacity index --queries queries.tsv --workload cpu.workload.csv --policy cpu-only --gpu none --seeds 1 \
             --deadline-ms 10 --live-seconds 0.1 -o out",
            "out",
        ),
    ] {
        let case = Case { folder: tiny_lab(), arguments, output, all_faults: false };
        let (operations, runs) = case.visit();
        println!("{arguments}: {operations} operations, {runs} runs");
        assert!(operations >= 20 && runs == operations, "{operations} operations, {runs} runs");
    }
}
