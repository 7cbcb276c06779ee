//! Reading, writing and checking of machine files.

use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{DispatcherFile, LaneFile, MOST_LANES, MachineFile, Quantile};
use crate::files::{InputError, open_text, write_atomically};

pub(super) const FORMAT: &str = "tandem machine";
pub(super) const VERSION: u64 = 3;
const REMEASURE: &str = "measure it: `tandem profile --machine`";

#[derive(Deserialize)]
struct Head {
    format: Option<String>,
    version: Option<u64>,
}

impl MachineFile {
    /// Reads a machine file (`.json`, also `.gz` or `.zst`).
    ///
    /// # Errors
    /// If its format or version differs, or any value is invalid: with line and column, or the value's name.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let mut bytes = Vec::new();
        open_text(path)?.read_to_end(&mut bytes).map_err(|e| InputError::file(path, format!("cannot read: {e}")))?;
        let damaged = |e| InputError::json(path, &e);
        let head: Head = serde_json::from_slice(&bytes).map_err(damaged)?;
        match (head.format.as_deref(), head.version) {
            (Some(FORMAT), Some(VERSION)) => {}
            (Some(FORMAT), Some(version)) => {
                let message = format!("machine format {version}, this build reads {VERSION} ({REMEASURE})");
                return Err(InputError::file(path, message));
            }
            _ => {
                let message = format!("not a machine file: no \"format\": \"{FORMAT}\" with a version ({REMEASURE})");
                return Err(InputError::file(path, message));
            }
        }
        let read: Self = serde_json::from_slice(&bytes).map_err(damaged)?;
        read.check().map_err(|fault| InputError::file(path, fault))?;
        Ok(read)
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_atomically(path, |out| {
            self.serialize(&mut serde_json::Serializer::pretty(&mut *out))?;
            out.write_all(b"\n")
        })
    }

    fn check(&self) -> Result<(), String> {
        for (class, lanes) in &self.classes {
            check_lanes(lanes).map_err(|fault| format!("classes.{class}.{fault}"))?;
        }
        check_dispatcher(&self.dispatcher).map_err(|fault| format!("dispatcher.{fault}"))
    }
}

fn check_lanes(lanes: &LaneFile) -> Result<(), String> {
    positive("stream", lanes.stream)?;
    positive("spacing", lanes.spacing)?;
    positive("memory_ms", lanes.memory_ms)?;
    positive("speed_lasts_ms", lanes.speed_lasts_ms)?;
    not_negative("hand_back_us", lanes.hand_back_us)?;
    positive("batch_host", lanes.batch_host)?;
    positive("batch_device", lanes.batch_device)?;
    not_negative("stalls.per_s", lanes.stalls.per_s)?;
    ascending("after_idle", "idle_us", lanes.after_idle.iter().map(|point| point.idle_us))?;
    for (i, point) in lanes.after_idle.iter().enumerate() {
        not_negative(&format!("after_idle[{i}].hand_over_us"), point.hand_over_us)?;
        positive(&format!("after_idle[{i}].times"), point.times)?;
    }
    ascending("in_use", "share", lanes.in_use.iter().map(|point| point.share))?;
    for (i, point) in lanes.in_use.iter().enumerate() {
        positive(&format!("in_use[{i}].times"), point.times)?;
        not_negative(&format!("in_use[{i}].plus_us"), point.plus_us)?;
    }
    ascending("crowding", "busy", lanes.crowding.iter().map(|point| f64::from(point.busy)))?;
    for (i, point) in lanes.crowding.iter().enumerate() {
        if point.busy > MOST_LANES {
            return Err(format!("crowding[{i}].busy is {}, expected at most {MOST_LANES} lanes", point.busy));
        }
        positive(&format!("crowding[{i}].times"), point.times)?;
    }
    for (class, &times) in &lanes.beside {
        positive(&format!("beside.{class}"), times)?;
    }
    distribution("speeds", &lanes.speeds)?;
    distribution("noise", &lanes.noise)?;
    distribution("stalls.us", &lanes.stalls.us)
}

fn check_dispatcher(dispatcher: &DispatcherFile) -> Result<(), String> {
    ascending("rounds", "lanes", dispatcher.rounds.iter().map(|point| f64::from(point.lanes)))?;
    for (i, point) in dispatcher.rounds.iter().enumerate() {
        let named = point.policies.iter().map(|(name, cost)| (format!("policies.{name}"), cost));
        for (name, cost) in [(String::from("any"), &point.any)].into_iter().chain(named) {
            let place = format!("rounds[{i}].{name}");
            not_negative(&format!("{place}.round_ns"), cost.round_ns)?;
            not_negative(&format!("{place}.arrival_ns"), cost.arrival_ns)?;
            not_negative(&format!("{place}.batch_ns"), cost.batch_ns)?;
            not_negative(&format!("{place}.answer_ns"), cost.answer_ns)?;
        }
    }
    not_negative("stalls.per_s", dispatcher.stalls.per_s)?;
    distribution("stalls.us", &dispatcher.stalls.us)
}

