//! `--deadline-ms`: when an answer is late.

use crate::Failure;
use tandem_core::base::time::Nanos;

/// Half of the tenth of a second within which an answer feels immediate (Miller, "Response time in man-computer
/// conversational transactions", 1968): a search node answers one part of what a person waits for, and the other half
/// is for the network, for merging the nodes' answers and for drawing the page.
pub(crate) const DEFAULT_MS: f64 = 50.0;
/// A deadline of a day.
const MAX_MS: f64 = 86_400_000.0;

/// The deadline.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct DeadlineArgument {
    /// Time from a query's arrival to its deadline, in milliseconds
    #[arg(long = "deadline-ms", value_name = "MS", default_value_t = DEFAULT_MS)]
    pub(crate) ms: f64,
}

impl Default for DeadlineArgument {
    fn default() -> Self {
        Self { ms: DEFAULT_MS }
    }
}

impl DeadlineArgument {
    /// The deadline, checked.
    pub(crate) fn checked(self) -> Result<Nanos, Failure> {
        let deadline = Nanos::from_ms(self.ms);
        // Below a nanosecond there is no deadline to speak of; NaN fails both comparisons.
        if !(self.ms <= MAX_MS && deadline > Nanos::ZERO) {
            return Err(Failure::input(format!("--deadline-ms is {}, expected above 0 and at most {MAX_MS}", self.ms)));
        }
        Ok(deadline)
    }
}
