//! Idle threads spin or sleep.
//!
//! A spinning thread occupies its core, and work finds it at once, with warm caches and a high clock. A sleeping thread
//! leaves the core to others. Waking it takes tens of microseconds on an ordinary kernel and more under a hypervisor,
//! and the first query after it finds a cold core. Short queries then take several times as long. Threads with a core
//! of their own therefore spin during a run unless told to sleep. Between runs, and on shared cores, threads sleep.

/// Behaviour of idle lane threads and of the idle driver.
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
