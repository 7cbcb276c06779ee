//! Reading, writing and checking of machine profiles.

use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, PrettyFormatter};

use super::{DispatcherProfile, LaneProfile, MachineProfile, Observed, Ratios};
use crate::base::time::Nanos;
use crate::cost::BatchCost;
use crate::files::{InputError, open_text, write_atomically};

pub(super) const FORMAT: &str = "tandem machine";
pub(super) const VERSION: u64 = 5;
/// The oldest version that is read, and its shortest pause.
const OLDEST: u64 = 4;
const OLDEST_LEAST_PAUSE: Nanos = Nanos(100_000);
const REMEASURE: &str = "measure it: `tandem profile INDEX --queries FILE --machine`";
/// The largest number of lanes of a class.
const MOST_LANES: u32 = 1 << 16;

#[derive(Deserialize)]
struct Head {
    format: Option<String>,
    version: Option<u64>,
}

impl MachineProfile {
    /// Reads a machine profile (`.json`, also `.gz` or `.zst`).
    ///
    /// # Errors
    /// If its format or version differs, or any value is invalid: with line and column, or the value's name.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let mut bytes = Vec::new();
        open_text(path)?.read_to_end(&mut bytes).map_err(|e| InputError::file(path, format!("cannot read: {e}")))?;
        let damaged = |e| InputError::json(path, &e);
        let head: Head = serde_json::from_slice(&bytes).map_err(damaged)?;
        let refused = match (head.format.as_deref(), head.version) {
            (Some(FORMAT), Some(OLDEST..=VERSION)) => None,
            (Some(FORMAT), Some(version)) => {
                Some(format!("machine format {version}, this build reads {OLDEST} to {VERSION}"))
            }
            _ => Some(format!("not a machine profile: no \"format\": \"{FORMAT}\" with a version")),
        };
        if let Some(fault) = refused {
            return Err(InputError::file(path, format!("{fault} ({REMEASURE})")));
        }
        let mut read: Self = serde_json::from_slice(&bytes).map_err(damaged)?;
        read.check().map_err(|fault| InputError::file(path, fault))?;
        if read.version < VERSION {
            read.correct_older();
        }
        Ok(read)
    }

    /// Corrects what older programs measured wrongly. They kept long stalls of threads among the ratios. A stall that was
    /// seen once would come back with every pass over its stretch, however short that is. Their times of batches on a device
    /// are those of overlapping batches, which lengthen each other. A batch apart from others takes about as long as
    /// predicted; the time between two batches stays.
    fn correct_older(&mut self) {
        for one in self.classes.values_mut().flat_map(|lanes| &mut lanes.observed) {
            one.work.stalls_us.retain(|&(_, us)| f64::from(us) < OLDEST_LEAST_PAUSE.as_us());
            let longer = one.device.mean();
            if longer > 1.0 {
                let apart = |permille: u32| (f64::from(permille) / longer).round().max(1.0) as u32;
                one.device.permille.iter_mut().for_each(|permille| *permille = apart(*permille));
                one.spacing = (one.spacing * longer).min(1.0);
            }
        }
    }

    /// Writes the file atomically. Each list of numbers is one line.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_atomically(path, |out| {
            self.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, FlatLists(PrettyFormatter::new())))?;
            out.write_all(b"\n")
        })
    }

    fn check(&self) -> Result<(), String> {
        for (class, lanes) in &self.classes {
            check_lanes(lanes).map_err(|fault| format!("classes.{class}.{fault}"))?;
        }
        if let Some(pauses) = &self.pauses {
            pauses.check().map_err(|fault| format!("pauses.{fault}"))?;
        }
        check_dispatcher(&self.dispatcher).map_err(|fault| format!("dispatcher.{fault}"))
    }
}

