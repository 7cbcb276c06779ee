//! Tests of the program and the library that depend on no clock, in one test program to compile and link once.

mod bench;
mod capacity;
mod cluster;
mod damaged;
mod effectiveness;
mod equality;
mod exchange;
mod faults;
mod fifo_queues;
mod fleet;
mod impacts;
mod index_build;
mod inputs;
mod json;
#[cfg(unix)]
mod output;
mod own_files;
mod plan;
mod planned_faults;
mod policies;
mod priorities;
mod profile;
mod queueing;
mod real_files;
mod refusals;
mod reorder;
mod report;
mod reproduce;
mod search;
mod sharing;
mod simulate;
#[path = "../skipped/mod.rs"]
mod skipped;
mod sustained;
mod sweep;
mod trace;
mod train;
mod unasked;
mod workload;

use std::collections::BTreeMap;
use std::path::Path;

/// Writes a machine profile that was measured with queries of this mean time on a CPU worker, in microseconds.
fn machine_of_queries(path: &Path, cpu_mean_us: &str) {
    use tandem::base::machine::Idle;
    use tandem::cost::MachineProfile;
    use tandem::cost::machine_profile::DispatcherProfile;
    let about = BTreeMap::from([(String::from("cpu_mean_us"), cpu_mean_us.to_owned())]);
    let profile = MachineProfile::new(about, Idle::Spin, BTreeMap::new(), DispatcherProfile::default());
    profile.write(path).unwrap();
}
