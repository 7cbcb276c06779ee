//! A folder with a tiny index, its log and its costs, in which tests run the program.

#![allow(dead_code, reason = "each test needs a part of it")]

use std::path::Path;
use std::process::Command;

use tandem::base::machine::Class;
use tandem::cost::{Measured, Workload};

/// A folder with a tiny index, its query log and its workload, made by the program itself.
pub fn tiny_lab() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let words = ["sea", "ship", "sail", "wind", "storm", "rope", "mast", "crew"];
    let documents: String = (0..400)
        .map(|i| {
            let text: Vec<&str> = (0..8).filter(|w| i % (w + 2) == 0).map(|w| words[w]).collect();
            format!("{{\"id\": \"d{i}\", \"text\": \"deck {}\"}}\n", text.join(" "))
        })
        .collect();
    let queries: String = (0..24).map(|i| format!("q{i}\t{} {}\n", words[i % 8], words[(i / 8 + i + 1) % 8])).collect();
    std::fs::write(dir.path().join("docs.jsonl"), documents).unwrap();
    std::fs::write(dir.path().join("queries.tsv"), queries).unwrap();
    tandem(dir.path(), "index build docs.jsonl -o index --tokenizer ascii", 0);
    tandem(dir.path(), "profile index --queries queries.tsv --mode or --on cpu -o cpu.workload.csv", 0);
    dir
}

pub fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.current_dir(folder).args(arguments.split_whitespace());
    command
}

/// Runs the program to its end, checks its exit code and returns its output.
pub fn tandem(folder: &Path, arguments: &str, code: i32) -> (String, String) {
    let output = command(folder, arguments).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "tandem {arguments}\n{out}\n{err}");
    (out, err)
}

/// The workload of a lab with GPU times of 50 us.
pub fn with_replayed_gpu(path: &Path) -> Workload {
    let mut workload = Workload::read(path).unwrap();
    for row in &mut workload.rows {
        row.measured[Class::GPU] = Some(Measured { median_us: 50.0, spread_us: 0.0, device_us: None });
    }
    workload.write(path).unwrap();
    workload
}
