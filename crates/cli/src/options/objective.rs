//! `--objective`: the condition that a sustained rate meets.

use crate::Failure;
use tandem_core::lab::Objective;

/// The condition that a sustained rate meets.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ObjectiveArguments {
    /// Condition that a sustained rate meets: `p99` (99 % of queries are answered within the deadline), `p99=20` (within
    /// 20 ms), other percentiles likewise, `miss-share=0.001` (at most this share is late), `no-miss` [default: p99]
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
