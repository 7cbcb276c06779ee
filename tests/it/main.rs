//! Tests of the program and of the library that depend on no clock: one program, which builds and links once.

mod bench;
mod cached_first;
mod capacity;
mod cluster;
mod damaged;
mod effectiveness;
mod equality;
mod exchange;
mod faults;
mod index_build;
mod ingest;
mod inputs;
mod json;
mod lines;
#[cfg(unix)]
mod output;
mod policies;
mod profile;
mod queueing;
mod refusals;
mod reorder;
mod report;
mod reproduce;
mod search;
mod simulate;
#[path = "../skipped/mod.rs"]
mod skipped;
mod sweep;
mod trace;
mod train;
mod unasked;
mod workload;
