//! A fault plan: which lanes fail, when, and how. The same plan is injected into live runs and played by the simulator.
//!
//! ```text
//!   at_ms,processor,fault,lasts_ms
//!   200,1,error,                    the executor of lane 1 reports an error 200 ms into the run, and ever after
//!   200,0,stall,30                  lane 0 does nothing for 30 ms
//! ```
//!
//! | fault | what happens | what a lane with a spare executor does |
//! | --- | --- | --- |
//! | `error` | calls fail: a launch, an address, memory | what it held runs again on the spare, with which it goes on |
//! | `panic` | the executor panics | the same |
//! | `hang` | batches under way never end | the same, once the watchdog has waited for one |
//! | `stall` | the lane's thread does nothing for a while | goes on afterwards |

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

use crate::files::{CsvReader, InputError, Record, open_text, parsed};
use crate::ids::ProcessorId;
use crate::time::Nanos;

/// What goes wrong on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Calls fail.
    Error,
    /// Calls panic.
    Panic,
    /// Batches never end.
    Hang,
    /// Nothing happens for a while.
    Stall,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Error, Self::Panic, Self::Hang, Self::Stall];

    /// Its name, as in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Panic => "panic",
            Self::Hang => "hang",
            Self::Stall => "stall",
        }
    }

    /// The fault of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One fault of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// When, from the run's beginning.
    pub at: Nanos,
    /// On which lane.
    pub processor: ProcessorId,
    /// What.
    pub kind: FaultKind,
    /// How long a stall lasts.
    pub lasts: Nanos,
}

/// How long a batch may be under way on a lane that overlaps them before it counts as hung.
pub const WATCHDOG: Nanos = Nanos(500_000_000);

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    at_ms: f64,
    processor: ProcessorId,
    #[serde(serialize_with = "name", deserialize_with = "kind")]
    fault: FaultKind,
    lasts_ms: Option<f64>,
}

impl Record for Line {
    const OPTIONAL: &'static [&'static str] = &["lasts_ms"];
}

fn name<S: serde::Serializer>(kind: &FaultKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FaultKind, D::Error> {
    parsed(deserializer, "error, panic, hang or stall", FaultKind::from_name)
}

/// Reads a fault plan for a machine of so many lanes.
///
/// # Errors
/// With line and column: what is no fault, a lane that is not there, a stall without its length.
pub fn read_faults(path: &Path, lanes: usize) -> Result<Vec<PlannedFault>, InputError> {
    let mut lines = CsvReader::<Line, _>::new(path, open_text(path)?)?;
    if !lines.has_header() {
        return Err(InputError::file(path, "is empty, expected a fault plan with a header line"));
    }
    let mut faults = Vec::new();
    while let Some(line) = lines.next_row()? {
        let Line { at_ms, processor, fault: kind, lasts_ms } = line.value;
        if !(at_ms >= 0.0 && at_ms.is_finite()) {
            return Err(line.unexpected("at_ms", "0 or more"));
        }
        if processor.index() >= lanes {
            return Err(line.unexpected("processor", &format!("a lane of the machine, 0 to {}", lanes - 1)));
        }
        let lasts_ms = lasts_ms.unwrap_or(0.0);
        if kind == FaultKind::Stall && !(lasts_ms > 0.0 && lasts_ms.is_finite()) {
            return Err(line.unexpected("lasts_ms", "above 0: how long the stall lasts"));
        }
        faults.push(PlannedFault { at: Nanos::from_ms(at_ms), processor, kind, lasts: Nanos::from_ms(lasts_ms) });
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_plan_is_read_and_its_slips_have_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_faults(&path, 2)
        };
        let faults = read("at_ms,processor,fault,lasts_ms\n1.5,1,error,\n2,0,stall,3\n").unwrap();
        let fault = |at, lane, kind, lasts| PlannedFault { at: Nanos(at), processor: ProcessorId(lane), kind, lasts: Nanos(lasts) };
        let expected =
            [fault(1_500_000, 1, FaultKind::Error, 0), fault(2_000_000, 0, FaultKind::Stall, 3_000_000)];
        assert_eq!(faults, expected);
        let refused = |line: &str| read(&format!("at_ms,processor,fault,lasts_ms\n{line}\n")).unwrap_err().to_string();
        assert!(refused("1,2,error,").contains("2:3: `processor` is \"2\", expected a lane of the machine, 0 to 1"));
        assert!(refused("1,1,fire,").contains("2:5: `fault` is \"fire\", expected error, panic, hang or stall"));
        assert!(refused("1,1,stall,").contains("`lasts_ms`"));
        assert!(refused("-1,1,error,").contains("`at_ms`"));
    }
}
