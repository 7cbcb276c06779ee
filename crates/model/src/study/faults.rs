//! Fault plans as CSV files:
//!
//! ```text
//!   at_ms,processor,fault,lasts_ms
//!   200,1,error,                    from 200 ms on, the executor of lane 1 reports errors
//!   200,0,stall,30                  lane 0 does nothing for 30 ms
//! ```
//!
//! [`FaultPlan`](crate::base::machine::FaultPlan) describes each fault and its effect on the lane.

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

use crate::base::ids::ProcessorId;
use crate::base::machine::{FaultKind, PlannedFault};
use crate::base::time::Nanos;
use crate::files::{CsvReader, InputError, Record, open_text, parsed};

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
    parsed(deserializer, "error, panic, hang, stall or memory", FaultKind::from_name)
}

/// The faults of a file for a machine with `lanes` lanes, in order of time.
///
/// # Errors
/// With line and column: an unknown fault, an unknown lane, a passing fault without a duration, or another one with a
/// duration. A file without faults is an error, too.
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
            let lanes = format!("a lane of the machine, 0 to {}", lanes.saturating_sub(1));
            return Err(line.unexpected("processor", &lanes));
        }
        let lasts = match (kind.passes(), lasts_ms) {
            (true, Some(ms)) if ms > 0.0 && ms.is_finite() => Nanos::from_ms(ms),
            (true, Some(_)) => return Err(line.unexpected("lasts_ms", "above 0: how long the fault lasts")),
            (true, None) => return Err(line.error(format!("a {kind} fault without `lasts_ms`: how long it lasts"))),
            (false, Some(_)) => {
                return Err(line.unexpected("lasts_ms", &format!("nothing: after this {kind} the lane is retired")));
            }
            (false, None) => Nanos::ZERO,
        };
        faults.push(PlannedFault { at: Nanos::from_ms(at_ms), processor, kind, lasts });
    }
    if faults.is_empty() {
        return Err(InputError::file(path, "has no fault, expected a line for each"));
    }
    faults.sort_by_key(|fault| fault.at);
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_plan_is_read_in_order_of_time_and_its_slips_have_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_faults(&path, 2)
        };
        let fault = |at, lane, kind, lasts| PlannedFault {
            at: Nanos(at),
            processor: ProcessorId(lane),
            kind,
            lasts: Nanos(lasts),
        };
        let faults = read("at_ms,processor,fault,lasts_ms\n2,0,stall,3\n1.5,1,error,\n").unwrap();
        let expected = [fault(1_500_000, 1, FaultKind::Error, 0), fault(2_000_000, 0, FaultKind::Stall, 3_000_000)];
        assert_eq!(faults, expected);
        assert_eq!(read("at_ms,processor,fault\n0,1,hang\n").unwrap(), [fault(0, 1, FaultKind::Hang, 0)]);
        let refused = |line: &str| read(&format!("at_ms,processor,fault,lasts_ms\n{line}\n")).unwrap_err().to_string();
        for (line, expected) in [
            ("1,2,error,", "2:3: `processor` is \"2\", expected a lane of the machine, 0 to 1"),
            ("1,1,fire,", "2:5: `fault` is \"fire\", expected error, panic, hang, stall or memory"),
            ("1,1,stall,", "2: a stall fault without `lasts_ms`: how long it lasts"),
            ("1,1,memory,0", "2:12: `lasts_ms` is \"0\", expected above 0: how long the fault lasts"),
            ("1,1,error,5", "2:11: `lasts_ms` is \"5\", expected nothing: after this error the lane is retired"),
            ("-1,1,error,", "2:1: `at_ms` is \"-1\", expected 0 or more"),
            ("1,1", "2: 2 values, expected 4"),
            ("", "has no fault, expected a line for each"),
        ] {
            assert!(refused(line).contains(expected), "{line:?}: {}", refused(line));
        }
        assert!(read("").unwrap_err().to_string().contains("is empty"));
        assert!(read("at_ms,lane,fault\n").unwrap_err().to_string().contains("unknown column `lane`"));
    }
}
