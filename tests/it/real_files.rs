//! Query logs and collections of public repositories: each is read as `tests/real_files.tsv` says, or refused with that
//! reason.
//!
//! The list names repository, commit, path and SHA-256 of each file; the files are not in this repository.
//! `tests/real_files.sh DIR` fetches them into `DIR/real`, and `TANDEM_DATA=DIR` lets this test read them.

use std::path::Path;

use tandem::corpus::{Collection, Skipped};
use tandem::query::{LogOptions, read_log};

use crate::skipped::skipped;

const LIST: &str = include_str!("../real_files.tsv");

/// The reading of a file in words, with `FILE` in place of its path.
fn reading(path: &Path, kind: &str) -> String {
    let found = match kind {
        "log" => read_log(path, &LogOptions::default()).map(|log| log.found),
        "collection" => read_collection(path),
        other => panic!("no kind of file: {other}"),
    };
    let words = found.unwrap_or_else(|refusal| format!("refused: {refusal}"));
    words.replace(&path.display().to_string(), "FILE")
}

fn read_collection(path: &Path) -> Result<String, tandem::files::InputError> {
    let mut collection = Collection::open(path, 1)?;
    let found = collection.found().to_owned();
    let (mut documents, mut words, mut skipped) = (0, 0, Skipped::default());
    while let Some(batch) = collection.next_batch()? {
        skipped += batch.for_each(|document| {
            documents += 1;
            words += document.text.split_whitespace().count();
        })?;
    }
    let skipped = if skipped == Skipped::default() { String::new() } else { format!(", skipped: {skipped}") };
    Ok(format!("{found}; {documents} documents, {words} words{skipped}"))
}

#[test]
fn real_files_are_read_as_the_list_says() {
    let rows: Vec<Vec<&str>> =
        LIST.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect()).collect();
    assert!(rows.len() >= 150 && rows.iter().all(|row| row.len() == 6), "{} rows", rows.len());
    let Some(folder) =
        std::env::var_os("TANDEM_DATA").map(|data| Path::new(&data).join("real")).filter(|real| real.is_dir())
    else {
        return skipped(
            "files of public repositories: tests/real_files.sh DIR fetches them, TANDEM_DATA=DIR names them",
        );
    };
    let mut differing = Vec::new();
    for row in &rows {
        let [repository, _, path, _, kind, expected] = row[..] else { unreachable!("all rows have six values") };
        let found = reading(&folder.join(repository).join(path), kind);
        if found != expected {
            differing.push(format!("{repository}\t{path}\t{found}"));
        }
    }
    assert!(
        differing.is_empty(),
        "{} of {} files are read otherwise:\n{}",
        differing.len(),
        rows.len(),
        differing.join("\n")
    );
}
