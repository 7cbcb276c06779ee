//! Reading, writing and checking of machine profiles.

use std::io::{self, Read, Write};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::MachineProfile;
use crate::files::{InputError, open_text, write_atomically};

pub(super) const FORMAT: &str = "tandem machine";
pub(super) const VERSION: u64 = 6;
const REMEASURE: &str = "measure it: `tandem profile INDEX --queries FILE --machine`";
/// The most lanes of a class, and queries of a batch.
const MOST: f64 = 65536.0;

#[derive(Deserialize)]
struct Head {
    format: Option<String>,
    version: Option<u64>,
}

impl MachineProfile {
    /// Reads a machine profile (`.json`, also `.gz` or `.zst`).
    ///
    /// # Errors
    /// If its format or version differs, or any value is invalid: with line and column, or the value's place.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let mut bytes = Vec::new();
        open_text(path)?.read_to_end(&mut bytes).map_err(|e| InputError::file(path, format!("cannot read: {e}")))?;
        let damaged = |e| InputError::json(path, &e);
        let head: Head = serde_json::from_slice(&bytes).map_err(damaged)?;
        let refused = match (head.format.as_deref(), head.version) {
            (Some(FORMAT), Some(VERSION)) => None,
            (Some(FORMAT), Some(version)) => Some(format!("machine format {version}, this build reads {VERSION}")),
            _ => Some(format!("not a machine profile: no \"format\": \"{FORMAT}\" with a version")),
        };
        if let Some(fault) = refused {
            return Err(InputError::file(path, format!("{fault} ({REMEASURE})")));
        }
        let read: Self = serde_json::from_slice(&bytes).map_err(damaged)?;
        let checked = serde_json::to_value(&read).map_err(damaged)?;
        check("", "", &checked).and_then(|()| read.check_order()).map_err(|fault| InputError::file(path, fault))?;
        Ok(read)
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_atomically(path, |out| {
            serde_json::to_writer_pretty(&mut *out, self)?;
            out.write_all(b"\n")
        })
    }

    /// Lists that are interpolated ascend.
    fn check_order(&self) -> Result<(), String> {
        let ascending = |list: String, keys: Vec<(f64, f64)>| match keys.windows(2).position(|pair| pair[0] >= pair[1])
        {
            Some(i) => Err(format!("{list}[{}] does not come after the entry before it", i + 1)),
            None => Ok(()),
        };
        for (class, lanes) in &self.classes {
            let keys = lanes.slowdown.iter().map(|one| (one.queries.into(), one.busy.into()));
            ascending(format!("classes.{class}.slowdown"), keys.collect())?;
            let idle = lanes.after_idle.iter().map(|&(idle_us, _)| (idle_us, 0.0));
            ascending(format!("classes.{class}.after_idle"), idle.collect())?;
            for (name, points) in lanes.power.iter().flat_map(|power| power.lists()) {
                let keys = points.iter().map(|&(queries, _)| (queries.into(), 0.0));
                ascending(format!("classes.{class}.power.{name}"), keys.collect())?;
            }
        }
        Ok(())
    }
}

