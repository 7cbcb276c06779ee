//! `--faults`, `--watchdog-ms`: lanes that fail in the middle of a run.

use std::path::PathBuf;

use crate::cli::Failure;
use crate::lab::read_faults;
use crate::machine::FaultPlan;
use crate::time::Nanos;

/// A watchdog that waits for less takes the longest queries for dead; for more, nobody waits.
const WATCHDOG_MS: std::ops::RangeInclusive<f64> = 1.0..=600_000.0;

/// What goes wrong.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct FaultArguments {
    /// Let lanes fail as a plan says: lines of `at_ms,processor,fault,lasts_ms`, where a fault is `error`, `panic`, `hang`,
    /// `stall` or `memory`, the last two with how long they last; lanes are numbered from 0, CPU workers first
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) faults: Option<PathBuf>,
    /// How long a lane may be at one batch before a spare CPU takes its place
    #[arg(long, value_name = "MS", default_value_t = FaultPlan::WATCHDOG.as_ms())]
    watchdog_ms: f64,
}

impl FaultArguments {
    /// What the watchdog waits, checked.
    pub(in crate::cli) fn watchdog(&self) -> Result<Nanos, Failure> {
        if !WATCHDOG_MS.contains(&self.watchdog_ms) {
            let (least, most) = (WATCHDOG_MS.start(), WATCHDOG_MS.end());
            return Err(Failure::input(format!("--watchdog-ms is {}, expected {least} to {most}", self.watchdog_ms)));
        }
        Ok(Nanos::from_ms(self.watchdog_ms))
    }

    /// The plan for a machine of so many lanes; without a file nothing goes wrong.
    pub(in crate::cli) fn plan(&self, lanes: usize) -> Result<FaultPlan, Failure> {
        let faults = self.faults.as_deref().map(|path| read_faults(path, lanes)).transpose()?;
        Ok(FaultPlan::new(faults.unwrap_or_default(), self.watchdog()?))
    }
}
