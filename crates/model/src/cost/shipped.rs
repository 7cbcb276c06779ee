//! Workloads and models inside the program, so that every command has data to work on.
//!
//! The command in its provenance lines wrote each file, on the machine named there; see `traces/README.md` and
//! `models/README.md`. To ship another file, put it there and add its line here.

use std::io::Cursor;

use super::{ModelFile, Workload};
use crate::files::InputError;

type Shipped = (&'static str, &'static [u8]);

/// Workloads, packed or not; the first is the default.
static WORKLOADS: &[Shipped] = &[
    (
        "traces/enwiki-tb05-h200.workload.csv.zst",
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/enwiki-tb05-h200.workload.csv.zst")),
    ),
    (
        "traces/synthetic-gov2-h200.workload.csv.zst",
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/synthetic-gov2-h200.workload.csv.zst")),
    ),
    (
        "traces/synthetic-1m-h200.workload.csv.zst",
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/synthetic-1m-h200.workload.csv.zst")),
    ),
];

/// Models fitted to the shipped workloads: the default kind, then trees on list lengths.
static MODELS: &[Shipped] = &[
    (
        "models/enwiki-tb05-h200.json",
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/enwiki-tb05-h200.json")),
    ),
    (
        "models/synthetic-gov2-h200.json",
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/synthetic-gov2-h200.json")),
    ),
    (
        "models/synthetic-1m-h200.json",
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/synthetic-1m-h200.json")),
    ),
    (
        "models/enwiki-tb05-h200-lengths.json",
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/enwiki-tb05-h200-lengths.json")),
    ),
    (
        "models/synthetic-gov2-h200-lengths.json",
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/synthetic-gov2-h200-lengths.json")),
    ),
    (
        "models/synthetic-1m-h200-lengths.json",
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/synthetic-1m-h200-lengths.json")),
    ),
];

/// The default workload of commands, and its name. Fails if this build ships none.
pub fn default_workload() -> Result<(&'static str, Workload), InputError> {
    let Some(&(name, bytes)) = WORKLOADS.first() else {
        return Err(InputError::file(
            "(shipped workload)".as_ref(),
            "this build ships none; measure one with `tandem profile`, then name its file",
        ));
    };
    Ok((name, parse_workload(name, bytes)?))
}

/// The shipped workload of this name, such as `traces/x.workload.csv`. The folder and extensions may be left out. Fails
/// if there is none of this name; the message lists all names.
pub fn workload(name: &str) -> Result<Workload, InputError> {
    let (name, bytes) = find(WORKLOADS, name, "workload")?;
    parse_workload(name, bytes)
}

/// The names of the shipped workloads.
pub fn workload_names() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|&(name, _)| name)
}

/// The shipped model of this name, such as `models/x.json`. The folder and extension may be left out. Fails if there is
/// none of this name; the message lists all names.
pub fn model(name: &str) -> Result<ModelFile, InputError> {
    let (name, bytes) = find(MODELS, name, "model")?;
    ModelFile::parse(name, bytes)
}

/// The names of the shipped models.
pub fn model_names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|&(name, _)| name)
}

fn parse_workload(name: &str, bytes: &[u8]) -> Result<Workload, InputError> {
    if name.ends_with(".zst") {
        let unpacked = zstd::decode_all(bytes).map_err(|e| InputError::file(name.as_ref(), format!("damaged: {e}")))?;
        Workload::parse(name, Cursor::new(unpacked))
    } else {
        Workload::parse(name, bytes)
    }
}

fn find(shipped: &[Shipped], name: &str, what: &str) -> Result<Shipped, InputError> {
    let stem = |full: &'static str| {
        let file = full.rsplit('/').next().unwrap_or(full);
        file.split('.').next().unwrap_or(file)
    };
    shipped.iter().copied().find(|&(full, _)| full == name || stem(full) == name).ok_or_else(|| {
        let names: Vec<&str> = shipped.iter().map(|&(full, _)| full).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        InputError::file(
            name.as_ref(),
            format!("is no file, and no {what} of this name ships (those that do: {known})"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_shipped_reads() {
        for name in workload_names() {
            assert!(!workload(name).unwrap().rows.is_empty());
        }
        for name in model_names() {
            assert!(!model(name).unwrap().models().is_empty());
        }
    }

    #[test]
    fn an_unknown_name_lists_the_shipped_ones() {
        static TWO: &[Shipped] = &[("traces/a.workload.csv", b""), ("traces/b.workload.csv.zst", b"")];
        assert_eq!(find(TWO, "b", "workload").unwrap().0, "traces/b.workload.csv.zst");
        assert_eq!(find(TWO, "traces/a.workload.csv", "workload").unwrap().0, "traces/a.workload.csv");
        let message = find(TWO, "c", "workload").unwrap_err().to_string();
        assert_eq!(
            message,
            "c: is no file, and no workload of this name ships (those that do: traces/a.workload.csv, \
             traces/b.workload.csv.zst)"
        );
    }
}
