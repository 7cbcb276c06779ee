//! Idle threads spin or sleep.
//!
//! A spinning thread occupies its core, and work finds it at once, with warm caches and a high clock. A sleeping thread
//! leaves the core to others. Waking it takes tens of microseconds on an ordinary kernel and more under a hypervisor,
//! and the first query after it finds a cold core. Short queries then take several times as long. Threads with a core
//! of their own therefore spin during a run by default. Between runs, and on shared cores, threads sleep.

use crate::base::named::named_enum;

named_enum! {
    /// Behaviour of idle lane threads and of the idle driver.
    #[derive(Default, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Idle {
        #[default]
        Spin = "spin": "Threads with a core of their own spin during a run",
        Sleep = "sleep": "Threads sleep after a fifth of a millisecond without work",
    }
}
