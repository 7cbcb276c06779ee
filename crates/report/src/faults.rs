//! Failed lanes, as `faults.csv`.

use std::io;
use std::path::Path;

use tandem_model::base::ids::ProcessorId;
use tandem_model::base::machine::LaneFault;
use tandem_model::files::{Decimals, Digits, Provenance, write_csv};

use crate::row::{Text, row};

row! {
    /// A row of `faults.csv`: a lane that failed in a run, which is given by policy, rate and seed.
    pub struct FaultRow of (run: (&str, f64, u64), fault: &LaneFault) {
        policy: String = run.0.to_owned(),
        rate_qps: Digits<9> = Digits(run.1),
        seed: u64 = run.2,
        at_ms: Decimals<6> = Decimals(fault.at.as_ms()),
        processor: ProcessorId = fault.processor,
        fault: Text = fault.kind.name().into(),
        queries: usize = fault.queries,
        retired: bool = fault.is_retired,
        what: String = fault.what.clone(),
    }
}

/// Writes `faults.csv` atomically.
pub fn write_faults(path: &Path, provenance: &Provenance, rows: &[FaultRow]) -> io::Result<()> {
    write_csv(path, provenance, rows.iter().cloned())
}
