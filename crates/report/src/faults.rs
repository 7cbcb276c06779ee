//! Lanes that have failed, as `faults.csv`.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use tandem_core::base::ids::ProcessorId;
use tandem_core::base::machine::LaneFault;
use tandem_core::files::{Decimals, Digits, Provenance, Record, write_csv};

/// A line of `faults.csv`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FaultRow {
    policy: String,
    rate_qps: Digits<9>,
    seed: u64,
    at_ms: Decimals<6>,
    processor: ProcessorId,
    fault: String,
    queries: usize,
    retired: bool,
    what: String,
}

impl FaultRow {
    /// Of a lane that failed in a run of a policy at a rate, with arrivals of a seed.
    #[must_use]
    pub fn of((policy, rate_qps, seed): (&str, f64, u64), fault: &LaneFault) -> Self {
        Self {
            policy: policy.to_owned(),
            rate_qps: Digits(rate_qps),
            seed,
            at_ms: Decimals(fault.at.as_ms()),
            processor: fault.processor,
            fault: fault.kind.name().to_owned(),
            queries: fault.queries,
            retired: fault.is_retired,
            what: fault.what.clone(),
        }
    }
}

impl Record for FaultRow {}

/// Writes `faults.csv`, whole or not at all.
///
/// # Errors
/// Those of the file system.
pub fn write_faults(path: &Path, provenance: &Provenance, rows: &[FaultRow]) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().cloned())
}
