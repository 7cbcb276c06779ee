//! `--objective`, `--p99`, `--miss-share`: what a rate must come up to.

use crate::cli::Failure;
use crate::lab::Objective;

/// What a rate must come up to, to be sustained.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct ObjectiveArguments {
    /// What runs must come up to: `p99` (99 of 100 queries within the deadline), `p99=20` (within 20 ms), any other
    /// percentile likewise, `miss-share=0.001` (so many miss the deadline at most), `no-miss` [default: p99]
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["p99", "miss_share"])]
    objective: Option<String>,
    /// Short for --objective p99
    #[arg(long, conflicts_with = "miss_share")]
    p99: bool,
    /// Short for --objective miss-share=X
    #[arg(long, value_name = "X")]
    miss_share: Option<f64>,
}

impl ObjectiveArguments {
    /// The objective, checked.
    pub(in crate::cli) fn checked(&self) -> Result<Objective, Failure> {
        let fault = |option: &str| {
            let option = option.to_owned();
            move |why| Failure::input(format!("{option}: {why}"))
        };
        match (&self.objective, self.miss_share) {
            (Some(text), _) => Objective::from_text(text).map_err(fault("--objective")),
            (None, Some(share)) => Objective::miss_share(share).map_err(fault("--miss-share")),
            (None, None) => Ok(Objective::default()),
        }
    }
}
