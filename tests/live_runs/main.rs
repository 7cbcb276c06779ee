//! Tests that drive executors in real time: a program of their own, so that no other test takes their cores.

mod cooperation;
#[cfg(target_os = "linux")]
mod interrupts;
mod live;
mod live_command;
mod manual_clock;
#[path = "../skipped/mod.rs"]
mod skipped;
#[path = "../tiny_lab/mod.rs"]
mod tiny_lab;
