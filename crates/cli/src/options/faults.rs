//! `--faults`: lanes that fail in the middle of a run.

use std::path::PathBuf;

use crate::Failure;
use crate::settings::Settings;
use tandem_core::base::machine::FaultPlan;
use tandem_core::base::time::Nanos;
use tandem_core::lab::read_faults;

/// Limits of the watchdog: a shorter one mistakes long queries for dead lanes, a longer one never acts.
const WATCHDOG_MS: std::ops::RangeInclusive<f64> = 1.0..=600_000.0;

/// The lanes that fail.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FaultArguments {
    /// Fault plan: a CSV file with the columns `at_ms,processor,fault,lasts_ms`. A fault is `error`, `panic`, `hang`, `stall`
    /// or `memory`; the last two have a duration. Lanes are numbered from 0, CPU workers first
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
}

/// Reads the watchdog's limit, in milliseconds.
pub(crate) fn watchdog_ms(text: &str) -> Result<f64, String> {
    let ms = text.parse().ok().filter(|ms| WATCHDOG_MS.contains(ms));
    ms.ok_or_else(|| format!("expected {} to {}", WATCHDOG_MS.start(), WATCHDOG_MS.end()))
}

impl FaultArguments {
    /// The plan for a machine of `lanes` lanes. Without a file no lane fails.
    pub(crate) fn plan(&self, settings: &Settings, lanes: usize) -> Result<FaultPlan, Failure> {
        let faults = self.faults.as_deref().map(|path| read_faults(path, lanes)).transpose()?;
        Ok(FaultPlan::new(faults.unwrap_or_default(), Nanos::from_ms(settings.watchdog_ms)))
    }
}