/// Checks all numbers below `place`, by the name of the field that holds them.
fn check(place: &str, field: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            let dot = if place.is_empty() { "" } else { "." };
            check(&format!("{place}{dot}{name}"), name, value)
        }),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(i, item)| check(&format!("{place}[{i}]"), field, item))
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let (is_valid, expected) = match field {
                "queries" | "busy" | "lanes" => ((1.0..=MOST).contains(&number), "1 to 65536"),
                "work" | "device" | "spacing" => (number > 0.0, "above 0"),
                "prepared" => ((0.0..=1.0).contains(&number), "0 to 1"),
                _ => (number >= 0.0, "0 or more"),
            };
            if is_valid { Ok(()) } else { Err(format!("{place} is {number}, expected {expected}")) }
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Beside, DispatcherProfile, LaneProfile, Power, Slowdown, Spread};
    use super::*;
    use crate::base::machine::{Class, Idle};
    use crate::base::time::Nanos;
    use crate::cost::Decisions;

    fn profile() -> MachineProfile {
        let single = Slowdown { work: 1.25, spread: Spread::Deviation(0.125), ..Slowdown::default() };
        let batch = Slowdown {
            queries: 64,
            device: 0.9,
            prepared: 0.5,
            spacing: 0.75,
            spread: Spread::Factors(vec![1.0, 2.0]),
            ..single.clone()
        };
        let cpu = LaneProfile {
            each_us: 0.25,
            hand_over_us: 0.75,
            hand_back_us: 0.5,
            after_idle: vec![(2.0, 1.5)],
            beside: BTreeMap::from([(Class::GPU, Beside { lanes: 1, work: 1.125, device: 1.0 })]),
            slowdown: vec![single, batch],
            power: Some(Power {
                idle_watts: 70.0,
                busy_watts: vec![(16, 250.0), (256, 310.5)],
                query_mj: vec![(8, 1.75)],
            }),
        };
        let any = Decisions { round: Nanos(100), arrival: Nanos(50), batch: Nanos(70), answer: Nanos(30) };
        let policies = BTreeMap::from([(String::from("mct"), Decisions { arrival: Nanos(150), ..any })]);
        let provenance = BTreeMap::from([(String::from("machine"), String::from("a machine, 2 cores"))]);
        let classes = BTreeMap::from([(Class::CPU, cpu)]);
        MachineProfile::new(provenance, Idle::Spin, classes, DispatcherProfile { any, policies })
    }

    #[test]
    fn a_profile_survives_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machine.json");
        profile().write(&path).unwrap();
        assert_eq!(MachineProfile::read(&path).unwrap(), profile());
    }

    #[test]
    fn faults_of_a_file_have_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machine.json");
        profile().write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for (from, to, expected) in [
            ("\"idle\": \"spin\"", "\"idle\": \"doze\"", ":7:16: unknown variant `doze`, expected `spin` or `sleep`"),
            (
                "\"each_us\"",
                "\"each\"",
                ":10:12: unknown field `each`, expected one of `each_us`, `hand_over_us`, `hand_back_us`, `after_idle`, `beside`, \
                 `slowdown`, `power`",
            ),
            ("0.25", "-1", ": classes.cpu.each_us is -1, expected 0 or more"),
            ("1.125", "0", ": classes.cpu.beside.gpu.work is 0, expected above 0"),
            ("1.25", "0", ": classes.cpu.slowdown[0].work is 0, expected above 0"),
            ("0.125", "-0.125", ": classes.cpu.slowdown[0].spread is -0.125, expected 0 or more"),
            ("\"queries\": 64", "\"queries\": 1", ": classes.cpu.slowdown[1] does not come after the entry before it"),
            ("\"queries\": 64", "\"queries\": 0", ": classes.cpu.slowdown[1].queries is 0, expected 1 to 65536"),
            ("\"spacing\": 0.75", "\"spacing\": 0", ": classes.cpu.slowdown[1].spacing is 0, expected above 0"),
            ("\"prepared\": 0.5", "\"prepared\": 2", ": classes.cpu.slowdown[1].prepared is 2, expected 0 to 1"),
            ("310.5", "-1", ": classes.cpu.power.busy_watts[1][1] is -1, expected 0 or more"),
            ("256,", "16,", ": classes.cpu.power.busy_watts[1] does not come after the entry before it"),
            (
                "\"version\": 6",
                "\"version\": 5",
                ": machine format 5, this build reads 6 (measure it: `tandem profile INDEX --queries FILE --machine`)",
            ),
            (
                "tandem machine",
                "tandem model",
                ": not a machine profile: no \"format\": \"tandem machine\" with a version (measure it: `tandem profile INDEX \
                 --queries FILE --machine`)",
            ),
        ] {
            assert!(text.contains(from), "{from}: {text}");
            std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let told = MachineProfile::read(&path).unwrap_err().to_string();
            assert_eq!(told.strip_prefix(path.to_str().unwrap()), Some(expected), "{from}");
        }
    }
}
