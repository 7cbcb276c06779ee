//! Tests that drive executors in real time, in a program of their own, so that no other test takes their cores.
//!
//! They run one at a time: each keeps its driver and workers busy, and two at once would wait for each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

mod cooperation;
mod heap;
#[cfg(target_os = "linux")]
mod interrupts;
mod live;
mod live_command;
#[path = "../machines/mod.rs"]
mod machines;
mod manual_clock;
mod recorded;
mod sharing;
#[path = "../skipped/mod.rs"]
mod skipped;
mod target;
#[path = "../tiny_lab/mod.rs"]
mod tiny_lab;

/// Held by a test while it drives.
static DRIVING: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    DRIVING.lock().unwrap_or_else(PoisonError::into_inner)
}
