//! `--log`: where the logs of runs go.

use std::path::{Path, PathBuf};

use crate::report::number;

/// The log of a run: `log.csv` if it is the only run, else a file of its own in the folder `log`.
pub(super) fn log_path(out: &Path, is_single: bool, policy: &str, rate_qps: f64, seed: u64) -> PathBuf {
    if is_single {
        return out.join("log.csv");
    }
    let rate = number::text(rate_qps, 9);
    out.join("log").join(format!("{policy}-{rate}qps-seed{seed}.csv"))
}
