//! What threads do that have nothing to do: spin or sleep.
//!
//! A thread that spins takes its core all the time, and what it waits for finds it at once, its caches as they were and
//! its core's clock up. One that sleeps leaves the core to others; waking it takes tens of microseconds on an ordinary
//! kernel, more under a hypervisor, and the first query after finds the core cold: on short queries that is several
//! times what they take otherwise. So where a thread has a core of its own it spins as long as a run lasts, unless it is
//! told to sleep; between runs, and where cores are shared, threads sleep.

/// What a lane's thread and the driver do while they have nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Idle {
    /// Those with a core of their own spin as long as a run lasts
    #[default]
    Spin,
    /// After a fifth of a millisecond without work they sleep until some comes
    Sleep,
}

impl Idle {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Spin, Self::Sleep];

    /// `spin` or `sleep`, as in options and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Sleep => "sleep",
        }
    }
}

impl std::fmt::Display for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