fn positive(name: &str, value: f64) -> Result<(), String> {
    if value > 0.0 && value.is_finite() { Ok(()) } else { Err(format!("{name} is {value}, expected above 0")) }
}

pub(in crate::cost) fn not_negative(name: &str, value: f64) -> Result<(), String> {
    if value >= 0.0 && value.is_finite() { Ok(()) } else { Err(format!("{name} is {value}, expected 0 or more")) }
}

fn ascending(list: &str, name: &str, values: impl Iterator<Item = f64>) -> Result<(), String> {
    let mut before = f64::NEG_INFINITY;
    for (i, value) in values.enumerate() {
        not_negative(&format!("{list}[{i}].{name}"), value)?;
        if value <= before {
            return Err(format!("{list}[{i}].{name} is {value}, expected above {before}, that of the entry before"));
        }
        before = value;
    }
    Ok(())
}

pub(in crate::cost) fn distribution(name: &str, quantiles: &[Quantile]) -> Result<(), String> {
    ascending(name, "share", quantiles.iter().map(|point| point.share))?;
    let mut before = 0.0;
    for (i, point) in quantiles.iter().enumerate() {
        positive(&format!("{name}[{i}].value"), point.value)?;
        if point.share > 1.0 || point.value < before {
            return Err(format!("{name}[{i}]: shares go from 0 to 1, and values never fall"));
        }
        before = point.value;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{AfterIdle, Crowding, DispatcherRounds, InUse, RoundCost, Stalls};
    use super::*;
    use crate::base::machine::{Class, Idle};

    fn file() -> MachineFile {
        let cpu = LaneFile {
            stream: 0.9,
            spacing: 1.0,
            in_use: vec![InUse { share: 1.0, times: 1.0, plus_us: 0.25 }],
            memory_ms: 2.0,
            after_idle: vec![AfterIdle { idle_us: 2.0, hand_over_us: 0.5, times: 1.0 }],
            hand_back_us: 0.25,
            crowding: vec![Crowding { busy: 1, times: 1.0 }],
            beside: BTreeMap::from([(Class::GPU, 1.1)]),
            batch_host: 1.0,
            batch_device: 1.0,
            speeds: Vec::new(),
            speed_lasts_ms: 10.0,
            noise: vec![Quantile { share: 0.5, value: 1.0 }],
            stalls: Stalls { per_s: 10.0, us: vec![Quantile { share: 1.0, value: 5.0 }] },
        };
        let any = RoundCost { round_ns: 100.0, arrival_ns: 50.0, batch_ns: 70.0, answer_ns: 30.0 };
        let policies = BTreeMap::from([(String::from("mct"), RoundCost { arrival_ns: 150.0, ..any })]);
        let stalls = Stalls { per_s: 3.0, us: vec![Quantile { share: 1.0, value: 900.0 }] };
        let dispatcher = DispatcherFile { rounds: vec![DispatcherRounds { lanes: 1, any, policies }], stalls };
        let provenance = BTreeMap::from([(String::from("machine"), String::from("a machine, 2 cores"))]);
        MachineFile::new(provenance, Idle::Spin, BTreeMap::from([(Class::CPU, cpu)]), dispatcher)
    }

    #[test]
    fn a_machine_file_survives_its_file_and_faults_have_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machine.json");
        file().write(&path).unwrap();
        assert_eq!(MachineFile::read(&path).unwrap(), file());
        let text = std::fs::read_to_string(&path).unwrap();
        let fault = |from: &str, to: &str| {
            assert!(text.contains(from), "{text}");
            std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
            MachineFile::read(&path).unwrap_err().to_string()
        };
        assert!(fault("\"idle\": \"spin\"", "\"idle\": \"doze\"").contains("machine.json:7:"));
        assert!(fault("\"stream\": 0.9", "\"stream\": -1").ends_with("classes.cpu.stream is -1, expected above 0"));
        assert!(fault("\"stream\"", "\"strem\"").contains("machine.json:10:"));
        assert!(fault("\"version\": 3", "\"version\": 9").contains("machine format 9, this build reads 3"));
        assert!(fault("\"share\": 0.5", "\"share\": 1.5").contains("classes.cpu.noise[0]: shares"));
        let wrong = "dispatcher.rounds[0].policies.mct.arrival_ns is -1, expected 0 or more";
        assert!(fault("\"arrival_ns\": 150.0", "\"arrival_ns\": -1").ends_with(wrong));
        assert!(
            fault("\"per_s\": 3.0", "\"per_s\": -3").ends_with("dispatcher.stalls.per_s is -3, expected 0 or more")
        );
        assert!(
            fault("\"value\": 900.0", "\"value\": 0").ends_with("dispatcher.stalls.us[0].value is 0, expected above 0")
        );
        assert!(fault("tandem machine", "tandem model").contains("not a machine file"));
        // Older files have no stalls of the dispatcher, and a file without stalls keeps the older form.
        let mut calm = file();
        calm.dispatcher.stalls = Stalls::default();
        calm.write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().matches("stalls").count(), 1);
        assert_eq!(MachineFile::read(&path).unwrap(), calm);
    }
}