/// Objects over several lines, lists on one.
struct FlatLists(PrettyFormatter<'static>);

impl Formatter for FlatLists {
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

fn check_lanes(lanes: &LaneProfile) -> Result<(), String> {
    not_negative("each_us", lanes.each_us)?;
    not_negative("hand_back_us", lanes.hand_back_us)?;
    not_negative("drift", lanes.drift)?;
    ascending("after_idle", "idle_us", lanes.after_idle.iter().map(|point| point.idle_us))?;
    for (i, point) in lanes.after_idle.iter().enumerate() {
        not_negative(&format!("after_idle[{i}].hand_over_us"), point.hand_over_us)?;
        positive(&format!("after_idle[{i}].times"), point.times)?;
    }
    for (class, beside) in &lanes.beside {
        in_range(&format!("beside.{class}.lanes"), beside.lanes, MOST_LANES)?;
        positive(&format!("beside.{class}.work"), beside.work)?;
        positive(&format!("beside.{class}.device"), beside.device)?;
    }
    for (i, one) in lanes.observed.iter().enumerate() {
        check_observed(one).map_err(|fault| format!("observed[{i}].{fault}"))?;
    }
    if let Some(power) = &lanes.power {
        not_negative("power.idle_watts", power.idle_watts)?;
        for (list, unit, points) in [("busy_watts", "watts", &power.busy_watts), ("query_mj", "mj", &power.query_mj)] {
            let list = format!("power.{list}");
            ascending(&list, "queries", points.iter().map(|&(queries, _)| f64::from(queries)))?;
            for (i, &(queries, value)) in points.iter().enumerate() {
                in_range(&format!("{list}[{i}].queries"), queries, BatchCost::MOST_QUERIES)?;
                not_negative(&format!("{list}[{i}].{unit}"), value)?;
            }
        }
    }
    let key = |one: &Observed| (one.queries, one.busy);
    match lanes.observed.windows(2).position(|pair| key(&pair[0]) >= key(&pair[1])) {
        Some(i) => Err(format!("observed[{}]: queries and busy lanes must ascend", i + 1)),
        None => Ok(()),
    }
}

fn check_observed(one: &Observed) -> Result<(), String> {
    in_range("queries", one.queries, BatchCost::MOST_QUERIES)?;
    in_range("busy", one.busy, MOST_LANES)?;
    positive("spacing", one.spacing)?;
    if !(0.0..=1.0).contains(&one.prepared) {
        return Err(format!("prepared is {}, expected 0 to 1", one.prepared));
    }
    if one.work.permille.is_empty() {
        return Err(String::from("work.permille is empty, expected at least one ratio"));
    }
    check_ratios("work", &one.work)?;
    check_ratios("device", &one.device)
}

fn check_ratios(name: &str, ratios: &Ratios) -> Result<(), String> {
    if let Some(i) = ratios.permille.iter().position(|&permille| permille == 0) {
        return Err(format!("{name}.permille[{i}] is 0, expected 1 or more"));
    }
    let mut least = 0;
    for (i, &(at, _)) in ratios.stalls_us.iter().enumerate() {
        if at < least || at as usize >= ratios.permille.len() {
            let most = ratios.permille.len();
            return Err(format!("{name}.stalls_us[{i}] is at {at}, expected {least} or more and below {most}"));
        }
        least = at + 1;
    }
    Ok(())
}

fn check_dispatcher(dispatcher: &DispatcherProfile) -> Result<(), String> {
    not_negative("drift", dispatcher.drift)?;
    ascending("costs", "lanes", dispatcher.costs.iter().map(|point| f64::from(point.lanes)))?;
    for (i, point) in dispatcher.costs.iter().enumerate() {
        let named = point.policies.iter().map(|(name, cost)| (format!("policies.{name}"), cost));
        for (name, cost) in [(String::from("any"), &point.any)].into_iter().chain(named) {
            let place = format!("costs[{i}].{name}");
            not_negative(&format!("{place}.round_ns"), cost.round_ns)?;
            not_negative(&format!("{place}.arrival_ns"), cost.arrival_ns)?;
            not_negative(&format!("{place}.batch_ns"), cost.batch_ns)?;
            not_negative(&format!("{place}.answer_ns"), cost.answer_ns)?;
        }
    }
    Ok(())
}

fn in_range(name: &str, value: u32, most: u32) -> Result<(), String> {
    if (1..=most).contains(&value) { Ok(()) } else { Err(format!("{name} is {value}, expected 1 to {most}")) }
}

fn positive(name: &str, value: f64) -> Result<(), String> {
    if value > 0.0 && value.is_finite() { Ok(()) } else { Err(format!("{name} is {value}, expected above 0")) }
}

fn not_negative(name: &str, value: f64) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{AfterIdle, Beside, DispatcherCosts, Pauses, Power, RoundCost};
    use super::*;
    use crate::base::machine::{Class, Idle};

    fn profile() -> MachineProfile {
        let work = Ratios { permille: vec![1000, 1010, 990], stalls_us: vec![(1, 350)] };
        let single = Observed { queries: 1, busy: 1, prepared: 0.0, spacing: 1.0, work, device: Ratios::default() };
        let device = Ratios { permille: vec![900, 950], stalls_us: Vec::new() };
        let batch = Observed { queries: 64, prepared: 0.5, spacing: 0.75, device, ..single.clone() };
        let cpu = LaneProfile {
            each_us: 0.25,
            hand_back_us: 0.5,
            after_idle: vec![AfterIdle { idle_us: 2.0, hand_over_us: 0.5, times: 1.0 }],
            beside: BTreeMap::from([(Class::GPU, Beside { lanes: 1, work: 1.125, device: 1.0 })]),
            drift: 0.03,
            observed: vec![single, batch],
            power: Some(Power {
                idle_watts: 70.0,
                busy_watts: vec![(16, 250.0), (256, 310.5)],
                query_mj: vec![(8, 1.75)],
            }),
        };
        let any = RoundCost { round_ns: 100.0, arrival_ns: 50.0, batch_ns: 70.0, answer_ns: 30.0 };
        let policies = BTreeMap::from([(String::from("mct"), RoundCost { arrival_ns: 150.0, ..any })]);
        let dispatcher = DispatcherProfile {
            costs: vec![DispatcherCosts { lanes: 1, any, policies }],
            drift: 0.1,
            ..DispatcherProfile::default()
        };
        let provenance = BTreeMap::from([(String::from("machine"), String::from("a machine, 2 cores"))]);
        let pauses = Pauses {
            observed_us: 1000,
            cores: vec![vec![(5, 200)], Vec::new()],
            cores_beside_free: vec![vec![(7, 30)]],
        };
        MachineProfile::new(provenance, Idle::Spin, BTreeMap::from([(Class::CPU, cpu)]), dispatcher, Some(pauses))
    }

    #[test]
    fn a_profile_survives_its_file_and_lists_are_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machine.json");
        profile().write(&path).unwrap();
        assert_eq!(MachineProfile::read(&path).unwrap(), profile());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\"permille\": [1000,1010,990],\n"), "{text}");
        assert!(text.contains("\"stalls_us\": [[1,350]]\n"), "{text}");
        let mut older = MachineProfile { version: OLDEST, pauses: None, ..profile() };
        older.classes.get_mut(&Class::CPU).unwrap().observed[1].device.permille = vec![1500, 2500];
        older.write(&path).unwrap();
        // Older files have ratios of the dispatcher's rounds, which are not played.
        let text = std::fs::read_to_string(&path).unwrap();
        let rounds = "\"drift\": 0.1, \"rounds\": {\"permille\": [1200], \"stalls_us\": [[0,9]]}";
        std::fs::write(&path, text.replace("\"drift\": 0.1", rounds)).unwrap();
        let read = MachineProfile::read(&path).unwrap();
        assert!(read.classes[&Class::CPU].observed.iter().all(|one| one.work.stalls_us.is_empty()));
        assert_eq!(read.dispatcher, profile().dispatcher);
        let batch = &read.classes[&Class::CPU].observed[1];
        assert_eq!((&batch.device.permille[..], batch.spacing), (&[750, 1250][..], 1.0));
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
                ":10:12: unknown field `each`, expected one of `each_us`, `hand_back_us`, `after_idle`, `beside`, `drift`, \
                 `observed`, `power`",
            ),
            ("[1000,1010", "[1000,-1010", ":29:33: invalid value: integer `-1010`, expected u32"),
            ("0.25", "-1", ": classes.cpu.each_us is -1, expected 0 or more"),
            ("1.125", "0", ": classes.cpu.beside.gpu.work is 0, expected above 0"),
            ("1010", "0", ": classes.cpu.observed[0].work.permille[1] is 0, expected 1 or more"),
            (
                "[[1,350]]",
                "[[3,350]]",
                ": classes.cpu.observed[0].work.stalls_us[0] is at 3, expected 0 or more and below 3",
            ),
            ("\"queries\": 64", "\"queries\": 1", ": classes.cpu.observed[1]: queries and busy lanes must ascend"),
            ("0.75", "-0.75", ": classes.cpu.observed[1].spacing is -0.75, expected above 0"),
            ("\"prepared\": 0.5", "\"prepared\": 2", ": classes.cpu.observed[1].prepared is 2, expected 0 to 1"),
            ("310.5", "-1", ": classes.cpu.power.busy_watts[1].watts is -1, expected 0 or more"),
            ("1.75", "-1", ": classes.cpu.power.query_mj[0].mj is -1, expected 0 or more"),
            (
                "[256,",
                "[16,",
                ": classes.cpu.power.busy_watts[1].queries is 16, expected above 16, that of the entry before",
            ),
            ("150.0", "-1", ": dispatcher.costs[0].policies.mct.arrival_ns is -1, expected 0 or more"),
            ("[5,200]", "[5000,200]", ": pauses.cores[0][0] starts at 5000, expected 0 or more and below 1000"),
            ("[5,200]", "[0,1000]", ": pauses.cores[0] pauses for 1000 us, expected less than observed_us"),
            (
                "[7,30]",
                "[1000,30]",
                ": pauses.cores_beside_free[0][0] starts at 1000, expected 0 or more and below 1000",
            ),
            (
                "\"version\": 5",
                "\"version\": 3",
                ": machine format 3, this build reads 4 to 5 (measure it: `tandem profile INDEX --queries FILE --machine`)",
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
