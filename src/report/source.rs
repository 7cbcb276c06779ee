//! Where a run's numbers come from.

use std::fmt;

/// Whether a row was simulated or measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// By the simulator.
    Simulated,
    /// Driven live; in live summaries the column `gpu` says whether the GPU was real.
    Live,
    /// Driven live with a lane that replays recorded times in the place of the GPU, where no column `gpu` says so.
    Replay,
}

impl Source {
    /// As in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Live => "live",
            Self::Replay => "replay",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
