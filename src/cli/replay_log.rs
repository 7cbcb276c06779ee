//! `tandem replay-log`: a recorded live run decided again by its policy, and compared.

use std::path::PathBuf;

use serde_json::json;

use super::Failure;
use super::output::result;
use crate::sched::{PolicyFactory, RecordedRun};

/// Options of `replay-log`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folders of recorded runs, as `live --journal` writes them
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut differ = 0;
    let mut rows = Vec::new();
    for folder in &arguments.runs {
        let recorded = RecordedRun::read(folder)?;
        let parity = recorded.replay()?;
        outln!(
            "{}: {}, {} jobs, {} decisions: {} the same",
            folder.display(),
            recorded.policy.name(),
            recorded.jobs.len(),
            parity.batches,
            parity.same
        );
        if let Some(difference) = &parity.difference {
            outln!("  the first that differs: {difference}");
        }
        differ += usize::from(parity.difference.is_some());
        rows.push(json!({
            "run": folder.display().to_string(),
            "policy": recorded.policy.name(),
            "jobs": recorded.jobs.len(),
            "decisions": parity.batches,
            "same": parity.same,
            "difference": parity.difference,
        }));
    }
    result("parity", rows);
    match differ {
        0 => Ok(()),
        1 => Err(Failure::failed("a run was not decided again as it had been")),
        _ => Err(Failure::failed(format!("{differ} runs were not decided again as they had been"))),
    }
}
