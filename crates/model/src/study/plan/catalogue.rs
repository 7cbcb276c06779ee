//! Catalogues of machine types as CSV files:
//!
//! ```text
//! name,cores,gpus,memory_gb,price_per_hour,workers,idle_watts,busy_watts,profile,workload,scale
//! xeon-16,16,0,64,0.81,,,,,,
//! xeon-16-h200,16,1,128,5.4,,,,,,
//! old-8,8,0,32,0.25,6,60,140,,,xeon-16:1.6
//! ```
//!
//! `workers` is the number of CPU workers; by default, [it follows from the cores](crate::study::workers).
//!
//! `workload` names the measurements that represent the type; by default it is the workload of the question. `scale`
//! multiplies all service times. It is a number, or the name of an earlier type and a number; the second form takes
//! over the workload and the profile of that type. Paths are relative to the folder of the catalogue.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{CsvReader, InputError, Record, Row, open_text};

/// A machine type for rent or purchase.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineType {
    /// The name in tables.
    pub name: String,
    /// Number of cores.
    pub cores: usize,
    /// Number of CPU workers; `None` for as many as the cores allow.
    pub workers: Option<usize>,
    /// Number of GPUs.
    pub gpus: usize,
    /// Memory for the index, in gigabytes (10^9 bytes).
    pub memory_gb: f64,
    /// Price per hour, in any one currency.
    pub price_per_hour: f64,
    /// Power when idle, in watts, if known.
    pub idle_watts: Option<f64>,
    /// Power when all processors are busy, in watts, if known.
    pub busy_watts: Option<f64>,
    /// The machine profile, if there is one.
    pub profile: Option<PathBuf>,
    /// The workload that represents the type: a file or a shipped one; `None` for the workload of the question.
    pub workload: Option<String>,
    /// The factor on all service times.
    pub scale: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    name: String,
    cores: usize,
    gpus: usize,
    memory_gb: f64,
    price_per_hour: f64,
    workers: Option<usize>,
    idle_watts: Option<f64>,
    busy_watts: Option<f64>,
    profile: Option<String>,
    workload: Option<String>,
    scale: Option<String>,
}

impl Record for Line {
    const OPTIONAL: &'static [&'static str] = &["workers", "idle_watts", "busy_watts", "profile", "workload", "scale"];
}

/// Most cores or GPUs of a machine type; larger numbers are typing errors.
const MAX_PROCESSORS: usize = 1024;
/// Most memory of a machine type, and for each of its cores, in gigabytes; larger numbers are megabytes or bytes.
const MAX_MEMORY_GB: f64 = 50_000.0;
const MAX_CORE_GB: f64 = 200.0;
/// Least and most power of a busy machine in watts; other numbers are kilowatts or milliwatts.
const BUSY_WATTS: (f64, f64) = (1.0, 1e6);

/// The machine types of a catalogue, in its order.
///
/// # Errors
/// With line and column: a repeated name, too few cores, a price or memory of 0 or less, numbers in other units, one power
/// without the other, a machine profile that is no file, or a scale that is neither a number above 0 nor `TYPE:NUMBER`. A
/// catalogue without types is an error, too.
pub fn read_catalogue(path: &Path) -> Result<Vec<MachineType>, InputError> {
    parse(path, open_text(path)?)
}

/// The machine types of the shipped catalogue, with example prices.
///
/// # Errors
/// If the catalogue of this build is damaged.
pub fn shipped_catalogue() -> Result<Vec<MachineType>, InputError> {
    const TEXT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/machines.csv"));
    parse(Path::new("traces/machines.csv"), TEXT.as_bytes())
}

fn parse(path: &Path, reader: impl BufRead) -> Result<Vec<MachineType>, InputError> {
    let mut lines = CsvReader::<Line, _>::new(path, reader)?;
    let mut types: Vec<MachineType> = Vec::new();
    while let Some(row) = lines.next_row()? {
        let folder = path.parent().unwrap_or(Path::new(""));
        types.push(machine_type(&row, &types, folder)?);
    }
    if types.is_empty() {
        return Err(InputError::file(path, "has no machine type, expected a header and a line for each"));
    }
    Ok(types)
}

