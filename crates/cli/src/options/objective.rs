//! `--objective`: what a rate must come up to.

use crate::Failure;
use tandem_core::lab::Objective;

/// What a rate must come up to, to be sustained.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ObjectiveArguments {
    /// What runs must come up to: `p99` (99 of 100 queries within the deadline), `p99=20` (within 20 ms), any other
    /// percentile likewise, `miss-share=0.001` (so many miss the deadline at most), `no-miss` [default: p99]
    #[arg(long, value_name = "WHAT")]
    objective: Option<String>,
}

impl ObjectiveArguments {
    /// The objective, checked.
    pub(crate) fn checked(&self) -> Result<Objective, Failure> {
        let named = self.objective.as_deref().map_or(Ok(Objective::default()), Objective::from_text);
        named.map_err(|why| Failure::input(format!("--objective: {why}")))
    }
}