/// Refuses powers of which one is missing, and those in other units.
fn check_watts(row: &Row<'_, Line>) -> Result<(), InputError> {
    let (idle, busy) = match (row.value.idle_watts, row.value.busy_watts) {
        (None, None) => return Ok(()),
        (Some(_), None) => return Err(row.unexpected("busy_watts", "a number, as there is one for the idle power")),
        (None, Some(_)) => return Err(row.unexpected("idle_watts", "a number, as there is one for the busy power")),
        (Some(idle), Some(busy)) => (idle, busy),
    };
    let (least, most) = BUSY_WATTS;
    match () {
        () if !(0.0..=most).contains(&idle) => Err(row.unexpected("idle_watts", &format!("0 to {most} (watts)"))),
        () if !(least..=most).contains(&busy) => {
            Err(row.unexpected("busy_watts", &format!("{least} to {most} (watts)")))
        }
        () if busy < idle => Err(row.unexpected("busy_watts", "at least the idle power (watts)")),
        () => Ok(()),
    }
}

fn machine_type(row: &Row<'_, Line>, earlier: &[MachineType], folder: &Path) -> Result<MachineType, InputError> {
    let line = &row.value;
    let above_zero = |column: &str, value: f64, unit: &str| match value > 0.0 && value.is_finite() {
        true => Ok(value),
        false => Err(row.unexpected(column, &format!("a number above 0 ({unit})"))),
    };
    if line.name.trim().is_empty() || line.name.contains(':') {
        return Err(row.unexpected("name", "a name without a colon"));
    }
    if earlier.iter().any(|of| of.name == line.name) {
        return Err(row.unexpected("name", "a name that no earlier line has"));
    }
    if !(1..=MAX_PROCESSORS).contains(&line.cores) {
        return Err(row.unexpected("cores", &format!("1 to {MAX_PROCESSORS} cores")));
    }
    if line.gpus > MAX_PROCESSORS {
        return Err(row.unexpected("gpus", &format!("0 to {MAX_PROCESSORS} GPUs")));
    }
    let least = usize::from(line.gpus == 0);
    if line.workers.is_some_and(|workers| !(least..=line.cores).contains(&workers)) {
        return Err(row.unexpected("workers", &format!("{least} to {} (cores)", line.cores)));
    }
    let most_gb = MAX_MEMORY_GB.min(MAX_CORE_GB * line.cores as f64);
    if line.memory_gb > most_gb {
        return Err(row.unexpected("memory_gb", &format!("at most {most_gb} (gigabytes, {MAX_CORE_GB} per core)")));
    }
    check_watts(row)?;
    let file = |name: &String| folder.join(name);
    if line.profile.as_ref().is_some_and(|name| !file(name).is_file()) {
        return Err(row.unexpected("profile", "the path of a machine profile from the folder of the catalogue"));
    }
    let mut of = MachineType {
        name: line.name.clone(),
        cores: line.cores,
        workers: line.workers,
        gpus: line.gpus,
        memory_gb: above_zero("memory_gb", line.memory_gb, "gigabytes")?,
        price_per_hour: above_zero("price_per_hour", line.price_per_hour, "any one currency")?,
        idle_watts: line.idle_watts,
        busy_watts: line.busy_watts,
        profile: line.profile.as_ref().map(file),
        workload: line.workload.clone().map(|name| match file(&name) {
            path if path.exists() => path.display().to_string(),
            _ => name,
        }),
        scale: 1.0,
    };
    let Some(scale) = &line.scale else { return Ok(of) };
    let expected = || row.unexpected("scale", "a number above 0, or the name of an earlier type, a colon and a number");
    let number = match scale.split_once(':') {
        None => scale.as_str(),
        Some((name, number)) => {
            let other = earlier.iter().find(|other| other.name == name).ok_or_else(expected)?;
            if of.workload.is_some() {
                return Err(row.error_at(
                    "scale",
                    "a type with its own workload takes no scale of another one: give the factor alone",
                ));
            }
            of.workload.clone_from(&other.workload);
            of.profile = of.profile.or_else(|| other.profile.clone());
            of.scale = other.scale;
            number
        }
    };
    let factor = number.trim().parse::<f64>().ok().filter(|factor| *factor > 0.0 && factor.is_finite());
    of.scale *= factor.ok_or_else(expected)?;
    Ok(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "name,cores,gpus,memory_gb,price_per_hour,idle_watts,busy_watts,profile,workload,scale";

    fn read(lines: &[&str]) -> Result<Vec<MachineType>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machines.csv");
        std::fs::write(&path, format!("{HEADER}\n{}\n", lines.join("\n"))).unwrap();
        let place = format!("{}/", dir.path().display());
        read_catalogue(&path).map_err(|e| e.to_string().replace(&place, ""))
    }

    #[test]
    fn a_type_scales_an_earlier_one() {
        let types = read(&["a,16,0,64,0.81,,,,w.csv,2", "b,8,1,32,1.5,60,140,,,a:1.5"]).unwrap();
        assert_eq!((types[1].scale, types[1].workload.as_deref()), (3.0, Some("w.csv")));
        assert_eq!((types[0].workers, types[0].idle_watts, types[1].busy_watts), (None, None, Some(140.0)));
    }

    #[test]
    fn the_catalogue_that_ships_has_machines_with_and_without_a_gpu() {
        let types = shipped_catalogue().unwrap();
        assert!(types.iter().any(|of| of.gpus > 0) && types.iter().any(|of| of.gpus == 0));
    }

    #[test]
    fn faults_are_refused_with_line_and_column() {
        for (line, expected) in [
            ("a,0,0,64,1,,,,,", "machines.csv:2:3: `cores` is \"0\", expected 1 to 1024 cores"),
            ("a,2,0,64,,,,,,", "price_per_hour"),
            ("a,2,0,64,-1,,,,,", "expected a number above 0 (any one currency)"),
            ("a,2,0,0,1,,,,,", "expected a number above 0 (gigabytes)"),
            (
                "a,2,0,65536,1,,,,,",
                "machines.csv:2:7: `memory_gb` is \"65536\", expected at most 400 (gigabytes, 200 per core)",
            ),
            ("a,999,0,65536,1,,,,,", "expected at most 50000 (gigabytes, 200 per core)"),
            ("a,2,0,64,1,0.1,0.3,,,", "`busy_watts` is \"0.3\", expected 1 to 1000000 (watts)"),
            ("a,2,0,64,1,-1,3,,,", "`idle_watts` is \"-1\", expected 0 to 1000000 (watts)"),
            ("a,2,0,64,1,,300,,,", "machines.csv:2:12: `idle_watts` is \"\", expected a number, as there is one"),
            ("a,2,0,64,1,100,,,,", "`busy_watts` is \"\", expected a number, as there is one"),
            (
                "a,2,0,64,1,,,x.json,,",
                "machines.csv:2:14: `profile` is \"x.json\", expected the path of a machine profile",
            ),
            ("a,2,0,64,1,100,50,,,", "expected at least the idle power (watts)"),
            ("a,2,0,64,1,,,,,b:2", "expected a number above 0, or the name of an earlier type"),
            ("a,2,0,64,1,,,,,fast", "expected a number above 0, or the name of an earlier type"),
        ] {
            let found = read(&[line]).unwrap_err();
            assert!(found.contains(expected), "{line}: {found}");
        }
        assert!(read(&["a,2,0,64,1,,,,,", "a,2,0,64,1,,,,,"]).unwrap_err().contains("machines.csv:3:1: `name` is"));
    }
}
